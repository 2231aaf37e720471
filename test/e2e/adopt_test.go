// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// pastGrace is longer than an orphan of a layer with the grace of one second
// lives when nobody wants it.
const pastGrace = 4 * time.Second

// bystander is a release as it was, which may change its owner and nothing
// else.
type bystander struct {
	*chronicle
	release *helmv2.HelmRelease
	history []helmRevision
}

// watchRelease remembers a release and everything that happens to it.
func (f *fixture) watchRelease(name string) bystander {
	f.Helper()
	return bystander{chronicle: f.helmChronicle(), release: f.release(name), history: f.helmHistory(name)}
}

// adoptedBy fails the test unless a layer has the release, which has seen
// nothing of that.
func (b bystander) adoptedBy(layer string) {
	b.Helper()
	name := b.release.Name
	b.neverDeleted("HelmRelease", name)
	b.neverUninstalled(name, b.history[0])
	if b.absent(&helmv2.HelmRelease{}, name) {
		b.Fatalf("release %s is gone", name)
	}
	now := b.fixture.release(name)
	if now.UID != b.release.UID || now.Generation != b.release.Generation {
		b.Errorf("release %s has UID %s and generation %d, before %s and %d", name, now.UID, now.Generation, b.release.UID, b.release.Generation)
	}
	if got := now.Labels[v1alpha1.LayerLabel]; got != b.name(layer) {
		b.Errorf("release %s belongs to %q, not to layer %s", name, got, layer)
	}
	if value, found := now.Labels[v1alpha1.OrphanedLabel]; found {
		b.Errorf("release %s is marked as orphaned: %s", name, value)
	}
	if history := b.helmHistory(name); len(history) != 1 || history[0] != b.history[0] {
		b.Errorf("Helm's history of %s is %v, before %v", name, history, b.history)
	}
	if got := b.resource(layer, name); got != "Deployed" {
		b.Errorf("layer %s shows release %s as %q", layer, name, got)
	}
}

// keptFor fails the test unless the release stays as it is for longer than its
// grace.
func (b bystander) keptFor(period time.Duration) {
	b.Helper()
	b.throughout(period, "release "+b.release.Name+" is kept", func() error {
		if b.absent(&helmv2.HelmRelease{}, b.release.Name) {
			return errors.New("it is gone")
		}
		if now := b.fixture.release(b.release.Name); now.UID != b.release.UID || !now.DeletionTimestamp.IsZero() {
			return errors.New("it is being deleted or was created again")
		}
		return nil
	})
}

// twoLayers deploys the layers base and apps, each with a release of its own,
// and one more release in one of them. apps depends on base.
func (f *fixture) twoLayers(moved, content string) {
	f.Helper()
	revision := f.push(map[string]string{
		"base/own.yaml": f.configMapRelease("base-own", "one"),
		"apps/own.yaml": f.configMapRelease("apps-own", "one"),
		moved:           content,
	})
	f.layer("base")
	f.layer("apps", f.dependsOn("base@1.0.0"))
	f.deployed("base", revision)
	f.deployed("apps", revision)
}

func TestReleaseMovedBetweenLayersIsAdopted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, from, to string }{
		{"to the layer that depends on its own", "base", "apps"},
		{"to the layer that its own depends on", "apps", "base"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			content := f.configMapRelease("moved", "one")
			f.twoLayers(test.from+"/moved.yaml", content)
			moved := f.watchRelease("moved")

			revision := f.rewrite(map[string]string{test.from + "/moved.yaml": "", test.to + "/elsewhere.yaml": content})
			f.deployed("base", revision)
			f.deployed("apps", revision)
			f.eventually("the former owner forgets it", func() error {
				if got := f.resource(test.from, "moved"); got != "" {
					return fmt.Errorf("it shows it as %s", got)
				}
				return nil
			})
			moved.adoptedBy(test.to)
			f.told(test.to, v1alpha1.ReasonAdopted, "moved")
		})
	}
}

// A held layer adopts nothing, but what it lists is kept for it however long
// that takes, and its former owner is deployed without it.
func TestReleaseMovedIntoAHeldLayerIsKeptForIt(t *testing.T) {
	f := newFixture(t)
	content := f.configMapRelease("moved", "one")
	f.twoLayers("base/moved.yaml", content)
	f.edit("apps", `{"spec":{"hold":true}}`)
	f.state("apps", v1alpha1.StateHold)
	moved := f.watchRelease("moved")

	revision := f.rewrite(map[string]string{"base/moved.yaml": "", "apps/moved.yaml": content})
	layer := f.deployed("base", revision)
	if message := readyMessage(layer); message == "" || f.resource("base", "moved") != "Orphaned" {
		t.Errorf("base shows it as %q and says %q", f.resource("base", "moved"), message)
	}
	moved.keptFor(pastGrace)
	if owner := f.release("moved").Labels[v1alpha1.LayerLabel]; owner != f.name("base") {
		t.Errorf("a held layer took it: it belongs to %s", owner)
	}

	f.edit("apps", `{"spec":{"hold":false}}`)
	f.deployed("apps", revision)
	moved.adoptedBy("apps")
}

// While a layer of the same source cannot be read nobody knows what it lists,
// so nothing that left another layer is removed.
func TestReleaseMovedIntoALayerThatBreaksAtTheSameTimeIsKept(t *testing.T) {
	f := newFixture(t)
	content := f.configMapRelease("moved", "one")
	f.twoLayers("base/moved.yaml", content)
	moved := f.watchRelease("moved")

	f.rewrite(map[string]string{"base/moved.yaml": "", "apps/moved.yaml": content, "apps/broken.yaml": "kind: [\n"})
	f.reason("apps", v1alpha1.ReasonInvalidManifest, "apps/broken.yaml")
	f.state("base", v1alpha1.StatePruning, "moved", "is kept while it is not known", f.name("apps"))
	moved.keptFor(pastGrace)

	revision := f.rewrite(map[string]string{"apps/broken.yaml": ""})
	f.deployed("base", revision)
	f.deployed("apps", revision)
	moved.adoptedBy("apps")
}

// A HelmRepository changes hands like a release does, and the releases that use
// it do not notice.
func TestHelmRepositoryMovedBetweenLayersIsAdopted(t *testing.T) {
	f := newFixture(t)
	f.twoLayers("base/repository.yaml", f.repository("shared"))
	revision := f.push(map[string]string{"apps/user.yaml": f.releaseFrom("shared", "user", "one")})
	f.deployed("apps", revision)
	user := f.watchRelease("user")
	c := f.chronicle(&sourcev1.HelmRepositoryList{})
	before := &sourcev1.HelmRepository{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "shared"}, before))

	revision = f.rewrite(map[string]string{"base/repository.yaml": "", "apps/repository.yaml": f.repository("shared")})
	f.deployed("base", revision)
	f.deployed("apps", revision)
	c.neverDeleted("HelmRepository", "shared")
	after := &sourcev1.HelmRepository{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "shared"}, after))
	if after.UID != before.UID || after.Generation != before.Generation {
		t.Errorf("it has UID %s and generation %d, before %s and %d", after.UID, after.Generation, before.UID, before.Generation)
	}
	if owner := after.Labels[v1alpha1.LayerLabel]; owner != f.name("apps") || after.Labels[v1alpha1.OrphanedLabel] != "" {
		t.Errorf("its labels are %v", after.Labels)
	}
	user.adoptedBy("apps")
}

// A layer is deleted while its release moves to another one: that adopts it,
// whether it sees the new revision before or after.
func TestReleaseMovedOutOfADeletedLayerIsAdopted(t *testing.T) {
	f := newFixture(t)
	content := f.configMapRelease("moved", "one")
	revision := f.push(map[string]string{"base/moved.yaml": content, "apps/own.yaml": f.configMapRelease("apps-own", "one")})
	f.layer("base", orphanGrace(time.Minute))
	f.layer("apps")
	f.deployed("base", revision)
	f.deployed("apps", revision)
	moved := f.watchRelease("moved")

	commit := f.commitRewrite(map[string]string{"base/moved.yaml": "", "apps/moved.yaml": content})
	f.discard("base")
	revision = f.fetched(commit)
	f.deployed("apps", revision)
	f.discarded("base")
	moved.adoptedBy("apps")
}

// A deleted layer waits for a held one that lists its release.
func TestDeletedLayerKeepsAReleaseForAHeldLayer(t *testing.T) {
	f := newFixture(t)
	content := f.configMapRelease("moved", "one")
	revision := f.push(map[string]string{"base/moved.yaml": content, "apps/own.yaml": f.configMapRelease("apps-own", "one")})
	f.layer("base")
	f.layer("apps")
	f.deployed("base", revision)
	f.deployed("apps", revision)
	f.edit("apps", `{"spec":{"hold":true}}`)
	f.state("apps", v1alpha1.StateHold)
	moved := f.watchRelease("moved")

	// Both list it now, which is no conflict as long as apps is held.
	revision = f.push(map[string]string{"apps/moved.yaml": content})
	f.discard("base")
	f.eventually("base keeps it for apps", func() error {
		if message := readyMessage(f.get("base")); !contains(message, "moved", "is kept for layer", f.name("apps")) {
			return errors.New(message)
		}
		return nil
	})
	moved.keptFor(pastGrace)

	f.edit("apps", `{"spec":{"hold":false}}`)
	f.deployed("apps", revision)
	f.discarded("base")
	moved.adoptedBy("apps")
}

// discard asks for the deletion of a layer.
func (f *fixture) discard(layer string) {
	f.Helper()
	f.must(stack.client.Delete(f.ctx, f.get(layer)))
}

// discarded waits until a deleted layer is gone.
func (f *fixture) discarded(layer string) {
	f.Helper()
	f.eventually("layer "+layer+" is gone", func() error {
		found := &v1alpha1.AddonsLayer{}
		err := stack.client.Get(f.ctx, types.NamespacedName{Name: f.name(layer)}, found)
		if err == nil {
			return errors.New(readyMessage(found))
		}
		return client.IgnoreNotFound(err)
	})
}
