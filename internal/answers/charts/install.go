// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// Installable is what Helm's library installs for a release: what helm-controller would
// give to it.
type Installable struct {
	// Release as it was asked for.
	Release *helmv2.HelmRelease
	// Name of the Helm release, and Namespace where its objects are.
	Name, Namespace string
	Chart           *chart.Chart
	// Values of the release, without those of the chart. Values of Secrets are in them.
	Values map[string]any
}

// Load returns the chart and the true values of a release. The error is a Problem, or the
// context's.
func (r *Renderer) Load(ctx context.Context, q Request) (loaded *Installable, err error) {
	defer func() {
		// As in Render: archives are of others' making.
		if thrown := recover(); thrown != nil {
			loaded, err = nil, problem(ChartUnavailable, nil, "the chart of %s breaks what reads it: %v", objects.IDOf(q.Release), thrown)
		}
	}()
	release := &helmv2.HelmRelease{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(q.Release.Object, release); err != nil {
		return nil, problem(RenderFailed, err, "%s cannot be understood", objects.IDOf(q.Release))
	}
	q.Secrets.True = true
	loaded = &Installable{Release: release, Name: path.Base(kinds.HelmReleaseIdentity(q.Release)), Namespace: release.GetReleaseNamespace()}
	if loaded.Chart, err = r.chart(ctx, q, release); err != nil {
		return nil, err
	}
	values, err := valuesOf(ctx, q, release)
	if err != nil {
		return nil, values.texts.redact(err)
	}
	loaded.Values = values.Values
	return loaded, nil
}

// PostRenderer returns what changes the manifests of the release, as helm-controller does:
// by its own post-renderers, its common metadata, and the labels that name the release.
func (i *Installable) PostRenderer(ctx context.Context) *PostRenderer {
	return &PostRenderer{ctx: ctx, plan: plan{release: i.Release}}
}

// PostRenderer is called by Helm's library, which hands no context on. It is one of Helm's
// own by its method.
type PostRenderer struct {
	ctx  context.Context //nolint:containedctx // see above
	plan plan
}

// Run returns manifests as they are to be applied.
func (p *PostRenderer) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	text, err := p.plan.postRenderStream(p.ctx, rendered.String())
	if err != nil {
		return nil, err
	}
	found, err := decode(nil, text)
	if err != nil {
		return nil, err
	}
	if err := p.plan.label(found); err != nil {
		return nil, err
	}
	made := &bytes.Buffer{}
	for _, object := range found {
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", objects.IDOf(object), err)
		}
		made.WriteString(strings.TrimPrefix(separator, "\n"))
		made.Write(data)
	}
	return made, nil
}
