// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func deployment(namespace, name, image string, ready int32) appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{versionLabel: "v2.7.0"}}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
	d.Status.ReadyReplicas = ready
	return d
}

func crd(fields ...string) *apiextensionsv1.CustomResourceDefinition {
	spec := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, field := range fields {
		spec.Properties[field] = apiextensionsv1.JSONSchemaProps{}
	}
	made := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "things.kraan.io", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}, Annotations: map[string]string{"meta.helm.sh/release-name": "strata"},
	}}
	made.Spec.Group, made.Spec.Names.Plural = "kraan.io", "things"
	made.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"items": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &spec}}}},
		}},
	}}}
	made.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	return made
}

var wanted = Wanted{
	Version: "v0.2.0", Kubernetes: ">=1.29.0", CRDs: []*apiextensionsv1.CustomResourceDefinition{crd("a", "b")},
	Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"kraan.io"}, Resources: []string{"things", "things/status"}, Verbs: []string{"get", "patch"}},
		{NonResourceURLs: []string{"/version"}, Verbs: []string{"get"}},
	},
}

// well returns the facts of a cluster in which all is well.
func well() Facts {
	f := Facts{
		Kubernetes: "v1.33.5-eks-1234", Served: map[schema.GroupVersionResource]bool{}, May: map[Right]bool{},
		CRDs:  map[string]*apiextensionsv1.CustomResourceDefinition{"things.kraan.io": crd("a", "b", "c")},
		Roles: []rbacv1.ClusterRole{{Rules: slices.Clone(wanted.Rules)}},
		Deployments: []appsv1.Deployment{
			deployment("flux-system", "source-controller", "ghcr.io/fluxcd/source-controller:v1.7.0", 1),
			deployment("flux-system", "flux2-helm", "registry:5000/fluxcd/helm-controller@sha256:0123", 1),
			deployment("strata-system", "strata", "strata:0.2.0", 1),
		},
	}
	f.Deployments[2].Labels = map[string]string{"app.kubernetes.io/name": "strata", versionLabel: "0.2.0"}
	for _, resource := range append(FluxResources(), wanted.Resources()...) {
		f.Served[resource] = true
	}
	for _, right := range CommandRights {
		f.May[right] = true
	}
	return f
}

func TestAll(t *testing.T) {
	forbidden := errors.New(`things is forbidden: User "eve" cannot list them`)
	zero := int32(0)
	for name, c := range map[string]struct {
		change func(*Facts)
		result Result
		words  string
	}{
		"all is well":         {func(*Facts) {}, OK, "you may do what all commands need"},
		"old Kubernetes":      {func(f *Facts) { f.Kubernetes = "v1.28.9" }, Fail, "Kubernetes is v1.28.9, and Strata needs >=1.29.0"},
		"no version":          {func(f *Facts) { f.Kubernetes = "" }, Fail, "Strata needs >=1.29.0"},
		"no Flux":             {func(f *Facts) { f.Served = map[schema.GroupVersionResource]bool{}; f.Deployments = f.Deployments[2:] }, Fail, "does not serve helmreleases.v2.helm.toolkit.fluxcd.io"},
		"old Flux":            {func(f *Facts) { delete(f.Served, sources("externalartifacts")[0]) }, Warn, "does not serve externalartifacts.v1.source.toolkit.fluxcd.io"},
		"Flux elsewhere":      {func(f *Facts) { f.Deployments = f.Deployments[1:] }, Warn, "source-controller: its kinds are served, and there is no Deployment of it"},
		"Flux is down":        {func(f *Facts) { f.Deployments[0].Status.ReadyReplicas = 0 }, Fail, "source-controller: Deployment flux-system/source-controller of version v2.7.0 (ghcr.io/fluxcd/source-controller:v1.7.0) is not ready"},
		"no Deployments seen": {func(f *Facts) { f.Deployments, f.DeploymentsErr = nil, forbidden }, Warn, `the controller: whether it runs is not known: User "eve" cannot list them`},
		"no CRD":              {func(f *Facts) { f.CRDs = nil }, Fail, "CRD things.kraan.io is missing"},
		"older CRD":           {func(f *Facts) { f.CRDs["things.kraan.io"] = crd("a") }, Fail, "it lacks spec.items[].b"},
		"CRD without schema":  {func(f *Facts) { f.CRDs["things.kraan.io"].Spec.Versions[0].Schema = nil }, Fail, "is older than the plug-in"},
		"CRD not served":      {func(f *Facts) { f.CRDs["things.kraan.io"].Status.Conditions = nil }, Fail, "CRD things.kraan.io is not served yet"},
		"version not served":  {func(f *Facts) { f.CRDs["things.kraan.io"].Spec.Versions[0].Served = false }, Fail, "does not serve the version v1alpha1"},
		"stored otherwise":    {func(f *Facts) { f.CRDs["things.kraan.io"].Status.StoredVersions = []string{"v1beta1"} }, Warn, "objects stored in the version v1beta1"},
		"CRDs not read":       {func(f *Facts) { f.CRDs, f.CRDsErr = nil, forbidden }, Warn, "what fields they have is not known"},
		"CRDs not read, nor served": {func(f *Facts) {
			f.CRDs, f.CRDsErr = nil, forbidden
			delete(f.Served, wanted.Resources()[0])
		}, Fail, "does not serve things.v1alpha1.kraan.io"},
		"no controller":      {func(f *Facts) { f.Deployments = f.Deployments[:2] }, Fail, "the controller: no Deployment"},
		"controller is down": {func(f *Facts) { f.Deployments[2].Status.ReadyReplicas = 0 }, Fail, "the controller: Deployment strata-system/strata of version 0.2.0 (strata:0.2.0) is not ready"},
		"older controller":   {func(f *Facts) { f.Deployments[2].Labels[versionLabel] = "0.1.0" }, Warn, "is ready, and the plug-in is of version v0.2.0"},
		"two controllers":    {func(f *Facts) { f.Deployments = append(f.Deployments, f.Deployments[2]) }, Warn, "there are 2 Deployments of Strata"},
		"a right is gone":    {func(f *Facts) { f.Roles[0].Rules = f.Roles[0].Rules[1:] }, Fail, "do not let it get things.kraan.io, get things/status.kraan.io, patch things.kraan.io and 1 more"},
		"a verb is gone":     {func(f *Facts) { f.Roles[0].Rules[0].Verbs = []string{"get"} }, Fail, "do not let it patch things.kraan.io, patch things/status.kraan.io"},
		"some names alone":   {func(f *Facts) { f.Roles[0].Rules[0].ResourceNames = []string{"one"} }, Fail, "do not let it get things.kraan.io"},
		"another path":       {func(f *Facts) { f.Roles[0].Rules[1].NonResourceURLs = []string{"/healthz"} }, Fail, "do not let it get /version"},
		"all rights": {func(f *Facts) {
			f.Roles[0].Rules = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}, {NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}}
		}, OK, "have all rights"},
		"no roles":       {func(f *Facts) { f.Roles = nil }, Warn, "no ClusterRole has the label"},
		"roles not read": {func(f *Facts) { f.RolesErr = forbidden }, Warn, "the controller's rights are not known"},
		"Kraan runs": {func(f *Facts) {
			f.Deployments = append(f.Deployments, deployment("gotk-system", "kraan-controller", "kraan", 1))
		}, Fail, "two controllers must never work on the same layers"},
		"Kraan is stopped": {func(f *Facts) {
			stopped := deployment("gotk-system", "kraan-controller", "kraan", 0)
			stopped.Spec.Replicas = &zero
			f.Deployments = append(f.Deployments, stopped)
		}, Warn, "Kraan's own controller is stopped"},
		"few rights": {func(f *Facts) { f.May[CommandRights[6]] = false }, Warn, "you may not patch addonslayers.kraan.io"},
		"a Secret that is not shared": {func(f *Facts) {
			f.Unshared = []Unshared{{Layer: "base", Secret: "fleet/db", Cluster: "fleet/prod", Share: "kubectl --namespace fleet annotate --field-manager=strata-cli secret db kraan.io/share-with=remotecluster/fleet/prod"}}
		}, Warn, "layer base has a copy of Secret fleet/db, which nobody has shared with RemoteCluster fleet/prod: the copy goes with the next minor version"},
		"a Secret that is given to nobody": {func(f *Facts) {
			f.Unshared = []Unshared{{Layer: "base", Secret: "fleet/ssh", Cluster: "fleet/prod", Never: "what HostClusters log in with"}}
		}, Warn, "layer base has a copy of Secret fleet/ssh, which is what HostClusters log in with: no layer of another cluster is given that"},
		"Secrets not read": {func(f *Facts) { f.UnsharedErr = forbidden }, Warn, "which Secrets layers of other clusters have is not known"},
		"rights asked":     {func(f *Facts) { f.MayErr = forbidden }, Warn, "what you may do is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			f := well()
			c.change(&f)
			findings := All(f, wanted)
			at := slices.IndexFunc(findings, func(f Finding) bool { return f.Result == c.result && strings.Contains(f.What, c.words) })
			if at < 0 {
				t.Fatalf("no %s says %q:\n%+v", c.result, c.words, findings)
			}
			if Failed(findings) != (c.result == Fail) {
				t.Errorf("failed: %v:\n%+v", Failed(findings), findings)
			}
			for _, finding := range findings {
				if finding.Result == OK && finding.Do != "" || finding.Result == Fail && finding.Do == "" {
					t.Errorf("%+v: what fails says what to do, and what is well does not", finding)
				}
			}
		})
	}
}

func TestVersionsThatAreNoReleaseAreNotCompared(t *testing.T) {
	for versions, want := range map[[2]string]string{
		{"dev", "0.1.0"}:               "",
		{"v0.2.0-4-g0123456", "0.1.0"}: "",
		{"0.1.0", "v0.1.0"}:            "",
		{"0.1.0", "0.2.0"}:             "take the plug-in of the controller's version",
		{"0.2.0", "0.1.0"}:             "kubectl strata install upgrades the controller",
	} {
		if got := differ(versions[0], versions[1]); got != want {
			t.Errorf("%v: %q, want %q", versions, got, want)
		}
	}
}

func TestBeforeLooksAtWhatOthersHaveMade(t *testing.T) {
	f := well()
	f.CRDs["things.kraan.io"].Labels = nil
	findings := Before(f, wanted)
	if Failed(findings) || !slices.ContainsFunc(findings, func(f Finding) bool { return f.Check == Ownership && strings.Contains(f.Do, "--take-ownership") }) {
		t.Errorf("%+v", findings)
	}
}
