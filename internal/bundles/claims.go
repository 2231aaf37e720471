// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
		Capability: of.Capability, Version: of.Version, Provider: of.Provider, ProviderSelector: of.ProviderSelector, BoundTo: of.BoundTo,
		ClusterBinding: of.ClusterBinding,
	}}
	if of.BoundTo == nil { // otherwise the other claim has them
		claim.Spec.Parameters, claim.Spec.AllowedNamespaces, claim.Spec.Rotation = of.Parameters, of.AllowedNamespaces, of.Rotation
	}
	claim.Name, claim.Namespace = application.Name+"-"+of.Name, application.namespace
	return claim, nil
}

// provides makes a provider for each capability that an application has, once its release is
// ready.
func (r *rendering) provides(application slot, release objects.ID) error {
	for _, provided := range application.version.Provides {
		field := application.field("provides[" + provided.Name + "]")
		spec := catalogue.ProviderSpec(provided, application.version.Version, application.namespace)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
		if err != nil {
			return r.mistake(field, "%s", err)
		}
		object := newObject(v1alpha1.GroupVersion.String(), v1alpha1.CapabilityProviderKind, "", Name(r.Layer, application.Name+"-"+provided.Name))
		object.Object["spec"] = content
		r.add(field, object).Needs = []objects.ID{release}
	}
	return nil
}

// lacking says which capabilities applications of the bundle require that no layer provides
// which is there before: they must come from elsewhere.
func (o Observation) lacking() string {
	c := &checking{bundle: o.Bundle, entries: o.Catalogue}
	var lacking []string
	for i := range o.Bundle.Spec.Layers {
		layer := &o.Bundle.Spec.Layers[i]
		has := c.providedTo(layer.Name)
		for _, application := range layer.Applications {
			for _, requirement := range c.requirements(application) {
				name := strings.ToLower(requirement.Capability)
				if name != "" && !has[name] {
					lacking = append(lacking, name)
				}
			}
		}
	}
	if len(lacking) == 0 {
		return ""
	}
	slices.Sort(lacking)
	return "; needs " + strings.Join(slices.Compact(lacking), ", ") + ", which no layer of it provides"
}

// requirements returns what an application of the bundle requires.
func (c *checking) requirements(application v1alpha1.BundleApplication) []v1alpha1.CapabilityRequirement {
	version := c.versionOf(application)
	if version == nil {
		return application.Requires
	}
	return catalogue.Requires(version.Requires, application.Requires)
}

// versionOf returns what an application installs; nil where that is not known.
func (c *checking) versionOf(application v1alpha1.BundleApplication) *v1alpha1.HelmApplicationVersion {
	if own := OwnVersion(application); own != nil {
		return own
	}
	if app := c.entries[ApplicationName(application)]; app != nil {
		return catalogue.VersionOf(app, application.Version)
	}
	return nil
}

// providedTo returns the capabilities that there are once a layer is about to be deployed: those
// of clusters, and those of the layers that come before it, and of itself.
func (c *checking) providedTo(name string) map[string]bool {
	has, seen := map[string]bool{}, map[string]bool{}
	for _, capability := range c.bundle.Spec.Capabilities {
		has[strings.ToLower(capability)] = true
	}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		layer := LayerOf(c.bundle, queue[0])
		if layer == nil || seen[layer.Name] {
			continue
		}
		seen[layer.Name] = true
		queue = append(queue, c.goesAfter(layer.Name)...)
		for _, application := range layer.Applications {
			if version := c.versionOf(application); version != nil {
				for _, provided := range version.Provides {
					has[strings.ToLower(provided.Capability)] = true
				}
			}
		}
		for _, object := range layer.Objects {
			if capability := offered(object); capability != "" {
				has[capability] = true
			}
		}
	}
	return has
}

// offered returns the capability of an object that is a provider; empty for any other.
func offered(object v1alpha1.Manifest) string {
	value, err := decodeObject(&object.JSON)
	if err != nil || value["kind"] != v1alpha1.CapabilityProviderKind {
		return ""
	}
	spec, _ := value["spec"].(map[string]any)
	capability, _ := spec["capability"].(string)
	return strings.ToLower(capability)
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
		if _, err := metav1.LabelSelectorAsSelector(requirement.AllowedNamespaces); err != nil {
			c.say(path+".allowedNamespaces", "%v", err)
		}
	}
}
