// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/objects"
)

// New returns a snapshot of objects that are at hand, whatever parts they are of.
func New(now time.Time, objs ...*unstructured.Unstructured) (*Snapshot, error) {
	s := &Snapshot{Now: now, Objects: map[objects.ID]*unstructured.Unstructured{}, Unread: map[Part]error{}}
	var problems []error
	for _, object := range objs {
		gvk := object.GroupVersionKind()
		part := Part{schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version}, gvk.Kind}
		problems = append(problems, s.Add(part, []unstructured.Unstructured{*object}))
	}
	return s, errors.Join(problems...)
}

// Add adds objects of a part. One that cannot be understood is an error that names it.
func (s *Snapshot) Add(part Part, objs []unstructured.Unstructured) error {
	if part.Group != v1alpha1.GroupVersion.Group {
		for i := range objs {
			s.Objects[objects.IDOf(&objs[i])] = &objs[i]
		}
		return nil
	}
	var err error
	switch part.Kind {
	case v1alpha1.AddonsLayerKind:
		s.Layers, err = typed(s.Layers, objs)
	case v1alpha1.RemoteClusterKind:
		s.Clusters, err = typed(s.Clusters, objs)
	case v1alpha1.ApplicationBundleKind:
		s.Bundles, err = typed(s.Bundles, objs)
	case v1alpha1.HelmApplicationKind:
		s.Applications, err = typed(s.Applications, objs)
		for i, app := range s.Applications {
			s.Applications[i] = catalogue.WithDefaults(app)
		}
	case v1alpha1.PlatformKind:
		s.Platforms, err = typed(s.Platforms, objs)
	case v1alpha1.CapabilityProviderKind:
		s.Providers, err = typed(s.Providers, objs)
	case v1alpha1.CapabilityClaimKind:
		s.Claims, err = typed(s.Claims, objs)
	case v1alpha1.HostClusterKind:
		s.HostClusters, err = typed(s.HostClusters, objs)
	}
	return err
}

// typed adds objects to those of a type that there are, and sorts them.
func typed[T any, P interface {
	*T
	metav1.Object
}](found []P, objs []unstructured.Unstructured) ([]P, error) {
	for i := range objs {
		object := P(new(T))
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objs[i].Object, object); err != nil {
			return found, fmt.Errorf("cannot understand %s: %w", objects.IDOf(&objs[i]), err)
		}
		found = append(found, object)
	}
	slices.SortFunc(found, func(a, b P) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return found, nil
}
