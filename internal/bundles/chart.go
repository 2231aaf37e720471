// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
)

const sourceAPI = "source.toolkit.fluxcd.io/v1"

// chartMediaType is that of a chart in a registry.
const chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// chart adds the source of an application's chart, and has the release refer to it.
func (r *rendering) chart(application slot, spec map[string]any) error {
	chart := application.version.Chart
	switch {
	case chart.Repository != nil:
		name, err := r.source(application, "HelmRepository", hostOf(chart.Repository.URL), withSecret(chart.Repository.SecretRef, map[string]any{
			"type": "default", "url": chart.Repository.URL,
		}))
		if err != nil {
			return err
		}
		spec["chart"] = map[string]any{"spec": map[string]any{
			"chart": chart.Repository.Chart, "version": cmp.Or(chart.Repository.Version, application.version.Version),
			"sourceRef": map[string]any{"kind": "HelmRepository", "name": name},
		}}
	case chart.OCI != nil:
		name, err := r.source(application, "OCIRepository", lastOf(chart.OCI.URL), ociRepository(chart.OCI, application.version.Version))
		if err != nil {
			return err
		}
		spec["chartRef"] = map[string]any{"kind": "OCIRepository", "name": name}
	case chart.Git != nil:
		ref := map[string]any{"tag": chart.Git.Tag}
		if chart.Git.Commit != "" {
			ref = map[string]any{"commit": chart.Git.Commit}
		}
		name, err := r.source(application, "GitRepository", lastOf(chart.Git.URL), withSecret(chart.Git.SecretRef, map[string]any{
			"url": chart.Git.URL, "ref": ref,
		}))
		if err != nil {
			return err
		}
		spec["chart"] = map[string]any{"spec": map[string]any{
			"chart": chart.Git.Path, "sourceRef": map[string]any{"kind": "GitRepository", "name": name},
			// Two commits may hold different charts of one version.
			"reconcileStrategy": "Revision",
		}}
	default:
		return r.mistake(
			application.field("version"),
			"version %s of HelmApplication %s has no chart",
			application.Version,
			ApplicationName(application.BundleApplication),
		)
	}
	return nil
}

func ociRepository(oci *v1alpha1.ChartOCI, version string) map[string]any {
	ref := map[string]any{"tag": cmp.Or(oci.Tag, version)}
	if oci.Digest != "" {
		ref = map[string]any{"digest": oci.Digest}
	}
	spec := map[string]any{
		"url": oci.URL, "ref": ref,
		"layerSelector": map[string]any{"mediaType": chartMediaType, "operation": "copy"},
	}
	if oci.Insecure {
		spec["insecure"] = true
	}
	return withSecret(oci.SecretRef, spec)
}

func withSecret(secret *v1alpha1.SecretReference, spec map[string]any) map[string]any {
	if secret != nil {
		spec["secretRef"] = map[string]any{"name": secret.Name}
	}
	return spec
}

// source adds a source, and returns its name. It is named after its content, so
// that another content makes another generation of the release, which is not taken
// for Ready because its last one is; and after the AddonsLayer, so that it has but
// one owner. Applications of a layer share one.
func (r *rendering) source(application slot, kind, readable string, spec map[string]any) (string, error) {
	spec["interval"] = sourceInterval
	content, err := canonical(map[string]any{"layer": r.Layer, "kind": kind, "spec": spec})
	if err != nil {
		return "", r.mistake(application.field("version"), "%s", err)
	}
	name := cut(cmp.Or(slug(readable), "chart"), maxName-hashLength-1) + "-" + hashOf(content)
	obj := newObject(sourceAPI, kind, application.namespace, name)
	obj.Object["spec"] = spec
	for _, manifest := range r.manifests {
		if manifest.Object.GetKind() == kind && manifest.Object.GetNamespace() == application.namespace && manifest.Object.GetName() == name {
			return name, nil
		}
	}
	r.add(application.field(""), obj)
	return name, nil
}

// hostOf returns the host of a URL, and lastOf the last part of its path, as far as
// they can be told: they are for people to read.
func hostOf(url string) string {
	host, _, _ := hostAndPort(url)
	return host
}

func lastOf(url string) string {
	trimmed := strings.TrimSuffix(strings.TrimRight(url, "/"), ".git")
	return trimmed[strings.LastIndex(trimmed, "/")+1:]
}
