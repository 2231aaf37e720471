// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// What becomes of a release of a layer, beside ActionAdopt.
const (
	// ActionUpgrade has Helm upgrade it, because git says something else.
	ActionUpgrade = "upgrade"
	// ActionInstall installs it, because it is not there.
	ActionInstall = "install"
	// ActionReinstall installs it once more under another name or elsewhere.
	ActionReinstall = "reinstall"
	// ActionPrune uninstalls it, because no layer lists it.
	ActionPrune = "prune"
	// ActionRename has another HelmRelease stand for it, without Helm noticing.
	ActionRename = "rename"
)

// LayerItem says what becomes of one release of a layer.
type LayerItem struct {
	Layer     string `json:"layer"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Chart     string `json:"chart"`
	Version   string `json:"version"`
	// Action is adopt, upgrade, install, reinstall, rename or prune.
	Action string `json:"action"`
	// File that lists it; empty where none does.
	File string `json:"file"`
	// Note says why, or what to expect.
	Note string `json:"note"`
}

// Differences returns the fields of a HelmRelease for which Helm upgrades when they
// are as wanted instead of as they live, and whether it would be another Helm
// release altogether.
func Differences(wanted, live *unstructured.Unstructured) (fields []string, another bool) {
	another = kinds.HelmReleaseIdentity(wanted) != kinds.HelmReleaseIdentity(live) || target(wanted) != target(live)
	for _, field := range []string{"chart", "chartRef", "values", "valuesFrom", "postRenderers", "commonMetadata"} {
		if normal(wanted, field) != normal(live, field) {
			fields = append(fields, "spec."+field)
		}
	}
	return fields, another
}

func target(release *unstructured.Unstructured) string {
	namespace, _, _ := unstructured.NestedString(release.Object, "spec", "targetNamespace")
	return cmp.Or(namespace, release.GetNamespace())
}

// normal writes a field so that what means the same is the same: with the
// defaults of the API server, and without what says only how often to look.
func normal(release *unstructured.Unstructured, field string) string {
	found, _, _ := unstructured.NestedFieldNoCopy(release.Object, "spec", field)
	if found == nil {
		return ""
	}
	value := runtime.DeepCopyJSONValue(found)
	if chart, is := value.(map[string]any); is && field == "chart" {
		chart, _ = chart["spec"].(map[string]any)
		delete(chart, "interval")
		fill(chart, "version", "*")
		fill(chart, "reconcileStrategy", "ChartVersion")
		ref, _ := chart["sourceRef"].(map[string]any)
		fill(ref, "namespace", release.GetNamespace())
		value = chart
	}
	data, err := json.Marshal(value)
	if text := string(data); err == nil && !slices.Contains([]string{"{}", "[]", "null"}, text) {
		return text
	}
	return ""
}

func fill(fields map[string]any, key, value string) {
	if fields == nil {
		return
	}
	if text, _ := fields[key].(string); text == "" {
		fields[key] = value
	}
}

// OwnerOf returns the layer that has an object, by its label or by Kraan's
// ownerReference; empty for none.
func OwnerOf(live *unstructured.Unstructured) string {
	return cmp.Or(live.GetLabels()[v1alpha1.LayerLabel], FormerLayer(live))
}

// Outcome is what becomes of a layer.
type Outcome struct {
	Items []LayerItem
	// Message says why the layer would not do that right away; empty where it would,
	// and where it is held.
	Message string
	// New lists objects beside releases that would be created. Kraan left out all
	// kinds but HelmReleases and HelmRepositories.
	New []string
}

// Outcome returns what becomes of the releases of a layer whose directory is known:
// by what the layer lists and has, and by what the controller says at its first look.
func (w World) Outcome(layer *v1alpha1.AddonsLayer) Outcome {
	directory := w.Directories[layer.Name]
	decision := w.Look(layer)
	var outcome Outcome
	switch decision.State {
	case v1alpha1.StateDeployed, v1alpha1.StateApplying, v1alpha1.StatePruning, v1alpha1.StateHold:
	default:
		outcome.Message = decision.Message
	}
	if directory.Missing {
		outcome.Message = strings.TrimPrefix(outcome.Message+"; ", "; ") + "there is no directory " + layer.Spec.Source.Path
	}
	wanted := map[objects.ID]*unstructured.Unstructured{}
	content, err := layers.Content(directory, layer.Name, layer.Spec.Version, w.Scopes)
	if err == nil {
		for _, d := range content {
			if object, written := d.Object.Get(); written {
				wanted[d.ID] = object
			}
		}
	}
	for _, manifest := range directory.Manifests {
		id := manifest.ID()
		obj := wanted[id]
		if obj == nil {
			obj = manifest.Object
		}
		if id.GroupKind() != kinds.HelmReleaseKind {
			if w.Live[id] == nil {
				outcome.New = append(outcome.New, id.String())
			}
			continue
		}
		outcome.Items = append(outcome.Items, w.listed(layer.Name, manifest.File, obj))
	}
	outcome.Items = append(outcome.Items, w.unlisted(layer.Name)...)
	return outcome
}

// listed says what becomes of a release that a layer lists.
func (w World) listed(layer, file string, wanted *unstructured.Unstructured) LayerItem {
	chart, version := ChartOf(wanted)
	item := LayerItem{
		Layer: layer, Namespace: wanted.GetNamespace(), Name: wanted.GetName(), Chart: chart, Version: version,
		Action: ActionAdopt, File: file, Note: "nothing changes",
	}
	live := w.Live[objects.IDOf(wanted)]
	if live == nil {
		item.Action, item.Note = ActionInstall, "it is not there"
		identity := kinds.HelmReleaseIdentity(wanted)
		for _, id := range sortedIDs(w.Live) {
			if id.GroupKind() == kinds.HelmReleaseKind && kinds.HelmReleaseIdentity(w.Live[id]) == identity {
				item.Action, item.Note = ActionRename, fmt.Sprintf("%s stands for the same Helm release", id)
			}
		}
		return item
	}
	fields, another := Differences(wanted, live)
	switch {
	case another:
		item.Action, item.Note = ActionReinstall, fmt.Sprintf(
			"it stands for the Helm release %s, and git for %s",
			kinds.HelmReleaseIdentity(live),
			kinds.HelmReleaseIdentity(wanted),
		)
	case len(fields) > 0:
		item.Action, item.Note = ActionUpgrade, "git has something else in "+strings.Join(fields, ", ")
	case OwnerOf(live) == "":
		item.Note = "nothing changes; nobody has it yet"
	case OwnerOf(live) != layer:
		item.Note = "nothing changes; layer " + OwnerOf(live) + " has it yet"
	}
	return item
}

// unlisted returns the releases that a layer has, and no layer lists. Only what has
// its label is removed.
func (w World) unlisted(layer string) []LayerItem {
	var items []LayerItem
	files, identities, note := w.listings()
	for _, id := range sortedIDs(w.Live) {
		live := w.Live[id]
		if id.GroupKind() != kinds.HelmReleaseKind || live.GetLabels()[v1alpha1.LayerLabel] != layer || files[id] || identities[kinds.HelmReleaseIdentity(live)] {
			continue
		}
		chart, version := ChartOf(live)
		items = append(items, LayerItem{
			Layer: layer, Namespace: id.Namespace, Name: id.Name, Chart: chart, Version: version, Action: ActionPrune, Note: note,
		})
	}
	return items
}

// listings returns what all layers list, as objects and as Helm releases, and what
// there is to say of a release that is not among them.
func (w World) listings() (files map[objects.ID]bool, identities map[string]bool, note string) {
	files, identities, note = map[objects.ID]bool{}, map[string]bool{}, "no layer lists it: it would be uninstalled"
	for _, layer := range w.Layers {
		directory := w.Directories[layer.Name]
		if directory == nil {
			note = "no layer that could be read lists it: it would be uninstalled, unless another one does"
			continue
		}
		listing := layers.ListingOf(directory)
		for id := range listing.Files {
			files[id] = true
		}
		for identity := range listing.Exclusive {
			identities[identity] = true
		}
	}
	return files, identities, note
}

func sortedIDs[V any](of map[objects.ID]V) []objects.ID {
	ids := make([]objects.ID, 0, len(of))
	for id := range of {
		ids = append(ids, id)
	}
	return objects.SortIDs(ids)
}
