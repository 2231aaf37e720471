// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/platforms"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/near"
)

func (t *tool) platformApprove(ctx context.Context, name, stage, reason, output string) error {
	p, err := t.platforms(ctx)
	if err != nil {
		return err
	}
	platform, err := platformNamed(p, name)
	if err != nil {
		return err
	}
	approval, stages, err := platforms.Approve(p.Observe(ctx, platform, p.World.Now), stage, reason)
	if err != nil {
		if meant := near.Near(stage, stages); len(meant) > 0 {
			return fmt.Errorf("%w; did you mean %s?", err, strings.Join(meant, " or "))
		}
		if len(stages) > 0 {
			return fmt.Errorf("%w; it has %s", err, strings.Join(stages, ", "))
		}
		return err
	}
	client, err := t.Cluster.Dynamic()
	if err != nil {
		return err
	}
	annotations := acts.ApproveOf(approval, platform.Annotations, gather.UserOf(ctx, client))
	// What somebody else has approved meanwhile must not be lost.
	err = t.Cluster.Annotate(ctx, acts.Patch{
		Resource: snapshot.Platforms.GroupVersionResource, Name: name, Annotations: annotations, Version: platform.ResourceVersion,
	})
	switch {
	case console.Forbidden(err):
		return fmt.Errorf("you may not approve for platform %s; ask for the right to patch platforms.kraan.io: %w", name, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("platform %s was changed at the same moment; nothing is approved, try again: %w", name, err)
	case err != nil:
		return t.Explain(err, snapshot.Platforms)
	}
	if output != "" {
		return t.PrintAs(output, approval)
	}
	t.Paragraph(t.Out, "stage %s of platform %s is approved for version %s: %s", stage, name, approval.Version, strings.Join(approval.Clusters, ", "))
	if approval.Waits != "" {
		t.Paragraph(t.Out, "it begins when that is done: %s", approval.Waits)
	}
	return nil
}
