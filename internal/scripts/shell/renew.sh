# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# What runs reads its certificates when it starts.
journal ""
say "renews its certificates"
must kubeadm certs renew all
say "starts its control plane again"
stop_static etcd kube-apiserver kube-controller-manager kube-scheduler
start_static
modes
journal ',"ended":true'
say "has new certificates"
