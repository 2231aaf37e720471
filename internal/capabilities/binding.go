// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

// defaultPassword is how long a password is, in characters.
const defaultPassword = 32

// BindingName returns the name of the Secret with a claim's connection details.
func BindingName(claim *v1alpha1.CapabilityClaim) string { return BindingNameOf(claim.Name) }

// BindingNameOf is as BindingName, for the claim of a name.
func BindingNameOf(claim string) string { return claim + "-binding" }

// ReadsBinding tells whether a HelmRelease takes values from a claim's binding.
func ReadsBinding(release *unstructured.Unstructured, claim *v1alpha1.CapabilityClaim) bool {
	return slices.Contains(kinds.ValuesOf(release), objects.ID{Kind: "Secret", Namespace: claim.Namespace, Name: BindingName(claim)})
}

// PasswordsName returns the name of the Secret that keeps what was made for a claim.
func PasswordsName(claim *v1alpha1.CapabilityClaim) string { return claim.Name + "-passwords" }

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
			one.ID = objects.ID{Kind: "Secret", Namespace: namespace, Name: name}
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
	if known[objects.IDOf(secret)] && secret.GetLabels()[v1alpha1.ClaimLabel] == string(i.Claim.UID) {
		return true
	}
	own := map[types.UID]bool{}
	for _, live := range i.Live {
		own[live.GetUID()] = live.GetNamespace() == secret.GetNamespace()
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
	_, kind, _ := strings.Cut(strings.ToLower(i.Claim.Spec.Capability), "/")
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
	made.Object = i.secret(BindingName(i.Claim), v1alpha1.BindingTypePrefix+kind, content)
	labels := made.Object.GetLabels()
	labels[kinds.WatchLabel] = kinds.WatchEnabled // so that releases take a new value at once
	made.Object.SetLabels(labels)
	return made, nil
}

// PasswordsObject returns the Secret that keeps the passwords; false where the provider has
// none. have is what it holds; nil where it is not there yet. What is missing is made by
// fresh, of a length in characters; and what is there stays.
func (i Instance) PasswordsObject(have map[string][]byte, fresh func(length int) string) (primaries.Object, bool) {
	if len(i.Blueprint.spec.Passwords) == 0 {
		return primaries.Object{}, false
	}
	content := map[string]any{}
	for name, value := range have {
		content[name] = encoded(value)
	}
	for _, password := range i.Blueprint.spec.Passwords {
		if len(have[password.Name]) == 0 {
			content[password.Name] = encoded([]byte(fresh(int(cmp.Or(password.Length, defaultPassword)))))
		}
	}
	made := primaries.Object{ID: PasswordsID, Of: i.Provider, Inherits: true, Confidential: true, Object: i.secret(PasswordsName(i.Claim), "Opaque", content)}
	if have == nil {
		// One that was made a moment ago, and is not seen yet, must stay as it is.
		made.Mode = dependents.ModeCreateOnce
	}
	return made, true
}

// PasswordsOf returns the passwords of what their Secret holds; nil where it lacks one.
func (i Instance) PasswordsOf(have map[string][]byte) map[string]string {
	found := map[string]string{}
	for _, password := range i.Blueprint.spec.Passwords {
		value := have[password.Name]
		if len(value) == 0 {
			return nil
		}
		found[password.Name] = string(value)
	}
	return found
}

// IsReady tells whether the instance is ready, once each of its objects is; waits says why
// not.
func (i Instance) IsReady() (waits string) {
	condition := i.Blueprint.spec.Ready
	if condition == "" {
		return ""
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

// secret returns a Secret in the claim's namespace.
func (i Instance) secret(name, kind string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": kind, "data": data,
		"metadata": map[string]any{
			"name": name, "namespace": i.Claim.Namespace,
			"labels": map[string]any{"app.kubernetes.io/managed-by": "strata"},
		},
	}}
}

func encoded(value []byte) string { return base64.StdEncoding.EncodeToString(value) }

// Missing says that a Secret lacks a key.
func Missing(key SecretKey) string { return fmt.Sprintf("waits for the key %s of %s", key.In, key.ID) }
