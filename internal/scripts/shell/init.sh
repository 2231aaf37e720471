# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

journal ""
prepare
trap 'rm -f "$WORK/kubeadm.yaml"' EXIT
printf '%s\n' "$KUBEADM" >"$WORK/kubeadm.yaml"
address "$VIRTUAL_FIRST"
say "runs kubeadm init"
must kubeadm init --config "$WORK/kubeadm.yaml" --skip-token-print
address "$VIRTUAL"
modes
journal ',"ended":true'
say "has initialised the cluster"
