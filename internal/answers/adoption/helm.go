// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// What becomes of a release.
const (
	// ActionAdopt has a layer take it as it runs.
	ActionAdopt = "adopt"
	// ActionIncomplete has it wait until somebody names where its chart comes from.
	ActionIncomplete = "incomplete"
	// ActionSkip leaves it alone.
	ActionSkip = "skip"
)

// Incomplete is the folder that no layer names.
const Incomplete = "incomplete"

// LayersFile holds the AddonsLayers.
const LayersFile = "layers.yaml"

// Item says what becomes of one release.
type Item struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Chart     string `json:"chart"`
	Version   string `json:"version"`
	// Action is adopt, incomplete or skip.
	Action string `json:"action"`
	// Into is the file that it is written to; empty where it is skipped.
	Into string `json:"into"`
	// Note says why, or what to expect.
	Note string `json:"note"`
	// SecretValues lists the values that are not in the file.
	SecretValues []string `json:"secretValues"`
	// DelicateValues lists numbers that the chart may write otherwise.
	DelicateValues []string `json:"delicateValues"`
}

// File is a file to be written.
type File struct {
	// Path with slashes, below the folder that all are written to.
	Path string
	Data []byte
}

// Options say how what is found is arranged.
type Options struct {
	// Layer that releases go to, or that the names of layers begin with where
	// ByNamespace is true; empty then for the names of the namespaces alone.
	Layer       string
	ByNamespace bool
	// Version of the layers.
	Version string
	// SourceNamespace and Source name the source of the layers.
	SourceNamespace, Source string
	// Path of the folder in the source, beginning with ./.
	Path string
	// InlineSecrets leaves values that look secret where they are.
	InlineSecrets bool
}

// Candidate is a Helm release that a layer may take.
type Candidate struct {
	Release Release
	// Repository that holds its chart; nil where that is not known, and then Why
	// says what was looked at.
	Repository *Repository
	Why        string
}

// Import is what was found, and how to arrange it.
type Import struct {
	Options
	// Candidates are plain Helm releases, and Live HelmReleases that a layer may
	// take as they are.
	Candidates []Candidate
	Live       []*unstructured.Unstructured
	// Skipped are left alone.
	Skipped []Item
}

// Result is what is written, and what becomes of each release.
type Result struct {
	Items []Item
	// Layers are the names of the layers, sorted.
	Layers []string
	// Files are written to one folder, and Secrets to another that does not go
	// into git.
	Files, Secrets []File
}

// Judge says why a Helm release is left alone, given the live HelmReleases: reason
// is empty where it may be taken. Covered is true for one that a live HelmRelease
// stands for, which is judged itself.
func Judge(r Release, live []*unstructured.Unstructured) (reason string, covered bool) {
	identity := kinds.HelmReleaseIdentity(HelmRelease(r, nil))
	for _, other := range live {
		switch {
		case kinds.HelmReleaseIdentity(other) == identity:
			return fmt.Sprintf("HelmRelease %s/%s stands for it", other.GetNamespace(), other.GetName()), true
		case other.GetNamespace() == r.Namespace && other.GetName() == r.Name:
			return fmt.Sprintf("HelmRelease %s/%s is there, and stands for the Helm release %s", r.Namespace, r.Name, kinds.HelmReleaseIdentity(other)), false
		}
	}
	return r.Unfit(), false
}

// importing is one Write.
type importing struct {
	Import
	result  Result
	layers  map[string]bool
	written map[string]bool
}

// Write returns the files that stand for what was found.
func (i Import) Write() (Result, error) {
	w := &importing{Import: i, layers: map[string]bool{}, written: map[string]bool{}}
	w.result.Items = slices.Clone(i.Skipped)
	for _, candidate := range i.Candidates {
		if err := w.candidate(candidate); err != nil {
			return Result{}, err
		}
	}
	for _, live := range i.Live {
		if err := w.live(live); err != nil {
			return Result{}, err
		}
	}
	if err := w.writeLayers(); err != nil {
		return Result{}, err
	}
	slices.SortFunc(w.result.Items, func(a, b Item) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Note, b.Note))
	})
	for at := range w.result.Items {
		item := &w.result.Items[at]
		item.SecretValues, item.DelicateValues = append([]string{}, item.SecretValues...), append([]string{}, item.DelicateValues...)
	}
	return w.result, nil
}

// oneRevision is what helm-controller does with a release that it has not made.
const oneRevision = "Helm makes one revision that changes nothing"

func (w *importing) candidate(c Candidate) error {
	r := c.Release
	item := Item{Namespace: r.Namespace, Name: r.Name, Chart: r.Chart.Name, Version: r.Chart.Version, Action: ActionAdopt, Note: oneRevision}
	if item.DelicateValues = r.Delicate; len(r.Delicate) > 0 {
		item.Note = "Helm makes one revision, which may write large numbers otherwise"
	}
	comment := fmt.Sprintf("Helm release %s/%s, at revision %d when it was imported.", r.Namespace, r.Name, r.Revision)
	folder := Incomplete
	if c.Repository == nil {
		item.Action, item.Note = ActionIncomplete, "where its chart comes from is not known: "+c.Why
		comment += fmt.Sprintf(
			"\nTO COMPLETE: name the repository of the chart in spec.chart.spec.sourceRef, in the\nplace of %s, and move this file into the directory of a layer. No layer reads\nit here. Helm does not record where a chart comes from, and\n%s.",
			Unknown,
			c.Why,
		)
	} else {
		folder = w.layerOf(r.Namespace)
		if err := w.repository(folder, *c.Repository); err != nil {
			return err
		}
	}
	return w.release(item, folder, comment, HelmRelease(r, c.Repository))
}

func (w *importing) live(live *unstructured.Unstructured) error {
	obj := Clean(live)
	chart, version := ChartOf(obj)
	item := Item{
		Namespace: obj.GetNamespace(),
		Name:      obj.GetName(),
		Chart:     chart,
		Version:   version,
		Action:    ActionAdopt,
		Note:      "nothing changes: the HelmRelease that is there",
	}
	if _, note := Kept(live); note != "" {
		item.Note += "; " + note
	}
	return w.release(item, w.layerOf(obj.GetNamespace()), "The HelmRelease that was there when it was imported.", obj)
}

// release writes a HelmRelease, with its secret values apart.
func (w *importing) release(item Item, folder, comment string, obj *unstructured.Unstructured) error {
	item.Into = path.Join(folder, item.Namespace, "helmrelease-"+item.Name+".yaml")
	if !w.InlineSecrets {
		secret, paths, err := HideSecrets(obj)
		if err != nil {
			return fmt.Errorf("release %s/%s: %w", item.Namespace, item.Name, err)
		}
		if secret != nil {
			item.SecretValues = paths
			item.Note += fmt.Sprintf("; needs Secret %s/%s", item.Namespace, secret.GetName())
			data, err := Text("Do not commit this file as it is: it holds what must stay secret.", secret)
			if err != nil {
				return err
			}
			w.result.Secrets = append(w.result.Secrets, File{Path: path.Join(item.Namespace, "secret-"+secret.GetName()+".yaml"), Data: data})
		}
	}
	data, err := Text(comment, obj)
	if err != nil {
		return err
	}
	w.add(item.Into, data)
	w.result.Items = append(w.result.Items, item)
	return nil
}

func (w *importing) add(name string, data []byte) {
	if !w.written[name] {
		w.written[name] = true
		w.result.Files = append(w.result.Files, File{Path: name, Data: data})
	}
}

// repository writes a repository that is not there yet.
func (w *importing) repository(folder string, r Repository) error {
	if r.Lives {
		return nil
	}
	data, err := Text("", HelmRepository(r))
	if err != nil {
		return err
	}
	w.add(path.Join(folder, r.Namespace, "helmrepository-"+r.Name+".yaml"), data)
	return nil
}

// layerOf returns the layer that a release of a namespace goes to.
func (w *importing) layerOf(namespace string) string {
	layer := w.Layer
	switch {
	case w.ByNamespace && layer == "":
		layer = namespace
	case w.ByNamespace:
		layer += "-" + namespace
	}
	w.layers[layer] = true
	return layer
}

// maxLayerName is the longest name of a layer, which is the value of a label.
const maxLayerName = validation.LabelValueMaxLength

func (w *importing) writeLayers() error {
	var manifests []*unstructured.Unstructured
	for _, name := range sortedKeys(w.layers) {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || len(name) > maxLayerName {
			return fmt.Errorf(
				"%q cannot be the name of a layer, which has at most %d small letters, digits and dashes: choose another one with --layer",
				name,
				maxLayerName,
			)
		}
		if name == Incomplete || name == LayersFile {
			return fmt.Errorf("%q is a name that import itself uses: choose another one with --layer", name)
		}
		manifests = append(manifests, Layer{
			Name: name, Version: w.Version, SourceNamespace: w.SourceNamespace, Source: w.Source, Path: strings.TrimSuffix(w.Path, "/") + "/" + name,
		}.Manifest())
		w.result.Layers = append(w.result.Layers, name)
	}
	if len(manifests) == 0 {
		return nil
	}
	data, err := Text("The layers of what was imported. Create them when the folder is in their source.", manifests...)
	if err != nil {
		return err
	}
	w.add(LayersFile, data)
	return nil
}

// Verify reads the directories of layers as they were written, and says of which
// releases a layer would not find the very Helm release that is installed. The
// rules are the controller's.
func (r Result) Verify(made map[string]*directories.Directory, wanted []Candidate) []string {
	found := map[string]bool{}
	for _, layer := range r.Layers {
		for _, manifest := range made[layer].Manifests {
			if manifest.ID().GroupKind() == kinds.HelmReleaseKind {
				found[kinds.HelmReleaseIdentity(manifest.Object)] = true
			}
		}
	}
	var lost []string
	for _, candidate := range wanted {
		if identity := candidate.Release.Namespace + "/" + candidate.Release.Name; candidate.Repository != nil && !found[identity] {
			lost = append(lost, identity)
		}
	}
	return lost
}

// Conflicts says what stands in the way of layers that are written: what the
// controller would say at its first look.
func (w World) Conflicts(names []string) []string {
	var problems []string
	for _, layer := range w.Layers {
		if !slices.Contains(names, layer.Name) || w.Directories[layer.Name] == nil {
			continue
		}
		decision := w.Look(layer)
		if decision.Stalled || len(decision.Plan.Conflicts) > 0 {
			problems = append(problems, fmt.Sprintf("layer %s: %s", layer.Name, decision.Message))
		}
		for _, contest := range decision.Plan.Contested {
			if !contest.Waits {
				problems = append(problems, fmt.Sprintf("layer %s: %s, which no layer has, stands for the same Helm release as %s", layer.Name, contest.With, contest.ID))
			}
		}
		for _, standing := range decision.Plan.Standings {
			if standing.Health == objects.Blocked && len(decision.Plan.Conflicts) == 0 {
				problems = append(problems, fmt.Sprintf("layer %s: %s %s", layer.Name, standing.ID, standing.Message))
			}
		}
	}
	return problems
}
