// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation has the controller's real rules look after a cluster that
// is simulated, together with source-controller, helm-controller and the people
// who use it, in one process, with a virtual clock and a random order of steps
// that one number decides. What must hold is judged by rules of its own.
package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// The kinds of objects of a cluster, each with a history of its own.
const (
	kindLayer = iota
	kindRelease
	kindSource
	// kindRemote are RemoteClusters, and kindPlain Secrets, ConfigMaps and
	// Namespaces, the only kind that other clusters have.
	kindRemote
	kindPlain
	kindsOfObjects
)

// object is what a cluster holds. It is never changed, but replaced.
type object interface {
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	GetDeletionTimestamp() *metav1.Time
}

// change is one write: what was there, and what is; nil for nothing.
type change struct {
	name    string
	was, is object
}

// cluster is what an API server stores.
type cluster struct {
	version uint64
	// uids counts the UIDs of all clusters.
	uids *int
	// identity is the UID that the cluster is known by, and hub who has claimed it.
	identity, hub string
	objects       [kindsOfObjects]map[string]object
	history       [kindsOfObjects][]change
	// kept holds the contents that layers may go back to, by layer and digest.
	kept map[string]*directories.Directory
	// kubernetes is the version of the cluster.
	kubernetes string
	// writes counts what was written.
	writes int
}

func newCluster(uids *int) *cluster {
	c := &cluster{uids: uids, kept: map[string]*directories.Directory{}, kubernetes: "v1.30.2"}
	c.identity = string(c.newUID())
	for kind := range c.objects {
		c.objects[kind] = map[string]object{}
	}
	return c
}

// next returns the resourceVersion of the next write.
func (c *cluster) next() string {
	c.version++
	return strconv.FormatUint(c.version, 10)
}

func (c *cluster) newUID() types.UID {
	*c.uids++
	return types.UID(fmt.Sprintf("%08d-0000", *c.uids))
}

func (c *cluster) put(kind int, name string, is object) {
	was := c.objects[kind][name]
	c.writes++
	if is == nil {
		delete(c.objects[kind], name)
	} else {
		c.objects[kind][name] = is
	}
	c.history[kind] = append(c.history[kind], change{name, was, is})
}

// releases returns the names of all releases, in order.
func (c *cluster) releases() []string { return sortedKeys(c.objects[kindRelease]) }

func (c *cluster) layer(name string) *v1alpha1.AddonsLayer {
	layer, _ := c.objects[kindLayer][name].(*v1alpha1.AddonsLayer)
	return layer
}

// keyOf returns how a cluster names an object: a release by its name, since no two
// have one name, and anything else by kind, namespace and name.
func keyOf(id objects.ID) string {
	if id.GroupKind() == kinds.HelmReleaseKind {
		return id.Name
	}
	return id.Kind + "/" + id.Namespace + "/" + id.Name
}

func kindOf(key string) int {
	if strings.Contains(key, "/") {
		return kindPlain
	}
	return kindRelease
}

// release returns a release, or any other object, by its key.
func (c *cluster) release(key string) *unstructured.Unstructured {
	release, _ := c.objects[kindOf(key)][key].(*unstructured.Unstructured)
	return release
}

func (c *cluster) remote(name string) *v1alpha1.RemoteCluster {
	found, _ := c.objects[kindRemote][name].(*v1alpha1.RemoteCluster)
	return found
}

func (c *cluster) source(name string) *source {
	found, _ := c.objects[kindSource][name].(*source)
	return found
}

// putLayer stores a layer. A layer that is being deleted goes with its last
// finalizer.
func (c *cluster) putLayer(layer *v1alpha1.AddonsLayer) {
	layer.ResourceVersion = c.next()
	if layer.DeletionTimestamp != nil && len(layer.Finalizers) == 0 {
		c.put(kindLayer, layer.Name, nil)
		return
	}
	c.put(kindLayer, layer.Name, layer)
}

// putRemote stores a RemoteCluster, likewise.
func (c *cluster) putRemote(remote *v1alpha1.RemoteCluster) {
	remote.ResourceVersion = c.next()
	name := remote.Namespace + "/" + remote.Name
	if remote.DeletionTimestamp != nil && len(remote.Finalizers) == 0 {
		c.put(kindRemote, name, nil)
		return
	}
	c.put(kindRemote, name, remote)
}

// changeRemote has somebody change a RemoteCluster; spec says that the
// specification changes, too.
func (c *cluster) changeRemote(name string, spec bool, do func(*v1alpha1.RemoteCluster)) {
	remote := c.remote(name).DeepCopy()
	if remote.Annotations == nil {
		remote.Annotations = map[string]string{}
	}
	do(remote)
	if spec {
		remote.Generation++
	}
	c.putRemote(remote)
}

// putRelease stores a release, or any other object, likewise.
func (c *cluster) putRelease(release *unstructured.Unstructured) {
	release.SetResourceVersion(c.next())
	key := keyOf(objects.IDOf(release))
	if release.GetDeletionTimestamp() != nil && len(release.GetFinalizers()) == 0 {
		c.put(kindOf(key), key, nil)
		return
	}
	c.put(kindOf(key), key, release)
}

// changeLayer has somebody change the specification or the metadata of a layer.
func (c *cluster) changeLayer(name string, do func(*v1alpha1.AddonsLayer)) {
	was := c.layer(name)
	layer := was.DeepCopy()
	if layer.Annotations == nil {
		layer.Annotations = map[string]string{}
	}
	do(layer)
	if !sameSpec(&was.Spec, &layer.Spec) {
		layer.Generation++
	}
	c.putLayer(layer)
}

// changeRelease has somebody change a release. A change of the specification
// counts up the generation.
func (c *cluster) changeRelease(name string, do func(*unstructured.Unstructured)) *unstructured.Unstructured {
	was := c.release(name)
	release := was.DeepCopy()
	do(release)
	if release.GetGeneration() != 0 && !sameValue(was.Object["spec"], release.Object["spec"]) {
		release.SetGeneration(release.GetGeneration() + 1)
	}
	c.putRelease(release)
	return release
}

func (c *cluster) createRelease(release *unstructured.Unstructured) *unstructured.Unstructured {
	release.SetUID(c.newUID())
	if kindOf(keyOf(objects.IDOf(release))) == kindRelease {
		release.SetGeneration(1)
	}
	c.putRelease(release)
	return release
}

// deleteRelease begins or completes the deletion of a release.
func (c *cluster) deleteRelease(name string, now metav1.Time) {
	if live := c.release(name); live == nil || live.GetDeletionTimestamp() != nil {
		return
	}
	c.changeRelease(name, func(r *unstructured.Unstructured) { r.SetDeletionTimestamp(&now) })
}

var (
	layerResource   = schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "addonslayers"}
	remoteResource  = schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "remoteclusters"}
	secretResource  = schema.GroupResource{Resource: "secrets"}
	releaseResource = schema.GroupResource{Group: kinds.HelmReleaseKind.Group, Resource: "helmreleases"}
)

func conflict(resource schema.GroupResource, name string) error {
	return apierrors.NewConflict(resource, name, fmt.Errorf("the object has been modified"))
}

func notFound(resource schema.GroupResource, name string) error {
	return apierrors.NewNotFound(resource, name)
}

// source is a GitRepository and its artifact.
type source struct {
	metav1.ObjectMeta
	seen layers.Source
	// away is true while the artifact cannot be fetched.
	away bool
}

// sameValue compares what JSON can say.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		other, is := b.(map[string]any)
		if !is || len(a) != len(other) {
			return false
		}
		for key, value := range a {
			if has, found := other[key]; !found || !sameValue(value, has) {
				return false
			}
		}
		return true
	case []any:
		other, is := b.([]any)
		return is && slices.EqualFunc(a, other, sameValue)
	default:
		return a == b
	}
}

func sameSpec(a, b *v1alpha1.AddonsLayerSpec) bool {
	return a.Version == b.Version && a.Hold == b.Hold && a.Rollback == b.Rollback && a.DeletionPolicy == b.DeletionPolicy &&
		a.Prereqs.K8sVersion == b.Prereqs.K8sVersion && slices.Equal(a.Prereqs.DependsOn, b.Prereqs.DependsOn) &&
		samePlace(a.Cluster, b.Cluster) && a.Source.Path == b.Source.Path &&
		*a.Interval == *b.Interval && *a.OrphanGrace == *b.OrphanGrace && *a.Timeout == *b.Timeout
}

func samePlace(a, b *v1alpha1.ClusterReference) bool {
	return a == b || a != nil && b != nil && *a == *b
}
