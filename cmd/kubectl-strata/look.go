// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/releases"
)

// readMade reads the objects of kinds, and says which of them may not be listed.
func (t *tool) readMade(ctx context.Context, wanted []releases.Wanted) (*releases.Live, error) {
	live, err := t.cluster.Made(ctx, wanted)
	if err == nil {
		t.warnKinds(live)
	}
	return live, err
}

// warnKinds says which kinds could not be read for lack of rights.
func (t *tool) warnKinds(live *releases.Live) {
	var lacking []string
	for kind, why := range live.Unread {
		if why == gather.MayNotList {
			lacking = append(lacking, kind)
		}
	}
	if len(lacking) > 0 {
		slices.Sort(lacking)
		fmt.Fprintf(t.errOut, "kubectl strata: you may not list %s, so how these are is not shown\n", strings.Join(lacking, ", "))
	}
}
