// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

// doubts has another layer of the same source mean what its mentions say.
func doubts(found directories.Mentions) func(*Observation) {
	return func(o *Observation) { o.AddDoubt(&o.Others, "apps", found) }
}

func mentions(names ...string) directories.Mentions {
	found := directories.Mentions{Names: map[string]string{}}
	for _, name := range names {
		found.Names[name] = "apps/broken.yaml"
	}
	return found
}

// What cannot be read is a reason only where it can mean the object.
func TestWhatMayMeanAnObject(t *testing.T) {
	named := func(spec ...any) directories.Manifest { return directoriestest.HelmRelease("a", spec...) }
	for name, tc := range map[string]struct {
		reason  string
		release directories.Manifest
		found   directories.Mentions
		means   bool
	}{
		"nothing":           {"it cannot mean it", named(), mentions(), false},
		"its name":          {"it may list it", named(), mentions("a"), true},
		"any":               {"it is not known", named(), directories.Mentions{Unknown: "apps/kustomization.yaml has namePrefix"}, true},
		"the Helm release":  {"another HelmRelease may stand for it", named("releaseName", "shop"), mentions("shop"), true},
		"another release":   {"it cannot mean it", named("releaseName", "shop"), mentions("default"), false},
		"target and name":   {"a release without a name of its own has both", named("releaseName", "team-b-shop"), mentions("team-b", "shop"), true},
		"the target alone":  {"both make the name", named("releaseName", "team-b-shop"), mentions("team-b"), false},
		"another cut of it": {"which means nothing", named("releaseName", "team-b-shop"), mentions("team", "shop"), false},
		"shortened":         {"the rest of the name is not known", named("releaseName", strings.Repeat("x", 40)+"-0123456789ab"), mentions("targetNamespace"), true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := directoriestest.Of(oldRevision, tc.release)
			live := tc.release.Object.DeepCopy()
			live.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
			o := observation(layer(isDeployed(dir)), directoriestest.Of(newRevision, directoriestest.HelmRelease("b")), lives(live), doubts(tc.found))
			if means := len(o.Others.MayList[releaseID("a")]) > 0; means != tc.means {
				t.Errorf("%s: %+v of %v", tc.reason, o.Others.MayList, o.NamesSought())
			}
			for word := range tc.found.Names {
				if tc.means && !slices.Contains(o.NamesSought(), word) {
					t.Errorf("%s is not searched for among %v", word, o.NamesSought())
				}
			}
		})
	}
	t.Run("what stays is not asked about", func(t *testing.T) {
		dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
		o := observation(layer(isDeployed(dir)), dir, lives(live("a")), doubts(mentions("a")))
		if sought := o.NamesSought(); len(sought) > 0 || len(o.Others.MayList) > 0 {
			t.Errorf("%v is asked about, and %v doubted", sought, o.Others.MayList)
		}
	})
}

func TestADoubtEnds(t *testing.T) {
	was := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b"))
	now := directoriestest.Of(newRevision, directoriestest.HelmRelease("b"))
	graceOver := func(l *v1alpha1.AddonsLayer) {
		for i := range l.Status.Resources {
			if l.Status.Resources[i].Name == "a" {
				l.Status.Resources[i].Status = objects.StatusOrphaned
				l.Status.Resources[i].LastTransitionTime.Time = testNow.Add(-time.Hour).Truncate(time.Second)
			}
		}
	}
	allow := func(value string) layerChange { return annotation(v1alpha1.AllowPruneAnnotation, value) }
	opened := func(l *v1alpha1.AddonsLayer) {
		l.Status.Attempt = &v1alpha1.Attempt{Version: "1.0.0", Digest: now.Digest, Allowed: []string{allowedDoubt}}
	}
	going := lives(live("a", marked), live("b"))
	in := func(dir *directories.Directory, found directories.Mentions, changes ...layerChange) Observation {
		return observation(layer(append([]layerChange{isDeployed(was), graceOver}, changes...)...), dir, going, doubts(found))
	}
	for name, tc := range map[string]struct {
		reason  string
		in      Observation
		deletes bool
		consume string
		allowed bool
	}{
		"doubt":         {"it may be listed", in(now, mentions("a")), false, "", false},
		"no doubt":      {"a broken layer that cannot mean it is no reason", in(now, mentions("x")), true, "", false},
		"next":          {"it is used up, and recorded for what goes later", in(now, mentions("a"), allow("next")), true, v1alpha1.AllowPruneAnnotation, true},
		"this revision": {"it cannot come again, so it stays", in(now, mentions("a"), allow(newRevision)), true, "", true},
		"another one":   {"it speaks of another commit", in(now, mentions("a"), allow(oldRevision)), false, "", false},
		"already":       {"the annotation was used up by a look that died", in(now, mentions("a"), opened), true, "", true},
		"without doubt": {"an annotation that ends nothing is not used up", in(now, mentions("x"), allow("next")), true, "", false},
		"deleted":       {"it is gone with the layer", in(nil, mentions("a"), allow("next"), deleted), true, "", false},
		"deleted, kept": {"also a deleted layer keeps what may be listed", in(nil, mentions("a", "b"), deleted), false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.in)
			deletes := slices.ContainsFunc(d.Plan.Of(dependents.VerbDelete), func(a dependents.Action) bool { return a.ID.Name == "a" })
			allowed := d.Attempt != nil && slices.Contains(d.Attempt.Allowed, allowedDoubt)
			if deletes != tc.deletes || strings.Join(d.ConsumeFirst, ", ") != tc.consume || allowed != tc.allowed {
				t.Errorf("%s: it deletes: %t, uses up %v, allows %t: %s", tc.reason, deletes, d.ConsumeFirst, allowed, d.Message)
			}
			if !deletes && !strings.Contains(d.Message, `(apps: apps/broken.yaml has its name): if none does set the annotation kraan.io/allow-prune to "next"`) {
				t.Errorf("%s: it says %q", tc.reason, d.Message)
			}
		})
	}
}

// Where a source is gone, what a status lists counts, and what is on its way out does not.
func TestLastListed(t *testing.T) {
	dir := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b"))
	other := layer(named("apps"), isDeployed(dir))
	other.Status.Resources[1].Status = objects.StatusOrphaned
	o := observation(layer(), nil, func(o *Observation) {
		o.Exclusive = map[string][]objects.ID{"default/a": {releaseID("a")}, "default/b": {releaseID("b")}}
	})
	listing := o.LastListed(other)
	if got := slices.Collect(maps.Keys(listing.Files)); len(got) != 1 || got[0] != releaseID("a") || len(listing.Exclusive) != 1 {
		t.Errorf("it lists %v, and stands for %v", got, listing.Exclusive)
	}
}
