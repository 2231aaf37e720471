// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/test/forged"
)

// published returns a world whose bundles and applications have the statuses of what was
// published, and the bundle of version 1.1.0 other content than that where changed says so. It
// has a Platform of bundles within a range, one of an exact version, and one that picks.
func published(t *testing.T, changed bool) map[string]*world {
	t.Helper()
	picking := newWorld(platform("p", ""), bundle("1.0.0", "", "base"), bundle("1.1.0", "1.0.x", "base"))
	picking.Platform.Spec.Bundle = nil
	picking.Platform.Spec.Applications = []v1alpha1.PlatformApplication{{Name: "app"}}
	picking.Catalogue["app"] = application("app", "1.0.0", "1.1.0")
	all := map[string]*world{
		"a range":  newWorld(platform("p", "1.x"), bundle("1.0.0", "", "base"), bundle("1.1.0", "1.0.x", "base")),
		"a number": newWorld(platform("p", "1.1.0"), bundle("1.0.0", "", "base"), bundle("1.1.0", "1.0.x", "base")),
		"picks":    picking,
	}
	for _, w := range all {
		for _, app := range w.Catalogue {
			app.Status = catalogue.Decide(catalogue.Observation{Now: w.Now, Application: app, Catalogue: w.Catalogue}).Status
		}
		for _, b := range w.Bundles {
			b.Status = bundles.Decide(bundles.Observation{Now: w.Now, Bundle: b, Catalogue: w.Catalogue}).Status
			if changed && b.Spec.Version == "1.1.0" {
				b.Spec.Layers[0].Name = "other"
				b.Status = bundles.Decide(bundles.Observation{Now: w.Now, Bundle: b, Catalogue: w.Catalogue}).Status
			}
		}
	}
	return all
}

// reasons are those of conditions that others act on.
var reasons = []string{v1alpha1.ReasonContentChanged, v1alpha1.ReasonPublished, "1.0.0", "9.9.9"}

// eachBundle calls each with what a Platform writes although one field of the status of a bundle
// or of an application was forged.
func (w *world) eachForgery(
	t *testing.T,
	ofBundle func(v1alpha1.ApplicationBundleStatus) []forged.Forgery[v1alpha1.ApplicationBundleStatus],
	ofApplication func(v1alpha1.HelmApplicationStatus) []forged.Forgery[v1alpha1.HelmApplicationStatus],
	each func(name string, done any),
) {
	t.Helper()
	for i, b := range w.Bundles {
		for _, forgery := range ofBundle(b.Status) {
			o := w.Observation
			o.Bundles = slices.Clone(w.Bundles)
			o.Bundles[i] = b.DeepCopy()
			o.Bundles[i].Status = forgery.Status
			each(b.Name+", "+forgery.Name, writesOf(Decide(o)))
		}
	}
	for name, app := range w.Catalogue {
		for _, forgery := range ofApplication(app.Status) {
			o := w.Observation
			o.Catalogue = maps.Clone(w.Catalogue)
			o.Catalogue[name] = app.DeepCopy()
			o.Catalogue[name].Status = forgery.Status
			each(name+", "+forgery.Name, writesOf(Decide(o)))
		}
	}
}

func copiedBundle(s v1alpha1.ApplicationBundleStatus) v1alpha1.ApplicationBundleStatus {
	return *s.DeepCopy()
}

func copiedApplication(s v1alpha1.HelmApplicationStatus) v1alpha1.HelmApplicationStatus {
	return *s.DeepCopy()
}

// Whatever somebody has written into the fields of the status of a bundle or of an application of
// which nothing is to follow, a Platform chooses the same versions, and writes the same layers.
func TestForgedStatusOfABundle(t *testing.T) {
	for _, changed := range []bool{false, true} {
		for name, w := range published(t, changed) {
			honest := writesOf(Decide(w.Observation))
			w.eachForgery(t, func(s v1alpha1.ApplicationBundleStatus) []forged.Forgery[v1alpha1.ApplicationBundleStatus] {
				return forged.Each(t, v1alpha1.ApplicationBundleKind, s, copiedBundle, reasons...)
			}, func(s v1alpha1.HelmApplicationStatus) []forged.Forgery[v1alpha1.HelmApplicationStatus] {
				return forged.Each(t, v1alpha1.HelmApplicationKind, s, copiedApplication, reasons...)
			}, func(forgery string, done any) {
				if diff := cmp.Diff(honest, done); diff != "" {
					t.Errorf("%s, changed %t: %s: %s", name, changed, forgery, diff)
				}
			})
		}
	}
}

// A field that is acted on would be found if it were in a class of which nothing follows: the same
// forgeries, of fields that are believed, have a Platform write something else.
func TestForgeriesFindWhatIsActedOnOfBundles(t *testing.T) {
	found := map[string]bool{}
	for _, changed := range []bool{false, true} {
		for _, w := range published(t, changed) {
			honest := writesOf(Decide(w.Observation))
			for kind, path := range map[string]string{v1alpha1.ApplicationBundleKind: "digest", v1alpha1.HelmApplicationKind: "published[].digest"} {
				if class := v1alpha1.StatusFields(kind)[path]; !class.IsBelieved() {
					continue // it is verified, and found by the test of that
				}
				w.eachForgery(t, func(s v1alpha1.ApplicationBundleStatus) []forged.Forgery[v1alpha1.ApplicationBundleStatus] {
					if kind != v1alpha1.ApplicationBundleKind {
						return nil
					}
					return forged.Of(t, kind, path, s, copiedBundle)
				}, func(s v1alpha1.HelmApplicationStatus) []forged.Forgery[v1alpha1.HelmApplicationStatus] {
					if kind != v1alpha1.HelmApplicationKind {
						return nil
					}
					return forged.Of(t, kind, path, s, copiedApplication)
				}, func(_ string, done any) { found[kind] = found[kind] || !cmp.Equal(honest, done) })
				found[kind] = found[kind] || false
			}
		}
	}
	for kind, is := range found {
		if !is {
			t.Errorf("what a %s says of what was published has no Platform write anything else", kind)
		}
	}
}

// A bundle whose content is not what was published is not installed, also before its own status
// says so, and whatever the conditions of that status are.
func TestChangedBundleIsNotInstalled(t *testing.T) {
	w := published(t, true)["a range"]
	for _, b := range w.Bundles {
		b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPublished}}
	}
	d := Decide(w.Observation)
	if len(d.Write) == 0 {
		t.Fatalf("it writes nothing: %s", said(d.Status))
	}
	for _, layer := range d.Write {
		if layer.Spec.Version != "1.0.0" {
			t.Errorf("layer %s is to be at %s", layer.Name, layer.Spec.Version)
		}
	}
}
