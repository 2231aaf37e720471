// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

// platforms reads what Platforms are decided from.
func (t *tool) platforms(ctx context.Context) (*gather.Platforms, error) {
	p, s, err := t.Cluster.Platforms(ctx)
	if err == nil {
		t.WarnUnread(s, "what follows from them is not known")
	}
	return p, err
}

// platformNamed returns a Platform that was read.
func platformNamed(p *gather.Platforms, name string) (*v1alpha1.Platform, error) {
	var names []string
	for _, platform := range p.World.Platforms {
		if platform.Name == name {
			return platform, nil
		}
		names = append(names, platform.Name)
	}
	return nil, console.NoSuch(snapshot.Platforms, name, names)
}

// tellMissing says what could not be read beside lists, which are told already.
func (t *tool) tellMissing(p *gather.Platforms) {
	for _, missing := range p.Missing {
		if strings.HasPrefix(missing, "ConfigMap ") {
			t.Paragraph(t.ErrOut, "kubectl strata: cannot read %s", missing)
		}
	}
}
