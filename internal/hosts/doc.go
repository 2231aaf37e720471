// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hosts decides what is done to the hosts of a cluster: an Observation in, a
// Decision out. It connects to nothing. Decide is where a rule about hosts belongs;
// what a host says is read by package probes, and what is decided is carried out by
// others.
//
// Two rules are above all others. A cluster is made only where nothing speaks for one
// that is there already. The members of etcd change only while more than half of them
// are healthy, and are so after the change.
package hosts
