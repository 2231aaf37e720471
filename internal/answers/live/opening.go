// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/objects"
)

// Open returns a snapshot with what may be listed in the namespaces of a layer that is
// looked at, where it may not be listed everywhere. It is watched from now on, and changes
// the answer once it is there.
func (c *Cluster) Open(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) *snapshot.Snapshot {
	closed := gather.Closed(s, c.about.Namespace, layer)
	if len(closed) == 0 {
		return s
	}
	read := map[string]*snapshot.Snapshot{}
	for namespace := range closed {
		if below, _ := c.below(spot{Place: why.Place{Namespace: namespace}, kinds: opened}); below != nil {
			read[namespace] = below
		}
	}
	return gather.Opened(s, closed, read)
}

// opened stands, where kinds are named, for those that may be opened in a namespace.
const opened = "opened"

// openable are the parts that may be opened in a namespace.
var openable = append([]snapshot.Part{snapshot.Releases}, snapshot.Sources...)

// Made returns the objects that Helm has made for a layer that is looked at, as far as they
// are held by now; Secrets are none of them. They are watched from now on, and change the
// answer once they are there.
func (c *Cluster) Made(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) *releases.Live {
	live := &releases.Live{Objects: map[objects.ID]*unstructured.Unstructured{}, Unread: map[string]string{}}
	byNamespace := map[string][]string{}
	for _, wanted := range releases.Looks(s, []*v1alpha1.AddonsLayer{layer}) {
		kind := wanted.GroupKind().String()
		_, known := byNamespace[wanted.Namespace]
		switch {
		case wanted.GroupKind() == schema.GroupKind{Kind: "Secret"}:
			live.Unread[kind] = "Secrets are not read"
		case wanted.Group == v1alpha1.GroupVersion.Group:
			live.Unread[kind] = "it has a view of its own"
		case !known && len(byNamespace) >= mostNamespaces:
			live.Unread[kind] = "it is in too many namespaces to be looked at"
		default:
			byNamespace[wanted.Namespace] = append(byNamespace[wanted.Namespace], strings.Join([]string{wanted.Group, wanted.Version, wanted.Kind}, "/"))
		}
	}
	for namespace, kinds := range byNamespace {
		slices.Sort(kinds)
		below, note := c.below(spot{Place: why.Place{Namespace: namespace}, kinds: strings.Join(kinds, " ")})
		if below == nil {
			for _, wanted := range wantedIn(kinds) {
				live.Unread[wanted.GroupKind().String()] = cmp.Or(note, "is not read yet")
			}
			continue
		}
		maps.Copy(live.Objects, below.Objects)
		for part, err := range below.Unread {
			reason := "the cluster does not list them"
			if apierrors.IsForbidden(err) {
				reason = gather.MayNotList
			}
			live.Unread[schema.GroupKind{Group: part.Group, Kind: part.Kind}.String()] = reason
		}
	}
	return live
}

// wantedIn reads kinds as group/version/Kind.
func wantedIn(kinds []string) []releases.Wanted {
	var all []releases.Wanted
	for _, text := range kinds {
		if words := strings.Split(text, "/"); len(words) == 3 {
			all = append(all, releases.Wanted{GroupVersionKind: schema.GroupVersionKind{Group: words[0], Version: words[1], Kind: words[2]}})
		}
	}
	return all
}
