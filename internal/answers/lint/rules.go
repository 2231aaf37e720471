// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	"github.com/strata-project/strata/internal/builtin"
	"github.com/strata-project/strata/internal/near"
	"github.com/strata-project/strata/internal/schemas"
)

// Level says how bad a finding is.
type Level string

// The levels. Something with an Error will be refused, or will not work; a Warning
// may be meant so.
const (
	Error   Level = "error"
	Warning Level = "warning"
)

// The names of the rules.
const (
	ruleUnreadable        = "unreadable-file"
	ruleSyntax            = "syntax"
	ruleManifest          = "manifest"
	ruleKustomization     = "kustomization"
	ruleSchema            = "schema"
	ruleUnknownField      = "unknown-field"
	ruleRelease           = "helmrelease"
	ruleBundle            = "bundle"
	ruleCatalogue         = "catalogue"
	rulePlatform          = "platform"
	ruleDuplicateLayer    = "duplicate-layer"
	ruleDuplicateObject   = "duplicate-object"
	ruleDuplicateRelease  = "duplicate-release"
	rulePath              = "path"
	ruleSource            = "other-source"
	ruleDependency        = "dependency"
	ruleDependencyVersion = "dependency-version"
	ruleCycle             = "dependency-cycle"
	ruleReleaseDependency = "release-dependency"
	ruleRange             = "kubernetes-range"
	ruleKubernetes        = "kubernetes-version"
	ruleRemovedAPI        = "removed-api"
	ruleHold              = "hold-until"
	ruleActInGit          = "act-in-git"
	ruleUnusedDirectory   = "unused-directory"
	ruleNamespace         = "namespace"
	ruleEncrypted         = "encrypted"
	ruleIgnored           = "ignored-document"
	ruleVariables         = "variables"
	ruleSecretName        = "secret-in-name"
	ruleChart             = "chart"
	ruleChartUnavailable  = "chart-unavailable"
)

// Rule is one thing that is looked for.
type Rule struct {
	// Name is short and does not change.
	Name string `json:"name"`
	// Level of most of its findings.
	Level Level `json:"level"`
	// Short says in one line what it finds, and Help what to do.
	Short string `json:"short"`
	Help  string `json:"help"`
}

// Rules returns all rules in the order in which they are listed.
func Rules() []Rule {
	return []Rule{
		{
			ruleUnreadable,
			Error,
			"a file that cannot be read safely",
			"Files over 8 MiB, links that lead out of the repository, and what is no file are not read: split the file, or take it out of the folder.",
		},
		{ruleSyntax, Error, "YAML or JSON that cannot be read", "Mend the line that is named; what is broken stops the whole layer that it is in."},
		{ruleManifest, Error, "a manifest that the controller refuses", "The controller says the same of the layer, which is Failed until it is mended."},
		{
			ruleKustomization,
			Error,
			"a kustomization that cannot be built",
			"Strata builds kustomizations from files of the repository alone: no remote bases, no Helm charts, no plug-ins that run programs.",
		},
		{
			ruleSchema,
			Error,
			"an object of Strata or Kubernetes that the API server refuses",
			"The check is the API server's own, with the definitions of this version of Strata and those of Kubernetes " + builtin.Version + ".",
		},
		{ruleUnknownField, Error, "a field that does not exist", "The API server drops or refuses such fields: what they should do does not happen."},
		{ruleRelease, Error, "a HelmRelease that Flux's definition refuses", "Write it as the reference of Flux's HelmRelease v2 says."},
		{
			ruleBundle,
			Error,
			"an ApplicationBundle that cannot be installed",
			"The controller says the same in the status of the bundle, or of the layer that comes from it.",
		},
		{ruleCatalogue, Error, "a version of a HelmApplication that cannot be used", "The controller says the same in the status of the application."},
		{rulePlatform, Error, "layers or inputs of a Platform that cannot be installed", "The controller says the same in the status of the Platform."},
		{
			ruleDuplicateLayer,
			Error,
			"two AddonsLayers of one name",
			"Names of layers are those of a cluster: rename one, or keep the layers of each cluster in a folder of their own.",
		},
		{ruleDuplicateObject, Error, "an object that is listed twice", "An object belongs to one layer, and is there once: remove one of the two."},
		{ruleDuplicateRelease, Error, "two HelmReleases for one Helm release", "They would undo each other's work: give one another releaseName or namespace."},
		{rulePath, Error, "a directory that the repository does not have", "spec.source.path is below the root of the source; --root says where that is."},
		{ruleSource, Warning, "layers of a source that is not this repository", "They are not looked into; --source says which source this repository is."},
		{
			ruleDependency,
			Error,
			"a dependency that does not exist, or cannot be understood",
			"Write name@version, name@range or a name alone, of a layer that exists.",
		},
		{ruleDependencyVersion, Error, "a dependency on a version that no layer has", "The layer would wait for ever: change the version of one of the two."},
		{ruleCycle, Error, "layers or releases that wait for each other", "None of them would ever be deployed: remove one dependency of the circle."},
		{ruleReleaseDependency, Error, "a release that depends on one that nobody lists", "Flux would wait for it for ever, where nobody else makes it."},
		{ruleRange, Error, "a range of Kubernetes versions that cannot be understood", "Write a least version such as 1.30, or a range such as >=1.30 <2."},
		{ruleKubernetes, Error, "a layer that does not allow the version of --k8s", "The layer would wait until the cluster has another version."},
		{ruleRemovedAPI, Error, "an API that the version of --k8s does not serve", "Write the object in the version that replaces it, or use a newer chart."},
		{ruleHold, Error, "a hold whose end cannot be understood", "Write a time such as 2026-12-24T18:00:00Z; otherwise the hold does not end by itself."},
		{
			ruleActInGit,
			Warning,
			"a decision in git that does more there than what was decided",
			"Git gives it again each time that it is applied, or leaves a guard open for good: take it out, and decide with kubectl strata or kubectl annotate. " +
				"An approval may be in git for the stage and the version that it names.",
		},
		{ruleUnusedDirectory, Warning, "HelmReleases that no layer names", "Nobody would install them: name their directory in a layer, or remove it."},
		{ruleNamespace, Warning, "a namespace on an object whose kind has none", "The API server drops it, and so does Strata: remove it."},
		{ruleEncrypted, Warning, "a file that is encrypted", "Lint has no key: what the file holds is not looked into, and everything else is."},
		{ruleIgnored, Warning, "a kustomization of several documents", "kustomize reads the first document alone, and says nothing of the others: make it one."},
		{
			ruleSecretName, Warning, "a name that is made of a variable which may come from a Secret",
			"Statuses and messages tell names: give that variable from a ConfigMap, or name the object otherwise.",
		},
		{ruleVariables, Warning, "a variable that nobody gives", "It is empty, as with Flux: give it in spec.postBuild, or write a default such as ${name:=value}."},
		{ruleChart, Error, "a chart that cannot be rendered", "Flux would fail in the same way."},
		{ruleChartUnavailable, Warning, "a chart that cannot be had from here", "It was not checked; --charts=false renders none."},
	}
}

// CheckRules returns an error that names the first of some rules that is none, and
// which may be meant.
func CheckRules(names []string) error {
	var all []string
	known := map[string]bool{}
	for _, rule := range Rules() {
		all = append(all, rule.Name)
		known[rule.Name] = true
	}
	for _, name := range names {
		if !known[name] {
			return fmt.Errorf("there is no rule %q%s; lint --rules lists them", name, near.Meant(name, all))
		}
	}
	return nil
}

// mistake is what is wrong with one object, before it is known where that is.
type mistake struct {
	rule, field, message string
}

// asMistakes are the mistakes in an object of one of Strata's kinds.
func asMistakes(found []schemas.Mistake) []mistake {
	mistakes := make([]mistake, len(found))
	for i, each := range found {
		mistakes[i] = mistake{ruleSchema, each.Field, each.Message}
		if each.Unknown {
			mistakes[i].rule = ruleUnknownField
		}
	}
	return mistakes
}
