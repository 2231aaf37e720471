// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
)

// chart is a HelmRelease of a chart from a HelmRepository.
func chartRelease(name, chart string, more ...any) directories.Manifest {
	return directoriestest.HelmRelease(name, append([]any{"chart", map[string]any{"spec": map[string]any{
		"chart": chart, "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"},
	}}}, more...)...)
}

// Flux would uninstall a release with volumes. Strata does not write the change until the
// annotation allows it.
func TestReinstallGuard(t *testing.T) {
	was := directoriestest.Of(oldRevision, chartRelease("a", "postgresql"), directoriestest.HelmRelease("b"))
	now := directoriestest.Of(newRevision, chartRelease("a", "postgres-ha"), directoriestest.HelmRelease("b", "timeout", "3m"))
	inPlace := directoriestest.Of(newRevision, chartRelease("a", "postgres-ha", "upgrade", map[string]any{"chartNameChangeStrategy": "InPlaceUpdate"}))
	installed := func(changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		obj := live("a", changes...)
		spec, _, _ := unstructured.NestedMap(chartRelease("a", "postgresql").Object.Object, "spec")
		_ = unstructured.SetNestedMap(obj.Object, spec, "spec")
		unstructured.RemoveNestedField(obj.Object, "status", "history")
		return obj
	}
	volumes := func(o *Observation) {
		o.Volumes = []Blocker{{Resource: schema.GroupResource{Resource: "persistentvolumeclaims"}, Fate: FateKept, Count: 2, Namespaces: []string{"db"}}}
	}
	busy := func(o *Observation) { o.VolumesError = errors.New("the server is busy") }
	allow := func(value string) layerChange { return annotation(v1alpha1.AllowReinstallAnnotation, value) }
	opened := func(l *v1alpha1.AddonsLayer) {
		l.Status.Attempt = &v1alpha1.Attempt{Version: "1.0.0", Digest: now.Digest, Allowed: []string{allowedReinstall}}
	}
	both := lives(installed(), live("b"))
	refers := directoriestest.HelmRelease("a", "chartRef", map[string]any{"kind": "OCIRepository", "name": "charts"})
	registryOf := func(chart string) directories.Manifest {
		manifest := directoriestest.Any("source.toolkit.fluxcd.io/v1", "OCIRepository", "default", "charts")
		manifest.Object.Object["spec"] = map[string]any{"url": "oci://a.example.com/" + chart}
		return manifest
	}
	fromRegistry := func(chart, revision string) *directories.Directory {
		return directoriestest.Of(revision, refers, registryOf(chart))
	}
	liveOf := func(manifest directories.Manifest, generation int64) *unstructured.Unstructured {
		obj := live(manifest.Object.GetName())
		status := obj.Object["status"]
		labels := obj.GetLabels()
		obj = manifest.Object.DeepCopy()
		obj.Object["status"] = status
		obj.SetLabels(labels)
		obj.SetGeneration(generation)
		obj.SetUID("uid-" + types.UID(obj.GetName()))
		obj.SetResourceVersion("7")
		return obj
	}
	referring, registry, changed := liveOf(refers, 1), liveOf(registryOf("postgresql"), 1), liveOf(registryOf("postgresql"), 2)
	const message = "revision main@sha1:new has Flux uninstall and install anew HelmRelease default/a (chart name: postgresql -> postgres-ha), " +
		`while 2 persistentvolumeclaims in namespace db would be left behind: if that is meant set the annotation kraan.io/allow-reinstall ` +
		`to that revision or to "next" (kubectl annotate al base kraan.io/allow-reinstall=next)`
	for name, tc := range map[string]struct {
		reason  string
		in      Observation
		writes  string
		why     string
		message string
		consume string
		allowed bool
	}{
		"volumes": {"nothing of the revision is applied", observation(layer(isDeployed(was)), now, both, volumes), "", "WouldReinstall", message, "", false},
		"no volumes": {
			"that is Flux's to do", observation(layer(isDeployed(was)), now, both), "Write a, Write b", "Applying", "", "", false,
		},
		"in place": {
			"the release says so", observation(layer(isDeployed(was)), inPlace, lives(installed()), volumes), "Write a", "Applying", "", "", false,
		},
		"next": {
			"the word is used up", observation(layer(isDeployed(was), allow("next")), now, both, volumes), "Write a, Write b", "Applying", "",
			v1alpha1.AllowReinstallAnnotation, true,
		},
		"this revision": {
			"it cannot come again, so it stays", observation(layer(isDeployed(was), allow(newRevision)), now, both, volumes), "Write a, Write b", "Applying", "", "", true,
		},
		"another revision": {
			"it speaks of another commit", observation(layer(isDeployed(was), allow(oldRevision)), now, both, volumes), "", "WouldReinstall", message, "", false,
		},
		"already": {
			"the annotation was used up by a look that died", observation(layer(isDeployed(was), opened), now, both, volumes), "Write a, Write b", "Applying", "", "", true,
		},
		"not known": {
			"it is asked again", observation(layer(isDeployed(was)), now, both, busy), "", "WouldReinstall", "cannot be looked up whether they have volumes: the server is busy", "", false,
		},
		"by hand": {
			"a correction is no reason either", observation(layer(isDeployed(now)), now, lives(installed(drifted), live("b")), volumes), "", "WouldReinstall", "postgresql -> postgres-ha", "", false,
		},
		"by hand, held up by something else": {
			"nor is a repair behind a closed gate", observation(layer(isDeployed(now), needs("nothing@1.0.0")), now, lives(installed(drifted), live("b")), volumes),
			"", "WouldReinstall", "postgresql -> postgres-ha", "", false,
		},
		"the source alone": {
			"Flux installs anew without a change of the release", observation(layer(isDeployed(fromRegistry("postgresql", oldRevision))), fromRegistry("postgres-ha", newRevision),
				lives(referring, registry), volumes), "", "WouldReinstall", "HelmRelease default/a (chart name: postgresql -> postgres-ha)", "", false,
		},
		"the source by hand": {
			"a correction of the source is none either", observation(layer(isDeployed(fromRegistry("postgres-ha", newRevision)), needs("nothing@1.0.0")),
				fromRegistry("postgres-ha", newRevision), lives(referring, changed), volumes),
			"", "WouldReinstall", "postgresql -> postgres-ha", "", false,
		},
		"a mirror of the source": {
			"the chart has the name that it had", observation(layer(isDeployed(fromRegistry("postgresql", oldRevision))), fromRegistry("mirror/postgresql", newRevision),
				lives(referring, registry), volumes), "Write charts", "Applying", "", "", false,
		},
		"elsewhere": {
			"what is on a cluster that nobody asked is not known", observation(layer(isDeployed(was)), now,
				lives(withField(installed(), map[string]any{"secretRef": map[string]any{"name": "x"}}, "spec", "kubeConfig"), live("b")), volumes),
			"Write a, Write b", "Applying", "", "", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.in)
			var writes []string
			for _, action := range d.Plan.Of(dependents.VerbWrite) {
				writes = append(writes, "Write "+action.ID.Name)
			}
			allowed := d.Attempt != nil && strings.Contains(strings.Join(d.Attempt.Allowed, " "), allowedReinstall)
			if strings.Join(writes, ", ") != tc.writes || d.Reason != tc.why || !strings.Contains(d.Message, tc.message) ||
				strings.Join(d.ConsumeFirst, ", ") != tc.consume || allowed != tc.allowed {
				t.Errorf("%s: %v, %s, uses up %v, allows %t:\n%s", tc.reason, writes, d.Reason, d.ConsumeFirst, allowed, d.Message)
			}
			if d.Reason == v1alpha1.ReasonWouldReinstall && (d.Until.IsZero() || d.Stalled == (d.Retry != nil)) {
				t.Errorf("%s: it is looked at again at %s, Stalled is %t", tc.reason, d.Until, d.Stalled)
			}
		})
	}
}

func withField(obj *unstructured.Unstructured, value any, fields ...string) *unstructured.Unstructured {
	_ = unstructured.SetNestedField(obj.Object, value, fields...)
	return obj
}
