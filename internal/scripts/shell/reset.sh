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
# The keys of the authorities, of etcd and of what is encrypted there; kubeadm keeps copies of
# manifests, and of etcd, in its folder for temporary files.
rm -rf /etc/kubernetes/manifests /etc/kubernetes/pki /etc/kubernetes/patches /etc/kubernetes/strata /etc/kubernetes/tmp /var/lib/kubelet/pki /etc/cni/net.d
if [ -d /var/lib/etcd ]; then
  find /var/lib/etcd -mindepth 1 -delete # it may be a file system of its own
fi
rm -f /etc/kubernetes/*.conf "$WORK"/*.yaml
# What an action has put aside that was killed belongs to what is gone.
rm -rf "$STATE/restoring" "$STATE/manifests" "$STATE/restore.tar.gz" "$STATE/restore.tar.gz.new"
journal ',"ended":true'
if [ -n "$FORGET" ]; then
  rm -rf "$STATE/journal" "$STATE"/etcd-*
fi
say "has been reset"
