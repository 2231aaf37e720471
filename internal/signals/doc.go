// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signals is how the controller is observed: its metrics, and the events
// that it hands to Flux's notification-controller. Nobody waits for either. It
// imports the API, the pure rooms, and of repos the errors.
package signals
