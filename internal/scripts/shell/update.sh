# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

say "changes settings"
containers
# kubeadm writes the kubelet's configuration again, with what is different about the host.
must kubeadm upgrade node phase kubelet-config --patches "${KUBELET_PATCH_FILE%/*}"
must systemctl restart kubelet
say "has its settings"
