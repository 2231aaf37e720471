// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a real Kubernetes control plane with the Flux
// controllers, as plain processes on loopback, for tests and for the demo.
//
// Nothing is faked but the kubelet: etcd, kube-apiserver (RBAC on),
// kube-controller-manager, kube-scheduler, source-controller, helm-controller
// and notification-controller are the released programs, and kwok plays the nodes, so
// that the pods of a Deployment become ready. GitServer and ChartServer are
// the places that Flux fetches from.
//
// The programs come from a cache folder that `make controlplane` fills. Every
// component can be stopped, killed and started again with the same ports and
// data. No process outlives the one that started it.
package controlplane
