// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reserved is the registry of what Strata writes for itself: the labels,
// annotations, finalizers and types that it sets, and the objects that it makes. The
// names that no layer may list, the words that no directory may say, and the table in
// docs/reserved.md follow from it. Nothing here reads or writes anything.
package reserved
