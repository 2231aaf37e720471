# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

journal ""
prepare
trap 'rm -f "$WORK/kubeadm.yaml"' EXIT
printf '%s\n' "$KUBEADM" >"$WORK/kubeadm.yaml"
say "runs kubeadm join"
# A kubelet that has its own certificate is not asked to get one again: kubeadm takes its
# Node for another host's then.
if [ -f /etc/kubernetes/kubelet.conf ]; then
  must systemctl start kubelet
  must kubeadm join --config "$WORK/kubeadm.yaml" --skip-phases=preflight,kubelet-start,kubelet-wait-bootstrap
else
  must kubeadm join --config "$WORK/kubeadm.yaml"
fi
address "$VIRTUAL"
modes
journal ',"ended":true'
say "has joined"
