// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

// direct applies an object of a strict kind in one request, without reading and
// claiming it first, where that leads to the very same: where the object, as a
// cache has it, is the primary's, nobody has marked it, and it holds nothing
// beside what is wanted but what it held beside that when this executor wrote
// it last, as defaults of the API server do. It is applied at the version that
// the plan was made for. done is false where it has to be claimed first.
func (r *clusterRun) direct(ctx context.Context, action dependents.Action) (made written, done bool, err error) {
	wanted := action.Wanted
	beside, known := r.Known.of(action.ID, action.UID)
	if !known || r.Seen == nil || wanted.Mode == dependents.ModeCreateOnce || !r.strict(action.ID) {
		return written{}, false, nil
	}
	seen, err := r.Seen(ctx, action.ID)
	if err != nil || !r.isSeen(seen, action) || whatIsBeside(seen, wanted.Manifest()) != beside {
		return written{}, false, nil //nolint:nilerr // past the cache it is found out
	}
	applied, err := r.apply(ctx, wanted.Manifest(), action.UID, r.version(action))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return written{}, false, nil // somebody else was faster
	case err != nil:
		return written{}, true, err
	case whatIsBeside(applied, wanted.Manifest()) != beside:
		return written{}, false, nil // the cache did not know all
	}
	return written{live: applied, before: seen}, true, nil
}

// Saw is told of objects that are as the last apply of what is wanted left
// them, as a cache has them: so after a restart they need not be claimed again.
func (e *Executor) Saw(wanted []*dependents.Dependent, live map[objects.ID]*unstructured.Unstructured) {
	for _, d := range wanted {
		seen := live[d.ID]
		content, written := d.Object.Get()
		if seen == nil || !written || d.Mode == dependents.ModeCreateOnce || !e.strict(d.ID) {
			continue
		}
		if _, known := e.Known.of(d.ID, seen.GetUID()); !known {
			e.Known.remember(d.ID, seen, content)
		}
	}
}

func (e *Executor) strict(id objects.ID) bool { return e.Strict != nil && e.Strict(id.GroupKind()) }

// isSeen tells whether an object is the one that an action was planned for, the
// primary's own, and without anything that claiming it would take off.
func (r *clusterRun) isSeen(seen *unstructured.Unstructured, action dependents.Action) bool {
	if seen == nil || seen.GroupVersionKind() != action.Wanted.Manifest().GroupVersionKind() || seen.GetUID() != action.UID ||
		seen.GetResourceVersion() != r.version(action) ||
		seen.GetDeletionTimestamp() != nil {
		return false
	}
	_, orphaned := seen.GetLabels()[r.Keys.Orphaned]
	_, superseded := seen.GetAnnotations()[r.Keys.SupersededBy]
	return seen.GetLabels()[r.Keys.Owner] == r.owner && !orphaned && !superseded && !dependents.HasOwner(seen, r.Keys)
}

// whatIsBeside writes down what an object holds beside what is wanted, in its
// spec, labels and annotations; that it is suspended, and what kubectl notes,
// is nobody's business.
func whatIsBeside(live, wanted *unstructured.Unstructured) string {
	var found []string
	for _, path := range [][]string{{"spec"}, {"metadata", "labels"}, {"metadata", "annotations"}} {
		has, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
		wants, _, _ := unstructured.NestedFieldNoCopy(wanted.Object, path...)
		found = besides(found, strings.Join(path, "."), has, wants)
	}
	slices.Sort(found)
	return strings.Join(found, "\n")
}

func besides(found []string, path string, has, wants any) []string {
	fields, isMap := has.(map[string]any)
	wanted, wantsMap := wants.(map[string]any)
	if !isMap || wants != nil && !wantsMap {
		return found // applying replaces it as a whole
	}
	for name, value := range fields {
		below := path + "/" + name
		if below == "spec/suspend" || below == "metadata.annotations/"+corev1.LastAppliedConfigAnnotation {
			continue
		}
		if want, listed := wanted[name]; listed {
			found = besides(found, below, value, want)
			continue
		}
		data, err := json.Marshal(value)
		if err != nil {
			data = []byte("?") // what comes from a decoder can be written
		}
		found = append(found, below+"="+string(data))
	}
	return found
}

// maxBeside bounds how many objects are remembered. With more, all are
// forgotten, and each is claimed once more.
const maxBeside = 100_000

// Known remembers what objects held beside what was wanted when they were
// written last. The zero value remembers nothing yet; nil never does. It is safe
// for concurrent use.
type Known struct {
	mu      sync.Mutex
	objects map[objects.ID]remains
}

type remains struct {
	uid  types.UID
	text string
}

func (k *Known) of(id objects.ID, uid types.UID) (string, bool) {
	if k == nil || uid == "" {
		return "", false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	found, known := k.objects[id]
	return found.text, known && found.uid == uid
}

// remember notes an object as the API server has returned it.
func (k *Known) remember(id objects.ID, live, wanted *unstructured.Unstructured) {
	if k == nil {
		return
	}
	text := whatIsBeside(live, wanted)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.objects == nil || len(k.objects) >= maxBeside {
		k.objects = map[objects.ID]remains{}
	}
	k.objects[id] = remains{live.GetUID(), text}
}

func (k *Known) forget(id objects.ID) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.objects, id)
}
