// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/builtin"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/near"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/reserved"
	"github.com/strata-project/strata/internal/sources"
	"github.com/strata-project/strata/internal/versions"
)

// layer is an AddonsLayer of the repository.
type layer struct {
	place
	*v1alpha1.AddonsLayer
	source sources.Ref
	// folder of the file that it is in.
	folder string
	// content of its directory, and what that lists; nil where it is of another
	// source, or not there.
	content *directories.Directory
	listing layers.Listing
}

// label returns the name of a layer as a Finding has it.
func (l *layer) label() string { return l.Name }

// readLayers finds the layers, and reads the directories of those that are of this
// repository.
func (l *linter) readLayers() error {
	l.findScopes()
	l.checkNamespaces()
	for _, each := range l.objects {
		if each.GetKind() != "AddonsLayer" || each.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
			continue
		}
		typed, ok := as[v1alpha1.AddonsLayer](each.Unstructured)
		if !ok {
			continue // the schema has said what is wrong with it
		}
		l.layers = append(l.layers, &layer{place: each.place, AddonsLayer: typed, source: sources.Of(typed, ""), folder: path.Dir(each.file)})
	}
	own, several := l.ownSources()
	unchecked := map[string][]*layer{}
	for _, each := range l.layers {
		if each.source.Kind == sources.ApplicationBundle || each.Spec.Source.Path == "" {
			continue
		}
		source := each.source.String()
		missing := l.isMissing(each.Spec.Source.Path)
		if !own[source] || several && missing {
			unchecked[source] = append(unchecked[source], each)
			continue
		}
		if err := l.readLayer(each); err != nil {
			return err
		}
	}
	l.sayUnchecked(unchecked)
	l.sayKustomizations()
	return nil
}

// as converts an object to its Go type. ok is false where it is of another form.
func as[T any](object *unstructured.Unstructured) (*T, bool) {
	typed := new(T)
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed)
	return typed, err == nil
}

// ownSources returns the sources that may be this repository. several says that
// only the paths can tell which of them is.
func (l *linter) ownSources() (own map[string]bool, several bool) {
	own = map[string]bool{}
	for _, each := range l.layers {
		if each.source.Kind == sources.ApplicationBundle {
			continue
		}
		if l.Source == "" || isSource(each.source, l.Source) {
			own[each.source.String()] = true
		}
	}
	return own, l.Source == "" && len(own) > 1
}

// isSource tells whether a source is the one that [KIND/][NAMESPACE/]NAME names.
func isSource(source sources.Ref, wanted string) bool {
	parts := strings.Split(wanted, "/")
	name := parts[len(parts)-1]
	if source.Name != name {
		return false
	}
	for _, part := range parts[:len(parts)-1] {
		if part != source.Namespace && !strings.EqualFold(part, source.Kind) {
			return false
		}
	}
	return true
}

// isMissing tells whether the repository has no such directory.
func (l *linter) isMissing(name string) bool {
	clean := path.Clean(name)
	if !fs.ValidPath(clean) {
		return false // which is another mistake
	}
	_, err := fs.Stat(l.Files, clean)
	return err != nil
}

// buildOf returns how a layer's directory becomes objects. What only a cluster gives is not
// known here: such variables stay as they are written, and all others are put in.
func (l *linter) buildOf(each *layer) (builds.Build, error) {
	var given []builds.Variables
	unknown := false
	if after := each.Spec.PostBuild; after != nil {
		for _, from := range after.SubstituteFrom {
			variables, known := builds.KnownVariables(l.giving, from.Kind, accounts.NamespaceOf(each.AddonsLayer, ""), from.Name)
			unknown = unknown || !known
			given = append(given, variables)
		}
	}
	how, err := builds.Of(&each.Spec, given...)
	if unknown {
		how = how.WithVariablesUnknown()
	}
	return how, err
}

// readLayer reads the directory of a layer.
func (l *linter) readLayer(each *layer) error {
	how, err := l.buildOf(each)
	if err != nil {
		return err
	}
	found, err := l.directory(each.Spec.Source.Path, how)
	if err != nil {
		return err
	}
	switch {
	case found.content.Missing && !l.isMissing(each.Spec.Source.Path):
		l.add(
			rulePath,
			each.place,
			"spec.source.path",
			each.label(),
			"no artifact has the directory %s: a .sourceignore file leaves it out, or it is a symbolic link, which source-controller does not follow",
			each.Spec.Source.Path,
		)
		return nil
	case found.content.Missing:
		l.add(rulePath, each.place, "spec.source.path", each.label(), "the repository has no directory %s%s", each.Spec.Source.Path, l.elsewhere(each))
		return nil
	case len(found.mistakes) == 1 && found.mistakes[0].Field == "spec.source.path":
		l.add(ruleOf(found.mistakes[0]), each.place, "spec.source.path", each.label(), "%s", found.mistakes[0].Message)
		return nil
	}
	for _, mistake := range found.mistakes {
		l.addMistake(Error, mistake, path.Clean(each.Spec.Source.Path), each.label())
	}
	l.checkContent(each, found.content, how)
	l.checkRefused(each, found.content, len(found.mistakes) > 0)
	each.content = found.content
	each.listing = layers.ListingOf(found.content)
	for _, manifest := range found.content.Manifests {
		at := l.origin(manifest.File, manifest.Line, manifest.Object)
		if manifest.Object.GroupVersionKind().GroupKind() != kinds.HelmReleaseKind {
			l.addOwn(at, each.label(), asOwn(builtin.Check(manifest.Object)))
			continue
		}
		l.releases[at] = true
		l.addAll(at, each.label(), checkRelease(manifest.Object))
	}
	// What the controller would make of it; all else that only a cluster says is not known here.
	wanted, err := layers.Content(found.content, each.Name, each.Spec.Version, nil)
	var mistake *directories.ContentError
	if errors.As(err, &mistake) {
		l.addContent(each, mistake)
	}
	if mistake := layers.CheckInventory(each.AddonsLayer, wanted, nil); err == nil && mistake != nil {
		l.addAs(Error, ruleManifest, each.place, "", each.label(), mistake.Message)
	}
	return nil
}

// checkName warns of a name that is made of a variable which a Secret may give. Lint does not
// know what Secrets give: a variable that nothing else gives stays as it is written.
func (l *linter) checkName(each *layer, manifest *directories.Manifest) {
	after := each.Spec.PostBuild
	if after == nil || !slices.ContainsFunc(after.SubstituteFrom, func(ref v1alpha1.SubstituteReference) bool { return ref.Kind == "Secret" }) {
		return
	}
	if text := manifest.Object.GetNamespace() + "/" + manifest.Object.GetName(); strings.Contains(text, "$") || len(manifest.Named) > 0 {
		l.add(ruleSecretName, l.origin(manifest.File, manifest.Line, manifest.Object), "", each.label(),
			"%s has a name with a variable that a Secret may give, and statuses and messages tell names: give it from a ConfigMap, or name the object otherwise",
			manifest.ID())
	}
}

// checkContent looks at the objects of a layer, one by one.
func (l *linter) checkContent(each *layer, content *directories.Directory, how builds.Build) {
	for _, name := range content.Sealed {
		l.add(ruleEncrypted, place{name, 0}, "", each.label(), "is encrypted, and is not looked into without its key")
	}
	for _, name := range content.Ignored {
		l.add(ruleIgnored, place{name, 0}, "", each.label(), "has several documents, and kustomize reads the first alone: make it one")
	}
	for i := range content.Manifests {
		l.checkName(each, &content.Manifests[i])
		if manifest := &content.Manifests[i]; len(manifest.Unset) > 0 {
			l.add(ruleVariables, l.origin(manifest.File, manifest.Line, manifest.Object), "", each.label(),
				"%s reads %s, which nobody gives", manifest.ID(), strings.Join(manifest.Unset, ", "))
		}
	}
	if how.Substitution == nil && !how.VariablesUnknown {
		l.checkLeftVariables(each, content)
	}
	for i := range content.Manifests {
		manifest := &content.Manifests[i]
		var mistake *directories.ContentError
		if errors.As(layers.CheckScope(*manifest, l.scopeOf(manifest.Object)), &mistake) {
			l.add(ruleManifest, l.origin(manifest.File, manifest.Line, manifest.Object), mistake.Field, each.label(), "%s", mistake.Message)
		}
	}
}

// strataNamespace is where the controller is, unless it is installed elsewhere.
const strataNamespace = "strata-system"

// checkRefused finds what the controller refuses by the settings that it comes with: objects
// that Strata, Flux or the cluster keep for themselves, accounts of Flux, and a directory
// without objects, of which it is not known whether it is meant.
func (l *linter) checkRefused(each *layer, content *directories.Directory, broken bool) {
	if account := each.Spec.ServiceAccountName; slices.Contains(accounts.OfFlux, account) {
		l.add(ruleManifest, each.place, "spec.serviceAccountName", each.label(),
			"ServiceAccount %s is reserved for Flux (--reserved-service-accounts): name one that has the rights of this layer only", account)
	}
	if len(content.Manifests) == 0 && !broken {
		l.addAs(Warning, rulePath, each.place, "spec.source.path", each.label(),
			fmt.Sprintf("%s holds no objects: a layer that never had any is deployed so, and one that had some waits for the annotation %s",
				each.Spec.Source.Path, v1alpha1.AllowEmptyAnnotation))
	}
	for _, manifest := range content.Manifests {
		id := manifest.ID()
		if why := cmp.Or(reserved.Name(id, strataNamespace), reserved.Written(id.GroupKind(), manifest.Object)); why != "" && !manifest.IsStratas() {
			l.add(ruleManifest, l.origin(manifest.File, manifest.Line, manifest.Object), "", each.label(),
				"%s is %s, and no layer writes it: remove it from the directory, or give it another name, type or label", id, why)
		}
	}
}

func (l *linter) addContent(each *layer, mistake *directories.ContentError) {
	rule, at := ruleManifest, place{mistake.File, mistake.Line}
	if mistake.Field == "spec.dependsOn" {
		rule = ruleCycle
		for _, manifest := range each.content.Manifests {
			if manifest.File == mistake.File && at.line == 0 && manifest.Object.GroupVersionKind().GroupKind() == kinds.HelmReleaseKind &&
				strings.Contains(mistake.Message, manifest.ID().String()) {
				at = l.origin(manifest.File, manifest.Line, manifest.Object)
			}
		}
	}
	l.add(rule, at, mistake.Field, each.label(), "%s", mistake.Message)
}

// elsewhere says where a directory is that is not where the root says.
func (l *linter) elsewhere(each *layer) string {
	for _, below := range append([]string{each.folder, path.Dir(each.folder)}, l.Below...) {
		if name := path.Join(below, each.Spec.Source.Path); below != "." && !l.isMissing(name) {
			return fmt.Sprintf(": there is %s, so --root %s may say where the repository begins", name, below)
		}
	}
	folders := []string{}
	parent := path.Dir(path.Clean(each.Spec.Source.Path))
	entries, _ := fs.ReadDir(l.Files, parent)
	for _, entry := range entries {
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			folders = append(folders, entry.Name())
		}
	}
	return near.Meant(path.Base(each.Spec.Source.Path), folders)
}

// sayUnchecked says, once for each source, which layers are not looked into.
func (l *linter) sayUnchecked(unchecked map[string][]*layer) {
	for _, source := range slices.Sorted(maps.Keys(unchecked)) {
		var names []string
		for _, each := range unchecked[source] {
			names = append(names, each.Name)
		}
		slices.Sort(names)
		names = slices.Compact(names)
		shown := strings.Join(names[:min(len(names), 5)], ", ")
		if more := len(names) - 5; more > 0 {
			shown += fmt.Sprintf(" and %d more", more)
		}
		first := unchecked[source][0]
		l.add(
			ruleSource,
			first.place,
			"spec.source.name",
			"",
			"%s is taken for another repository: what it has for %s is not checked; --source %s says that it is this one",
			source,
			shown,
			first.source.Name,
		)
	}
}

// sayKustomizations judges kustomizations that cannot be built, and that no layer
// has: others may allow what Strata does not.
func (l *linter) sayKustomizations() {
	for _, name := range slices.Sorted(maps.Keys(l.kustomizations)) {
		plain := l.directories[built{folder: name}]
		if plain == nil || l.isLayerFolder(name) {
			continue
		}
		for _, mistake := range plain.mistakes {
			l.addMistake(Warning, mistake, name, "")
		}
	}
}

func (l *linter) isLayerFolder(name string) bool {
	return slices.ContainsFunc(l.layers, func(each *layer) bool { return each.content != nil && path.Clean(each.Spec.Source.Path) == name })
}

// checkLayers checks what each layer says by itself.
func (l *linter) checkLayers() {
	for _, each := range l.layers {
		if text := each.Annotations[v1alpha1.HoldUntilAnnotation]; text != "" {
			if _, err := time.Parse(time.RFC3339, text); err != nil {
				l.add(ruleHold, each.place, "metadata.annotations["+v1alpha1.HoldUntilAnnotation+"]", each.label(),
					"%q is no RFC 3339 time, so the hold does not end by itself: write one such as 2026-12-24T18:00:00Z", text)
			}
		}
		const field = "spec.prereqs.k8sVersion"
		allowed, err := versions.KubernetesSatisfied(each.Spec.Prereqs.K8sVersion, cmp.Or(l.Kubernetes, "1.0"))
		switch {
		case err != nil:
			l.add(ruleRange, each.place, field, each.label(), "%v", err)
		case !allowed && l.Kubernetes != "":
			l.add(ruleKubernetes, each.place, field, each.label(), "the layer wants Kubernetes %s, and not %s", each.Spec.Prereqs.K8sVersion, l.Kubernetes)
		}
		l.checkDependencies(each)
		l.checkBundle(each)
	}
}

// checkDependencies checks spec.prereqs.dependsOn of a layer.
func (l *linter) checkDependencies(each *layer) {
	peers := l.peers(each)
	for i, text := range each.Spec.Prereqs.DependsOn {
		field := fmt.Sprintf("spec.prereqs.dependsOn[%d]", i)
		wanted, err := dependencies.Parse(text)
		if err != nil {
			if !l.isRefused(each.place, field) {
				l.add(ruleDependency, each.place, field, each.label(), "%v", err)
			}
			continue
		}
		var names, present []string
		accepted := false
		for _, peer := range peers {
			names = append(names, peer.Name)
			if peer.Name == wanted.Name {
				present = append(present, peer.Spec.Version)
				accepted = accepted || wanted.Accepts(peer.Spec.Version)
			}
		}
		slices.Sort(names)
		switch {
		case len(present) == 0:
			l.add(ruleDependency, each.place, field, each.label(), "there is no layer %s%s", wanted.Name, near.Meant(wanted.Name, slices.Compact(names)))
		case !accepted:
			l.add(ruleDependencyVersion, each.place, field, each.label(), "wants %s, and %s is at %s", wanted, wanted.Name, strings.Join(present, " or "))
		}
	}
}

// isRefused tells whether the schema has refused a field already.
func (l *linter) isRefused(at place, field string) bool {
	line, _ := l.position(at, field)
	return slices.ContainsFunc(l.findings, func(f Finding) bool {
		return f.Rule == ruleSchema && f.Field == field && f.File == at.file && f.Line == line
	})
}

// peers returns the layers that may be on one cluster with a layer, itself
// included. Folders that have layers of the same name are for different clusters.
func (l *linter) peers(of *layer) []*layer {
	apart := l.rivals()[of.folder]
	var found []*layer
	for _, each := range l.layers {
		if !apart[each.folder] {
			found = append(found, each)
		}
	}
	return found
}

// rivals returns, by folder, the folders that have layers of the same name.
func (l *linter) rivals() map[string]map[string]bool {
	if l.apart != nil {
		return l.apart
	}
	folders := map[string]map[string]bool{}
	for _, each := range l.layers {
		if folders[each.Name] == nil {
			folders[each.Name] = map[string]bool{}
		}
		folders[each.Name][each.folder] = true
	}
	l.apart = map[string]map[string]bool{}
	for _, of := range folders {
		for a := range of {
			for b := range of {
				if a != b {
					if l.apart[a] == nil {
						l.apart[a] = map[string]bool{}
					}
					l.apart[a][b] = true
				}
			}
		}
	}
	return l.apart
}

// placeOf returns the cluster that a layer goes to.
func placeOf(each *layer) types.NamespacedName { return placement.Of(each.AddonsLayer, "") }
