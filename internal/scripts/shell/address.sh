# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# address has the host take its turn with the address of the endpoint, by the Pod of kube-vip
# that is given; there may be none.
address() {
  if [ -n "$1" ]; then
    put /etc/kubernetes/manifests/kube-vip.yaml "$1" 600
  fi
}
