// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/templates"
)

// templates checks the templates of a value, which may read all variables.
func (c *checking) templates(path string, value any) { c.fill(path, value, c.language()) }

// language returns that of templates: of an application that is there for each item of a
// list, those may read the item.
func (c *checking) language() func() (*templates.Language, error) {
	if c.each {
		return eachContent
	}
	return content
}

// presence returns the language of what says whether something is there.
func (c *checking) presence() func() (*templates.Language, error) {
	if c.each {
		return each
	}
	return full
}

// plainText checks a text whose templates may not read the cluster: they say where
// something is before there is one.
func (c *checking) plainText(path, text string) { c.fill(path, text, plain) }

func (c *checking) fill(path string, value any, of func() (*templates.Language, error)) {
	language, err := of()
	if err != nil {
		c.say(path, "%v", err)
		return
	}
	uses, problems := language.Check(value)
	for _, problem := range problems {
		// Problems of objects begin with the path of the field.
		if _, isText := value.(string); isText {
			c.say(path, "%s", problem)
		} else {
			c.problems = append(c.problems, join(path, problem))
		}
	}
	c.uses(path, uses)
}

// condition checks when a layer is there.
func (c *checking) condition(path, text string) {
	if text == "" {
		return
	}
	language, err := c.presence()()
	if err != nil {
		c.say(path, "%v", err)
		return
	}
	uses, err := language.CheckCondition(text)
	if err != nil {
		c.say(path, "%v", err)
		return
	}
	c.uses(path, uses)
}

// uses checks that there is what expressions read. Of a variable that is read as a
// whole it cannot be told.
func (c *checking) uses(path string, uses []string) {
	for _, use := range uses {
		variable, field, found := strings.Cut(use, ".")
		switch {
		case !found:
		case variable == varInputs && !c.hasInput(field):
			c.say(path, "there is no input %s: there %s", field, inputNames(c.bundle))
		case variable == varClusters && !c.makesCluster(field):
			c.say(path, "layer %s makes no cluster", field)
		case variable == varObjects && !slices.Contains(objectNames(c.bundle), field):
			c.say(path, "no layer waits for an object as %s: waitFor says so with as", field)
		case variable == varInstance && field != "name":
			c.say(path, "instance has no %s: it has name", field)
		case variable == varCluster && !slices.Contains(clusterFacts, field):
			c.say(path, "cluster has no %s: it has %s", field, strings.Join(clusterFacts, ", "))
		}
	}
}

func (c *checking) makesCluster(name string) bool {
	layer := LayerOf(c.bundle, name)
	return layer != nil && layer.RemoteCluster != nil
}

func (c *checking) hasInput(name string) bool {
	return slices.ContainsFunc(c.bundle.Spec.Inputs, func(input v1alpha1.BundleInput) bool { return input.Name == name })
}

func (c *checking) hooks(path string, layer *v1alpha1.BundleLayer) {
	for i, hook := range layer.WaitFor {
		field := fmt.Sprintf("%s.waitFor[%d]", path, i)
		c.plainText(field+".namespace", hook.Namespace)
		c.plainText(field+".name", hook.Name)
		c.hook(field, "readyExpr", hook.APIVersion, hook.ReadyExpr)
		if hook.As != "" && c.isTaken(hook.As, layer.Name, i) {
			c.say(field+".as", "another object is read as %s", hook.As)
		}
	}
	for i, hook := range layer.DeleteBefore {
		field := fmt.Sprintf("%s.deleteBefore[%d]", path, i)
		c.plainText(field+".namespace", hook.Namespace)
		c.hook(field, "where", hook.APIVersion, hook.Where)
	}
}

// isTaken tells whether an object that comes before has the same name in templates.
func (c *checking) isTaken(as, layer string, at int) bool {
	for _, of := range c.bundle.Spec.Layers {
		for i, wait := range of.WaitFor {
			if of.Name == layer && i == at {
				return false
			}
			if wait.As == as {
				return true
			}
		}
	}
	return false
}

func (c *checking) hook(path, field, apiVersion, expression string) {
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		c.say(path+".apiVersion", "must be a version such as v1 or a group and a version such as apps/v1")
	}
	if expression == "" {
		return
	}
	language, err := conditionsOf()
	if err == nil {
		_, err = language.CheckCondition(expression)
	}
	if err != nil {
		c.say(path+"."+field, "%v", err)
	}
}
