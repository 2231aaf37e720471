// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
)

func TestParseLayerKinds(t *testing.T) {
	secrets, issuers := schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Group: "cert-manager.io", Resource: "issuers"}
	for name, tc := range map[string]struct {
		texts   []string
		secrets bool
		issuers bool
		err     string
	}{
		"none":                  {nil, false, false, ""},
		"a kind without group":  {[]string{"configmaps", "secrets"}, true, false, ""},
		"a kind of a group":     {[]string{"issuers.cert-manager.io"}, false, true, ""},
		"a group":               {[]string{"*.cert-manager.io"}, false, true, ""},
		"all without group":     {[]string{"*."}, true, false, ""},
		"a kind of every group": {[]string{"issuers.*"}, false, true, ""},
		"all":                   {[]string{"*"}, true, true, ""},
		"a subresource":         {[]string{"secrets/status"}, true, false, ""},
		"no name":               {[]string{"Secrets and more"}, false, false, `"Secrets and more" is no kind`},
		"nothing":               {[]string{""}, false, false, `"" is no kind`},
	} {
		t.Run(name, func(t *testing.T) {
			kinds, err := ParseLayerKinds(tc.texts)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("the error is %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || kinds == nil {
				t.Fatalf("kinds %v, error %v: a list that was given is one, also where it is empty", kinds, err)
			}
			if diff := cmp.Diff([]bool{tc.secrets, tc.issuers}, []bool{kinds.Has(secrets), kinds.Has(issuers)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What the controller may write for itself is not what layers may write: only the
// list opens a kind to a layer that has no account.
func TestKindsOfLayersWithoutAnAccount(t *testing.T) {
	secret := secretListed("kube-system", "coredns")
	secret.File, secret.Line = "base/secret.yaml", 2
	refusal := "base/secret.yaml:2: Secret kube-system/coredns: layers without an account may not hold secrets: add the kind to rbac.kinds of the chart (--layer-kinds), or give the layer a serviceAccountName"
	only := func(kinds ...string) func(*Observation) {
		return func(o *Observation) {
			var err error
			if o.Settings.LayerKinds, err = ParseLayerKinds(kinds); err != nil {
				panic(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		layer   *v1alpha1.AddonsLayer
		change  func(*Observation)
		refused bool
	}{
		"no list":         {"without the flag all is as it was", layer(), func(*Observation) {}, false},
		"empty list":      {"only what layers are made of", layer(), only(), true},
		"another kind":    {"each is listed by itself", layer(), only("configmaps"), true},
		"another group":   {"of the same name", layer(), only("secrets.example.com"), true},
		"listed":          {"by whoever installed the chart", layer(), only("secrets"), false},
		"with an account": {"its own rights count", layer(actsAs("deployer")), only(), false},
		"default account": {"whichever it is", layer(), func(o *Observation) { only()(o); o.Settings.DefaultServiceAccount = "layers" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(observation(tc.layer, directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), secret), secretsServed, tc.change))
			refused := d.State == v1alpha1.StateFailed && d.Reason == v1alpha1.ReasonApplyFailed && d.Stalled && strings.HasPrefix(d.Message, refusal)
			if refused != tc.refused {
				t.Errorf("%s: it is %s (%s): %s", tc.reason, d.State, d.Reason, d.Message)
			}
			if refused && d.Plan.Writes() {
				t.Errorf("%s: it writes: %s", tc.reason, verbs(d.Plan))
			}
		})
	}
	t.Run("what was deployed before is not written again", func(t *testing.T) {
		dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), secret)
		drifting := secret.Object.DeepCopy()
		drifting.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
		drifting.SetResourceVersion("99")
		d := Decide(observation(layer(isDeployed(dir)), dir, secretsServed, only(), lives(live("a", drifted), drifting)))
		if got := verbs(d.Plan); got != "Write a" {
			t.Errorf("the plan is %q, want the repair of the release alone", got)
		}
	})
	t.Run("what goes to another cluster is up to the kubeconfig", func(t *testing.T) {
		o := observation(layer(), directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), secret), secretsServed, only(),
			onProd(remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour)))
		if d := Decide(o); d.State == v1alpha1.StateFailed {
			t.Errorf("it is %s: %s", d.Reason, d.Message)
		}
	})
	t.Run("a token of an account is made by no layer, whatever is listed", func(t *testing.T) {
		token := marks(secretListed("kube-system", "token"), directoriestest.OfType("kubernetes.io/service-account-token"))
		d := Decide(observation(layer(), directoriestest.Of(newRevision, token), secretsServed, only("*")))
		if d.Reason != v1alpha1.ReasonReservedObject || d.Plan.Writes() {
			t.Errorf("it is %s with the plan %q: %s", d.Reason, verbs(d.Plan), d.Message)
		}
	})
}

// Nobody acts as the controller or as Flux, whether a layer says so or a release in
// its directory.
func TestReservedAccounts(t *testing.T) {
	reserve := func(o *Observation) {
		o.Settings.Account = types.NamespacedName{Namespace: "gotk-system", Name: "strata"}
		o.Settings.ReservedAccounts = append([]string{"team-a/admin"}, accounts.OfFlux...)
	}
	as := func(name string) directories.Manifest {
		return directoriestest.HelmRelease("a", "serviceAccountName", name)
	}
	for name, tc := range map[string]struct {
		layer   *v1alpha1.AddonsLayer
		listed  directories.Manifest
		message string
	}{
		"the controller's own":            {layer(actsAs("strata")), directoriestest.HelmRelease("a"), "spec.serviceAccountName: ServiceAccount gotk-system/strata is the controller's own"},
		"Flux's":                          {layer(actsAs("kustomize-controller"), sourceIn("flux-system")), directoriestest.HelmRelease("a"), "spec.serviceAccountName: ServiceAccount flux-system/kustomize-controller is reserved (--reserved-service-accounts)"},
		"Flux's of any namespace":         {layer(actsAs("helm-controller"), sourceIn("tools")), directoriestest.HelmRelease("a"), "ServiceAccount tools/helm-controller is reserved"},
		"one that is listed":              {layer(actsAs("admin"), sourceIn("team-a")), directoriestest.HelmRelease("a"), "ServiceAccount team-a/admin is reserved"},
		"the same name elsewhere":         {layer(actsAs("admin"), sourceIn("team-b")), directoriestest.HelmRelease("a"), ""},
		"the controller's name elsewhere": {layer(actsAs("strata"), sourceIn("team-b")), directoriestest.HelmRelease("a"), ""},
		"of a release":                    {layer(), as("kustomize-controller"), "base/a.yaml:1: spec.serviceAccountName: ServiceAccount default/kustomize-controller is reserved"},
		"of a release, its own":           {layer(), as("deployer"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(observation(tc.layer, directoriestest.Of(newRevision, tc.listed), reserve))
			if refused := d.State == v1alpha1.StateFailed; refused != (tc.message != "") || !strings.Contains(d.Message, tc.message) {
				t.Errorf("it is %s (%s): %s", d.State, d.Reason, d.Message)
			}
		})
	}
	t.Run("of a layer of another cluster", func(t *testing.T) {
		o := observation(layer(actsAs("helm-controller")), directoriestest.Of(newRevision, directoriestest.HelmRelease("a")), reserve,
			onProd(remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour)))
		if d := Decide(o); d.Reason != v1alpha1.ReasonInvalidSpec {
			t.Errorf("it is %s: %s", d.Reason, d.Message)
		}
	})
}
