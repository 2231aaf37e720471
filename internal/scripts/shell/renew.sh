# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# What runs reads its certificates when it starts.
journal ""
say "renews its certificates"
must kubeadm certs renew all
say "starts its control plane again"
stop_static
start_static
journal ',"ended":true'
say "has new certificates"
