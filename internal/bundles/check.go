// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/oldwords"
	"github.com/strata-project/strata/internal/templates"
	"github.com/strata-project/strata/internal/versions"
)

// Check returns why a bundle cannot be installed, each with the field's path, in the
// order in which the bundle is written. That an application is withdrawn is no
// reason: who has tested the bundle with it keeps it.
func Check(bundle *v1alpha1.ApplicationBundle, entries map[string]*v1alpha1.HelmApplication) []string {
	if old := oldwords.InBundle(bundle); old != "" {
		return []string{old}
	}
	c := &checking{bundle: bundle, entries: entries}
	c.ranges()
	c.inputs()
	c.order()
	for i := range bundle.Spec.Layers {
		c.layer(&bundle.Spec.Layers[i])
	}
	return c.problems
}

// checking is one Check.
type checking struct {
	bundle   *v1alpha1.ApplicationBundle
	entries  map[string]*v1alpha1.HelmApplication
	problems []string
	// each is true while an application is looked at that is there for each item of a list.
	each bool
}

func (c *checking) say(field, format string, args ...any) {
	c.problems = append(c.problems, field+": "+fmt.Sprintf(format, args...))
}

func (c *checking) ranges() {
	for i, text := range c.bundle.Spec.UpgradesFrom {
		if _, err := semver.NewConstraint(text); err != nil {
			c.say(fmt.Sprintf("upgradesFrom[%d]", i), "%q is no range of versions such as >=1.1 <1.3", short(text))
		}
	}
	if _, err := versions.KubernetesSatisfied(c.bundle.Spec.KubeVersion, "1.0.0"); err != nil {
		c.say("kubeVersion", "%v", err)
	}
}

func (c *checking) inputs() {
	seen := map[string]bool{}
	for _, input := range c.bundle.Spec.Inputs {
		field := "inputs[" + input.Name + "]"
		if seen[input.Name] {
			c.say(field, "is there twice")
		}
		seen[input.Name] = true
		if len(input.Enum) > 0 && input.Type != "" && input.Type != v1alpha1.InputString {
			c.say(field+".enum", "only a String can have one")
		}
		if _, err := schemaOf(input); err != nil {
			c.say(field+".schema", "%v", err)
		}
		value, err := decode(input.Default)
		switch {
		case err != nil:
			c.say(field+".default", "is no JSON: %v", err)
		case value != nil && input.Required:
			c.say(field, "has a default and is required: it can be one of them only")
		case value != nil:
			if _, err := conform(input, value); err != nil {
				c.say(field+".default", "%v", err)
			}
		}
	}
}

// order checks what layers say of each other.
func (c *checking) order() {
	names := map[string]int{}
	for _, layer := range c.bundle.Spec.Layers {
		names[layer.Name]++
		if names[layer.Name] == 2 {
			c.say("layers["+layer.Name+"]", "is there twice")
		}
		c.named(layer, "dependsOn", layer.DependsOn)
		if layer.TeardownAfter != nil {
			c.named(layer, "teardownAfter", layer.TeardownAfter)
		}
		if layer.On == "" {
			continue
		}
		switch on := LayerOf(c.bundle, layer.On); {
		case on == nil, layer.On == layer.Name:
			c.named(layer, "onClusterOf", []string{layer.On})
		case on.RemoteCluster == nil:
			c.say("layers["+layer.Name+"].onClusterOf", "layer %s has no remoteCluster, so that nothing can be on it", layer.On)
		}
	}
	if cycle := c.cycle(c.goesAfter); cycle != "" {
		c.say("layers", "they wait for each other: %s", cycle)
		return
	}
	if cycle := c.cycle(c.leavesAfter); cycle != "" {
		c.say("layers", "when they go, they wait for each other: %s; mend their teardownAfter", cycle)
	}
}

func (c *checking) named(layer v1alpha1.BundleLayer, field string, names []string) {
	for _, name := range names {
		switch {
		case name == layer.Name:
			c.say("layers["+layer.Name+"]."+field, "names the layer itself")
		case LayerOf(c.bundle, name) == nil:
			c.say("layers["+layer.Name+"]."+field, "there is no layer %s", name)
		}
	}
}

// cycle returns a way from a layer back to itself; empty where there is none.
func (c *checking) cycle(next func(string) []string) string {
	for _, layer := range c.bundle.Spec.Layers {
		if cycle := dependencies.Cycle(layer.Name, next); len(cycle) > 2 {
			return strings.Join(cycle, " -> ")
		}
	}
	return ""
}

// goesAfter returns the layers that must be deployed before one.
func (c *checking) goesAfter(name string) []string {
	layer := LayerOf(c.bundle, name)
	if layer == nil {
		return nil
	}
	after := slices.Clone(layer.DependsOn)
	if layer.On != "" {
		after = append(after, layer.On)
	}
	return after
}

// leavesAfter returns the layers that must be gone before one goes.
func (c *checking) leavesAfter(name string) []string {
	if layer := LayerOf(c.bundle, name); layer == nil {
		return nil
	} else if layer.TeardownAfter != nil {
		return layer.TeardownAfter
	}
	var after []string
	for _, layer := range c.bundle.Spec.Layers {
		if slices.Contains(c.goesAfter(layer.Name), name) {
			after = append(after, layer.Name)
		}
	}
	return after
}

func (c *checking) layer(layer *v1alpha1.BundleLayer) {
	path := "layers[" + layer.Name + "]"
	c.condition(path+".when", layer.When)
	c.applications(path, layer)
	for i, object := range layer.Objects {
		c.object(fmt.Sprintf("%s.objects[%d]", path, i), object)
	}
	if cluster := layer.RemoteCluster; cluster != nil {
		c.plainText(path+".remoteCluster.kubeConfig.secretRef.namespace", cluster.KubeConfig.SecretRef.Namespace)
		c.plainText(path+".remoteCluster.kubeConfig.secretRef.name", cluster.KubeConfig.SecretRef.Name)
		labels := map[string]any{}
		for key, value := range cluster.Labels {
			labels[key] = value
		}
		c.templates(path+".remoteCluster.labels", labels)
	}
	if source := layer.Source; source != nil {
		if source.Kind == v1alpha1.ApplicationBundleKind {
			c.say(path+".source.kind", "a bundle cannot be a layer of another")
		}
		if layer.Job != nil {
			c.say(path+".job", "a layer that is a directory cannot have one: put the Job into the directory")
		}
	}
	c.hooks(path, layer)
	c.job(path+".job", layer.Job)
}

func (c *checking) job(path string, job *v1alpha1.BundleJob) {
	if job == nil {
		return
	}
	c.templates(path+".namespace", job.Namespace)
	spec, err := decodeObject(&job.Spec)
	if err != nil {
		c.say(path+".spec", "%v", err)
		return
	}
	c.templates(path+".spec", spec)
	if _, is := spec["template"].(map[string]any); !is {
		c.say(path+".spec.template", "is missing: a Job needs it")
	}
}

func (c *checking) object(path string, object v1alpha1.Manifest) {
	value, err := decodeObject(&object.JSON)
	if err != nil {
		c.say(path, "%v", err)
		return
	}
	if field, wrong := templates.CheckObject(value); wrong != "" && !c.fillsLater(value, field) {
		c.say(join(path, field), "%s", wrong)
	}
	c.templates(path, value)
}

// fillsLater tells whether a field is a template, so that what it comes to is not
// known yet.
func (c *checking) fillsLater(object map[string]any, field string) bool {
	var value any = object
	for _, part := range strings.Split(field, ".") {
		fields, _ := value.(map[string]any)
		value = fields[part]
	}
	text, _ := value.(string)
	return isTemplate(text)
}

func (c *checking) applications(path string, layer *v1alpha1.BundleLayer) {
	seen := map[string]bool{}
	for i := range layer.Applications {
		application := &layer.Applications[i]
		field := path + ".applications[" + application.Name + "]"
		if seen[application.Name] {
			c.say(field, "is there twice")
		}
		seen[application.Name] = true
		c.version(field, application)
		if c.each = application.ForEach != ""; c.each {
			c.fill(field+".forEach", expression(application.ForEach), full)
		}
		c.condition(field+".when", application.When)
		for _, text := range []struct{ field, text string }{{"namespace", application.Namespace}, {"releaseName", application.ReleaseName}} {
			c.templates(field+"."+text.field, text.text)
		}
		values, err := decodeObject(application.Values)
		if err != nil {
			c.say(field+".values", "%v", err)
		}
		c.templates(field+".values", values)
		for i, reference := range application.ValuesFrom {
			c.templates(fmt.Sprintf("%s.valuesFrom[%d].name", field, i), reference.Name)
		}
		c.parameters(field, application)
		c.requires(field, application.Requires)
		for _, name := range application.DependsOn {
			if !slices.ContainsFunc(layer.Applications, func(a v1alpha1.BundleApplication) bool { return a.Name == name }) {
				c.say(field+".dependsOn", "the layer has no application %s", name)
			}
		}
		c.each = false
	}
	for _, application := range layer.Applications {
		cycle := dependencies.Cycle(application.Name, func(name string) []string {
			at := slices.IndexFunc(layer.Applications, func(a v1alpha1.BundleApplication) bool { return a.Name == name })
			if at < 0 {
				return nil
			}
			return layer.Applications[at].DependsOn
		})
		if cycle != nil {
			c.say(path+".applications", "they wait for each other: %s", strings.Join(cycle, " -> "))
			break
		}
	}
}

func (c *checking) parameters(field string, application *v1alpha1.BundleApplication) {
	for _, parameter := range application.Parameters {
		path := field + ".parameters[" + parameter.Name + "]"
		c.templates(path, parameter.Value)
		if err := set(map[string]any{}, v1alpha1.Parameter{Name: parameter.Name, Value: "x"}); err != nil {
			c.say(path, "%v", err)
		}
	}
}

// version checks that there is the version of an application, and in the bundle
// what that needs.
func (c *checking) version(field string, application *v1alpha1.BundleApplication) {
	if application.Chart != nil {
		return // Nobody else says anything of it.
	}
	name := ApplicationName(*application)
	app := c.entries[name]
	if app == nil {
		c.say(field, "there is no HelmApplication %s", name)
		return
	}
	version := catalogue.VersionOf(app, application.Version)
	if version == nil {
		c.say(field+".version", "HelmApplication %s has no version %s", name, application.Version)
		return
	}
	if old := oldwords.InVersion(*version); old != "" {
		c.say(field+".version", "HelmApplication %s: %s", name, old)
	}
	if catalogue.IsChanged(app, *version) {
		c.say(field+".version", "version %s of HelmApplication %s was published with other content", version.Version, name)
	}
	if c.bundle.Labels[v1alpha1.PlatformLabel] != "" {
		return // the Platform has chosen them, beside what its own bundle brings
	}
	for _, requirement := range version.DependsOn {
		if has, fits := c.has(requirement); !fits {
			c.say(
				field,
				"version %s of HelmApplication %s needs %s %s, and the bundle has %s",
				version.Version,
				name,
				requirement.Name,
				cmp.Or(requirement.Range, "at any version"),
				has,
			)
		}
	}
}

// has tells whether an application is in the bundle, at a version that fits, and
// which there are.
func (c *checking) has(requirement v1alpha1.ApplicationRequirement) (present string, fits bool) {
	var found []string
	for _, layer := range c.bundle.Spec.Layers {
		for _, application := range layer.Applications {
			if ApplicationName(application) != requirement.Name {
				continue
			}
			if meets, err := catalogue.Meets(requirement, application.Version); meets && err == nil {
				return "", true
			}
			found = append(found, application.Version)
		}
	}
	if len(found) == 0 {
		return "none", false
	}
	return strings.Join(found, ", "), false
}
