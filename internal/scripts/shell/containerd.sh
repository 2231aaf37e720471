# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Pods have left the host, but for those of its own. They start again with the one that is
# new.
journal ""
say "upgrades containerd"
packages containerd
containers
must systemctl daemon-reload
must systemctl restart containerd
must systemctl restart kubelet
modes
journal ',"ended":true'
say "has another containerd"
