// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// renderers is how many charts are rendered at once.
const renderers = 4

// checkKubernetes finds what a Kubernetes version does not serve, in what the layers
// list, and in what their charts make.
func (l *linter) checkKubernetes() error {
	if l.Kubernetes == "" {
		return nil
	}
	byID := map[objects.ID]*unstructured.Unstructured{}
	for _, each := range l.objects {
		byID[objects.IDOf(each.Unstructured)] = each.Unstructured
	}
	var all []claim
	for _, each := range l.layers {
		if each.content == nil {
			continue
		}
		for _, manifest := range each.content.Manifests {
			byID[manifest.ID()] = manifest.Object
			all = append(all, claim{each, manifest})
		}
	}
	for _, each := range all {
		removed, err := charts.RemovedAPIs([]*unstructured.Unstructured{each.manifest.Object}, l.Kubernetes)
		if err != nil {
			return err
		}
		for _, found := range removed {
			l.add(ruleRemovedAPI, l.originOf(each), "apiVersion", each.layer.label(), "%s", l.removed(found))
		}
	}
	if l.Render == nil {
		return nil
	}
	return l.renderAll(all, byID)
}

// removed says which API is not served, and what takes its place.
func (l *linter) removed(found charts.RemovedAPI) string {
	text := fmt.Sprintf("Kubernetes %s does not serve %s of %s", l.Kubernetes, found.APIVersion, found.ID)
	switch {
	case found.IntroducedIn != "":
		text += ", which is new in " + found.IntroducedIn
	case found.RemovedIn != "":
		text += ", which was removed in " + found.RemovedIn
	}
	if found.Replacement != "" {
		text += ": write " + found.Replacement
	}
	return text
}

// renderAll renders the charts of all releases.
func (l *linter) renderAll(all []claim, byID map[objects.ID]*unstructured.Unstructured) error {
	all = slices.DeleteFunc(all, func(each claim) bool { return each.manifest.ID().GroupKind() != kinds.HelmReleaseKind })
	renderings, problems := make([]*charts.Rendering, len(all)), make([]error, len(all))
	group, ctx := errgroup.WithContext(l.ctx)
	group.SetLimit(renderers)
	for i, each := range all {
		group.Go(func() error {
			renderings[i], problems[i] = l.Render(ctx, l.request(each, byID))
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, each := range all {
		if err := l.judge(each, renderings[i], problems[i]); err != nil {
			return err
		}
	}
	return nil
}

func (l *linter) request(of claim, byID map[objects.ID]*unstructured.Unstructured) charts.Request {
	return charts.Request{
		Release: of.manifest.Object, KubeVersion: l.Kubernetes, Revision: 1,
		// There is no cluster that says where credentials may be sent; and what Secrets
		// there are, are in the files that are looked at.
		Trust: func(source *unstructured.Unstructured) charts.Trust {
			return charts.Withhold(source, "lint sends none")
		},
		Secrets: charts.Secrets{True: true},
		Find:    func(_ context.Context, id objects.ID) (*unstructured.Unstructured, error) { return byID[id], nil },
		Files: func(_ context.Context, source objects.ID) (fs.FS, error) {
			if of.layer.source.ID() == source {
				return l.Artifact, nil
			}
			return nil, nil
		},
	}
}

// judge says what is wrong with what a chart makes, or that there is none.
func (l *linter) judge(of claim, made *charts.Rendering, err error) error {
	at, name := l.originOf(of), of.layer.label()
	var problem *charts.Problem
	switch {
	case errors.As(err, &problem) && (problem.Reason == charts.ChartNotFound || problem.Reason == charts.RenderFailed):
		l.add(ruleChart, at, "spec", name, "%s", problem.Message)
		return nil
	case err != nil:
		l.add(ruleChartUnavailable, at, "spec", name, "was not checked: %v", err)
		return nil
	}
	for _, definition := range made.CRDs {
		l.schemas.Define(definition)
	}
	removed, err := charts.RemovedAPIs(slices.Concat(made.CRDs, made.Objects, made.Hooks), l.Kubernetes)
	if err != nil {
		return err
	}
	for _, found := range removed {
		l.add(ruleRemovedAPI, at, "spec", name, "its chart %s %s: %s", made.Chart, made.Version, l.removed(found))
	}
	return nil
}
