// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/trim"
)

// Follows watches single objects with what they hold, each as long as somebody
// reads it: ConfigMaps and Secrets, of which the caches hold no more than metadata,
// and objects of any kind that layers wait for. It is safe for concurrent use.
type Follows struct {
	// listerOf returns what lists a resource of an object's cluster in its namespace, as
	// the key's account or, where that is the zero value, as the controller; nil where
	// that cluster is not connected. like is an empty object of what it lists.
	listerOf func(of followKey, resource schema.GroupVersionResource) lister
	like     runtime.Object
	// Connections returns the connection to another cluster, for whose answer its watches
	// wait; nil for none.
	Connections func(cluster string) *Connection
	// changed is told of readers whose object may be another now.
	changed func(readers []Follower)

	mu   sync.Mutex
	byID map[followKey]*followed
	// ended is true once nothing is followed any more.
	ended bool
}

// Follower is who follows an object: one object of a kind of Strata.
type Follower struct {
	// Kind of the object.
	Kind string
	types.NamespacedName
}

// lister lists and watches one resource.
type lister interface {
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// wholeLister lists objects with all that they hold.
type wholeLister struct{ dynamic.ResourceInterface }

// List returns the objects.
func (l wholeLister) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return l.ResourceInterface.List(ctx, options)
}

// metadataLister lists no more than the metadata of objects.
type metadataLister struct{ metadata.ResourceInterface }

// List returns the metadata.
func (l metadataLister) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return l.ResourceInterface.List(ctx, options)
}

// followKey is an object as one version of its API shows it to one account; the
// version is empty for the kinds of followedResources. Readers with the same account
// share one watch.
type followKey struct {
	objects.ID
	version string
	account types.NamespacedName
}

// followed is one object that is watched.
type followed struct {
	informer toolscache.SharedIndexInformer
	stop     context.CancelFunc
	readers  map[Follower]struct{}
	// failed says why it could not be watched last; nil where it could.
	failed error
}

// NewFollows follows objects with all that they hold.
func NewFollows(dynamicOf func(cluster string, account types.NamespacedName) dynamic.Interface, changed func([]Follower)) *Follows {
	return &Follows{
		like: &unstructured.Unstructured{}, changed: changed, byID: map[followKey]*followed{},
		listerOf: func(of followKey, resource schema.GroupVersionResource) lister {
			clients := dynamicOf(of.Cluster, of.account)
			if clients == nil {
				return nil
			}
			return wholeLister{clients.Resource(resource).Namespace(of.Namespace)}
		},
	}
}

// NewMetadataFollows follows the metadata of objects of the cluster that clients
// reaches, whatever cluster their IDs name.
func NewMetadataFollows(clients metadata.Interface, changed func([]Follower)) *Follows {
	return &Follows{
		like: &metav1.PartialObjectMetadata{}, changed: changed, byID: map[followKey]*followed{},
		listerOf: func(of followKey, resource schema.GroupVersionResource) lister {
			return metadataLister{clients.Resource(resource).Namespace(of.Namespace)}
		},
	}
}

// Get returns a ConfigMap or Secret as it is now, or nil where there is none, and
// tells who of its changes from now on. It waits a moment for the first answer.
func (f *Follows) Get(ctx context.Context, who Follower, id objects.ID) (*unstructured.Unstructured, error) {
	return f.read(ctx, who, followKey{ID: id}, followedResources[id.GroupKind()])
}

// GetAs is as get, for an object of a resource of any kind, as an account may read
// it.
func (f *Follows) GetAs(
	ctx context.Context,
	who Follower,
	id objects.ID,
	resource schema.GroupVersionResource,
	account types.NamespacedName,
) (*unstructured.Unstructured, error) {
	return f.read(ctx, who, followKey{id, resource.Version, account}, resource)
}

func (f *Follows) read(ctx context.Context, who Follower, id followKey, resource schema.GroupVersionResource) (*unstructured.Unstructured, error) {
	found, err := f.start(who, id, resource)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, FirstSync)
	defer cancel()
	for !found.informer.HasSynced() {
		if err := f.failure(found); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", id.ID, err)
		}
		select {
		case <-waiting.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("cannot read %s within %s", id.ID, FirstSync)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return found.object(id.ID), nil
}

// Version returns how an object that is followed is known; empty where there is
// none or where it may not be read, and an error where nobody follows it.
func (f *Follows) Version(id objects.ID) (string, error) {
	return f.VersionAs(id, "", types.NamespacedName{})
}

// VersionAs is as version, of an object that getAs has read at a version of its API.
func (f *Follows) VersionAs(id objects.ID, version string, account types.NamespacedName) (string, error) {
	f.mu.Lock()
	found := f.byID[followKey{id, version, account}]
	f.mu.Unlock()
	switch {
	case found != nil && found.informer.HasSynced():
	case found != nil && apierrors.IsForbidden(f.failure(found)):
		return "", nil
	default:
		return "", errors.New("nobody follows it")
	}
	if obj := found.object(id); obj != nil {
		return VersionOf(obj), nil
	}
	return "", nil
}

func (f *followed) object(id objects.ID) *unstructured.Unstructured {
	item, exists, err := f.informer.GetStore().GetByKey(toolscache.NewObjectName(id.Namespace, id.Name).String())
	if err != nil || !exists {
		return nil
	}
	obj, _ := item.(client.Object)
	if obj == nil {
		return nil
	}
	found, err := ToUnstructured(obj, schema.GroupVersionKind{Version: "v1", Kind: id.Kind})
	if err != nil {
		return nil // metadata can be converted
	}
	return found
}

func (f *Follows) failure(of *followed) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return of.failed
}

// Keep ends what a reader follows beyond some objects.
func (f *Follows) Keep(who Follower, ids map[objects.ID]bool) {
	f.KeepAs(who, ids, types.NamespacedName{})
}

// KeepAs is as keep, for a reader that reads as an account: it ends also what that
// read as another one.
func (f *Follows) KeepAs(who Follower, ids map[objects.ID]bool, account types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, found := range f.byID {
		same := id.account == account || id.account == types.NamespacedName{}
		if _, reads := found.readers[who]; !reads || ids[id.ID] && same {
			continue
		}
		delete(found.readers, who)
		f.endUnread(id, found)
	}
}

// Forget ends what is followed on a cluster, whose connection is another now; the
// readers look again.
func (f *Follows) Forget(cluster string) {
	f.mu.Lock()
	var readers []Follower
	for id, found := range f.byID {
		if id.Cluster != cluster {
			continue
		}
		readers = slices.AppendSeq(readers, maps.Keys(found.readers))
		clear(found.readers)
		f.endUnread(id, found)
	}
	f.mu.Unlock()
	f.changed(readers)
}

// UntilDone waits for the end of ctx, and ends all that is followed.
func (f *Follows) UntilDone(ctx context.Context) error {
	<-ctx.Done()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for _, found := range f.byID {
		found.stop()
	}
	clear(f.byID)
	return nil
}

func (f *Follows) endUnread(id followKey, found *followed) {
	if len(found.readers) == 0 {
		found.stop()
		delete(f.byID, id)
	}
}

// start begins to watch an object, unless that has begun.
func (f *Follows) start(who Follower, id followKey, of schema.GroupVersionResource) (*followed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil, fmt.Errorf("cannot read %s: %w", id.ID, context.Canceled)
	}
	if found := f.byID[id]; found != nil {
		found.readers[who] = struct{}{}
		return found, nil
	}
	resource := f.listerOf(id, of)
	if resource == nil {
		return nil, fmt.Errorf("cannot read %s: %w", id.ID, ErrNotConnected)
	}
	var over *Connection
	if f.Connections != nil && id.Cluster != "" {
		over = f.Connections(id.Cluster)
	}
	ctx, stop := context.WithCancel(context.Background())
	found := &followed{stop: stop, readers: map[Follower]struct{}{who: {}}}
	found.informer = toolscache.NewSharedIndexInformer(f.listWatch(found, resource, id.Name, over), f.like, 0, toolscache.Indexers{})
	tell := func() {
		f.mu.Lock()
		readers := slices.Collect(maps.Keys(found.readers))
		f.mu.Unlock()
		f.changed(readers)
	}
	_, err := found.informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(any, bool) { tell() },
		UpdateFunc: func(any, any) { tell() },
		DeleteFunc: func(any) { tell() },
	})
	if err == nil {
		err = found.informer.SetTransform(trim.Object)
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("cannot follow %s: %w", id.ID, err)
	}
	go found.informer.RunWithContext(ctx)
	f.byID[id] = found
	return found, nil
}

// untilAnswers waits while the cluster of an object does not answer. Readers are told so
// meanwhile.
func (f *Follows) untilAnswers(ctx context.Context, of *followed, over *Connection) error {
	if err := over.away(); err != nil {
		f.noteFailure(of, err)
	}
	return over.untilAnswers(ctx)
}

// listWatch reads the object of a name, over a connection that may be nil.
func (f *Follows) listWatch(found *followed, resource lister, name string, over *Connection) *toolscache.ListWatch {
	one := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = one
			if err := f.untilAnswers(ctx, found, over); err != nil {
				return nil, err
			}
			list, err := resource.List(ctx, options)
			f.noteFailure(found, err)
			over.doubt(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = one
			if err := f.untilAnswers(ctx, found, over); err != nil {
				return nil, err
			}
			watching, err := resource.Watch(ctx, options)
			over.doubt(err)
			if err == nil {
				// It may bring what there is, in the place of a list: readers wait for that, also
				// where something else failed before.
				f.noteFailure(found, nil)
			}
			return watching, err
		},
	}
}

func (f *Follows) noteFailure(of *followed, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of.failed = err
}
