// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printing writes answers for people: as lines that fit a terminal, and as
// comments on pull requests. It imports answers and the terminal, and asks nothing.
package printing

import "fmt"

// count says how many there are of something.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
