// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// named bounds how many of something are named.
const named = 3

// definitions compares the CRDs with those that the plug-in knows.
func definitions(f Facts, w Wanted) []Finding {
	if f.CRDsErr != nil {
		finding := Finding{
			"crds", Warn, "CRDs: all kinds of Strata are served, and what fields they have is not known: " + shortError(f.CRDsErr),
			"ask for the right to get CustomResourceDefinitions",
		}
		var lacking []string
		for _, crd := range w.CRDs {
			lacking = append(lacking, f.missing([]schema.GroupVersionResource{servedOf(crd)})...)
		}
		if len(lacking) > 0 {
			finding.Result, finding.What, finding.Do = Fail, "CRDs: the cluster does not serve "+some(lacking), upgrade
		}
		return []Finding{finding}
	}
	var findings []Finding
	for _, wanted := range w.CRDs {
		if problem := definition(f.CRDs[wanted.Name], wanted); problem != nil {
			findings = append(findings, *problem)
		}
	}
	if len(findings) == 0 {
		findings = append(
			findings,
			Finding{Check: "crds", Result: OK, What: fmt.Sprintf("CRDs: all %d are there, with all fields that the plug-in knows", len(w.CRDs))},
		)
	}
	return findings
}

const upgrade = "kubectl strata install brings the CRDs up to date"

// definition returns what is wrong with one CRD, or nil.
func definition(has, wanted *apiextensionsv1.CustomResourceDefinition) *Finding {
	problem := Finding{Check: "crds", Result: Fail, Do: upgrade}
	if has == nil {
		problem.What = "CRD " + wanted.Name + " is missing"
		return &problem
	}
	established := slices.ContainsFunc(has.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
	if !established {
		problem.What, problem.Do = "CRD "+has.Name+" is not served yet", "kubectl describe crd "+has.Name
		return &problem
	}
	for _, version := range wanted.Spec.Versions {
		at := slices.IndexFunc(has.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version.Name })
		if at < 0 || !has.Spec.Versions[at].Served {
			problem.What = fmt.Sprintf("CRD %s does not serve the version %s", has.Name, version.Name)
			return &problem
		}
		if lacking := lackingFields("", schemaOf(has.Spec.Versions[at]), schemaOf(version)); len(lacking) > 0 {
			problem.What = fmt.Sprintf("CRD %s is older than the plug-in: it lacks %s", has.Name, some(lacking))
			return &problem
		}
	}
	for _, stored := range has.Status.StoredVersions {
		if !slices.ContainsFunc(wanted.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
			problem.Result, problem.Do = Warn, "take the plug-in of the controller's version, or have the objects stored anew"
			problem.What = fmt.Sprintf("CRD %s has objects stored in the version %s, which the plug-in does not know", has.Name, stored)
			return &problem
		}
	}
	return nil
}

func schemaOf(version apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version.Schema == nil {
		return nil
	}
	return version.Schema.OpenAPIV3Schema
}

// lackingFields returns the fields of a wanted schema that another one lacks,
// sorted. Below a field that is not there, nothing is named.
func lackingFields(path string, has, wanted *apiextensionsv1.JSONSchemaProps) []string {
	switch {
	case wanted == nil:
		return nil
	case has == nil:
		return []string{strings.TrimPrefix(path, ".")}
	}
	var lacking []string
	for _, name := range slices.Sorted(maps.Keys(wanted.Properties)) {
		inner := wanted.Properties[name]
		below, exists := has.Properties[name]
		if !exists {
			lacking = append(lacking, strings.TrimPrefix(path+"."+name, "."))
			continue
		}
		lacking = append(lacking, lackingFields(path+"."+name, &below, &inner)...)
	}
	if wanted.Items != nil && has.Items != nil {
		lacking = append(lacking, lackingFields(path+"[]", has.Items.Schema, wanted.Items.Schema)...)
	}
	if wanted.AdditionalProperties != nil && has.AdditionalProperties != nil {
		lacking = append(lacking, lackingFields(path+"{}", has.AdditionalProperties.Schema, wanted.AdditionalProperties.Schema)...)
	}
	return lacking
}

// some names a few of many.
func some(names []string) string {
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), len(names)-named)
}

// servedOf returns what the cluster serves where a CRD is there.
func servedOf(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Resource: crd.Spec.Names.Plural}
}

// Resources are those of Strata that checks ask about.
func (w Wanted) Resources() []schema.GroupVersionResource {
	var found []schema.GroupVersionResource
	for _, crd := range w.CRDs {
		found = append(found, servedOf(crd))
	}
	return found
}

// Ownership is the check for CRDs that others have made.
const Ownership = "ownership"

// takeover finds CRDs that no release of Helm has made, as Kraan's.
func takeover(f Facts) []Finding {
	var foreign []string
	for name, crd := range f.CRDs {
		if crd.Labels["app.kubernetes.io/managed-by"] != "Helm" || crd.Annotations["meta.helm.sh/release-name"] == "" {
			foreign = append(foreign, name)
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	slices.Sort(foreign)
	return []Finding{{
		Ownership, Warn, "Helm has not made " + some(foreign) + ", and does not touch what others have made",
		"install with --take-ownership; where they come from Kraan, see docs/migrate-from-kraan.md first",
	}}
}

// roles compares the controller's rights with those that it needs.
func roles(f Facts, w Wanted) []Finding {
	if f.RolesErr != nil {
		return []Finding{{"controller-rights", Warn, "the controller's rights are not known: " + shortError(f.RolesErr), "ask for the right to list ClusterRoles"}}
	}
	if len(f.Roles) == 0 {
		return []Finding{{
			"controller-rights", Warn, "the controller's rights are not known: no ClusterRole has the label app.kubernetes.io/name=strata",
			"where roles are made by hand, compare them with chart/files/rbac/controller.yaml",
		}}
	}
	var rules []rbacv1.PolicyRule
	for _, role := range f.Roles {
		rules = append(rules, role.Rules...)
	}
	if lacking := uncovered(w.Rules, rules); len(lacking) > 0 {
		return []Finding{{
			"controller-rights", Fail, "the controller's ClusterRoles do not let it " + some(lacking),
			"kubectl strata install brings them up to date",
		}}
	}
	return []Finding{{Check: "controller-rights", Result: OK, What: "the controller's ClusterRoles have all rights that it needs"}}
}

// uncovered returns what wanted rules allow and others do not, in their order.
func uncovered(wanted, has []rbacv1.PolicyRule) []string {
	var lacking []string
	for _, rule := range wanted {
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				if !slices.ContainsFunc(has, func(r rbacv1.PolicyRule) bool { return holds(r.Verbs, verb) && holds(r.NonResourceURLs, url) }) {
					lacking = append(lacking, verb+" "+url)
				}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					if !slices.ContainsFunc(has, func(r rbacv1.PolicyRule) bool {
						return len(r.ResourceNames) == 0 && holds(r.Verbs, verb) && holds(r.APIGroups, group) && holds(r.Resources, resource)
					}) {
						lacking = append(lacking, Right{Verb: verb, Group: group, Resource: resource}.String())
					}
				}
			}
		}
	}
	return lacking
}

func holds(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}

// Outdated tells whether the cluster lacks something of the CRDs or of the
// controller's rights that an installation brings.
func Outdated(f Facts, w Wanted) bool {
	return Failed(slices.Concat(definitions(f, w), roles(f, w)))
}
