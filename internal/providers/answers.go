// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/printable"
)

// What a plug-in may say at most.
const (
	maxVersions  = 50
	maxPasswords = 10
	maxObjects   = 50
	maxPublishes = 50
)

// Promise returns what a provider says of a capability by what its plug-in describes: the
// versions, the parameters and the passwords.
func Promise(spec v1alpha1.CapabilityProviderSpec, described *pluginv1.DescribeResponse) (v1alpha1.CapabilityProviderSpec, error) {
	promised := *spec.DeepCopy()
	at := slices.IndexFunc(described.GetCapabilities(), func(c *pluginv1.Capability) bool {
		return strings.EqualFold(c.GetCapability(), spec.Capability)
	})
	if at < 0 {
		return promised, fmt.Errorf("serves no %s", spec.Capability)
	}
	of := described.GetCapabilities()[at]
	if versions, passwords := len(of.GetVersions()), len(of.GetPasswords()); versions > maxVersions || passwords > maxPasswords {
		return promised, fmt.Errorf("describes %d versions and %d passwords, more than %d and %d", versions, passwords, maxVersions, maxPasswords)
	}
	promised.Versions = nil
	for _, version := range of.GetVersions() {
		if len(spec.Versions) == 0 || slices.Contains(spec.Versions, version) {
			promised.Versions = append(promised.Versions, version)
		}
	}
	if len(spec.Versions) > 0 && len(promised.Versions) == 0 {
		return promised, fmt.Errorf("has none of spec.versions: it has %s", printable.Line(strings.Join(of.GetVersions(), ", "), maxSaid))
	}
	if schema := of.GetSchema(); len(schema) > 0 {
		if !json.Valid(schema) {
			return promised, errors.New("describes a schema that is no JSON")
		}
		promised.Parameters = &v1alpha1.CapabilityParameters{Schema: apiextensionsv1.JSON{Raw: schema}}
	}
	for _, password := range of.GetPasswords() {
		if name := password.GetName(); !isName(name) || password.GetLength() < 0 || password.GetLength() > 256 {
			return promised, fmt.Errorf("describes the password %q with %d characters, which cannot be made", printable.Line(name, 100), password.GetLength())
		}
		length := password.GetLength()
		if length > 0 {
			length = max(length, minPassword)
		}
		promised.Passwords = append(promised.Passwords, v1alpha1.CapabilityPassword{Name: password.GetName(), Length: length})
	}
	return promised, nil
}

// minPassword is how long a password is at least that has a length, in characters.
const minPassword = 16

// isName tells whether a text may be the ID of an object, or the name of a password.
func isName(text string) bool {
	for i, r := range text {
		isLetter := r >= 'a' && r <= 'z' || i > 0 && r >= 'A' && r <= 'Z'
		if !isLetter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return text != "" && len(text) <= 63
}

// Asked is what a plug-in is asked about a claim.
type Asked struct {
	Claim *v1alpha1.CapabilityClaim
	// Version that the claim is bound to.
	Version string
	// Namespace of the objects, as capabilities.Place has it.
	Namespace  string
	Parameters map[string]any
	// Rotation is the number of the passwords; Rotating is true while those of before are valid.
	Rotation int64
	Rotating bool
	// Objects by their IDs.
	Objects map[string]*unstructured.Unstructured
}

// Request returns the request for a plan.
func (a Asked) Request() (*pluginv1.PlanRequest, error) {
	parameters, err := json.Marshal(a.Parameters)
	if err != nil {
		return nil, fmt.Errorf("cannot write the parameters: %w", err)
	}
	request := &pluginv1.PlanRequest{Parameters: parameters, Objects: map[string][]byte{}, Claim: &pluginv1.Claim{
		Name: a.Claim.Name, Namespace: a.Namespace, Uid: string(a.Claim.UID), Capability: strings.ToLower(a.Claim.Spec.Capability), Version: a.Version,
		Cluster: a.Claim.Spec.Cluster, Rotation: a.Rotation, Rotating: a.Rotating,
	}}
	for id, object := range a.Objects {
		if request.Objects[id], err = shown(object); err != nil {
			return nil, err
		}
	}
	return request, nil
}

// shown writes an object as a plug-in sees it: without what changes with each write, and of
// Secrets the metadata alone.
func shown(object *unstructured.Unstructured) ([]byte, error) {
	content := object.Object
	if object.GetAPIVersion() == "v1" && object.GetKind() == "Secret" {
		content = map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": object.Object["metadata"]}
	}
	seen := (&unstructured.Unstructured{Object: content}).DeepCopy()
	seen.SetManagedFields(nil)
	seen.SetResourceVersion("")
	data, err := json.Marshal(seen.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot write an object: %w", err)
	}
	return data, nil
}

// Refusal says what is wrong with parameters, as a plug-in has it; empty for nothing.
func Refusal(checked *pluginv1.ValidateResponse) string {
	problems := checked.GetProblems()
	if len(problems) == 0 {
		return ""
	}
	said := "does not take the parameters: "
	for i, problem := range problems[:min(len(problems), 5)] {
		if i > 0 {
			said += "; "
		}
		if field := problem.GetField(); field != "" {
			said += "parameters." + printable.Line(field, 100) + " "
		}
		said += printable.Line(problem.GetMessage(), 200)
	}
	return said
}

// Filled is what a plug-in has said of an instance, as the rules have it.
type Filled struct {
	// Spec is the provider's, with the objects and the values that the plug-in wants.
	Spec v1alpha1.CapabilityProviderSpec
	// Waits says why the instance is not ready, and Lacks what each object lacks, by its ID.
	Waits string
	Lacks map[string]string
	// Ensure is true where something is outside of any cluster, too.
	Ensure bool
}

// Fill returns what a plug-in has said of an instance, or what is wrong with that: it is refused
// as a whole. namespace is the one that objects are in.
func Fill(spec v1alpha1.CapabilityProviderSpec, namespace string, plan *pluginv1.PlanResponse) (Filled, error) {
	filled := Filled{Spec: *spec.DeepCopy(), Waits: printable.Line(plan.GetWaits(), maxSaid), Lacks: map[string]string{}, Ensure: plan.GetEnsure()}
	if len(plan.GetObjects()) > maxObjects || len(plan.GetPublishes()) > maxPublishes {
		return filled, fmt.Errorf("wants %d objects and publishes %d values, more than %d of each", len(plan.GetObjects()), len(plan.GetPublishes()), maxObjects)
	}
	for _, object := range plan.GetObjects() {
		one, err := objectOf(spec.Plugin.Kinds, namespace, object)
		if err != nil {
			return filled, fmt.Errorf("wants an object %q that %w", printable.Line(object.GetId(), 100), err)
		}
		if lacks := object.GetWaits(); lacks != "" {
			filled.Lacks[one.ID] = printable.Line(lacks, maxSaid)
		}
		filled.Spec.Objects = append(filled.Spec.Objects, one)
	}
	var err error
	filled.Spec.Publishes, err = published(plan.GetPublishes())
	return filled, err
}

// published returns values of a binding, or what is wrong with them.
func published(values []*pluginv1.Value) ([]v1alpha1.CapabilityValue, error) {
	var found []v1alpha1.CapabilityValue
	for _, value := range values {
		one := v1alpha1.CapabilityValue{Key: value.GetKey(), Value: value.GetText()}
		if from := value.GetSecretKey(); from != nil {
			one.SecretKeyRef = &v1alpha1.CapabilitySecretKey{Namespace: literal(from.GetNamespace()), Name: literal(from.GetName()), Key: from.GetKey()}
		}
		if !isKey(one.Key) || one.Key == "type" || one.Key == "provider" {
			return nil, fmt.Errorf("publishes the key %q, which is none of a Secret, or is given", printable.Line(one.Key, 100))
		}
		found = append(found, one)
	}
	return found, nil
}

// literal writes a text as templates have it.
func literal(text string) string { return strings.ReplaceAll(text, "${", "$${") }

// isKey tells whether a text may be a key of a Secret.
func isKey(text string) bool {
	return text != "" && len(text) <= 253 &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// objectOf returns an object that a plug-in wants. The error says what is wrong with it, after
// "that".
func objectOf(kinds []v1alpha1.CapabilityKind, namespace string, from *pluginv1.Object) (v1alpha1.CapabilityObject, error) {
	one := v1alpha1.CapabilityObject{ID: from.GetId(), HoldsData: from.GetHoldsData(), DependsOn: from.GetDependsOn()}
	if !isName(one.ID) || one.ID == capabilities.BindingID || one.ID == capabilities.PasswordsID {
		return one, errors.New("has no ID of small letters first, and then letters and digits")
	}
	content := map[string]any{}
	if err := json.Unmarshal(from.GetTemplate(), &content); err != nil {
		return one, errors.New("is no JSON")
	}
	object := &unstructured.Unstructured{Object: content}
	is := v1alpha1.CapabilityKind{APIVersion: object.GetAPIVersion(), Kind: object.GetKind()}
	if !slices.Contains(kinds, is) {
		return one, fmt.Errorf("is of the kind %s, which spec.plugin.kinds does not have", printable.Line(is.APIVersion+"/"+is.Kind, 200))
	}
	if at := object.GetNamespace(); at != "" && at != namespace {
		return one, fmt.Errorf("is in the namespace %s, and not in %s", printable.Line(at, 100), namespace)
	}
	switch from.GetMode() {
	case pluginv1.Mode_MODE_UNSPECIFIED, pluginv1.Mode_MODE_APPLY:
	case pluginv1.Mode_MODE_CREATE_ONCE:
		one.Mode = v1alpha1.CapabilityCreateOnce
	case pluginv1.Mode_MODE_OBSERVE:
		one.Mode = v1alpha1.CapabilityObserve
	default:
		return one, fmt.Errorf("has a mode that is none: %d", from.GetMode())
	}
	if from.GetDeleteOnRename() {
		one.OnRename = v1alpha1.OnRenameDelete
	}
	if one.HoldsData && one.OnRename != "" || one.Mode == v1alpha1.CapabilityObserve && (one.HoldsData || one.OnRename != "") {
		return one, errors.New("holds data, or is only observed, and is to be deleted because of its name")
	}
	if one.HoldsData {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.HoldsDataAnnotation] = "true"
		object.SetAnnotations(annotations)
	}
	data, err := json.Marshal(object.Object)
	if err != nil {
		return one, errors.New("cannot be written")
	}
	one.Template.Raw = data
	return one, nil
}
