// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"maps"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// mostOpened is how many namespaces are opened for layers of which not all may be listed.
const mostOpened = 5

// Closed returns, for layers that are looked at, what may not be listed everywhere and may
// be in a namespace of theirs: the parts by namespace.
func Closed(s *snapshot.Snapshot, namespace string, chosen ...*v1alpha1.AddonsLayer) map[string][]snapshot.Part {
	closed := map[string][]snapshot.Part{}
	add := func(in string, part snapshot.Part) {
		if apierrors.IsForbidden(s.Unread[part]) && !slices.Contains(closed[in], part) && (closed[in] != nil || len(closed) < mostOpened) {
			closed[in] = append(closed[in], part)
		}
	}
	for _, layer := range chosen {
		for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
			if entry.ID.Cluster == "" && objects.IsReleaseKind(entry.ID.GroupKind()) {
				add(entry.ID.Namespace, snapshot.Releases)
			}
		}
		ref := sources.Of(layer, namespace)
		for _, part := range snapshot.Sources {
			if part.Kind == ref.Kind {
				add(ref.Namespace, part)
			}
		}
	}
	return closed
}

// MayList returns, of parts, those that whoever asks may list in a namespace, by one review
// of their rights there.
func (c *Cluster) MayList(ctx context.Context, namespace string, parts ...snapshot.Part) ([]snapshot.Part, error) {
	client, err := c.Typed()
	if err != nil {
		return nil, err
	}
	review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot ask what you may do in namespace %s: %w", namespace, err)
	}
	has := func(list []string, name string) bool {
		return slices.Contains(list, name) || slices.Contains(list, "*")
	}
	return slices.DeleteFunc(slices.Clone(parts), func(part snapshot.Part) bool {
		return !slices.ContainsFunc(review.Status.ResourceRules, func(rule authorizationv1.ResourceRule) bool {
			return len(rule.ResourceNames) == 0 && has(rule.Verbs, "list") && has(rule.APIGroups, part.Group) && has(rule.Resources, part.Resource)
		})
	}), nil
}

// Opened returns a snapshot with what was read in namespaces of what may not be listed
// everywhere. A part that was read in all of them counts as read.
func Opened(s *snapshot.Snapshot, closed map[string][]snapshot.Part, read map[string]*snapshot.Snapshot) *snapshot.Snapshot {
	opened := *s
	opened.Objects, opened.Unread = maps.Clone(s.Objects), maps.Clone(s.Unread)
	lacks := map[snapshot.Part]bool{}
	for namespace, parts := range closed {
		for _, part := range parts {
			here := read[namespace]
			if here == nil || here.Unread[part] != nil {
				lacks[part] = true
				continue
			}
			for _, object := range here.Of(part) {
				opened.Objects[objects.IDOf(object)] = object
			}
		}
	}
	for _, parts := range closed {
		for _, part := range parts {
			if !lacks[part] {
				delete(opened.Unread, part)
			}
		}
	}
	return &opened
}

// Open reads what may not be listed everywhere in the namespaces of layers, as far as it may
// be listed there.
func (c *Cluster) Open(ctx context.Context, s *snapshot.Snapshot, chosen ...*v1alpha1.AddonsLayer) (*snapshot.Snapshot, error) {
	if len(Lacking(s)) == 0 {
		return s, nil
	}
	closed := Closed(s, c.ControllerNamespace(ctx), chosen...)
	read := map[string]*snapshot.Snapshot{}
	for namespace, parts := range closed {
		may, err := c.MayList(ctx, namespace, parts...)
		if err != nil {
			continue // Then nothing more is known.
		}
		here, err := c.ReadIn(ctx, namespace, may...)
		if err != nil {
			return nil, err
		}
		maps.Copy(here.Unread, Refused(parts, may))
		read[namespace] = here
	}
	return Opened(s, closed, read), nil
}

// Refused returns, of parts, those that are not among what may be listed, each with an error
// that says so.
func Refused(parts, may []snapshot.Part) map[snapshot.Part]error {
	refused := map[snapshot.Part]error{}
	for _, part := range parts {
		if !slices.Contains(may, part) {
			refused[part] = apierrors.NewForbidden(part.GroupResource(), "", nil)
		}
	}
	return refused
}

// PartsOf returns the parts that hold objects of kinds, and those that the cluster does not
// serve.
func (c *Cluster) PartsOf(wanted []releases.Wanted) (served, unserved []snapshot.Part) {
	for _, kind := range wanted {
		part := snapshot.Part{Kind: kind.Kind}
		part.Group, part.Version = kind.Group, kind.Version
		if mapper, err := c.mapper(); err == nil {
			if mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
				part.GroupVersionResource = mapping.Resource
				served = append(served, part)
				continue
			}
		}
		unserved = append(unserved, part)
	}
	return served, unserved
}
