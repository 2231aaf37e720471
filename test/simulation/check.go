// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
)

// check compares a world that has settled with what the last commits say.
func (s *simulation) check() {
	expected := map[string]string{}
	for _, name := range s.people.names {
		layer := s.cluster.layer(name)
		if layer == nil {
			continue
		}
		if layer.DeletionTimestamp != nil {
			s.violated("converges", "layer %s is still being deleted: %s", name, condition(layer, v1alpha1.ReadyCondition).Message)
		}
		s.checkLayer(layer)
		for _, f := range s.put(name, clusterOf(layer), s.folder(name)).files {
			expected[f.name] = name
			s.checkObject(layer, f)
		}
	}
	installed := map[string]bool{}
	for _, name := range s.everything() {
		live := s.object(name)
		installed[helmOf(live)] = true
		if cluster, _ := split(name); expected[name] == "" && (cluster == "" || !s.remotes[cluster].givenUp) {
			s.violated("orphans", "%s of layer %q is left over", name, live.GetLabels()[v1alpha1.LayerLabel])
		}
	}
	for _, helm := range sortedKeys(s.installed) {
		cluster, _, _ := strings.Cut(helm, ":")
		if r := s.remotes[cluster]; !installed[helm] && s.evidence.left[helm] == 0 && (r == nil || !r.givenUp) {
			s.violated("orphans", "Helm release %s is left over", helm)
		}
	}
	s.checkRemotes()
}

func (s *simulation) checkLayer(layer *v1alpha1.AddonsLayer) {
	r := s.repositoryOf(layer.Name)
	directory, _ := s.contents.directory(s.folder(layer.Name), s.folderOf(layer.Name), r.revision())
	ready := condition(layer, v1alpha1.ReadyCondition)
	status := layer.Status
	if status.State != v1alpha1.StateDeployed || ready.Status != metav1.ConditionTrue || status.ObservedGeneration != layer.Generation {
		s.violated("converges", "layer %s is %s in the end: %s: %s", layer.Name, status.State, ready.Reason, ready.Message)
	}
	if status.Version != layer.Spec.Version || status.Digest != directory.Digest || status.Cluster != clusterOf(layer) {
		s.violated("converges", "layer %s has version %s and digest %s on %q in the end, not %s and %s on %q",
			layer.Name, status.Version, status.Digest, status.Cluster, layer.Spec.Version, directory.Digest, clusterOf(layer))
	}
	inventory := inventoryOf(layer)
	slices.Sort(inventory)
	var owned []string
	for _, name := range s.everything() {
		if live := s.object(name); live.GetLabels()[v1alpha1.LayerLabel] == layer.Name && live.GetDeletionTimestamp() == nil && !s.evidence.forsaken[name] {
			owned = append(owned, name)
		}
	}
	slices.Sort(owned)
	if !slices.Equal(inventory, owned) {
		s.violated("inventory", "layer %s has %v in its inventory, and %v on the clusters", layer.Name, inventory, owned)
	}
}

func (s *simulation) checkObject(layer *v1alpha1.AddonsLayer, f file) {
	live := s.object(f.name)
	switch {
	case live == nil:
		s.violated("converges", "%s of layer %s is not there in the end", f.name, layer.Name)
	case live.GetLabels()[v1alpha1.LayerLabel] != layer.Name, live.GetLabels()[v1alpha1.OrphanedLabel] != "":
		s.violated("converges", "%s of layer %s has the labels %v in the end", f.name, layer.Name, live.GetLabels())
	case valueOf(live, "value") != f.value:
		s.violated("converges", "%s of layer %s has value %d in the end, not %d", f.name, layer.Name, valueOf(live, "value"), f.value)
	case f.plain:
	case isSuspended(live) || !isReady(live) || helmOf(live) != f.helm:
		s.violated("converges", "%s of layer %s is not as it is listed in the end", f.name, layer.Name)
	case s.installed[f.helm] != f.value:
		s.violated("converges", "Helm release %s of layer %s is installed with value %d, not %d", f.helm, layer.Name, s.installed[f.helm], f.value)
	}
	if told, _, _ := unstructured.NestedString(live.Object, "spec", "values", "kraanVersion"); f.tells && told != layer.Spec.Version {
		s.violated("converges", "%s of layer %s is told version %q in the end", f.name, layer.Name, told)
	}
}

// checkRemotes wants every RemoteCluster to be ready, and to have its copy.
func (s *simulation) checkRemotes() {
	for _, name := range remoteNames {
		is := s.cluster.remote(name)
		if is == nil {
			continue
		}
		ready := conditionIn(is.Status.Conditions, v1alpha1.ReadyCondition)
		if is.DeletionTimestamp != nil || ready.Status != metav1.ConditionTrue {
			s.violated("clusters", "RemoteCluster %s is %s in the end, deleted: %t: %s", name, ready.Reason, is.DeletionTimestamp != nil, ready.Message)
		}
		copied := s.cluster.release(copyOfKubeConfig(name))
		if copied == nil || copied.GetDeletionTimestamp() != nil || len(copied.GetFinalizers()) != 1 || kubeconfigIn(copied) != s.remotes[name].kubeconfig() {
			s.violated("clusters", "the copy of the kubeconfig of RemoteCluster %s is not as it should be in the end", name)
		}
		if total := s.layersThere(name); is.Status.Layers.Total != total || is.Status.Layers.Deployed != total {
			s.violated("clusters", "RemoteCluster %s counts %d of %d layers in the end, not %d", name, is.Status.Layers.Deployed, is.Status.Layers.Total, total)
		}
	}
}

func (s *simulation) layersThere(cluster string) (count int32) {
	for _, name := range s.people.names {
		if layer := s.cluster.layer(name); layer != nil && clusterOf(layer) == cluster {
			count++
		}
	}
	return count
}

// mendRemotes ends all absences, and has people say what is so. Layers leave a
// RemoteCluster that is being deleted.
func (s *simulation) mendRemotes() {
	for _, name := range remoteNames {
		r := s.remotes[name]
		r.kubernetes = "v1.32.0"
		r.awayUntil = s.now
		s.returns(r)
		if c := s.process.connections[name]; c != nil {
			c.cache.frozenUntil = 0
		}
		s.giveCredentials(r)
		is := s.cluster.remote(name)
		if is == nil || is.DeletionTimestamp == nil || r.givenUp {
			continue
		}
		for _, layer := range s.people.names {
			l := s.cluster.layer(layer)
			if l == nil || clusterOf(l) != name {
				continue
			}
			to := s.drawPlace(layer)
			for to == name {
				to = s.drawPlace(layer)
			}
			s.editLayer(layer, func(l *v1alpha1.AddonsLayer) { l.Spec.Cluster = reference(to) })
		}
	}
}

// tidy has people remove what is nobody's, and what they gave up.
func (s *simulation) tidy() bool {
	helped := false
	for _, name := range s.everything() {
		cluster, key := split(name)
		live := s.object(name)
		if kindOf(key) == kindRelease || live.GetDeletionTimestamp() != nil || cluster != "" && s.away(s.remotes[cluster]) {
			continue
		}
		if live.GetLabels()[v1alpha1.LayerLabel] != "" && !s.evidence.forsaken[name] {
			continue
		}
		delete(s.evidence.forsaken, name)
		s.store(cluster).deleteRelease(key, metav1.NewTime(s.now.time()))
		helped = true
	}
	return helped
}
