// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

// BindingName returns the name of the Secret with a claim's connection details.
func BindingName(claim *v1alpha1.CapabilityClaim) string { return BindingNameOf(claim.Name) }

// BindingNameOf is as BindingName, for the claim of a name.
func BindingNameOf(claim string) string { return kinds.BindingNameOf(claim) }

// ReadsBinding tells whether a HelmRelease takes values from a claim's binding.
func ReadsBinding(release *unstructured.Unstructured, claim *v1alpha1.CapabilityClaim) bool {
	return slices.Contains(kinds.ValuesOf(release), objects.ID{Kind: "Secret", Namespace: claim.Namespace, Name: BindingName(claim)})
}

// SecretKey is a key of a Secret that a binding has.
type SecretKey struct {
	// Key of the binding.
	Key string
	// ID of the Secret, and the key in it.
	ID objects.ID
	In string
	// Waits says why it is not known yet which Secret that is; empty where it is.
	Waits string
}

// SecretKeys returns the keys of Secrets that the binding has. The error is a *Mistake.
func (i Instance) SecretKeys() ([]SecretKey, error) {
	data := i.data()
	var found []SecretKey
	for _, value := range i.Blueprint.spec.Publishes {
		ref := value.SecretKeyRef
		if ref == nil {
			continue
		}
		one := SecretKey{Key: value.Key, In: ref.Key, Waits: i.waits(i.Blueprint.reads[value.Key])}
		if one.Waits == "" {
			name, err := language.FillText(ref.Name, data)
			namespace := i.Namespace
			if err == nil && ref.Namespace != "" {
				namespace, err = language.FillText(ref.Namespace, data)
			}
			field := "spec.publishes[" + value.Key + "].secretKeyRef"
			switch {
			case err != nil && len(i.Blueprint.reads[value.Key]) > 0:
				one.Waits = (&notYetError{err}).Error()
			case err != nil:
				return nil, &Mistake{field, err.Error()}
			}
			one.ID = objects.ID{Cluster: i.Cluster, Kind: "Secret", Namespace: namespace, Name: name}
			named := &unstructured.Unstructured{Object: map[string]any{}}
			named.SetName(name)
			named.SetNamespace(namespace)
			if wrong := checkNames(named); wrong != "" && one.Waits == "" {
				return nil, &Mistake{field, wrong}
			}
		}
		found = append(found, one)
	}
	return found, nil
}

// Owns tells whether a Secret is one that a binding may be made of: an object of the
// instance, or owned by one. A claimant may have a say in the names of Secrets, and the
// account of the provider may read those of others, too.
func (i Instance) Owns(known map[objects.ID]bool, secret *unstructured.Unstructured) bool {
	if known[objects.IDOf(secret).On(i.Cluster)] && secret.GetLabels()[v1alpha1.ClaimLabel] == string(i.Claim.UID) {
		return true
	}
	own := map[types.UID]bool{}
	for _, live := range i.Live {
		isOwn := live.GetLabels()[v1alpha1.ClaimLabel] == string(i.Claim.UID) // and not only observed
		own[live.GetUID()] = isOwn && live.GetNamespace() == secret.GetNamespace()
	}
	for _, owner := range secret.GetOwnerReferences() {
		if own[owner.UID] {
			return true
		}
	}
	return false
}

// Binding returns the Secret with the connection details, in the claim's namespace. values
// are those of SecretKeys by the keys of the binding; waits says why it cannot be made yet,
// and is empty where it can. The error is a *Mistake, and never says what a value is.
func (i Instance) Binding(values map[string][]byte, waits string) (primaries.Object, error) {
	made := primaries.Object{ID: BindingID, Of: i.Provider, Inherits: true, Confidential: true, Waits: waits}
	for _, of := range i.Blueprint.objects {
		made.DependsOn = append(made.DependsOn, of.ID)
	}
	if waits != "" {
		return made, nil
	}
	kind := typeOf(i.Claim)
	content := map[string]any{"type": encoded([]byte(kind)), "provider": encoded([]byte(i.Provider))}
	data := i.data()
	for _, value := range i.Blueprint.spec.Publishes {
		if value.SecretKeyRef != nil {
			content[value.Key] = encoded(values[value.Key])
			continue
		}
		reads := i.Blueprint.reads[value.Key]
		if made.Waits = i.waits(reads); made.Waits != "" {
			return made, nil
		}
		filled, err := language.FillText(value.Value, data)
		switch {
		case err != nil && len(reads) > 0:
			made.Waits = (&notYetError{err}).Error()
			return made, nil
		case err != nil:
			return made, &Mistake{"spec.publishes[" + value.Key + "].value", err.Error()}
		}
		content[value.Key] = encoded([]byte(filled))
	}
	made.Object = bindingSecret(i.Claim, kind, content)
	return made, nil
}

// bindingSecret returns the Secret with the connection details of a capability's type.
func bindingSecret(claim *v1alpha1.CapabilityClaim, kind string, content map[string]any) *unstructured.Unstructured {
	made := secretOf(claim, BindingName(claim), v1alpha1.BindingTypePrefix+kind, content)
	labels := made.GetLabels()
	labels[kinds.WatchLabel] = kinds.WatchEnabled // so that releases take a new value at once
	made.SetLabels(labels)
	return made
}

// IsReady tells whether the instance is ready, once each of its objects is; waits says why
// not.
func (i Instance) IsReady() (waits string) {
	condition := i.Blueprint.spec.Ready
	if condition == "" || i.Waits != "" {
		return i.Waits
	}
	if waits := i.waits(i.Blueprint.ready); waits != "" {
		return waits
	}
	holds, err := language.Holds(condition, i.data())
	switch {
	case err != nil:
		return "cannot tell yet whether the instance is ready: " + err.Error()
	case !holds:
		return "waits until the instance is ready, as the provider's ready has it"
	}
	return ""
}

// typeOf returns the type of what is claimed, which is the type of the binding.
func typeOf(claim *v1alpha1.CapabilityClaim) string {
	_, kind, _ := strings.Cut(strings.ToLower(claim.Spec.Capability), "/")
	return kind
}

// secretOf returns a Secret in the claim's namespace.
func secretOf(claim *v1alpha1.CapabilityClaim, name, kind string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": kind, "data": data,
		"metadata": map[string]any{
			"name": name, "namespace": claim.Namespace,
			"labels": map[string]any{"app.kubernetes.io/managed-by": "strata"},
		},
	}}
}

func encoded(value []byte) string { return base64.StdEncoding.EncodeToString(value) }

// Missing says that a Secret lacks a key.
func Missing(key SecretKey) string { return fmt.Sprintf("waits for the key %s of %s", key.In, key.ID) }
