// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict says in one sentence whether everything is well that somebody may see,
// and if not, what the cause is. It may import snapshot, summary and why, and reads
// nothing but objects that it is given.
package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/printable"
)

// State is how things stand in one word.
type State string

// The states, from the best to the worst.
const (
	// Well has everything deployed, and nothing to explain.
	Well State = "Well"
	// Moving has something under way that gets there by itself.
	Moving State = "Moving"
	// Waiting has something that waits for what does not come by itself.
	Waiting State = "Waiting"
	// Failed has something that failed, or is not healthy, or a cluster that is not ready.
	Failed State = "Failed"
	// Unknown is that of whoever may see nothing.
	Unknown State = "Unknown"
)

// rank orders states, the worst last.
var rank = map[State]int{Well: 0, Moving: 1, Waiting: 2, Failed: 3}

// Compare orders states, the worst first.
func Compare(a, b State) int { return cmp.Compare(rank[b], rank[a]) }

// Counted says how many have each state, the worst first, such as 3 failed, 2 waiting; well
// is what those are called that are Well.
func Counted(counts map[State]int, well string) string {
	var parts []string
	for _, each := range []struct {
		state State
		word  string
	}{{Failed, "failed"}, {Waiting, "waiting"}, {Moving, "under way"}, {Well, well}} {
		if number := counts[each.state]; number > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", number, each.word))
		}
	}
	return strings.Join(parts, ", ")
}

// Verdict says how everything stands. No list is nil.
type Verdict struct {
	State    State  `json:"state"`
	Sentence string `json:"sentence"`
	// Clusters counts the one that Strata runs in where it has layers, and all RemoteClusters.
	Clusters int `json:"clusters"`
	// Layers counts them all, and the others those of one state.
	Layers   int `json:"layers"`
	Deployed int `json:"deployed"`
	Moving   int `json:"moving"`
	Waiting  int `json:"waiting"`
	Failed   int `json:"failed"`
	// Causes are what keeps layers from being deployed, the worst first.
	Causes []Cause `json:"causes"`
	// Unseen names the kinds that are not counted, because whoever asks may not list them.
	Unseen []string `json:"unseen"`
}

// Cause is a layer or a cluster at which the chains of causes of layers end.
type Cause struct {
	// Layer is empty for a RemoteCluster.
	Layer string `json:"layer,omitempty"`
	// Cluster as namespace/name of a RemoteCluster; empty for the one that Strata runs in.
	Cluster string `json:"cluster,omitempty"`
	State   State  `json:"state"`
	// Reason in one word, and what is said of it.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Object at which the chain ends, such as Pod mesh/istiod-7d9; empty for the layer itself.
	Object string `json:"object,omitempty"`
	// Since and Until as RFC 3339; empty where they are not known.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	// Waits counts the layers that wait for this one, directly or not.
	Waits int `json:"waits"`

	short string
}

// Of returns the verdict on the layers with some labels, nil for all, and on the clusters
// that they are on. lacking names the kinds that whoever asks may not list.
func Of(s *snapshot.Snapshot, wanted labels.Selector, lacking []string) Verdict {
	v := Verdict{State: Well, Causes: []Cause{}, Unseen: append([]string{}, lacking...)}
	found := rootsOf(s)
	causes := map[string]*Cause{}
	on := map[string]bool{}
	for _, layer := range s.Layers {
		if wanted != nil && !wanted.Matches(labels.Set(layer.Labels)) {
			continue
		}
		v.Layers++
		on[placement.ClusterName(placement.Of(layer, ""))] = true
		state := StateOf(layer)
		v.count(state)
		if state == Well {
			continue
		}
		root := found.of(layer)
		at := causes[root.Name]
		if at == nil {
			at = causeOf(root)
			causes[root.Name] = at
		}
		if root != layer {
			at.Waits++
		}
	}
	if on[""] {
		v.Clusters++
	}
	for _, cause := range causes {
		v.Causes = append(v.Causes, *cause)
	}
	for _, cluster := range s.Clusters {
		if wanted != nil && !on[cluster.Namespace+"/"+cluster.Name] {
			continue
		}
		v.Clusters++
		if row := summary.OfCluster(cluster, s.Now); row.Blocked {
			v.Causes = append(v.Causes, ofCluster(row))
		}
	}
	return v.conclude()
}

// followed is how many causes are followed below what layers say themselves.
const followed = 3

// Follow returns the verdict with its worst causes followed to where the answers of their
// layers end.
func (v Verdict) Follow(s *snapshot.Snapshot, explain func(*v1alpha1.AddonsLayer) (why.Answer, error)) (Verdict, error) {
	for _, cause := range v.Causes[:min(followed, len(v.Causes))] {
		layer := s.Layer(cause.Layer)
		if layer == nil {
			continue
		}
		answer, err := explain(layer)
		if err != nil {
			return v, err
		}
		v = v.Deepen(answer)
	}
	return v, nil
}

// count adds a layer.
func (v *Verdict) count(state State) {
	switch state {
	case Well:
		v.Deployed++
	case Moving:
		v.Moving++
	case Waiting:
		v.Waiting++
	default:
		v.Failed++
	}
}

// worst orders causes: the worst state first, then those that most wait for.
func worst(a, b Cause) int {
	return cmp.Or(
		Compare(a.State, b.State), cmp.Compare(b.Waits, a.Waits),
		strings.Compare(a.Layer, b.Layer), strings.Compare(a.Cluster, b.Cluster),
	)
}

// StateOf says how a layer stands.
func StateOf(layer *v1alpha1.AddonsLayer) State {
	deployed := layer.Status.State == v1alpha1.StateDeployed
	switch blocked := summary.Blocked(layer); {
	case layer.Status.State == v1alpha1.StateFailed, blocked && deployed:
		return Failed
	case blocked:
		return Waiting
	case deployed:
		return Well
	}
	return Moving
}

// roots finds for each layer the one that it waits for in the end.
type roots struct {
	layers map[string]*v1alpha1.AddonsLayer
	known  map[string]*v1alpha1.AddonsLayer
}

func rootsOf(s *snapshot.Snapshot) *roots {
	r := &roots{layers: make(map[string]*v1alpha1.AddonsLayer, len(s.Layers)), known: map[string]*v1alpha1.AddonsLayer{}}
	for _, layer := range s.Layers {
		r.layers[layer.Name] = layer
	}
	return r
}

// of returns the layer at which the causes of a layer end. Layers may wait in a circle.
func (r *roots) of(layer *v1alpha1.AddonsLayer) *v1alpha1.AddonsLayer {
	if root := r.known[layer.Name]; root != nil {
		return root
	}
	r.known[layer.Name] = layer
	next := layer
	for _, cause := range why.ToRoot(layer.Status.BlockedBy) {
		if other := r.layers[cause.Name]; cause.Kind == v1alpha1.AddonsLayerKind && other != nil {
			next = other
		}
	}
	if next != layer && next.Status.State != v1alpha1.StateDeployed {
		next = r.of(next)
	}
	r.known[layer.Name] = next
	return next
}

// causeOf returns what keeps a layer at which causes end.
func causeOf(layer *v1alpha1.AddonsLayer) *Cause {
	at := why.LinkOf(layer)
	c := &Cause{
		Layer: layer.Name, Cluster: placement.ClusterName(placement.Of(layer, "")), State: StateOf(layer),
		Reason: at.Reason, Message: at.Message, Since: at.Since,
	}
	if root, found := layers.RootCause(layer.Status.BlockedBy); found {
		if root.Reason != "" {
			c.Reason, c.Message = root.Reason, cmp.Or(root.Message, c.Message)
		}
		if root.Until != nil {
			c.Until = snapshot.Stamp(root.Until.Time)
		}
		if root.Kind != v1alpha1.AddonsLayerKind {
			c.at(why.Link{Kind: root.Kind, Cluster: root.Cluster, Namespace: root.Namespace, Name: root.Name, Reason: root.Reason})
		}
	}
	return c
}

// at has a cause end at an object.
func (c *Cause) at(link why.Link) {
	c.Object = strings.TrimSpace(link.Kind + " " + snapshot.Named(link.Namespace, link.Name))
	c.short = strings.TrimSpace(link.Kind + " " + link.Name)
}

// ofCluster returns the cause that a RemoteCluster is.
func ofCluster(row summary.ClusterRow) Cause {
	return Cause{Cluster: row.Name, State: Failed, Reason: row.Reason, Message: row.Why}
}

// Deepen has a cause end where the answer of its layer does, which may lie deeper than
// what the layer's own status says.
func (v Verdict) Deepen(answer why.Answer) Verdict {
	v.Causes = slices.Clone(v.Causes)
	for i := range v.Causes {
		cause := &v.Causes[i]
		if cause.Layer == "" || cause.Layer != answer.Layer || answer.Root != answer.Layer {
			continue
		}
		end := answer.End()
		if end.Kind == v1alpha1.AddonsLayerKind || end.Reason == "" {
			continue
		}
		cause.Reason, cause.Message = end.Reason, cmp.Or(end.Message, cause.Message)
		cause.at(end)
		if cause.State == Moving && end.Kind == "Pod" && words[end.Reason] != "" {
			// It does not get there by itself, although its time is not over yet.
			cause.State = Waiting
		}
	}
	return v.conclude()
}

// words say of some reasons what they mean of an object.
var words = map[string]string{
	"Unschedulable":              "cannot be scheduled",
	"CrashLoopBackOff":           "crashes again and again",
	"ImagePullBackOff":           "cannot pull its image",
	"ErrImagePull":               "cannot pull its image",
	"OOMKilled":                  "was killed for want of memory",
	"CreateContainerConfigError": "lacks something of its configuration",
	"InstallFailed":              "could not be installed",
	"UpgradeFailed":              "could not be upgraded",
}

// Says is what the cause is in a few words.
func (c Cause) Says() string {
	if c.short == "" {
		return shorten(cmp.Or(c.Message, c.Reason))
	}
	if text, known := words[c.Reason]; known {
		return c.short + " " + text
	}
	return c.short + ": " + shorten(cmp.Or(c.Message, c.Reason))
}

// longest is how many runes of a message a sentence has.
const longest = 120

func shorten(text string) string {
	return printable.Clip(strings.Join(strings.Fields(text), " "), longest)
}

// told is how many causes the sentence names.
const told = 2

// conclude sorts the causes, and writes the state and the sentence.
func (v Verdict) conclude() Verdict {
	slices.SortFunc(v.Causes, worst)
	v.State = Well
	for _, cause := range v.Causes {
		if rank[cause.State] > rank[v.State] {
			v.State = cause.State
		}
	}
	if len(v.Unseen) > 0 && v.Layers == 0 && v.Clusters == 0 {
		v.State = Unknown
		v.Sentence = "you may not list " + strings.Join(v.Unseen, ", ") + ", so there is nothing to say"
		return v
	}
	parts := []string{v.counts()}
	worthy := slices.DeleteFunc(slices.Clone(v.Causes), func(c Cause) bool { return c.State == Moving && c.Waits == 0 })
	for _, cause := range worthy[:min(told, len(worthy))] {
		parts = append(parts, cause.phrase())
	}
	if more := len(worthy) - told; more > 0 {
		parts = append(parts, "and "+count(more, "more cause"))
	}
	if len(v.Unseen) > 0 {
		parts = append(parts, "not counted, because you may not list them: "+strings.Join(v.Unseen, ", "))
	}
	v.Sentence = strings.Join(parts, "; ")
	return v
}

// counts says how many clusters and layers there are, and how these stand.
func (v Verdict) counts() string {
	if v.Layers == 0 {
		return count(v.Clusters, "cluster") + ", no layers"
	}
	var counts []string
	for _, each := range []struct {
		number int
		word   string
	}{{v.Deployed, "deployed"}, {v.Moving, "under way"}, {v.Waiting, "waiting"}, {v.Failed, "failed"}} {
		if each.number > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", each.number, each.word))
		}
	}
	return count(v.Clusters, "cluster") + ", " + count(v.Layers, "layer") + ": " + strings.Join(counts, ", ")
}

// phrase is what the sentence says of a cause.
func (c Cause) phrase() string {
	if c.Layer == "" {
		return "cluster " + c.Cluster + " is not ready: " + shorten(c.Message)
	}
	name := c.Layer
	if c.Cluster != "" {
		name += " on " + c.Cluster
	}
	begin := ""
	if c.Waits > 0 {
		begin, name = waits(c.Waits)+" for "+name+"; ", c.Layer
	}
	switch {
	case c.State == Moving:
		return begin + name + " is under way"
	case c.Reason == v1alpha1.ReasonHold:
		return begin + name + " is on hold: " + c.Says()
	case c.Reason == v1alpha1.ReasonRolledBack:
		return begin + name + " is rolled back: " + c.Says()
	case c.State == Failed:
		return begin + name + " failed: " + c.Says()
	}
	return begin + name + " waits: " + c.Says()
}

func waits(number int) string {
	if number == 1 {
		return "1 waits"
	}
	return fmt.Sprintf("%d wait", number)
}

func count(number int, of string) string {
	if number == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", number, of)
}
