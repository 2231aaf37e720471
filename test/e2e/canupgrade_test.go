// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"testing"
)

// The plug-in says which layers are ready for another version of Kubernetes:
// what Helm has deployed is rendered for it, from the repository of the charts.
func TestThePluginLooksAtAnotherVersionOfKubernetes(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
	f.publishChart("fine", map[string]string{"templates/it.yaml": settings})
	f.publishChart("later", map[string]string{
		"templates/it.yaml": settings + "{{ if semverCompare \">=1.37-0\" .Capabilities.KubeVersion.Version }}\n---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: late}\n{{ end }}",
	})
	f.publishChart("fails", map[string]string{
		"templates/it.yaml": settings + "{{ if semverCompare \">=1.37-0\" .Capabilities.KubeVersion.Version }}{{ fail \"not yet\" }}{{ end }}",
	})
	revision := f.push(map[string]string{
		"base/release.yaml": f.chartRelease("fine"), "apps/later.yaml": f.chartRelease("later"), "apps/fails.yaml": f.chartRelease("fails"),
	})
	f.layer("base")
	f.layer("apps")
	f.deployed("base", revision)
	f.deployed("apps", revision)
	base, apps := f.name("base"), f.name("apps")

	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	admin.expect(0, []string{apps + " yes", base + " yes", "Yes: 2 layers are ready for Kubernetes 1.36."}, "can-upgrade", "--k8s", "1.36", base, apps)
	admin.expect(2, []string{
		apps + " no", base + " yes",
		"HelmRelease " + f.prefix + "/fails: chart " + f.prefix + "-fails 1.0.0 cannot be rendered:", "not yet",
		"HelmRelease " + f.prefix + "/later (chart " + f.prefix + "-later 1.0.0) renders PodDisruptionBudget " + f.prefix + "/late at policy/v1beta1, which Kubernetes 1.25 has removed",
		"No: 1 of 2 layers is not ready for Kubernetes 1.37.",
	}, "can-upgrade", "--k8s", "1.37", base, apps)
	admin.expect(1, []string{"did you mean " + base}, "can-upgrade", "--k8s", "1.37", base+"s")
	plugin{fixture: f, path: path}.of("nobody").expect(1, []string{"strata-view"}, "can-upgrade", "--k8s", "1.37")
}
