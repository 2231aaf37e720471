// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why says why a layer is not deployed: which chain of causes ends where, what
// else waits because of it, and what to try. It may import snapshot, releases, events
// and summary, and reads nothing but objects that it is given.
package why

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/sources"
)

// NotObserved is the reason of a layer of which the controller has said nothing.
const NotObserved = "NotObserved"

// Link is one thing in a chain of causes. Each is explained by the one behind it.
type Link struct {
	Kind string `json:"kind"`
	// Cluster that the object is on, where that is another one.
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	// Since and Until as RFC 3339; empty where they are not known.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	// Count of events that say so.
	Count int64 `json:"count,omitempty"`
}

// Affected is what waits for a layer, directly or not.
type Affected struct {
	Layers   []string `json:"layers"`
	Releases int      `json:"releases"`
	// Clusters of the layers, by namespace/name of their RemoteClusters; empty
	// text for the one that Strata runs in.
	Clusters []string `json:"clusters"`
}

// Answer says why a layer is not deployed, or that it is. No list is nil.
type Answer struct {
	Layer   string `json:"layer"`
	State   string `json:"state"`
	Blocked bool   `json:"blocked"`
	// Chain begins with the layer; what is behind explains what is before it.
	Chain []Link `json:"chain"`
	// Root is the layer that the end of the chain is of.
	Root    string   `json:"root"`
	Affects Affected `json:"affects"`
	// Try lists commands.
	Try []string `json:"try"`
	// Notes say what else is worth knowing.
	Notes []string `json:"notes"`
}

// Of follows the causes of a layer through other layers down to the object of
// which nothing more is known from what the controller has written.
func Of(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) Answer {
	row := summary.Of(layer, s.Now)
	why := Answer{Layer: layer.Name, State: row.State, Blocked: row.Blocked, Chain: []Link{LinkOf(layer)}, Root: layer.Name, Try: []string{}, Notes: []string{}}
	deployed := layer.Status.State == v1alpha1.StateDeployed && !row.Blocked
	if deployed {
		if row.Why != "" {
			why.Notes = append(why.Notes, row.Why)
		}
		why.Affects = affects(s, layer.Name)
		return why
	}
	told := map[string]bool{layer.Name: true}
	for next := layer; next != nil; {
		causes := next.Status.BlockedBy
		if LinkOf(next).Reason == v1alpha1.ReasonInternalError {
			break // they are of a look before
		}
		chain := ToRoot(causes)
		why.Notes = append(why.Notes, beside(causes, chain)...)
		next = nil
		for _, cause := range chain {
			if cause.Kind == v1alpha1.AddonsLayerKind {
				if told[cause.Name] {
					why.refine(cause)
					continue
				}
				told[cause.Name] = true
				next = s.Layer(cause.Name)
				why.Root = cause.Name
			} else {
				next = nil
			}
			why.Chain = append(why.Chain, linkOfCause(s, cause))
		}
		if next != nil && next.Status.State == v1alpha1.StateDeployed {
			next = nil
		}
	}
	why.Affects = affects(s, why.Root)
	return why
}

// refine keeps what a layer says of itself as the cause.
func (w *Answer) refine(cause v1alpha1.Cause) {
	for i := range w.Chain {
		if link := &w.Chain[i]; link.Kind == v1alpha1.AddonsLayerKind && link.Name == cause.Name {
			link.Reason, link.Message = cause.Reason, cause.Message
			if cause.Until != nil {
				link.Until = snapshot.Stamp(cause.Until.Time)
			}
		}
	}
}

// LinkOf returns a layer as the beginning of a chain.
func LinkOf(layer *v1alpha1.AddonsLayer) Link {
	link := Link{Kind: v1alpha1.AddonsLayerKind, Name: layer.Name, Reason: NotObserved, Message: "the controller has not looked at it yet"}
	ready := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition)
	if ready == nil {
		return link
	}
	link.Reason, link.Message, link.Since = ready.Reason, ready.Message, snapshot.Stamp(ready.LastTransitionTime.Time)
	if layer.Status.ObservedGeneration != layer.Generation && ready.Reason != v1alpha1.ReasonInternalError {
		link.Reason, link.Message = NotObserved, summary.Why(layer)
	}
	return link
}

func linkOfCause(s *snapshot.Snapshot, cause v1alpha1.Cause) Link {
	link := Link{Kind: cause.Kind, Cluster: cause.Cluster, Namespace: cause.Namespace, Name: cause.Name, Reason: cause.Reason, Message: cause.Message}
	if cause.Until != nil {
		link.Until = snapshot.Stamp(cause.Until.Time)
	}
	switch cause.Kind {
	case v1alpha1.AddonsLayerKind:
		if layer := s.Layer(cause.Name); layer != nil {
			link.Since = LinkOf(layer).Since
		}
	default:
		if object := objectNamed(s, cause); object != nil {
			link.Since = snapshot.Condition(object, "Ready")["lastTransitionTime"]
		}
	}
	return link
}

// ToRoot returns the causes from what the layer itself waits for down to the root
// of them all.
func ToRoot(causes []v1alpha1.Cause) []v1alpha1.Cause {
	root, found := layers.RootCause(causes)
	if !found {
		return nil
	}
	at := slices.IndexFunc(causes, func(c v1alpha1.Cause) bool { return c == root })
	var chain []v1alpha1.Cause
	depth := root.Depth + 1
	for i := at; i >= 0 && depth > 0; i-- {
		if causes[i].Depth < depth {
			chain = append(chain, causes[i])
			depth = causes[i].Depth
		}
	}
	slices.Reverse(chain)
	return chain
}

// beside names what a layer waits for beside the chain that is followed.
func beside(causes, chain []v1alpha1.Cause) []string {
	var notes []string
	for _, cause := range causes {
		if cause.Depth == 0 && !slices.Contains(chain, cause) {
			notes = append(notes, "also "+Link{Kind: cause.Kind, Namespace: cause.Namespace, Name: cause.Name}.what()+" ("+cause.Reason+"): "+cause.Message)
		}
	}
	return notes
}

// affects returns what depends on a layer, directly or not.
func affects(s *snapshot.Snapshot, name string) Affected {
	dependants := map[string][]*v1alpha1.AddonsLayer{}
	for _, layer := range s.Layers {
		for _, on := range dependencies.Names(layer.Spec.Prereqs.DependsOn) {
			dependants[on] = append(dependants[on], layer)
		}
	}
	found := Affected{Layers: []string{}, Clusters: []string{}}
	seen := map[string]bool{name: true}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		for _, layer := range dependants[queue[0]] {
			if seen[layer.Name] {
				continue
			}
			seen[layer.Name] = true
			queue = append(queue, layer.Name)
			found.Layers = append(found.Layers, layer.Name)
			found.Clusters = append(found.Clusters, placement.ClusterName(placement.Of(layer, "")))
			for _, resource := range layer.Status.Resources {
				if isRelease(resource) {
					found.Releases++
				}
			}
		}
	}
	slices.Sort(found.Layers)
	slices.Sort(found.Clusters)
	found.Clusters = slices.Compact(found.Clusters)
	return found
}

// what names a link: a layer by its name, other things with their kinds.
func (l Link) what() string {
	text := snapshot.Named(l.Namespace, l.Name)
	if l.Kind != v1alpha1.AddonsLayerKind {
		text = strings.TrimSpace(l.Kind + " " + text)
	}
	if l.Cluster != "" {
		text += " on " + l.Cluster
	}
	return text
}

// Deployed tells whether there is nothing to explain.
func (w Answer) Deployed() bool {
	return w.State == string(v1alpha1.StateDeployed) && !w.Blocked
}

// Unasked notes why what is at a place was not read, or not all of it.
func (w Answer) Unasked(place Place, why string) Answer {
	if place.Cluster != "" {
		why = "of " + place.Cluster + ": " + why
	}
	w.Notes = append(w.Notes, why)
	return w
}

// Conclude adds what to try about the end of the chain. program is how the plug-in is
// called.
func (w Answer) Conclude(s *snapshot.Snapshot, program string) Answer {
	if w.Deployed() {
		return w
	}
	end := w.End()
	w.Try = append(w.Try, Advice(program, w.Root, end)...)
	if end.Kind != "HelmRelease" {
		return w
	}
	// What Helm has made there was not found.
	if release := releases.Named(s, end.Namespace, end.Name); release != nil && releases.IsElsewhere(release) {
		context := "CONTEXT"
		if cluster := layers.TargetOf(release); cluster != "" {
			context = contextOf(cluster)
		}
		w.Try = append(w.Try, "kubectl --context "+context+" get pods,events --all-namespaces")
	}
	return w
}

// contextOf stands for the user's own context of a cluster.
func contextOf(cluster string) string { return "CONTEXT-OF-" + cluster }

// End returns what the chain ends with, but for an event of it.
func (w Answer) End() Link {
	last := w.Chain[len(w.Chain)-1]
	if last.Kind == "Event" && len(w.Chain) > 1 {
		return w.Chain[len(w.Chain)-2]
	}
	return last
}

// between are links that the first line leaves out: each is known by what is behind
// it.
var between = map[string]bool{"Deployment": true, "StatefulSet": true, "DaemonSet": true, "Job": true, "ReplicaSet": true}

// Path names what leads to the end of the chain, in one line.
func (w Answer) Path() string {
	end := w.End()
	var names []string
	for _, link := range w.Chain {
		if link.Kind == "Event" || between[link.Kind] && link.what() != end.what() {
			continue
		}
		names = append(names, link.what())
	}
	return strings.Join(names, " <- ")
}

// Advice returns the commands to try about a link, for the layer that it is of.
// program is how the plug-in is called.
func Advice(program, layer string, link Link) []string {
	found, known := advice[link.Reason]
	if !known {
		found = onKind[link.Kind]
	}
	if always := ofKind[link.Kind]; always != nil {
		found = always
	}
	if len(found) == 0 {
		found = []string{seeEvents, seeObject}
	}
	in, resource := "", strings.ToLower(link.Kind)
	if link.Namespace != "" {
		in = " --namespace " + printable.Word(link.Namespace)
	}
	if full, ambiguous := resources[link.Kind]; ambiguous {
		resource = full
	}
	target := ""
	if link.Kind == v1alpha1.RemoteClusterKind {
		target = " " + printable.Word(snapshot.Named(link.Namespace, link.Name))
	}
	fill := strings.NewReplacer("{strata}", program, "{layer}", printable.Word(layer), "{in}", in,
		"{name}", printable.Word(link.Name), "{resource}", printable.Word(resource), "{hash}", printable.Word(hashIn(link.Message)), " {target}", target)
	var commands []string
	for _, command := range found {
		command = strings.Join(strings.Fields(fill.Replace(command)), " ")
		// Layers are on this cluster, and so is what the plug-in asks.
		rest, asks := strings.CutPrefix(command, "kubectl ")
		if asks && link.Cluster != "" && !strings.HasPrefix(command, program) && !strings.Contains(rest, "addonslayer") {
			command = "kubectl --context " + printable.Word(contextOf(link.Cluster)) + " " + rest
		}
		if !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	return commands
}

// objectNamed returns the object of a cause, as far as it was read.
func objectNamed(s *snapshot.Snapshot, cause v1alpha1.Cause) *unstructured.Unstructured {
	for _, group := range []string{kinds.HelmReleaseKind.Group, sources.Group} {
		id := objects.ID{Group: group, Kind: cause.Kind, Namespace: cause.Namespace, Name: cause.Name}
		if object := s.Objects[id]; object != nil {
			return object
		}
	}
	return nil
}

func isRelease(resource v1alpha1.Resource) bool {
	return objects.IsReleaseKind(kinds.ParseResourceKind(resource.Kind))
}

// hashes are those of stacks in messages of InternalError.
var hashes = regexp.MustCompile(`\bhash ([0-9a-f]{8})\b`)

// hashIn returns the hash of the stack that a message names; HASH for none.
func hashIn(message string) string {
	if found := hashes.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return "HASH"
}
