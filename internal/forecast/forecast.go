// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast says what the controller would do, by having it do so: the very
// rules of layers, in the very order of a look, act on copies of what was read of
// a cluster, where every release becomes ready that Flux is given. It reads no
// clock, no cluster and no file.
package forecast

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/moments"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/round"
)

// DefaultHorizon is how far into the future a forecast waits for what goes on by
// itself, such as the grace of orphans, where nothing else is said.
const DefaultHorizon = 24 * time.Hour

// maxRounds bounds how often all layers are looked at. A layer that takes turns
// with itself would be a mistake in the rules; Forecast.Settled tells of it.
const maxRounds = 2000

// Step is one thing that would be done to one object.
type Step struct {
	// Wave counts from 1. What has the same wave is done at the same time; a wave
	// begins when what the one before has changed is ready.
	Wave int
	// After is how long after the beginning of the forecast it is due at the
	// earliest, because something is waited for that takes its time.
	After time.Duration
	Layer string
	Verb  dependents.Verb
	ID    objects.ID
	// Origin is the file that lists the object.
	Origin string
	// Owner is the layer that had the object before; empty where nobody had, or
	// the layer itself.
	Owner string
	// Correction is true where somebody else's change is undone.
	Correction bool
	// Spared says why an object stays that says itself that it may go; empty for any
	// other.
	Spared string
	// Decrypted is true where any field of the object may be one that was encrypted.
	Decrypted bool
	// DefaultReplicas is true where git says no number of replicas any more, so that the API
	// server fills it in.
	DefaultReplicas bool
	// Before and Done are the object before and afterwards; nil where it is not
	// there.
	Before, Done *unstructured.Unstructured
}

// End is where a layer stands in the end.
type End struct {
	Layer string
	// Was is the state that it had in the beginning.
	Was     v1alpha1.State
	State   v1alpha1.State
	Reason  string
	Message string
	// Version that it has deployed in the end, and Had the one in the beginning.
	Version, Had string
	// Gone is true for a layer that was deleted.
	Gone bool
	// Until is when it goes on by itself; zero where it does not.
	Until time.Time
	// Causes say what stands in its way.
	Causes []v1alpha1.Cause
}

// Forecast is what would be done, and where it ends.
type Forecast struct {
	// Steps in the order in which they would be taken.
	Steps []Step
	// Ends of all layers that were looked at, sorted by name.
	Ends []End
	// Settled is false where the layers had not come to rest when the forecast was
	// given up.
	Settled bool
	// Layers and Objects are what there is in the end.
	Layers  []*v1alpha1.AddonsLayer
	Objects map[objects.ID]*unstructured.Unstructured
}

// Find returns an object of the cluster that Strata runs in as it is in the end; nil for none.
func (f Forecast) Find(gk schema.GroupKind, key types.NamespacedName) *unstructured.Unstructured {
	return f.Objects[objects.ID{Group: gk.Group, Kind: gk.Kind, Namespace: key.Namespace, Name: key.Name}]
}

// Make makes a forecast. It is deterministic.
func Make(w World) Forecast {
	f := newFuture(w)
	settled := false
	for range maxRounds {
		if f.round() {
			continue
		}
		if !f.advance() {
			settled = true
			break
		}
	}
	forecast := Forecast{Steps: f.numbered(), Ends: f.ends(), Settled: settled, Objects: f.objects}
	for _, name := range slices.Sorted(maps.Keys(f.layers)) {
		if layer := f.layers[name]; layer != nil {
			forecast.Layers = append(forecast.Layers, layer)
		}
	}
	return forecast
}

// future is the cluster as it would become.
type future struct {
	// twins are the RemoteClusters that are the same cluster; nil where that is to be
	// found out.
	twins layers.Twins
	*store
	world    World
	now      time.Time
	layers   map[string]*v1alpha1.AddonsLayer
	contents map[string]Content
	// listings of the directories of layers.
	listings map[string]layers.Listing
	// order in which layers are looked at: each before those that it depends on,
	// so that what is done for one is seen by the next one in the next round.
	order []string
	// last decision on each layer, and gone holds the layers that went.
	last map[string]layers.Decision
	gone map[string]bool
	// changed is true where anything was changed in this round, and rounds counts
	// them.
	changed bool
	rounds  int
	steps   []Step
}

func newFuture(w World) *future {
	f := &future{
		store: newStore(w), world: w, now: w.Now, layers: map[string]*v1alpha1.AddonsLayer{}, contents: maps.Clone(w.Contents),
		last: map[string]layers.Decision{}, gone: map[string]bool{}, listings: map[string]layers.Listing{},
	}
	if f.contents == nil {
		f.contents = map[string]Content{}
	}
	for _, layer := range w.Layers {
		f.layers[layer.Name], f.contents[layer.Name] = f.recognise(layer, f.contents[layer.Name])
		if directory := w.Contents[layer.Name].Directory; directory != nil {
			f.listings[layer.Name] = layers.ListingOf(directory)
		}
	}
	f.order = f.dependantsFirst()
	return f
}

// dependantsFirst returns the names of the layers, each before those that it
// depends on; those on a cycle are in the order of their names.
func (f *future) dependantsFirst() []string {
	depths := map[string]int{}
	var depth func(name string, path []string) int
	depth = func(name string, path []string) int {
		if known, found := depths[name]; found || slices.Contains(path, name) {
			return known
		}
		layer, deepest := f.layers[name], 0
		if layer == nil {
			return 0
		}
		for _, on := range dependencies.Names(layer.Spec.Prereqs.DependsOn) {
			deepest = max(deepest, depth(on, append(path, name))+1)
		}
		depths[name] = deepest
		return deepest
	}
	names := slices.Sorted(maps.Keys(f.layers))
	for _, name := range names {
		depth(name, nil)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(depths[b], depths[a]) })
	return names
}

// round looks at every layer once, lets Flux do what it was given, and tells
// whether anything has changed.
func (f *future) round() bool {
	f.changed = false
	f.rounds++
	for _, name := range f.order {
		layer := f.layers[name]
		if layer == nil || f.contents[name].Fixed {
			continue
		}
		hands := &hands{future: f, name: name}
		// Nothing here fails; what the rules want to try again is tried in the next
		// round, and where it stays the same it is what the layer ends with.
		_, _ = round.Run(context.Background(), hands, f.observe(layer))
	}
	f.settle()
	return f.changed
}

// advance moves the clock to when something is due that only takes its time. It
// returns false where there is nothing of that kind within the horizon.
func (f *future) advance() bool {
	next := time.Time{}
	for name, decision := range f.last {
		due := decision.Plan.Until
		if f.layers[name] == nil || decision.Hold.Active || !due.After(f.now) {
			continue
		}
		next = moments.Earlier(next, due)
	}
	horizon := f.world.Horizon
	if horizon == 0 {
		horizon = DefaultHorizon
	}
	if next.IsZero() || next.Sub(f.world.Now) > horizon {
		return false
	}
	f.now = next
	return true
}

// numbered returns the steps with waves that count from 1.
func (f *future) numbered() []Step {
	waves := map[int]int{}
	for i := range f.steps {
		at := f.steps[i].Wave
		if waves[at] == 0 {
			waves[at] = len(waves) + 1
		}
		f.steps[i].Wave = waves[at]
	}
	slices.SortStableFunc(f.steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave), strings.Compare(a.Layer, b.Layer))
	})
	return f.steps
}

func (f *future) ends() []End {
	var found []End
	for _, before := range f.world.Layers {
		name := before.Name
		if f.contents[name].Fixed {
			continue
		}
		end := End{Layer: name, Was: before.Status.State, Had: before.Status.Version, Gone: f.gone[name]}
		if layer := f.layers[name]; layer != nil {
			decision := f.last[name]
			end.State, end.Reason, end.Message = layer.Status.State, decision.Reason, decision.Message
			end.Version, end.Until, end.Causes = layer.Status.Version, decision.Until, layer.Status.BlockedBy
		}
		found = append(found, end)
	}
	slices.SortFunc(found, func(a, b End) int { return strings.Compare(a.Layer, b.Layer) })
	return found
}

// cluster returns a RemoteCluster, or nil.
func (f *future) cluster(name types.NamespacedName) *v1alpha1.RemoteCluster {
	for _, cluster := range f.world.Clusters {
		if cluster.Namespace == name.Namespace && cluster.Name == name.Name {
			return cluster
		}
	}
	return nil
}

// errUnread says that it is not known what a layer would list.
var errUnread = errors.New("what it lists was not read")
