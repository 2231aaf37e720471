// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"cmp"
	"context"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/internal/objects"
)

// reference says which chart a release wants, and from where.
type reference struct {
	// source is a HelmRepository, OCIRepository, GitRepository, Bucket or
	// ExternalArtifact.
	source objects.ID
	// chart is a name in a HelmRepository, a path in a GitRepository or Bucket, and
	// empty where the source is the chart.
	chart string
	// version is a version or a range; empty for the newest.
	version string
	// valuesFiles stand in for the chart's own values.yaml, and may lack.
	valuesFiles   []string
	ignoreMissing bool
	// byRevision puts the revision of the source into the chart's version.
	byRevision bool
	// trust says where the credentials of the source may be sent.
	trust Trust
}

// chart fetches the chart that a release wants.
func (r *Renderer) chart(ctx context.Context, q Request, release *helmv2.HelmRelease) (*chart.Chart, error) {
	ref, err := referenceOf(ctx, q, release)
	if err != nil {
		return nil, err
	}
	object, err := find(ctx, q, ref.source)
	if err != nil {
		return nil, err
	}
	if q.Trust != nil {
		ref.trust = q.Trust(object)
	}
	switch ref.source.Kind {
	case sourcev1.HelmRepositoryKind:
		if r.options.Offline != "" {
			return nil, problem(ChartUnavailable, nil, "%s is not asked: %s", ref.source, r.options.Offline)
		}
		repository := &sourcev1.HelmRepository{}
		if err := convert(object, repository); err != nil {
			return nil, err
		}
		if repository.Spec.Type == sourcev1.HelmRepositoryTypeOCI || strings.HasPrefix(repository.Spec.URL, ociScheme) {
			return r.fromRegistry(ctx, q, repository, ref)
		}
		return r.fromRepository(ctx, q, repository, ref)
	case sourcev1.OCIRepositoryKind:
		if r.options.Offline != "" {
			return nil, problem(ChartUnavailable, nil, "%s is not asked: %s", ref.source, r.options.Offline)
		}
		repository := &sourcev1.OCIRepository{}
		if err := convert(object, repository); err != nil {
			return nil, err
		}
		return r.fromArtifact(ctx, q, repository, ref.trust)
	case sourcev1.GitRepositoryKind, sourcev1.BucketKind, sourcev1.ExternalArtifactKind:
		return r.fromFiles(ctx, q, object, ref)
	}
	return nil, problem(Unsupported, nil, "a chart cannot be had from a %s", ref.source.Kind)
}

// referenceOf returns what a release says of its chart, or the HelmChart does that
// it names.
func referenceOf(ctx context.Context, q Request, release *helmv2.HelmRelease) (reference, error) {
	switch to, template := release.Spec.ChartRef, release.Spec.Chart; {
	case to != nil && to.Kind == sourcev1.HelmChartKind:
		object, err := find(ctx, q, sourceID(to.Kind, cmp.Or(to.Namespace, release.Namespace), to.Name))
		if err != nil {
			return reference{}, err
		}
		made := &sourcev1.HelmChart{}
		if err := convert(object, made); err != nil {
			return reference{}, err
		}
		spec := made.Spec
		return reference{
			source: sourceID(spec.SourceRef.Kind, made.Namespace, spec.SourceRef.Name),
			chart:  spec.Chart, version: spec.Version, valuesFiles: spec.ValuesFiles, ignoreMissing: spec.IgnoreMissingValuesFiles,
			byRevision: spec.ReconcileStrategy == sourcev1.ReconcileStrategyRevision,
		}, nil
	case to != nil:
		return reference{source: sourceID(to.Kind, cmp.Or(to.Namespace, release.Namespace), to.Name)}, nil
	case template != nil:
		spec := template.Spec
		return reference{
			source: sourceID(spec.SourceRef.Kind, cmp.Or(spec.SourceRef.Namespace, release.Namespace), spec.SourceRef.Name),
			chart:  spec.Chart, version: spec.Version, valuesFiles: spec.ValuesFiles, ignoreMissing: spec.IgnoreMissingValuesFiles,
			byRevision: spec.ReconcileStrategy == sourcev1.ReconcileStrategyRevision,
		}, nil
	}
	return reference{}, problem(ChartNotFound, nil, "%s names no chart: it needs spec.chart or spec.chartRef", objects.IDOf(q.Release))
}

func sourceID(kind, namespace, name string) objects.ID {
	return objects.ID{Group: sourcev1.GroupVersion.Group, Kind: kind, Namespace: namespace, Name: name}
}

// find returns a source, or a Problem where it cannot be had.
func find(ctx context.Context, q Request, id objects.ID) (*unstructured.Unstructured, error) {
	object, err := q.Find(ctx, id)
	if err != nil {
		return nil, problem(ChartUnavailable, err, "%s may not be read", id)
	}
	if object == nil {
		return nil, problem(ChartUnavailable, nil, "there is no %s", id)
	}
	return object, nil
}

func convert(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return problem(ChartUnavailable, err, "%s cannot be understood", objects.IDOf(object))
	}
	return nil
}

// ociScheme is what addresses of registries begin with.
const ociScheme = "oci://"
