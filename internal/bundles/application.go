// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/oldwords"
)

const (
	// sourceInterval is how often Flux looks at a chart's source, which has exactly one
	// version and does not change.
	sourceInterval = "1h"
	// releaseInterval is how often Flux looks at a release to which nothing has happened.
	// Every change wakes it at once: this is for what others have changed in the cluster,
	// and each look compares all objects of a release.
	releaseInterval = 15 * time.Minute
	// retryInterval is how soon an action of Helm that has failed is tried again,
	// without end: how long a layer may take is the layer's own timeout.
	retryInterval = "1m"
	// maxReleaseName is how long Helm lets the names of releases be.
	maxReleaseName = 53
)

// slot is an application in its place in the layer.
type slot struct {
	copied
	version   *v1alpha1.HelmApplicationVersion
	namespace string
}

func (s slot) field(name string) string { return join("applications["+s.of+"]", name) }

func (r *rendering) applications() error {
	present, err := copiesOf(r.layer, r.fill, r.All)
	if err != nil {
		return err
	}
	plain := r.fill
	defer func() { r.fill = plain }()
	slots := make([]slot, 0, len(present))
	for _, application := range present {
		r.fill = application.fill
		placed, err := r.place(application)
		if err != nil {
			return err
		}
		slots = append(slots, placed)
	}
	for _, application := range slots {
		r.fill = application.fill
		if err := r.application(application, slots); err != nil {
			return err
		}
	}
	return nil
}

// place looks up an application's version and says in which namespace it goes.
func (r *rendering) place(application copied) (slot, error) {
	version, err := r.versionOf(application.BundleApplication)
	if err != nil {
		return slot{}, err
	}
	placed := slot{copied: application, version: version}
	namespace := cmp.Or(application.Namespace, application.Name)
	if application.Namespace == "" && placed.version.Namespace != nil {
		namespace = placed.version.Namespace.Name
	}
	placed.namespace, err = r.fillName(r.fill, placed.field("namespace"), namespace)
	return placed, err
}

// versionOf returns what an application installs.
func (r *rendering) versionOf(application v1alpha1.BundleApplication) (*v1alpha1.HelmApplicationVersion, error) {
	if own := OwnVersion(application); own != nil {
		return own, nil
	}
	name := ApplicationName(application)
	app := r.Applications[name]
	if app == nil {
		return nil, &Waiting{Reason: fmt.Sprintf("waits for HelmApplication %s, which does not exist", name)}
	}
	version := catalogue.VersionOf(app, application.Version)
	if version == nil {
		return nil, &Waiting{Reason: fmt.Sprintf("waits for version %s of HelmApplication %s, which it does not have", application.Version, name)}
	}
	if catalogue.IsChanged(app, *version) {
		return nil, &directories.ContentError{
			Reason: v1alpha1.ReasonContentChanged, File: "HelmApplication " + name, Field: "versions[" + version.Version + "]",
			Message: "was published with other content: put that back, and publish a new version",
		}
	}
	if old := oldwords.InVersion(*version); old != "" {
		return nil, &directories.ContentError{Reason: v1alpha1.ReasonInvalidManifest, File: "HelmApplication " + name, Message: old}
	}
	return version, nil
}

func (r *rendering) application(application slot, all []slot) error {
	if err := r.ensureNamespace(application); err != nil {
		return err
	}
	settings := r.settings(application)
	spec := map[string]any{
		"interval":       settings.Interval.Duration.String(),
		"driftDetection": driftDetection(settings.DriftDetection, application.version.IgnoreDifferences),
	}
	steps := []func(slot, map[string]any) error{r.releaseName, r.chart, r.values, r.valuesFrom}
	for _, step := range steps {
		if err := step(application, spec); err != nil {
			return err
		}
	}
	needs, err := r.claims(application, spec)
	if err != nil {
		return err
	}
	if timeout := application.version.Timeout; timeout != nil {
		spec["timeout"] = timeout.Duration.String()
	}
	spec["install"], spec["upgrade"] = actions(application)
	if err := r.dependsOn(application, all, spec); err != nil {
		return err
	}
	release := newObject("helm.toolkit.fluxcd.io/v2", kinds.HelmReleaseKind.Kind, application.namespace, application.Name)
	release.Object["spec"] = spec
	r.add(application.field(""), release).Needs = needs
	return r.provides(application, objects.IDOf(release))
}

// ensureNamespace has the namespace of an application be there. It belongs to no
// layer, because applications of several layers may go into one.
func (r *rendering) ensureNamespace(application slot) error {
	wanted := application.version.Namespace
	if wanted == nil || !wanted.Create {
		return nil
	}
	obj := newObject("v1", "Namespace", "", application.namespace)
	setTexts(obj, "labels", wanted.Labels)
	setTexts(obj, "annotations", wanted.Annotations)
	for i := range r.manifests {
		made := r.manifests[i].Object
		if r.manifests[i].ID().GroupKind().Kind != "Namespace" || made.GetName() != application.namespace {
			continue
		}
		if key := differing(made.GetLabels(), wanted.Labels) + differing(made.GetAnnotations(), wanted.Annotations); key != "" {
			return r.mistake(
				application.field("namespace"),
				"namespace %s would get two values of %s: another application of the layer goes there, too",
				application.namespace,
				key,
			)
		}
		setTexts(made, "labels", wanted.Labels)
		setTexts(made, "annotations", wanted.Annotations)
		return nil
	}
	r.add(application.field("namespace"), obj).Ensured = true
	return nil
}

// setTexts adds labels or annotations to an object.
func setTexts(obj *unstructured.Unstructured, field string, texts map[string]string) {
	metadata := obj.Object["metadata"].(map[string]any) // of newObject
	all, _ := metadata[field].(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	for key, value := range texts {
		all[key] = value
	}
	if len(all) > 0 {
		metadata[field] = all
	}
}

// differing returns the first key that two sets of labels differ in; empty for none.
func differing(a, b map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if value, both := b[key]; both && value != a[key] {
			return key
		}
	}
	return ""
}

func (r *rendering) releaseName(application slot, spec map[string]any) error {
	text := cmp.Or(application.ReleaseName, application.version.ReleaseName, application.Name)
	name, err := r.fillText(application.field("releaseName"), text)
	if err != nil {
		return err
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 || len(name) > maxReleaseName {
		return r.mistake(
			application.field("releaseName"),
			"%q is not the name of a Helm release: it must be of small letters, digits and dashes, and have at most %d of them",
			short(name),
			maxReleaseName,
		)
	}
	spec["releaseName"] = name
	return nil
}

// values puts together what the version has and what the bundle has, and then the
// parameters of both.
func (r *rendering) values(application slot, spec map[string]any) error {
	under, err := decodeObject(application.version.Values)
	if err != nil {
		return &directories.ContentError{
			Reason: v1alpha1.ReasonInvalidManifest, File: "HelmApplication " + ApplicationName(application.BundleApplication),
			Field: "versions[" + application.version.Version + "].values", Message: err.Error(),
		}
	}
	over, err := decodeObject(application.Values)
	if err != nil {
		return r.mistake(application.field("values"), "%s", err)
	}
	if over, err = r.fillObject(application.field("values"), over); err != nil {
		return err
	}
	values := catalogue.Overlay(under, over)
	parameters := slices.Clone(application.version.Parameters)
	for _, parameter := range application.Parameters {
		field := application.field("parameters[" + parameter.Name + "]")
		if parameter.Value, err = r.fillText(field, parameter.Value); err != nil {
			return err
		}
		parameters = append(parameters, parameter)
	}
	for _, parameter := range parameters {
		if err := set(values, parameter); err != nil {
			return r.mistake(application.field("parameters["+parameter.Name+"]"), "%s", err)
		}
	}
	if len(values) > 0 {
		spec["values"] = values
	}
	return nil
}

func (r *rendering) valuesFrom(application slot, spec map[string]any) error {
	var references []any
	for i, reference := range application.ValuesFrom {
		field := application.field(fmt.Sprintf("valuesFrom[%d].name", i))
		name, err := r.fillText(field, reference.Name)
		if err != nil {
			return err
		}
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			return r.mistake(field, "%q is not the name of a %s: %s", short(name), reference.Kind, wrong[0])
		}
		filled := map[string]any{"kind": reference.Kind, "name": name}
		if reference.ValuesKey != "" {
			filled["valuesKey"] = reference.ValuesKey
		}
		if reference.TargetPath != "" {
			filled["targetPath"] = reference.TargetPath
		}
		if reference.Optional {
			filled["optional"] = true
		}
		references = append(references, filled)
	}
	if len(references) > 0 {
		spec["valuesFrom"] = references
	}
	return nil
}

func (r *rendering) dependsOn(application slot, all []slot, spec map[string]any) error {
	var on []any
	seen := map[string]bool{}
	for queue := slices.Clone(application.DependsOn); len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if seen[name] {
			continue
		}
		seen[name] = true
		if there := copiesNamed(all, name); len(there) > 0 {
			for _, one := range there {
				on = append(on, map[string]any{"name": one.Name, "namespace": one.namespace})
			}
			continue
		}
		// One that is not there stands for what it depends on.
		at := slices.IndexFunc(r.layer.Applications, func(a v1alpha1.BundleApplication) bool { return a.Name == name })
		if at < 0 {
			return r.mistake(application.field("dependsOn"), "the layer has no application %s", name)
		}
		queue = append(queue, r.layer.Applications[at].DependsOn...)
	}
	slices.SortFunc(on, func(a, b any) int {
		return cmp.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string)) // as they were made above
	})
	if len(on) > 0 {
		spec["dependsOn"] = on
	}
	return nil
}

// actions returns how Helm installs and upgrades. Each is tried again until it
// succeeds, and without taking back what runs: whether to go back is decided for
// the layer as a whole.
func actions(application slot) (install, upgrade map[string]any) {
	strategy := func() map[string]any {
		return map[string]any{"name": "RetryOnFailure", "retryInterval": retryInterval}
	}
	install = map[string]any{"createNamespace": false, "strategy": strategy()}
	// A version brings its definitions of kinds, which Helm by itself would leave as
	// the first one had them.
	upgrade = map[string]any{"crds": "CreateReplace", "strategy": strategy()}
	if cmp.Or(application.Ready, application.version.Ready) == v1alpha1.ApplicationApplied {
		install["disableWait"], upgrade["disableWait"] = true, true
	}
	if serverSide := application.version.ServerSideApply; serverSide != nil {
		install["serverSideApply"], upgrade["serverSideApply"] = *serverSide, "disabled"
		if *serverSide {
			upgrade["serverSideApply"] = "enabled"
		}
	}
	return install, upgrade
}

// settings returns how Flux looks after a release: the layer counts most, then the bundle,
// and then the catalogue.
func (r *rendering) settings(application slot) v1alpha1.ReleaseSettings {
	settings := v1alpha1.ReleaseSettings{
		Interval: &metav1.Duration{Duration: releaseInterval}, DriftDetection: v1alpha1.DriftDetectionEnabled,
	}
	said := []v1alpha1.ReleaseSettings{application.version.ReleaseSettings, application.ReleaseSettings}
	if r.Releases != nil {
		said = append(said, *r.Releases)
	}
	for _, over := range said {
		if over.Interval != nil {
			settings.Interval = over.Interval
		}
		settings.DriftDetection = cmp.Or(over.DriftDetection, settings.DriftDetection)
	}
	return settings
}

// driftDetection takes back what others change, or tells of it, but for what they may.
func driftDetection(mode v1alpha1.DriftDetection, ignored []v1alpha1.IgnoredDifference) map[string]any {
	detection := map[string]any{"mode": strings.ToLower(string(mode))}
	var rules []any
	for _, difference := range ignored {
		target := map[string]any{"kind": difference.Kind}
		if difference.Group != "" {
			target["group"] = difference.Group
		}
		// Flux takes both for regular expressions.
		if difference.Namespace != "" {
			target["namespace"] = regexp.QuoteMeta(difference.Namespace)
		}
		if difference.Name != "" {
			target["name"] = regexp.QuoteMeta(difference.Name)
		}
		paths := make([]any, 0, len(difference.Paths))
		for _, path := range difference.Paths {
			paths = append(paths, path)
		}
		rules = append(rules, map[string]any{"paths": paths, "target": target})
	}
	if len(rules) > 0 {
		detection["ignore"] = rules
	}
	return detection
}
