// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package acts says what somebody does to layers and Platforms by hand: which annotations
// an act writes, and what follows from it. It may import the other answers, and writes
// nothing: commands and pages do.
package acts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/platforms"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/layers"
	rules "github.com/strata-project/strata/internal/platforms"
	"github.com/strata-project/strata/internal/sources"
)

// Kind says what is done.
type Kind string

// What may be done.
const (
	Hold      Kind = "hold"
	Resume    Kind = "resume"
	Reconcile Kind = "reconcile"
	Rollback  Kind = "rollback"
	Approve   Kind = "approve"
)

// Act is something that somebody does. Layer is that of all kinds but Approve.
type Act struct {
	Kind  Kind   `json:"act"`
	Layer string `json:"layer,omitempty"`
	// Reason of Hold and Approve; Until, a time or a duration, and Releases of Hold.
	Reason   string `json:"reason,omitempty"`
	Until    string `json:"until,omitempty"`
	Releases bool   `json:"releases,omitempty"`
	// Source has Reconcile fetch the layer's source, too.
	Source bool `json:"source,omitempty"`
	// To is the ID of a deployment, for Rollback.
	To string `json:"to,omitempty"`
	// Platform and Stage of Approve, and what is approved, as STAGE@VERSION: a Platform may go
	// to another version while somebody thinks about one.
	Platform string `json:"platform,omitempty"`
	Stage    string `json:"stage,omitempty"`
	Approval string `json:"approval,omitempty"`
}

// Patch changes annotations of one object; nil values take them off.
type Patch struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	Annotations     map[string]any
	// Version that the object must have; empty for any.
	Version string
}

// Intent is what an act comes to.
type Intent struct {
	// Says what it does, one thing a line, and Done what is said once it is done.
	Says []string
	Done string
	// Patches that it makes, in this order.
	Patches []Patch
	// NamedBy returns the annotations of the patch of a Platform that names who has approved;
	// nil where nobody is named.
	NamedBy func(user string) map[string]any
}

// Intend says what an act comes to. observe returns what a Platform is decided from. The
// error says why it cannot be done; nothing asks here whether somebody may do it.
func Intend(s *snapshot.Snapshot, act Act, namespace string, observe func(*v1alpha1.Platform) rules.Observation) (Intent, error) {
	if act.Kind == Approve {
		return approval(s, act, observe)
	}
	layer := s.Layer(act.Layer)
	if layer == nil {
		return Intent{}, fmt.Errorf("there is no layer %s", act.Layer)
	}
	switch act.Kind {
	case Hold:
		return hold(s, layer, act)
	case Resume:
		return resume(s, layer)
	case Reconcile:
		return reconcile(s, layer, act, namespace), nil
	case Rollback:
		return rollback(layer, act)
	default:
		return Intent{}, fmt.Errorf("there is nothing that is called %q", string(act.Kind))
	}
}

func annotate(layer *v1alpha1.AddonsLayer, annotations map[string]any) []Patch {
	return []Patch{{Resource: snapshot.Layers.GroupVersionResource, Name: layer.Name, Annotations: annotations}}
}

// HoldOf returns the annotations of a hold, and the hold in words. until is a time such as
// 2026-12-07T08:00:00Z, a duration such as 4h, or empty.
func HoldOf(reason, until string, releases bool, now time.Time) (annotations map[string]any, text string, err error) {
	switch reason {
	case "":
		return nil, "", errors.New("the reason is missing: say why, for whoever wonders")
	case "false":
		return nil, "", errors.New(`the reason cannot be "false", which the annotation takes for no hold`)
	}
	end, err := endOf(until, now)
	if err != nil {
		return nil, "", err
	}
	annotations = map[string]any{v1alpha1.HoldAnnotation: reason, v1alpha1.HoldUntilAnnotation: nil, v1alpha1.HoldReleasesAnnotation: nil}
	text = reason
	if !end.IsZero() {
		annotations[v1alpha1.HoldUntilAnnotation] = snapshot.Stamp(end)
		text += fmt.Sprintf(" (until %s)", snapshot.Stamp(end))
	}
	if releases {
		annotations[v1alpha1.HoldReleasesAnnotation] = "true"
		text += ", with its releases"
	}
	return annotations, text, nil
}

// endOf reads a time, or a duration from now on; the zero time for neither.
func endOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	end, err := time.Parse(time.RFC3339, text)
	if duration, no := time.ParseDuration(text); no == nil {
		end, err = now.Add(duration), nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("the end is neither a time such as 2026-12-07T08:00:00Z nor a duration such as 4h: %q", text)
	}
	if !end.After(now) {
		return time.Time{}, fmt.Errorf("the end has passed: %q", text)
	}
	return end, nil
}

func hold(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer, act Act) (Intent, error) {
	annotations, text, err := HoldOf(act.Reason, act.Until, act.Releases, s.Now)
	if err != nil {
		return Intent{}, err
	}
	until := "it is resumed"
	if end, is := annotations[v1alpha1.HoldUntilAnnotation].(string); is {
		until = end + ", or until it is resumed"
	}
	says := []string{"Nothing of layer " + layer.Name + " is applied, removed, adopted or corrected until " + until + ". Its deletion goes on."}
	if act.Releases {
		says = append(says, "Its HelmReleases are suspended, so that Flux leaves them alone; resuming resumes exactly those.")
	}
	if waits := dependants(s, layer.Name); len(waits) > 0 {
		says = append(says, "Layers that need another version of it wait: "+few(waits)+".")
	}
	return Intent{Says: says, Done: "layer " + layer.Name + " is held: " + text, Patches: annotate(layer, annotations)}, nil
}

// Unhold returns the annotations that end a hold.
func Unhold() map[string]any {
	return map[string]any{v1alpha1.HoldAnnotation: nil, v1alpha1.HoldUntilAnnotation: nil, v1alpha1.HoldReleasesAnnotation: nil}
}

func resume(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) (Intent, error) {
	if _, held := layer.Annotations[v1alpha1.HoldAnnotation]; !held {
		if layer.Spec.Hold {
			return Intent{}, fmt.Errorf("layer %s is held by its spec.hold; change that where the layer is written", layer.Name)
		}
		return Intent{}, fmt.Errorf("layer %s is not held", layer.Name)
	}
	says := []string{"Layer " + layer.Name + " is no longer held: what its source holds now is applied, as its gates allow."}
	if layers.HoldOf(layer, s.Now).Releases {
		says = append(says, "Its HelmReleases are resumed, those that the hold has suspended.")
	}
	if layer.Spec.Hold {
		says = []string{"The annotation is taken off, and the layer stays held: its spec.hold is true. Change that where the layer is written."}
	}
	return Intent{Says: says, Done: "layer " + layer.Name + " is resumed", Patches: annotate(layer, Unhold())}, nil
}

// ReconcileOf returns the annotations that have something looked at now.
func ReconcileOf(now time.Time) map[string]any {
	return map[string]any{fluxmeta.ReconcileRequestAnnotation: now.Format(time.RFC3339Nano)}
}

// Fetched returns the part that has the sources of a kind; false where nobody has to fetch
// them.
func Fetched(kind string) (snapshot.Part, bool) {
	switch kind {
	case sources.GitRepository:
		return snapshot.GitRepositories, true
	case sources.OCIRepository:
		return snapshot.OCIRepositories, true
	case sources.Bucket:
		return snapshot.Buckets, true
	default:
		return snapshot.Part{}, false
	}
}

func reconcile(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer, act Act, namespace string) Intent {
	asked := ReconcileOf(s.Now)
	i := Intent{Says: []string{"Layer " + layer.Name + " is looked at now. Its gates count as before."}, Done: "layer " + layer.Name + " is looked at"}
	if act.Source {
		ref := sources.Of(layer, namespace)
		if part, is := Fetched(ref.Kind); is {
			i.Says = append(i.Says, ref.String()+" is fetched now, for all layers that come from it.")
			i.Patches = []Patch{{Resource: part.GroupVersionResource, Namespace: ref.Namespace, Name: ref.Name, Annotations: asked}}
		} else {
			i.Says = append(i.Says, ref.String()+" is not fetched: nobody has to.")
		}
	}
	i.Patches = append(i.Patches, annotate(layer, asked)...)
	return i
}

// RollbackOf returns the deployment of a layer with an ID. The error says why the layer
// cannot go back to it.
func RollbackOf(layer *v1alpha1.AddonsLayer, id string) (v1alpha1.HistoryEntry, error) {
	at := slices.IndexFunc(layer.Status.History, func(entry v1alpha1.HistoryEntry) bool { return entry.ID == id })
	if at < 0 {
		return v1alpha1.HistoryEntry{}, fmt.Errorf("layer %s has no deployment %s: kubectl strata history %s shows those it has", layer.Name, id, layer.Name)
	}
	entry := layer.Status.History[at]
	if entry.Result != v1alpha1.ResultDeployed {
		return entry, fmt.Errorf("deployment %s of layer %s has %s: go back to one that was deployed", id, layer.Name, strings.ToLower(string(entry.Result)))
	}
	return entry, nil
}

func rollback(layer *v1alpha1.AddonsLayer, act Act) (Intent, error) {
	entry, err := RollbackOf(layer, act.To)
	if err != nil {
		return Intent{}, err
	}
	to := fmt.Sprintf("deployment %s: version %s of revision %s", act.To, entry.Version, entry.Revision)
	return Intent{
		Says: []string{
			"Layer " + layer.Name + " goes back to " + to + ".",
			"It stays there until its specification, or what its source holds for it, changes.",
		},
		Done:    "layer " + layer.Name + " goes back to " + to,
		Patches: annotate(layer, map[string]any{v1alpha1.RollbackToAnnotation: act.To}),
	}, nil
}

// ApproveOf returns the annotations of an approval of a Platform that has others. by is who
// approves; empty where that is not known. The persons and reasons of the others stay.
func ApproveOf(approval *platforms.Approval, has map[string]string, by string) map[string]any {
	said := func(annotation, text string) any {
		return saidOf(has[v1alpha1.ApproveAnnotation], has[annotation], approval.Value, text)
	}
	return map[string]any{
		v1alpha1.ApproveAnnotation:       approval.Annotation,
		v1alpha1.ApproveReasonAnnotation: said(v1alpha1.ApproveReasonAnnotation, approval.Reason),
		v1alpha1.ApprovedByAnnotation:    said(v1alpha1.ApprovedByAnnotation, by),
	}
}

// saidOf returns an annotation that says something of each approval, with what is said of one
// more: a JSON object by their values, or nil for nothing. What was said of all is that of those
// that there are.
func saidOf(approvals, has, value, text string) any {
	each := map[string]string{}
	if !strings.HasPrefix(has, "{") || json.Unmarshal([]byte(has), &each) != nil {
		each = map[string]string{}
		for _, known := range strings.Split(approvals, ",") {
			if known = strings.TrimSpace(known); known != "" && has != "" {
				each[known] = has
			}
		}
	}
	delete(each, value)
	if text != "" {
		each[value] = text
	}
	if len(each) == 0 {
		return nil
	}
	data, err := json.Marshal(each)
	if err != nil {
		return nil
	}
	return string(data)
}

func approval(s *snapshot.Snapshot, act Act, observe func(*v1alpha1.Platform) rules.Observation) (Intent, error) {
	at := slices.IndexFunc(s.Platforms, func(platform *v1alpha1.Platform) bool { return platform.Name == act.Platform })
	if at < 0 {
		return Intent{}, fmt.Errorf("there is no platform %s", act.Platform)
	}
	platform := s.Platforms[at]
	found, _, err := platforms.Approve(observe(platform), act.Stage, act.Reason)
	if err != nil {
		return Intent{}, err
	}
	if act.Approval != found.Value {
		return Intent{}, fmt.Errorf("what platform %s asks for by now is %s, and what is approved is %q: look again", act.Platform, found.Value, act.Approval)
	}
	says := []string{
		fmt.Sprintf("Stage %s of platform %s may go to version %s. Other versions need approval of their own.", act.Stage, act.Platform, found.Version),
		"Clusters that may begin: " + few(found.Clusters) + ".",
	}
	if found.Waits != "" {
		says = append(says, "It begins when that is done: "+found.Waits+".")
	}
	return Intent{
		Says: says, NamedBy: func(user string) map[string]any { return ApproveOf(found, platform.Annotations, user) },
		Done: fmt.Sprintf("stage %s of platform %s is approved for version %s", act.Stage, act.Platform, found.Version),
		// What somebody else has approved meanwhile must not be lost.
		Patches: []Patch{{
			Resource: snapshot.Platforms.GroupVersionResource, Name: platform.Name,
			Annotations: ApproveOf(found, platform.Annotations, ""), Version: platform.ResourceVersion,
		}},
	}, nil
}

// mostNamed is how many names stand in a sentence.
const mostNamed = 10

func few(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// dependants returns the layers that depend on another one, without what depends on these.
func dependants(s *snapshot.Snapshot, name string) []string {
	var found []string
	for _, layer := range s.Layers {
		if slices.Contains(dependencies.Names(layer.Spec.Prereqs.DependsOn), name) {
			found = append(found, layer.Name)
		}
	}
	return found
}
