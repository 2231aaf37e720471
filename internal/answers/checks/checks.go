// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checks tells from what was read of a cluster whether Strata can work
// there, and what to do where it cannot.
package checks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/internal/versions"
)

// Result is what a check has found.
type Result string

// The results. A warning is something to know; a failure keeps Strata, or the
// plug-in, from working.
const (
	OK   Result = "ok"
	Warn Result = "warn"
	Fail Result = "fail"
)

// Finding is what one check says.
type Finding struct {
	// Check names it in one word.
	Check  string `json:"check"`
	Result Result `json:"result"`
	// What was found.
	What string `json:"what"`
	// Do says what to do about it; empty where there is nothing to do.
	Do string `json:"do,omitempty"`
}

// Wanted is what this version of Strata needs.
type Wanted struct {
	// Version of the plug-in.
	Version string
	// Kubernetes is the range of versions that the chart asks for.
	Kubernetes string
	CRDs       []*apiextensionsv1.CustomResourceDefinition
	// Rules that the controller has on the whole cluster.
	Rules []rbacv1.PolicyRule
}

// Facts are what was read of a cluster. Where something could not be read, its
// error says why, and the rest goes on.
type Facts struct {
	// Kubernetes is the API server's version.
	Kubernetes string
	// Served are the resources of Flux and Strata that the cluster serves.
	Served map[schema.GroupVersionResource]bool
	// Deployments are all those of the cluster.
	Deployments    []appsv1.Deployment
	DeploymentsErr error
	// CRDs of Strata that exist, by name.
	CRDs    map[string]*apiextensionsv1.CustomResourceDefinition
	CRDsErr error
	// Roles are the ClusterRoles with the labels of Strata's chart.
	Roles    []rbacv1.ClusterRole
	RolesErr error
	// Unshared are the copies of Secrets that would not be made now.
	Unshared    []Unshared
	UnsharedErr error
	// May says of rights whether whoever asks has them.
	May    map[Right]bool
	MayErr error
}

// Right is what somebody may do.
type Right struct {
	Verb, Group, Resource string
	// Namespace that the right is asked for in; empty for the whole cluster.
	Namespace string
	// For says what it is needed for.
	For string
}

// String returns the right as kubectl auth can-i takes it.
func (r Right) String() string {
	return r.Verb + " " + schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
}

// Before returns what must hold before Strata is installed.
func Before(f Facts, w Wanted) []Finding {
	return slices.Concat(kubernetes(f, w), flux(f), takeover(f), kraan(f))
}

// All returns what must hold where Strata is installed.
func All(f Facts, w Wanted) []Finding {
	return slices.Concat(kubernetes(f, w), flux(f), definitions(f, w), controller(f, w), roles(f, w), kraan(f), sharing(f), rights(f))
}

// Failed tells whether a check has failed.
func Failed(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Result == Fail })
}

func kubernetes(f Facts, w Wanted) []Finding {
	satisfied, err := versions.KubernetesSatisfied(w.Kubernetes, f.Kubernetes)
	if err != nil || !satisfied {
		return []Finding{{"kubernetes", Fail, "Kubernetes is " + f.Kubernetes + ", and Strata needs " + w.Kubernetes, "upgrade the cluster"}}
	}
	return []Finding{{Check: "kubernetes", Result: OK, What: "Kubernetes is " + f.Kubernetes}}
}

// fluxParts are Flux's controllers, with what Strata needs of each.
var fluxParts = []struct {
	name    string
	needs   []schema.GroupVersionResource
	enhance []schema.GroupVersionResource
}{
	{"source-controller", sources("gitrepositories", "ocirepositories", "buckets", "helmrepositories", "helmcharts"), sources("externalartifacts")},
	{"helm-controller", []schema.GroupVersionResource{{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}}, nil},
}

func sources(resources ...string) []schema.GroupVersionResource {
	var found []schema.GroupVersionResource
	for _, resource := range resources {
		found = append(found, schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: resource})
	}
	return found
}

// FluxResources are those of Flux that checks ask about.
func FluxResources() []schema.GroupVersionResource {
	var found []schema.GroupVersionResource
	for _, part := range fluxParts {
		found = slices.Concat(found, part.needs, part.enhance)
	}
	return found
}

const installFlux = "install or upgrade Flux with its source-controller and helm-controller (https://fluxcd.io/flux/installation), or give kubectl strata install --flux what flux install --export prints"

func flux(f Facts) []Finding {
	var findings []Finding
	for _, part := range fluxParts {
		check := Finding{Check: part.name, Result: OK}
		missing, more := f.missing(part.needs), f.missing(part.enhance)
		running := f.find(func(d appsv1.Deployment) bool { return runs(d, part.name) })
		switch {
		case len(missing) > 0:
			check.Result, check.Do = Fail, installFlux
			check.What = fmt.Sprintf("%s: the cluster does not serve %s", part.name, strings.Join(missing, ", "))
		case f.DeploymentsErr != nil:
			check.Result, check.Do = Warn, "ask for the right to list Deployments to see whether it runs"
			check.What = part.name + ": its kinds are served, and whether it runs is not known: " + shortError(f.DeploymentsErr)
		case len(running) == 0:
			check.Result, check.Do = Warn, "make sure that it runs, for nothing is installed without it"
			check.What = part.name + ": its kinds are served, and there is no Deployment of it"
		case !slices.ContainsFunc(running, ready):
			check.Result, check.Do = Fail, fmt.Sprintf("kubectl --namespace %s describe deployment %s", running[0].Namespace, running[0].Name)
			check.What = fmt.Sprintf("%s: %s is not ready", part.name, described(running[0]))
		case len(more) > 0:
			check.Result, check.Do = Warn, "upgrade Flux where layers are to come from them"
			check.What = fmt.Sprintf("%s: the cluster does not serve %s", part.name, strings.Join(more, ", "))
		default:
			check.What = fmt.Sprintf("%s: %s", part.name, described(running[0]))
		}
		findings = append(findings, check)
	}
	return findings
}

// LacksFlux tells whether the cluster does not serve kinds of Flux that Strata needs.
func LacksFlux(f Facts) bool {
	for _, part := range fluxParts {
		if len(f.missing(part.needs)) > 0 {
			return true
		}
	}
	return false
}

// AboutFlux tells whether a finding is about one of Flux's controllers.
func (f Finding) AboutFlux() bool {
	for _, part := range fluxParts {
		if f.Check == part.name {
			return true
		}
	}
	return false
}

// missing returns which resources are not served, in words.
func (f Facts) missing(wanted []schema.GroupVersionResource) []string {
	var missing []string
	for _, resource := range wanted {
		if !f.Served[resource] {
			missing = append(missing, resource.Resource+"."+resource.Version+"."+resource.Group)
		}
	}
	return missing
}

func (f Facts) find(is func(appsv1.Deployment) bool) []appsv1.Deployment {
	var found []appsv1.Deployment
	for _, deployment := range f.Deployments {
		if is(deployment) {
			found = append(found, deployment)
		}
	}
	slices.SortFunc(found, func(a, b appsv1.Deployment) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return found
}

// runs tells whether a Deployment runs a program, by its name or its image.
func runs(d appsv1.Deployment, program string) bool {
	if d.Name == program {
		return true
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(container.Image[strings.LastIndex(container.Image, "/")+1:], ":")
		if image, _, _ := strings.Cut(image, "@"); image == program {
			return true
		}
	}
	return false
}

func ready(d appsv1.Deployment) bool { return d.Status.ReadyReplicas > 0 }

const versionLabel = "app.kubernetes.io/version"

// described names a Deployment with what it runs.
func described(d appsv1.Deployment) string {
	text := "Deployment " + d.Namespace + "/" + d.Name
	if version := d.Labels[versionLabel]; version != "" {
		text += " of version " + version
	}
	if len(d.Spec.Template.Spec.Containers) > 0 {
		text += " (" + d.Spec.Template.Spec.Containers[0].Image + ")"
	}
	return text
}

// kraan finds Kraan's own controller.
func kraan(f Facts) []Finding {
	found := f.find(func(d appsv1.Deployment) bool { return runs(d, "kraan-controller") })
	for _, d := range found {
		if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 && d.Status.Replicas == 0 {
			continue
		}
		return []Finding{{
			"kraan", Fail, "Kraan's own controller runs as " + described(d) + ", and two controllers must never work on the same layers",
			fmt.Sprintf("kubectl --namespace %s scale deployment %s --replicas=0, and see docs/migrate-from-kraan.md", d.Namespace, d.Name),
		}}
	}
	if len(found) > 0 {
		return []Finding{{
			"kraan", Warn, "Kraan's own controller is stopped, and still there as " + described(found[0]),
			"remove it when all layers are taken over: docs/migrate-from-kraan.md",
		}}
	}
	return nil
}

// controller looks at Strata's own Deployment.
func controller(f Facts, w Wanted) []Finding {
	if f.DeploymentsErr != nil {
		return []Finding{{
			"controller", Warn, "the controller: whether it runs is not known: " + shortError(f.DeploymentsErr), "ask for the right to list Deployments",
		}}
	}
	found := f.find(func(d appsv1.Deployment) bool { return d.Labels["app.kubernetes.io/name"] == "strata" })
	if len(found) == 0 {
		return []Finding{{
			"controller", Fail, "the controller: no Deployment has the label app.kubernetes.io/name=strata", "kubectl strata install",
		}}
	}
	var findings []Finding
	for _, d := range found {
		finding := Finding{Check: "controller", Result: OK, What: "the controller: " + described(d) + " is ready"}
		switch differs := differ(w.Version, d.Labels[versionLabel]); {
		case !ready(d):
			finding.Result, finding.What = Fail, "the controller: "+described(d)+" is not ready"
			finding.Do = fmt.Sprintf("kubectl --namespace %s describe deployment %s", d.Namespace, d.Name)
		case differs != "":
			finding.Result, finding.Do = Warn, differs
			finding.What = fmt.Sprintf("the controller: %s is ready, and the plug-in is of version %s", described(d), w.Version)
		}
		findings = append(findings, finding)
	}
	if len(found) > 1 {
		findings = append(findings, Finding{
			"controller", Warn, fmt.Sprintf("there are %d Deployments of Strata", len(found)),
			"keep one, unless each has a watchLabelSelector of its own",
		})
	}
	return findings
}

// differ says what to do about versions that differ. Those of builds that are no
// release say nothing.
func differ(plugin, controller string) string {
	a, errA := semver.NewVersion(plugin)
	b, errB := semver.NewVersion(controller)
	switch {
	case errors.Join(errA, errB) != nil, a.Prerelease() != "", a.Equal(b):
		return ""
	case a.LessThan(b):
		return "take the plug-in of the controller's version"
	}
	return "kubectl strata install upgrades the controller"
}

// rights says which commands lack rights.
func rights(f Facts) []Finding {
	if f.MayErr != nil {
		return []Finding{{"rights", Warn, "what you may do is not known: " + shortError(f.MayErr), ""}}
	}
	var findings []Finding
	for _, right := range CommandRights {
		if !f.May[right] {
			findings = append(
				findings,
				Finding{
					"rights",
					Warn,
					"you may not " + right.String() + ", which is needed " + right.For,
					"ask for a role that may; those who only look need strata-view",
				},
			)
		}
	}
	if len(findings) == 0 {
		findings = append(findings, Finding{Check: "rights", Result: OK, What: "you may do what all commands need"})
	}
	return findings
}

// CommandRights are what commands need of those who run them.
var CommandRights = []Right{
	{Verb: "list", Group: "kraan.io", Resource: "addonslayers", For: "to show layers"},
	{Verb: "list", Group: "kraan.io", Resource: "remoteclusters", For: "to show clusters"},
	{Verb: "list", Group: "helm.toolkit.fluxcd.io", Resource: "helmreleases", For: "to show what is in layers"},
	{Verb: "list", Group: "source.toolkit.fluxcd.io", Resource: "gitrepositories", For: "to show where layers come from"},
	{Verb: "list", Resource: "pods", For: "to say why releases are not ready"},
	{Verb: "list", Resource: "events", For: "to say what has happened"},
	{Verb: "patch", Group: "kraan.io", Resource: "addonslayers", For: "to hold, resume, reconcile and roll back"},
}

// shortError returns what somebody may not do, or the error.
func shortError(err error) string {
	text := err.Error()
	if at := strings.Index(text, "is forbidden: "); at >= 0 {
		text = text[at+len("is forbidden: "):]
	}
	return text
}
