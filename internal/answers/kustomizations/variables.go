// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
)

// variable is one that is to be put in, by its name or with a default.
var variable = regexp.MustCompile(`\$\{[^}$]+\}`)

// variablesLeft names the fields of a Kustomization that still have variables, where nothing
// puts them in: a layer takes them as they are. Each begins with the field.
func variablesLeft(k *kustomizev1.Kustomization) []string {
	var left []string
	look := func(value, format string, args ...any) {
		if found := variable.FindString(value); found != "" {
			left = append(left, fmt.Sprintf(format, args...)+": has the variable "+found+", which nothing in the repository gives: write its value")
		}
	}
	look(k.Name, "metadata.name")
	look(k.Namespace, "metadata.namespace")
	look(k.Spec.Path, "spec.path")
	look(k.Spec.SourceRef.Name, "spec.sourceRef.name")
	look(k.Spec.SourceRef.Namespace, "spec.sourceRef.namespace")
	look(k.Spec.ServiceAccountName, "spec.serviceAccountName")
	for i, on := range k.Spec.DependsOn {
		look(on.Namespace+"/"+on.Name, "spec.dependsOn[%d]", i)
	}
	for i, component := range k.Spec.Components {
		look(component, "spec.components[%d]", i)
	}
	if of := k.Spec.Decryption; of != nil && of.SecretRef != nil {
		look(of.SecretRef.Name, "spec.decryption.secretRef.name")
	}
	if of := k.Spec.KubeConfig; of != nil && of.SecretRef != nil {
		look(of.SecretRef.Name, "spec.kubeConfig.secretRef.name")
	}
	for i, check := range k.Spec.HealthChecks {
		look(check.Namespace+"/"+check.Name, "spec.healthChecks[%d]", i)
	}
	if of := k.Spec.PostBuild; of != nil {
		for _, name := range slices.Sorted(maps.Keys(of.Substitute)) {
			look(of.Substitute[name], "spec.postBuild.substitute.%s", name)
		}
		for i, from := range of.SubstituteFrom {
			look(from.Name, "spec.postBuild.substituteFrom[%d].name", i)
		}
		return left // what its objects are made with is put in afterwards
	}
	look(k.Spec.TargetNamespace, "spec.targetNamespace")
	look(k.Spec.NamePrefix, "spec.namePrefix")
	look(k.Spec.NameSuffix, "spec.nameSuffix")
	return left
}
