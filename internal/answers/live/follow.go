// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/reach"
)

// again is how long a part waits that may not be listed, until it is tried again: rights
// may come.
const again = 5 * time.Minute

// follow keeps one part current until ctx ends: all objects of it, or the one of a name.
func (w *Watched) follow(ctx context.Context, client dynamic.ResourceInterface, name string, part snapshot.Part) {
	for ctx.Err() == nil {
		w.once(ctx, client, name, part)
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// once keeps one part current until ctx ends, or the part may not be listed any more.
func (w *Watched) once(ctx context.Context, client dynamic.ResourceInterface, name string, part snapshot.Part) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	only := ""
	if name != "" {
		only = fields.OneTermEqualSelector("metadata.name", name).String()
	}
	informer := reach.NewInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			list, err := client.List(ctx, options)
			if refused(err) {
				w.refuse(part, err)
				cancel()
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			watching, err := client.Watch(ctx, options)
			if err == nil {
				w.mend(part)
			}
			return watching, err
		},
	}, &unstructured.Unstructured{}, 0, nil)
	_ = informer.SetTransform(trim)
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *toolscache.Reflector, err error) { w.breaks(part, err) })
	held, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.set(part, object) },
		UpdateFunc: func(_, object any) { w.set(part, object) },
		DeleteFunc: func(object any) { w.drop(part, object) },
	})
	if err != nil {
		w.breaks(part, err)
		return
	}
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), held.HasSynced) {
			w.change(func() bool { w.listed[part] = true; delete(w.unread, part); return true })
		}
	}()
	informer.RunWithContext(ctx)
}

// trim leaves out what no answer is made from, and what only costs memory.
func trim(object any) (any, error) {
	if u, is := object.(*unstructured.Unstructured); is {
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
		if annotations := u.GetAnnotations(); annotations["kubectl.kubernetes.io/last-applied-configuration"] != "" {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
			u.SetAnnotations(annotations)
		}
	}
	return object, nil
}

// set takes an object over. One that cannot be understood is left out.
func (w *Watched) set(part snapshot.Part, object any) {
	u, is := object.(*unstructured.Unstructured)
	if !is {
		return
	}
	id := objects.IDOf(u)
	w.mu.Lock()
	last, had := w.held[part][id]
	w.mu.Unlock()
	if had && last.version == u.GetResourceVersion() {
		return
	}
	one, err := snapshot.New(time.Time{}, u)
	if err != nil {
		w.breaks(part, err)
		return
	}
	w.change(func() bool {
		if w.held[part] == nil {
			w.held[part] = map[objects.ID]entry{}
		}
		w.held[part][id] = entry{u.GetResourceVersion(), one}
		return true
	})
}

// drop forgets an object.
func (w *Watched) drop(part snapshot.Part, object any) {
	if gone, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	u, is := object.(*unstructured.Unstructured)
	if !is {
		return
	}
	w.change(func() bool { delete(w.held[part], objects.IDOf(u)); return true })
}

// refuse notes that a part may not be listed, or is not served, and forgets what was held
// of it.
func (w *Watched) refuse(part snapshot.Part, err error) {
	w.change(func() bool {
		delete(w.held, part)
		delete(w.listed, part)
		delete(w.broken, part)
		w.unread[part] = err
		return true
	})
}

// breaks notes that a part may be old from now on. What is held of it stays.
func (w *Watched) breaks(part snapshot.Part, err error) {
	if refused(err) {
		return
	}
	w.change(func() bool {
		if _, is := w.broken[part]; is {
			return false
		}
		w.broken[part] = Break{w.now(), err}
		return true
	})
}

// mend notes that a part is watched again.
func (w *Watched) mend(part snapshot.Part) {
	w.change(func() bool {
		_, is := w.broken[part]
		delete(w.broken, part)
		return is
	})
}
