# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

journal ""
say "runs kubeadm reset"
run systemctl stop kubelet || true # it may not be there
if command -v kubeadm >/dev/null 2>&1; then
  # Its member of etcd has been taken out before, where the cluster goes on.
  must kubeadm reset --force --cri-socket unix:///run/containerd/containerd.sock --skip-phases=remove-etcd-member
fi
if [ -n "$KEEP" ] && [ -d /var/lib/etcd/member ]; then
  park
fi
rm -rf /etc/kubernetes/manifests /etc/kubernetes/pki /etc/kubernetes/patches /var/lib/kubelet/pki /etc/cni/net.d
if [ -d /var/lib/etcd ]; then
  find /var/lib/etcd -mindepth 1 -delete # it may be a file system of its own
fi
rm -f /etc/kubernetes/*.conf
journal ',"ended":true'
if [ -n "$FORGET" ]; then
  rm -f "$STATE/journal"
fi
say "has been reset"
