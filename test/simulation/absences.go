// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
)

// reference returns what a layer says of the cluster that it belongs on.
func reference(cluster string) *v1alpha1.ClusterReference {
	namespace, name, remote := strings.Cut(cluster, "/")
	if !remote {
		return nil
	}
	return &v1alpha1.ClusterReference{Namespace: namespace, Name: name}
}

// drawPlace draws a cluster for a layer, where no layer of the same folder is.
func (s *simulation) drawPlace(layer string) string {
	var taken []string
	for _, other := range s.people.names {
		if l := s.cluster.layer(other); l != nil && other != layer && s.folderOf(other) == s.folderOf(layer) {
			taken = append(taken, clusterOf(l))
		}
	}
	return pick(s, slices.DeleteFunc([]string{"", remoteNames[0], remoteNames[1]}, func(place string) bool { return slices.Contains(taken, place) }))
}

func (s *simulation) drawRemote() *remote { return s.remotes[pick(s, remoteNames)] }

// leaveShortly has a cluster be away for less time than anybody cares about.
func leaveShortly(s *simulation, _ string) bool {
	s.leave(s.drawRemote(), s.between(100*time.Millisecond, 4*time.Second))
	return true
}

// leaveForLong has a cluster be away until its layers are Unknown.
func leaveForLong(s *simulation, _ string) bool {
	s.leave(s.drawRemote(), s.between(20*time.Second, 50*time.Second))
	return true
}

// comeBack ends the absence of all clusters that have not been destroyed.
func comeBack(s *simulation, _ string) bool {
	for _, name := range remoteNames {
		if r := s.remotes[name]; s.now < r.awayUntil {
			r.awayUntil = s.now
			s.returns(r)
		}
	}
	return true
}

// loseCredentials has the Secret of a kubeconfig go; it comes back.
func loseCredentials(s *simulation, _ string) bool {
	r := s.drawRemote()
	if s.cluster.release(sourceOfKubeConfig(r.name)) == nil {
		return false
	}
	s.cluster.deleteRelease(sourceOfKubeConfig(r.name), metav1.NewTime(s.now.time()))
	s.after(s.between(time.Second, 30*time.Second), func() { s.giveCredentials(r) })
	return true
}

// rotateCredentials has a cluster let in another token, before or after people say
// so in the Secret.
func rotateCredentials(s *simulation, _ string) bool {
	r := s.drawRemote()
	r.token++
	s.after(s.between(0, 15*time.Second), func() { s.giveCredentials(r) })
	return true
}

// swapCredentials has the Secret of one cluster lead to the other one for a while,
// after it was recorded which one is meant.
func swapCredentials(s *simulation, _ string) bool {
	r := s.drawRemote()
	key := sourceOfKubeConfig(r.name)
	copied := s.cluster.release(copyOfKubeConfig(r.name))
	if s.cluster.release(key) == nil || clusters.RecordedOn(copied) != r.identity || copied.GetDeletionTimestamp() != nil {
		return false
	}
	for _, name := range remoteNames {
		if other := s.remotes[name]; other != r {
			s.cluster.changeRelease(key, func(secret *unstructured.Unstructured) { setKubeconfig(secret, other.kubeconfig()) })
		}
	}
	s.after(s.between(time.Second, 40*time.Second), func() { s.giveCredentials(r) })
	return true
}

// deleteCopy has somebody delete Strata's own copy of a kubeconfig: one through which
// something is being uninstalled, where there is one. Nobody does so while the Secret
// leads to another cluster: after a restart nothing would say that it does.
func deleteCopy(s *simulation, _ string) bool {
	name := s.drawRemote().name
	for _, release := range s.cluster.releases() {
		if live := s.cluster.release(release); live.GetDeletionTimestamp() != nil && layers.TargetOf(live) != "" {
			name = layers.TargetOf(live)
		}
	}
	key := copyOfKubeConfig(name)
	if live := s.cluster.release(key); live == nil || live.GetDeletionTimestamp() != nil {
		return false
	}
	if secret := s.cluster.release(sourceOfKubeConfig(name)); secret != nil && s.leadsTo(kubeconfigIn(secret)) != s.remotes[name] {
		return false
	}
	s.cluster.deleteRelease(key, metav1.NewTime(s.now.time()))
	return true
}

// deleteRemote deletes a RemoteCluster whose layers are there. Both are never
// deleted at once, so that there is somewhere to go.
func deleteRemote(s *simulation, _ string) bool {
	for _, name := range remoteNames {
		if is := s.cluster.remote(name); is == nil || is.DeletionTimestamp != nil {
			return false
		}
	}
	s.endRemote(s.drawRemote(), false)
	return true
}

func (s *simulation) endRemote(r *remote, abandon bool) {
	now := metav1.NewTime(s.now.time().Truncate(time.Second))
	byPolicy := abandon && s.chance(50)
	s.cluster.changeRemote(r.name, true, func(c *v1alpha1.RemoteCluster) {
		if c.DeletionTimestamp == nil {
			c.DeletionTimestamp = &now
		}
		if byPolicy {
			c.Spec.DeletionPolicy = v1alpha1.ClusterDeletionAbandon
		} else if abandon {
			c.Annotations[v1alpha1.AbandonAnnotation] = "true"
		}
	})
}

// destroy has a cluster be gone for good, sometimes without ever having answered
// again, and people give up its RemoteCluster.
func destroy(s *simulation, _ string) bool {
	r := s.drawRemote()
	if s.cluster.remote(r.name) == nil || r.givenUp {
		return false
	}
	s.giveUp(r)
	return true
}

func (s *simulation) giveUp(r *remote) {
	r.givenUp, r.dead = true, r.dead || s.chance(75)
	s.endRemote(r, true)
}

// registerAgain has another cluster come in the place of one that was given up, or
// the same one where it was not.
func registerAgain(s *simulation, _ string) bool {
	registered := false
	for _, name := range remoteNames {
		r := s.remotes[name]
		if s.cluster.remote(name) != nil {
			continue
		}
		if r.givenUp {
			kubernetes := r.kubernetes
			s.replace(r)
			r.kubernetes = kubernetes
		}
		s.register(r)
		s.giveCredentials(r)
		registered = true
	}
	return registered
}

// moveLayer has a layer belong on another cluster.
func moveLayer(s *simulation, layer string) bool {
	found := s.cluster.layer(layer)
	if found == nil {
		return false
	}
	to := s.drawPlace(layer)
	return to != clusterOf(found) && s.editLayer(layer, func(l *v1alpha1.AddonsLayer) { l.Spec.Cluster = reference(to) })
}

// flee moves a layer while the cluster that it is on is away.
func flee(s *simulation, layer string) bool {
	found := s.cluster.layer(layer)
	if found == nil || clusterOf(found) == "" {
		return false
	}
	from := s.remotes[clusterOf(found)]
	if !moveLayer(s, layer) {
		return false
	}
	s.leave(from, s.between(time.Second, 40*time.Second))
	return true
}

// abandonLayer deletes a layer whose cluster is away for long, and gives up what
// it has there.
func abandonLayer(s *simulation, layer string) bool {
	found := s.cluster.layer(layer)
	if found == nil || clusterOf(found) == "" {
		return false
	}
	s.leave(s.remotes[clusterOf(found)], s.between(15*time.Second, 40*time.Second))
	now := metav1.NewTime(s.now.time().Truncate(time.Second))
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) {
		l.Annotations[v1alpha1.AbandonAnnotation] = "true"
		if l.DeletionTimestamp == nil {
			l.DeletionTimestamp = &now
			l.Generation++
		}
	})
}

// objectsOf returns the objects of a layer that are no releases and that somebody
// can reach, in order.
func (s *simulation) objectsOf(layer string) []string {
	if s.cluster.layer(layer) == nil {
		return nil
	}
	var found []string
	for _, name := range s.everything() {
		if live := s.object(
			name,
		); live.GetLabels()[v1alpha1.LayerLabel] == layer && live.GetDeletionTimestamp() == nil &&
			live.GetKind() != kinds.HelmReleaseKind.Kind {
			if cluster, _ := split(name); cluster == "" || !s.away(s.remotes[cluster]) {
				found = append(found, name)
			}
		}
	}
	return found
}

// everything names all objects of all clusters that may belong to layers.
func (s *simulation) everything() []string {
	found := s.cluster.releases()
	for _, cluster := range append([]string{""}, remoteNames...) {
		for _, key := range sortedKeys(s.store(cluster).objects[kindPlain]) {
			// Namespaces that the controller ensures are nobody's.
			if strings.HasPrefix(key, "ConfigMap/") || strings.HasPrefix(key, spacePrefix) {
				found = append(found, on(cluster, key))
			}
		}
	}
	return found
}

// editObject has somebody change an object of a layer that is no release.
func (s *simulation) editObject(layer string, do func(store *cluster, key string)) bool {
	found := s.objectsOf(layer)
	if len(found) == 0 {
		return false
	}
	cluster, key := split(pick(s, found))
	do(s.store(cluster), key)
	return true
}

func driftObject(s *simulation, layer string) bool {
	return s.editObject(layer, func(store *cluster, key string) {
		store.changeRelease(key, func(r *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(r.Object, "drifted", "data", "value")
		})
	})
}

func deleteObject(s *simulation, layer string) bool {
	return s.editObject(layer, func(store *cluster, key string) { store.deleteRelease(key, metav1.NewTime(s.now.time())) })
}
