// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/versions"
)

// claims makes a claim for each capability that an application requires, and has its release
// take the values of their bindings. It returns what the release waits for.
func (r *rendering) claims(application slot, spec map[string]any) ([]objects.ID, error) {
	refined, err := r.refined(application)
	if err != nil {
		return nil, err
	}
	requires := catalogue.Requires(application.version.Requires, refined)
	var needs []objects.ID
	names := map[string]string{}
	for _, requirement := range requires {
		claim, err := r.claim(application, requirement)
		if err != nil {
			return nil, err
		}
		names[requirement.Name] = claim.Name
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(claim)
		if err != nil {
			return nil, r.mistake(application.field("requires["+requirement.Name+"]"), "%s", err)
		}
		object := newObject(v1alpha1.GroupVersion.String(), v1alpha1.CapabilityClaimKind, claim.Namespace, claim.Name)
		object.Object["spec"] = content["spec"]
		r.add(application.field("requires["+requirement.Name+"]"), object)
		needs = append(needs, objects.IDOf(object))
	}
	references, _ := spec["valuesFrom"].([]any)
	for i, value := range application.version.ValuesFrom {
		claim := names[value.Capability]
		if claim == "" {
			return nil, r.mistake(application.field(fmt.Sprintf("valuesFrom[%d].capability", i)), "nothing is required as %s", short(value.Capability))
		}
		references = append(references, map[string]any{
			"kind": "Secret", "name": capabilities.BindingNameOf(claim), "valuesKey": value.Key, "targetPath": value.TargetPath,
		})
	}
	if len(references) > 0 {
		spec["valuesFrom"] = references
	}
	return objects.SortIDs(needs), nil
}

// refined returns what a bundle says of what an application requires, with its templates
// filled. Those of the catalogue have none: what looks like one there stands for itself.
func (r *rendering) refined(application slot) ([]v1alpha1.CapabilityRequirement, error) {
	refined := slices.Clone(application.Requires)
	for i := range refined {
		of := &refined[i]
		field := application.field("requires[" + of.Name + "]")
		var err error
		if of.Provider, err = r.fillText(field+".provider", of.Provider); err != nil {
			return nil, err
		}
		if of.Parameters == nil {
			continue
		}
		parameters, err := decodeObject(of.Parameters)
		if err != nil {
			return nil, r.mistake(field+".parameters", "%s", err)
		}
		if parameters, err = r.fillObject(field+".parameters", parameters); err != nil {
			return nil, err
		}
		raw, err := json.Marshal(parameters)
		if err != nil {
			return nil, r.mistake(field+".parameters", "%s", err)
		}
		of.Parameters = &apiextensionsv1.JSON{Raw: raw}
	}
	return refined, nil
}

// claim returns the claim for what an application requires.
func (r *rendering) claim(application slot, of v1alpha1.CapabilityRequirement) (*v1alpha1.CapabilityClaim, error) {
	field := application.field("requires[" + of.Name + "]")
	if of.Capability == "" {
		return nil, r.mistake(field+".capability", "is missing: name what is needed, such as database/postgresql")
	}
	if wrong := validation.IsDNS1123Subdomain(of.Provider); of.Provider != "" && len(wrong) > 0 {
		return nil, r.mistake(field+".provider", "%q is not the name of a CapabilityProvider: %s", short(of.Provider), wrong[0])
	}
	claim := &v1alpha1.CapabilityClaim{Spec: v1alpha1.CapabilityClaimSpec{
		Capability: of.Capability, Version: of.Version, Provider: of.Provider, ProviderSelector: of.ProviderSelector, Parameters: of.Parameters,
	}}
	claim.Name, claim.Namespace = application.Name+"-"+of.Name, application.namespace
	return claim, nil
}

// requires checks what an application of a bundle says of what it requires.
func (c *checking) requires(field string, requires []v1alpha1.CapabilityRequirement) {
	for _, requirement := range requires {
		path := field + ".requires[" + requirement.Name + "]"
		c.templates(path+".provider", requirement.Provider)
		parameters, err := decodeObject(requirement.Parameters)
		if err != nil {
			c.say(path+".parameters", "%v", err)
		}
		c.templates(path+".parameters", parameters)
		if requirement.Version != "" && !versions.IsRange(requirement.Version) {
			c.say(path+".version", "%q is no version and no range such as >=15", short(requirement.Version))
		}
		if _, err := metav1.LabelSelectorAsSelector(requirement.ProviderSelector); err != nil {
			c.say(path+".providerSelector", "%v", err)
		}
	}
}
