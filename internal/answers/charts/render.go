// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// plan is all that a rendering depends on.
type plan struct {
	chart        *chart.Chart
	values       common.Values
	release      *helmv2.HelmRelease
	options      common.ReleaseOptions
	kubeVersion  string
	apiVersions  []string
	crds         helmv2.CRDsPolicy
	disableHooks bool
	anyValues    bool // no schema is asked
}

// fill renders a chart into a Rendering, within the time limit.
func (r *Renderer) fill(ctx context.Context, into *Rendering, c *chart.Chart, values common.Values, q Request, release *helmv2.HelmRelease) error {
	p := plan{
		chart:       c,
		values:      values,
		release:     release,
		kubeVersion: q.KubeVersion,
		apiVersions: q.APIVersions,
		options: common.ReleaseOptions{
			Name:      into.Release,
			Namespace: into.Namespace,
			Revision:  max(q.Revision, 1),
			IsInstall: q.Revision <= 1,
			IsUpgrade: q.Revision > 1,
		},
	}
	if p.options.IsInstall {
		with := release.GetInstall()
		p.crds, p.disableHooks, p.anyValues = with.CRDs, with.DisableHooks, with.DisableSchemaValidation
	} else {
		with := release.GetUpgrade()
		p.crds, p.disableHooks, p.anyValues = with.CRDs, with.DisableHooks, with.DisableSchemaValidation
	}
	type result struct {
		objects []*unstructured.Unstructured
		hooks   []*unstructured.Unstructured
		crds    []*unstructured.Unstructured
		err     error
	}
	done := make(chan result, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		var made result
		defer func() {
			if thrown := recover(); thrown != nil {
				made.err = problem(RenderFailed, nil, "chart %s %s breaks what renders it: %v", c.Name(), c.Metadata.Version, thrown)
			}
			done <- made
		}()
		made.objects, made.hooks, made.crds, made.err = p.run(ctx)
	}()
	limit := time.NewTimer(r.limits.render)
	defer limit.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return problem(RenderFailed, nil, "chart %s %s takes longer than %s to render", c.Name(), c.Metadata.Version, r.limits.render)
	case made := <-done:
		if made.err != nil {
			return made.err
		}
		scopes := scopesOf(q.Namespaced, made.objects, made.crds)
		into.Objects, into.Hooks = scopes.place(made.objects, into.Namespace), scopes.place(made.hooks, into.Namespace)
		into.CRDs, into.KeepCRDs = sorted(made.crds), p.crds != helmv2.CreateReplace
		return nil
	}
}

// run renders, in the order in which Helm does it.
func (p *plan) run(ctx context.Context) (objects, hooks, crds []*unstructured.Unstructured, err error) {
	name := p.chart.Name() + " " + p.chart.Metadata.Version
	failed := func(err error, what string) error {
		var known *Problem
		if errors.As(err, &known) {
			return err
		}
		return problem(RenderFailed, errors.New(strings.TrimSpace(err.Error())), "chart %s %s", name, what)
	}
	if err := chartutil.ValidateReleaseName(p.options.Name); err != nil {
		return nil, nil, nil, problem(RenderFailed, err, "%q cannot be the name of a Helm release", p.options.Name)
	}
	if err := chartutil.ProcessDependencies(p.chart, p.values); err != nil {
		return nil, nil, nil, failed(err, "has charts that cannot be put together")
	}
	if crds, err = p.crdObjects(); err != nil {
		return nil, nil, nil, failed(err, "has CRDs that cannot be read")
	}
	capabilities, err := capabilitiesOf(p.kubeVersion, p.apiVersions, crds)
	if err != nil {
		return nil, nil, nil, err
	}
	if wants := p.chart.Metadata.KubeVersion; wants != "" && !chartutil.IsCompatibleRange(wants, capabilities.KubeVersion.String()) {
		refused := problem(RenderFailed, nil, "chart %s needs Kubernetes %s, and this is %s", name, wants, capabilities.KubeVersion.Version)
		refused.Err = ErrKubeVersion
		return nil, nil, nil, refused
	}
	values, err := util.ToRenderValuesWithSchemaValidation(p.chart, p.values, p.options, capabilities, true)
	if err != nil {
		return nil, nil, nil, failed(err, "does not take the values")
	}
	if !p.anyValues {
		if err := validate(p.chart, values["Values"]); err != nil {
			return nil, nil, nil, failed(err, "refuses the values")
		}
	}
	files, err := engine.Engine{CustomTemplateFuncs: steady()}.Render(p.chart, values)
	if err != nil {
		return nil, nil, nil, failed(err, "cannot be rendered")
	}
	objects, hooks, err = p.objects(ctx, files)
	if err != nil {
		return nil, nil, nil, failed(err, "renders what cannot be applied")
	}
	return objects, hooks, crds, nil
}

// ErrKubeVersion is the cause of a Problem where the chart's own range of versions
// leaves out the version of Kubernetes.
var ErrKubeVersion = errors.New("the chart is not for this version of Kubernetes")

// notes is how the files end that tell people something, and hold no objects.
const notes = "NOTES.txt"

// objects returns the objects and the hooks of rendered files.
func (p *plan) objects(ctx context.Context, files map[string]string) (objects, hooks []*unstructured.Unstructured, err error) {
	for name := range files {
		if strings.HasSuffix(name, notes) {
			delete(files, name)
		}
	}
	// Says which file is wrong; behind the post-renderers nobody knows.
	if _, _, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder); err != nil {
		return nil, nil, err
	}
	if files, err = p.postRender(ctx, files); err != nil {
		return nil, nil, err
	}
	foundHooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, nil, err
	}
	for _, manifest := range manifests {
		if objects, err = decode(objects, manifest.Content); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", manifest.Name, err)
		}
	}
	for _, hook := range foundHooks {
		if hooks, err = decode(hooks, hook.Manifest); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", hook.Path, err)
		}
	}
	if p.disableHooks {
		hooks = nil
	}
	switch p.release.Spec.PostRenderStrategy {
	case helmv2.PostRenderStrategyNoHooks:
		return objects, hooks, p.label(objects)
	case helmv2.PostRenderStrategySeparate:
		return objects, hooks, errors.Join(p.label(objects), p.label(hooks))
	}
	return objects, hooks, p.label(slices.Concat(objects, hooks))
}

// crdObjects returns the CRDs in the folders crds of a chart and of those it
// depends on, unless the policy leaves them out.
func (p *plan) crdObjects() ([]*unstructured.Unstructured, error) {
	if p.crds == helmv2.Skip {
		return nil, nil
	}
	var crds []*unstructured.Unstructured
	for _, file := range p.chart.CRDObjects() {
		found, err := decode(nil, string(file.File.Data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Filename, err)
		}
		for _, each := range found {
			// Flux leaves out what else lies there.
			if each.GroupVersionKind().GroupKind() == crdKind {
				addLabels(each, originLabels(p.release))
				crds = append(crds, each)
			}
		}
	}
	return crds, nil
}

// capabilitiesOf returns what templates see of the cluster: its version, and the
// API versions that Kubernetes has there, those of CRDs, and others.
func capabilitiesOf(version string, more []string, crds []*unstructured.Unstructured) (*common.Capabilities, error) {
	capabilities := common.DefaultCapabilities.Copy()
	if version != "" {
		parsed, err := common.ParseKubeVersion(version)
		if err != nil {
			return nil, problem(RenderFailed, nil, "%q is no version of Kubernetes: it must be such as 1.34 or v1.34.2", version)
		}
		capabilities.KubeVersion = *parsed
	}
	served, err := servedVersions(capabilities.KubeVersion.String())
	if err != nil {
		return nil, err
	}
	for _, crd := range crds {
		served = append(served, versionsOf(crd)...)
	}
	served = append(served, more...)
	slices.Sort(served)
	capabilities.APIVersions = slices.Compact(served)
	return capabilities, nil
}
