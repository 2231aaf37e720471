// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package directories

// IsStratas tells whether the controller has made a manifest itself, or only looks
// at what it names: no directory lists it.
func (m Manifest) IsStratas() bool { return m.Copy || m.Home || m.Ensured || m.Observed }
