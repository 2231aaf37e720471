// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import "fmt"

// Verdict returns the report in one sentence.
func (r Report) Verdict() string {
	no, unknown := 0, 0
	for _, layer := range r.Layers {
		switch layer.Upgrade {
		case No:
			no++
		case Unknown:
			unknown++
		}
	}
	switch of := fmt.Sprintf("of %s", count(len(r.Layers), "layer")); {
	case no > 0 && unknown > 0:
		return fmt.Sprintf("No: %d %s %s not ready for Kubernetes %s, and of %d it is not known.", no, of, isOrAre(no), r.Kubernetes, unknown)
	case no > 0:
		return fmt.Sprintf("No: %d %s %s not ready for Kubernetes %s.", no, of, isOrAre(no), r.Kubernetes)
	case unknown > 0:
		return fmt.Sprintf("Unknown: %d %s may not be ready for Kubernetes %s.", unknown, of, r.Kubernetes)
	}
	return fmt.Sprintf("Yes: %s %s ready for Kubernetes %s.", count(len(r.Layers), "layer"), isOrAre(len(r.Layers)), r.Kubernetes)
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
