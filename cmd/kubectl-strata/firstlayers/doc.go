// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package firstlayers fills a cluster that has just been made. Flux and Strata are Pods, and
// no Pod runs without a network: the releases of the layers that bring it are installed with
// Helm's library, as the controller and helm-controller would have them. Then come Flux and
// Strata, and the layers find their releases as they run.
//
// Decide says what is to be done, from values alone. Filling reads and does it.
package firstlayers
