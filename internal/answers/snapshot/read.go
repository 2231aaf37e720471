// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
)

// Read reads some parts at once. Of what may not be listed, or is not served,
// Unread tells; any other error, such as a cluster that does not answer, is
// returned. An object that cannot be understood is an error that names it.
func Read(ctx context.Context, client dynamic.Interface, now time.Time, parts ...Part) (*Snapshot, error) {
	s := &Snapshot{Now: now, Objects: map[dependents.ID]*unstructured.Unstructured{}, Unread: map[Part]error{}}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error {
			list, err := client.Resource(part.GroupVersionResource).List(ctx, metav1.ListOptions{})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
				s.Unread[part] = err
				return nil
			case err != nil:
				return err
			}
			return s.add(part, list.Items)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return s, nil
}

// New returns a snapshot of objects that are at hand, whatever parts they are of.
func New(now time.Time, objects ...*unstructured.Unstructured) (*Snapshot, error) {
	s := &Snapshot{Now: now, Objects: map[dependents.ID]*unstructured.Unstructured{}, Unread: map[Part]error{}}
	var problems []error
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		part := Part{schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version}, gvk.Kind}
		problems = append(problems, s.add(part, []unstructured.Unstructured{*object}))
	}
	return s, errors.Join(problems...)
}

// add adds objects of a part.
func (s *Snapshot) add(part Part, objects []unstructured.Unstructured) error {
	if part.Group != v1alpha1.GroupVersion.Group {
		for i := range objects {
			s.Objects[dependents.IDOf(&objects[i])] = &objects[i]
		}
		return nil
	}
	var err error
	switch part.Kind {
	case v1alpha1.AddonsLayerKind:
		s.Layers, err = typed(s.Layers, objects)
	case v1alpha1.RemoteClusterKind:
		s.Clusters, err = typed(s.Clusters, objects)
	case v1alpha1.ApplicationBundleKind:
		s.Bundles, err = typed(s.Bundles, objects)
	case v1alpha1.HelmApplicationKind:
		s.Applications, err = typed(s.Applications, objects)
	case v1alpha1.PlatformKind:
		s.Platforms, err = typed(s.Platforms, objects)
	}
	return err
}

// typed adds objects to those of a type that there are, and sorts them.
func typed[T any, P interface {
	*T
	metav1.Object
}](found []P, objects []unstructured.Unstructured) ([]P, error) {
	for i := range objects {
		object := P(new(T))
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, object); err != nil {
			return found, fmt.Errorf("cannot understand %s: %w", dependents.IDOf(&objects[i]), err)
		}
		found = append(found, object)
	}
	slices.SortFunc(found, func(a, b P) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return found, nil
}
