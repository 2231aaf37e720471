# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# modes leaves to root alone what the CIS benchmark for Kubernetes wants so. kubeadm and
# packages leave some of it for all to read.
modes() {
  for file in /etc/kubernetes/manifests/*.yaml /etc/kubernetes/*.conf /etc/kubernetes/pki/*.key /etc/kubernetes/pki/etcd/*.key \
    /var/lib/kubelet/config.yaml /var/lib/kubelet/kubeadm-flags.env /usr/lib/systemd/system/kubelet.service \
    /usr/lib/systemd/system/kubelet.service.d/*.conf /etc/cni/net.d/*.conf /etc/cni/net.d/*.conflist /etc/containerd/config.toml; do
    if [ -f "$file" ]; then
      chown root:root "$file"
      chmod 600 "$file"
    fi
  done
  if [ -d /var/lib/etcd ]; then
    chmod 700 /var/lib/etcd
  fi
}
