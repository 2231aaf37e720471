#!/bin/sh
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# The kubelet as the unit of its package runs it.
if [ $# -gt 0 ]; then
  exec real-kubelet "$@"
fi
KUBELET_KUBEADM_ARGS=
if [ -e /var/lib/kubelet/kubeadm-flags.env ]; then
  # shellcheck disable=SC1091 # kubeadm writes it
  . /var/lib/kubelet/kubeadm-flags.env
fi
# shellcheck disable=SC2086 # these are several words
exec real-kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
  --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS
