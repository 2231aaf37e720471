// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/strata-project/strata/internal/reserved"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// remote is another cluster, as it is, whatever anybody knows of it.
type remote struct {
	*cluster
	// name of its RemoteCluster, with the namespace.
	name string
	// awayUntil is when it answers again, and dead that it never will.
	awayUntil moment
	dead      bool
	// token is what it lets in.
	token int
	// givenUp is true where people have given up what is on it, until another
	// cluster is registered in its place.
	givenUp bool
}

// remoteNames are the other clusters that there are, as IDs name them.
var remoteNames = []string{fleet + "/a", fleet + "/b"}

var (
	errNoAnswer     = errors.New("connection refused")
	errUnauthorized = errors.New("the credentials are not accepted: Unauthorized")
	errNotConnected = errors.New("the cluster is not connected")
)

// away tells whether a cluster answers nobody.
func (s *simulation) away(r *remote) bool { return r.dead || s.now < r.awayUntil }

// ask asks a cluster, over a kubeconfig.
func (s *simulation) ask(r *remote, kubeconfig string) error {
	switch {
	case s.away(r):
		return errNoAnswer
	case kubeconfig != r.kubeconfig():
		return errUnauthorized
	}
	return nil
}

// kubeconfig is what lets people in.
func (r *remote) kubeconfig() string { return fmt.Sprintf("%s with token %d", r.name, r.token) }

// leave has a cluster answer nobody for a while.
func (s *simulation) leave(r *remote, pause time.Duration) {
	r.awayUntil = max(r.awayUntil, s.now+moment(pause))
	s.after(time.Duration(r.awayUntil-s.now), func() { s.returns(r) })
}

// returns has those who watch a cluster see it again, in time.
func (s *simulation) returns(r *remote) {
	if s.away(r) {
		return
	}
	if c := s.process.connections[r.name]; c != nil {
		c.cache.frozenUntil = max(c.cache.frozenUntil, s.now+moment(s.between(0, 3*time.Second)))
	}
}

// leadsTo returns the cluster that a kubeconfig leads to.
func (s *simulation) leadsTo(kubeconfig string) *remote {
	name, _, _ := strings.Cut(kubeconfig, " with token ")
	return s.remotes[name]
}

// store returns what a cluster holds; "" is home.
func (s *simulation) store(cluster string) *cluster {
	if cluster == "" {
		return s.cluster
	}
	return s.remotes[cluster].cluster
}

// on names an object of a cluster by its key there.
func on(cluster, key string) string {
	if cluster == "" {
		return key
	}
	return cluster + "|" + key
}

// nameOf names an object, whatever cluster it is on.
func nameOf(id objects.ID) string { return on(id.Cluster, keyOf(id)) }

// split returns the cluster of an object, and its key there.
func split(name string) (cluster, key string) {
	if cluster, key, found := strings.Cut(name, "|"); found {
		return cluster, key
	}
	return "", name
}

// object returns an object, whatever cluster it is on.
func (s *simulation) object(name string) *unstructured.Unstructured {
	cluster, key := split(name)
	return s.store(cluster).release(key)
}

// clusterOf returns the cluster that a layer belongs on.
func clusterOf(layer *v1alpha1.AddonsLayer) string {
	return placement.ClusterName(placement.Of(layer, namespace))
}

func placeOf(layer, cluster string) placement.Place {
	namespace, name, _ := strings.Cut(cluster, "/")
	return placement.Place{Layer: layer, Cluster: types.NamespacedName{Namespace: namespace, Name: name}}
}

// place names what a file is where it is put, and the copy of what it reads; each
// is "" where there is none.
func (s *simulation) place(layer, cluster string, f file) (name, copied string) {
	key := placing{layer, cluster, f.name, f.plain, f.reads}
	if known, found := s.placed[key]; found {
		return known[0], known[1]
	}
	manifests := []directories.Manifest{{Object: manifestOf(f)}}
	if f.reads != "" {
		manifests = append(manifests, directories.Manifest{Object: manifestOf(file{name: f.reads, plain: true})})
	}
	put, err := placeOf(layer, cluster).Put(&directories.Directory{Manifests: manifests})
	if err != nil {
		panic(err)
	}
	for _, m := range put.Manifests {
		isRelease := m.ID().GroupKind() == kinds.HelmReleaseKind
		switch {
		case m.Ensured:
		case isRelease != f.plain && (isRelease || m.Cluster == cluster):
			name = nameOf(m.ID())
		case m.Cluster == "" && cluster != "":
			copied = nameOf(m.ID())
		}
	}
	s.placed[key] = [2]string{name, copied}
	return name, copied
}

// placing is what decides how a file is named where it is put.
type placing struct {
	layer, cluster, file string
	plain                bool
	reads                string
}

// put returns what is there of a folder on the cluster that its layer belongs on:
// its files by the names that they have there, and the copies of what they read.
func (s *simulation) put(layer, cluster string, f folder) folder {
	found := folder{broken: f.broken, missing: f.missing}
	copies := map[string]bool{}
	for _, listed := range f.files {
		name, copied := s.place(layer, cluster, listed)
		if copied != "" && !copies[copied] {
			copies[copied] = true
			read := f.files[f.find(listed.reads)]
			found.files = append(found.files, file{name: copied, plain: true, value: read.value, quality: read.quality})
		}
		listed.name, listed.helm = name, helmOn(cluster, listed.helm)
		found.files = append(found.files, listed)
	}
	return found
}

// register has a RemoteCluster be there, and the Secret with its kubeconfig.
func (s *simulation) register(r *remote) {
	cluster := &v1alpha1.RemoteCluster{}
	namespace, name, _ := strings.Cut(r.name, "/")
	cluster.Namespace, cluster.Name, cluster.UID, cluster.Generation = namespace, name, s.cluster.newUID(), 1
	cluster.Annotations = map[string]string{}
	cluster.Status.ObservedGeneration = -1
	cluster.Spec.KubeConfig.SecretRef.Name = name + "-kubeconfig"
	cluster.Spec.Interval = &metav1.Duration{Duration: pick(s, []time.Duration{10 * time.Second, 30 * time.Second})}
	cluster.Spec.Unreachable.After = &metav1.Duration{Duration: pick(s, []time.Duration{5 * time.Second, 12 * time.Second})}
	s.cluster.putRemote(cluster)
}

// replace has another cluster take the place of one that was given up: what was on
// that one went with it.
func (s *simulation) replace(r *remote) {
	r.cluster, r.dead, r.awayUntil, r.givenUp = newCluster(s.cluster.uids), false, 0, false
	r.token++
	maps.DeleteFunc(s.installed, func(helm string, _ int64) bool { return strings.HasPrefix(helm, r.name+":") })
	maps.DeleteFunc(s.evidence.forsaken, func(name string, _ bool) bool { return strings.HasPrefix(name, r.name) })
}

// sourceOfKubeConfig is the key of the Secret that people write.
func sourceOfKubeConfig(name string) string { return "Secret/" + name + "-kubeconfig" }

// copyOfKubeConfig is the key of Strata's own copy.
func copyOfKubeConfig(name string) string {
	namespace, name, _ := strings.Cut(name, "/")
	return "Secret/" + namespace + "/" + reserved.KubeConfigName(name)
}

// giveCredentials has people write the Secret that lets Strata in.
func (s *simulation) giveCredentials(r *remote) {
	key := sourceOfKubeConfig(r.name)
	if live := s.cluster.release(key); live != nil {
		if kubeconfigIn(live) != r.kubeconfig() {
			s.cluster.changeRelease(key, func(secret *unstructured.Unstructured) { setKubeconfig(secret, r.kubeconfig()) })
		}
		return
	}
	namespace, name, _ := strings.Cut(r.name, "/")
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	secret.SetNamespace(namespace)
	secret.SetName(name + "-kubeconfig")
	setKubeconfig(secret, r.kubeconfig())
	s.cluster.createRelease(secret)
}
