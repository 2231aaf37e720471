// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/objects/objectstest"
	"github.com/strata-project/strata/internal/primaries"
)

// seen is all that is known when a claim is looked at.
type seen struct {
	Instance  capabilities.Instance
	Provider  *v1alpha1.CapabilityProvider
	Bound     *capabilities.Bound
	Seeker    capabilities.Seeker
	Providers []capabilities.Provider
	Live      map[objects.ID]*unstructured.Unstructured
	Releases  []*unstructured.Unstructured
	Lender    capabilities.Lender
	Before    map[string][]byte
}

// TestNoClaimPanics decides upon claims of which any optional part is missing: statuses,
// bindings, specifications of providers, objects that exist and what these hold.
func TestNoClaimPanics(t *testing.T) {
	const spec = sizedSchema + `
versions: ["15.2", "16.4"]
passwords: [{name: app}]
objects:
- id: a
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-a"}, data: {size: "${parameters.size}"}}
- id: b
  ready: object.status.up
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {host: "${objects.a.status.host}"}}
- {id: c, mode: Observe, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}
publishes:
- {key: host, value: "${objects.a.status.host}"}
- {key: password, secretKeyRef: {name: s, key: password}}
`
	whole := instanceOf(t, spec, `{"count": 3}`)
	promised := specOf(t, spec)
	rapid.Check(t, func(t *rapid.T) {
		s := seen{Instance: whole, Bound: &capabilities.Bound{Provider: "cnpg", Version: "16.4", Spec: promised}, Provider: &v1alpha1.CapabilityProvider{Spec: promised}}
		s.Provider.Name = "cnpg"
		claim := whole.Claim.DeepCopy()
		claim.Annotations = map[string]string{v1alpha1.ConfirmDeletionAnnotation: "true"}
		claim.Status = v1alpha1.CapabilityClaimStatus{
			Provider: "cnpg", Version: "16.4", Binding: &v1alpha1.BindingReference{Name: "db-binding"},
			Objects: []v1alpha1.Dependent{{ID: "a", Of: "cnpg", Kind: "ConfigMap", Namespace: "shop", Name: "db-a", Digest: "x"}},
		}
		if rapid.Bool().Draw(t, "deleted") {
			claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		s.Instance.Claim = claim
		id := objects.ID{Kind: "ConfigMap", Namespace: "shop", Name: "db-a"}
		live := objectstest.Live(id)
		live.Object["status"] = map[string]any{"host": "10.0.0.1", "up": true}
		s.Instance.Live = map[string]*unstructured.Unstructured{"a": live, "b": live}
		s.Instance.Own, s.Live = map[objects.ID]*unstructured.Unstructured{id: live}, map[objects.ID]*unstructured.Unstructured{id: live}
		s.Instance.Passwords, s.Instance.Previous = map[string]string{"app": "abc"}, map[string]string{"app": "abd"}
		s.Providers = []capabilities.Provider{{Name: "cnpg", Spec: promised, Blueprint: whole.Blueprint}}
		s.Seeker = capabilities.Seeker{Claim: claim.Spec, Namespace: "shop", NamespaceLabels: map[string]string{"a": "b"}}
		s.Releases = []*unstructured.Unstructured{release("a", "sha256:x", "True", "password")}
		s.Lender = capabilities.Lender{Claim: claim, Bound: s.Bound}
		s.Before = map[string][]byte{"password": []byte("x")}
		decideUpon(objectstest.Bare(t, s, "Instance.Claim", "Instance.Blueprint", "seen.Provider", "seen.Bound"))
	})
}

func decideUpon(s seen) {
	key := types.NamespacedName{Namespace: "shop", Name: "db"}
	now := time.Unix(1, 0)
	made, _ := s.Instance.Objects()
	_, _ = s.Instance.SecretKeys()
	s.Instance.IsReady()
	binding, err := s.Instance.Binding(map[string][]byte{"host": []byte("x")}, "")
	if err == nil && binding.Object != nil {
		capabilities.RotationOf(binding.Object)
		capabilities.Mark(binding.Object, s.Instance.Live["a"], s.Before, 2, s.Releases, now)
	}
	capabilities.ClusterBinding(s.Instance.Claim, binding)
	for _, release := range s.Releases {
		capabilities.HasTaken(release)
		capabilities.ReadsBinding(release, s.Instance.Claim)
	}
	capabilities.KeepsFromGoing(s.Instance.Claim, s.Bound, s.Instance.Claim.Status.Objects, s.Live, nil)
	capabilities.ProviderStatus(s.Provider, s.Bound.Spec, nil, 1, now)
	capabilities.Choose(s.Seeker, s.Providers)
	capabilities.Move(s.Seeker, "cnpg", s.Bound, s.Providers)
	for i := range s.Providers {
		capabilities.Outdated(s.Bound, s.Seeker.Claim, &s.Providers[i])
	}
	_, _ = s.Seeker.Borrow(key, key, s.Lender)
	s.Bound.Withdrawn(s.Seeker, s.Lender)
	for _, bound := range []*capabilities.Bound{nil, s.Bound} {
		outcome := capabilities.Outcome{Claim: s.Instance.Claim, Bound: bound, Objects: s.Instance.Claim.Status.Objects}
		outcome.Status(now)
	}
	_ = primaries.Look{Owner: "db", Now: now, Live: s.Live, Known: s.Instance.Claim.Status.Objects, Objects: made}.Plan()
}
