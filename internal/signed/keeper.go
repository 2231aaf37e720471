// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signed

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
)

// Keeper signs the statuses that a process writes, and judges all that it reads. Without a key it
// does neither. It is safe for concurrent use.
type Keeper struct {
	key atomic.Pointer[digests.Key]
	// unsigned is true as long as a status without a MAC is taken.
	unsigned atomic.Bool
	// refused is told of an object whose status is not the controller's, and of the manager
	// that has written it; empty where that is not known. Nil tells nobody.
	refused func(object Object, by string)

	mu sync.Mutex
	// seen are the last MACs of each object that this process has made or has judged to be right.
	// By these it knows a status again when the API server drops the MAC, as one does whose
	// CustomResourceDefinitions are of an earlier version while a cluster goes back to that.
	seen map[types.UID][2]string
}

// mostSeen bounds how many objects seen has.
const mostSeen = 100_000

// see remembers a MAC of an object.
func (k *Keeper) see(uid types.UID, mac string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := k.seen[uid]
	if mac == "" || last[0] == mac {
		return
	}
	if k.seen == nil || len(k.seen) >= mostSeen {
		k.seen = map[types.UID][2]string{}
	}
	k.seen[uid] = [2]string{mac, last[0]}
}

// knows tells whether a MAC of an object is one of the last.
func (k *Keeper) knows(uid types.UID, mac string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := k.seen[uid]
	return mac != "" && (last[0] == mac || last[1] == mac)
}

// Use begins to sign and to judge. A status without a MAC is taken until AllSigned is called, where
// unsigned is true: those that are older than MACs. refused is told of each status that is not the
// controller's; it may be nil. It is called before anything is read.
func (k *Keeper) Use(key digests.Key, unsigned bool, refused func(object Object, by string)) {
	k.refused = refused
	k.unsigned.Store(unsigned)
	k.key.Store(&key)
}

// AllSigned has no status taken any more that has no MAC.
func (k *Keeper) AllSigned() { k.unsigned.Store(false) }

// hasKey returns the key; false where there is none.
func (k *Keeper) hasKey() (digests.Key, bool) {
	key := k.key.Load()
	if key == nil || key.Equal(digests.Key{}) {
		return digests.Key{}, false
	}
	return *key, true
}

// judge leaves of an object's status what counts.
func (k *Keeper) judge(object Object) {
	key, has := k.hasKey()
	if !has {
		return
	}
	of := standingOf(key, object, k.knows)
	switch {
	case of == whole:
		k.see(object.GetUID(), *object.SignedStatus().MAC)
		return
	case of == unsigned && k.unsigned.Load() && !isStripped(object):
		return
	case of == unlooked:
		strip(object, saysUnlooked)
		return
	case isStripped(object):
		return // a reflector may hand on twice what it has listed
	}
	if k.refused != nil {
		k.refused(object, writerOf(object))
	}
	strip(object, saysForeign)
}

// judgeAny judges what is an object of a kind whose statuses are signed, whatever its type is.
func (k *Keeper) judgeAny(in any) {
	switch of := in.(type) {
	case Object:
		k.judge(of)
	case *unstructured.Unstructured:
		k.judgeFields(of)
	}
}

// judgeFields judges an object without a type. Its maps may be had in common with others.
func (k *Keeper) judgeFields(of *unstructured.Unstructured) {
	if of.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
		return
	}
	object := newObject(of.GetKind())
	if object == nil {
		return
	}
	content := maps.Clone(of.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
		content["status"] = map[string]any{"observedGeneration": int64(-1)} // nobody reads more of it
		of.Object = content
		return
	}
	k.judge(object)
	if !v1alpha1.IsForeign(*object.SignedStatus().Conditions) {
		return
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object.SignedStatus().Status)
	if err != nil {
		status = map[string]any{"observedGeneration": int64(-1)}
	}
	content["status"] = status
	of.Object = content
}

// writerOf returns the manager that has written an object's status last.
func writerOf(object Object) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "status" && (last.Time == nil || entry.Time != nil && last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	return last.Manager
}

// Transform judges what comes into a cache, before another transformation. It never fails: what a
// cache cannot take it would not show at all.
func (k *Keeper) Transform(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(in any) (any, error) {
		k.judgeAny(in)
		return next(in)
	}
}

// Over returns a manager whose clients sign and judge. What its cache holds, Transform judges.
func (k *Keeper) Over(mgr manager.Manager) manager.Manager {
	return &judged{Manager: mgr, client: k.Client(mgr.GetClient()), reader: &reader{Reader: mgr.GetAPIReader(), keeper: k}}
}

// Client returns a client that signs what it writes, and judges what the API server answers to
// that. What it reads from a cache, Transform judges.
func (k *Keeper) Client(of client.Client) client.Client { return &writer{Client: of, keeper: k} }

// judged is a manager whose clients sign and judge.
type judged struct {
	manager.Manager
	client client.Client
	reader client.Reader
}

// GetClient returns the client that signs and judges.
func (m *judged) GetClient() client.Client { return m.client }

// GetAPIReader returns the reader that judges.
func (m *judged) GetAPIReader() client.Reader { return m.reader }

// reader judges what it reads past the cache.
type reader struct {
	client.Reader
	keeper *Keeper
}

// Get reads an object.
func (r *reader) Get(ctx context.Context, name client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if err := r.Reader.Get(ctx, name, into, options...); err != nil {
		return err //nolint:wrapcheck // it is as the reader's
	}
	r.keeper.judgeAny(into)
	return nil
}

// List reads a list.
func (r *reader) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if err := r.Reader.List(ctx, into, options...); err != nil {
		return err //nolint:wrapcheck // it is as the reader's
	}
	return meta.EachListItem(into, func(item runtime.Object) error { //nolint:wrapcheck // it is of the list
		r.keeper.judgeAny(item)
		return nil
	})
}

// writer signs statuses, and judges what the API server answers.
type writer struct {
	client.Client
	keeper *Keeper
}

// Create makes an object.
func (w *writer) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if err := w.Client.Create(ctx, object, options...); err != nil {
		return err //nolint:wrapcheck // it is as the client's
	}
	w.keeper.judgeAny(object)
	return nil
}

// Update writes an object.
func (w *writer) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	if err := w.Client.Update(ctx, object, options...); err != nil {
		return err //nolint:wrapcheck // it is as the client's
	}
	w.keeper.judgeAny(object)
	return nil
}

// Patch changes an object.
func (w *writer) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := w.Client.Patch(ctx, object, patch, options...); err != nil {
		return err //nolint:wrapcheck // it is as the client's
	}
	w.keeper.judgeAny(object)
	return nil
}

// Status returns the writer of statuses.
func (w *writer) Status() client.SubResourceWriter {
	return &statusWriter{SubResourceWriter: w.Client.Status(), keeper: w.keeper}
}

// statusWriter signs statuses.
type statusWriter struct {
	client.SubResourceWriter
	keeper *Keeper
}

// Patch signs a status and writes it. One that had no MAC is written whole: what was there is
// not known.
func (w *statusWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	of, is := object.(Object)
	key, has := w.keeper.hasKey()
	if !is || !has {
		return w.SubResourceWriter.Patch(ctx, object, patch, options...) //nolint:wrapcheck // it is as the client's
	}
	parts := of.SignedStatus()
	had := *parts.MAC
	made, _, err := macOf(key, of)
	if err != nil {
		return err
	}
	*parts.MAC = made
	w.keeper.see(object.GetUID(), made) // before a watch tells of it
	if had == "" {
		if patch, err = replacing(object.GetResourceVersion(), parts.Status); err != nil {
			return err
		}
	}
	if err := w.SubResourceWriter.Patch(ctx, object, patch, options...); err != nil {
		*parts.MAC = had // so that the next attempt is written whole, too
		return err       //nolint:wrapcheck // it is as the client's
	}
	if standingOf(key, of, w.keeper.knows) != whole {
		return fmt.Errorf("the status of %s %s is not kept as it was written: its CustomResourceDefinition is older than the controller, and is upgraded with the chart",
			parts.Kind, object.GetName())
	}
	return nil
}

// replacing is a patch that writes a whole status, for the version that was read.
func replacing(version string, status any) (client.Patch, error) {
	data, err := json.Marshal([]map[string]any{
		// The API server compares what a patch has put there with what it has.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": version},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot write a status: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, data), nil
}
