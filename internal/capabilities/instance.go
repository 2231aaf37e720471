// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/hooks"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/templates"
)

// Instance is what a claim has of a provider, in the making.
type Instance struct {
	Claim     *v1alpha1.CapabilityClaim
	Blueprint *Blueprint
	// Provider and Version that the claim is bound to.
	Provider, Version string
	// Parameters of the claim, with defaults.
	Parameters map[string]any
	// Cluster of the objects, and the namespace of those that name none, as Place has them.
	Cluster, Namespace string
	// Scopes says which kinds have namespaces, as far as that is known.
	Scopes map[schema.GroupKind]objects.Scope
	// Live holds the objects as they are by their IDs in the provider. Objects has it hold of
	// those that were given other names what they are called now.
	Live map[string]*unstructured.Unstructured
	// Own holds all that the claim has, as it is, and Observed what somebody else has that it
	// was read of.
	Own, Observed map[objects.ID]*unstructured.Unstructured
	// Withheld says why others of those may not be read.
	Withheld map[objects.ID]string
	// Confined is true where objects are in Namespace alone: a plug-in may write any expression.
	Confined bool
	// Waits says why the instance is not ready although each object is, and Lacks what each object
	// lacks, by its ID, as a plug-in has it; empty for templates.
	Waits string
	Lacks map[string]string
	// Passwords that were made; nil where they were not read. Previous are those of before,
	// as long as they are to be valid.
	Passwords, Previous map[string]string
	// Rotation is the number of the passwords.
	Rotation int64
}

// Mistake is what only the author of a provider, or of a claim, can mend.
type Mistake struct {
	// Field of the provider.
	Field, Message string
}

// Error names the field.
func (m *Mistake) Error() string { return m.Field + ": " + m.Message }

// data is what templates read.
func (i Instance) data() templates.Data {
	seen := map[string]any{}
	for id, live := range i.Live {
		seen[id] = hooks.Shown(live)
	}
	passwords, previous := map[string]any{}, map[string]any{}
	for name, value := range i.Passwords {
		passwords[name], previous[name] = value, i.Previous[name]
	}
	claim := i.Claim
	return templates.Data{
		varClaim: {
			"name": claim.Name, "namespace": i.claimNamespace(), "uid": string(claim.UID), "version": i.Version,
			"capability": strings.ToLower(claim.Spec.Capability), "binding": BindingName(claim), "passwords": PasswordsName(claim),
			"cluster": claim.Spec.Cluster, "rotation": i.Rotation, "rotating": len(i.Previous) > 0,
		},
		varParameters: i.Parameters, varObjects: seen, varPasswords: passwords, varPrevious: previous,
	}
}

// Observe notes what there is of an object that somebody else has.
func (i *Instance) Observe(id objects.ID, live *unstructured.Unstructured) {
	if i.Observed == nil {
		i.Observed = map[objects.ID]*unstructured.Unstructured{}
	}
	i.Observed[id] = live
}

// Withhold notes why an object that somebody else has may not be read.
func (i *Instance) Withhold(id objects.ID, why string) {
	if i.Withheld == nil {
		i.Withheld = map[objects.ID]string{}
	}
	i.Withheld[id] = why
}

// claimNamespace returns the namespace of the claim: on its own cluster, where the objects are
// there, too.
func (i Instance) claimNamespace() string {
	if i.Cluster != "" && i.Cluster == ClusterOf(i.Claim) {
		return namespaceThere(i.Claim)
	}
	return i.Claim.Namespace
}

// Objects returns the objects of the instance. One that reads what is not there yet waits.
// The error is a *Mistake.
func (i Instance) Objects() ([]primaries.Object, error) {
	if i.Live == nil {
		i.Live = map[string]*unstructured.Unstructured{}
	}
	data := i.data()
	found := make([]primaries.Object, 0, len(i.Blueprint.objects))
	for _, of := range i.Blueprint.objects {
		made := primaries.Object{ID: of.ID, Of: i.Provider, Cluster: i.Cluster, DependsOn: of.needs, Ready: of.readiness(i.Lacks[of.ID]), Confidential: of.secret}
		made.Replaces = of.OnRename == v1alpha1.OnRenameDelete
		switch of.Mode {
		case v1alpha1.CapabilityCreateOnce:
			made.Mode = dependents.ModeCreateOnce
		case v1alpha1.CapabilityObserve:
			made.Mode = dependents.ModeObserve
		}
		made.Waits = i.waits(of.needs)
		if of.passwords {
			made.DependsOn = append(slices.Clone(of.needs), PasswordsID)
		}
		if of.passwords && i.Passwords == nil {
			made.Waits = cmp.Or(made.Waits, "waits for the claim's passwords")
		}
		if made.Waits == "" {
			object, err := i.fill(of, data)
			var notYet *notYetError
			switch {
			case errors.As(err, &notYet):
				made.Waits = notYet.Error()
			case err != nil:
				return nil, err
			}
			made.Object = object
			made.Withheld = i.Withheld[made.Identity()]
		}
		i.named(made, data)
		found = append(found, made)
	}
	return found, nil
}

// named notes for the templates of other objects what there is of an object by its name: what
// was called otherwise before is not what they read.
func (i Instance) named(made primaries.Object, data templates.Data) {
	if made.Object == nil || i.Own == nil {
		return
	}
	live := i.Own[made.Identity()]
	if made.Mode == dependents.ModeObserve {
		live = i.Observed[made.Identity()]
	}
	if live == nil {
		delete(i.Live, made.ID)
		delete(data[varObjects], made.ID)
		return
	}
	if i.Live[made.ID] != live {
		i.Live[made.ID] = live
		data[varObjects][made.ID] = hooks.Shown(live)
	}
}

// waits says which of some objects are not there yet; empty where all are.
func (i Instance) waits(ids []string) string {
	for _, id := range ids {
		if i.Live[id] == nil {
			return "waits for " + id
		}
	}
	return ""
}

// notYetError says that what is read of an object has no value, which may come by itself: its
// status may not be there yet.
type notYetError struct{ cause error }

// Error says which template has none.
func (e *notYetError) Error() string { return "waits for what it reads: " + e.cause.Error() }

// fill fills a template, and sees to it that it is an object that may be made.
func (i Instance) fill(of blueprintObject, data templates.Data) (*unstructured.Unstructured, error) {
	field := "spec.objects[" + of.ID + "].template"
	filled, err := language.Fill(of.template, data)
	if err != nil {
		if len(of.needs) > 0 {
			return nil, &notYetError{err}
		}
		return nil, &Mistake{field, err.Error()}
	}
	object, _ := filled.(map[string]any)
	if path, wrong := templates.CheckObject(object); wrong != "" {
		if of.secret {
			wrong = "is not as an object needs it" // what it says may be a password
		}
		return nil, &Mistake{field + "." + path, wrong}
	}
	delete(object, "status")
	made := &unstructured.Unstructured{Object: object}
	if i.Scopes[made.GroupVersionKind().GroupKind()] == objects.ScopeNamespaced && made.GetNamespace() == "" {
		made.SetNamespace(i.Namespace)
	}
	if wrong := checkNames(made); wrong != "" {
		return nil, &Mistake{field + ".metadata", wrong}
	}
	if at := made.GetNamespace(); i.Confined && at != "" && at != i.Namespace {
		return nil, &Mistake{field + ".metadata", fmt.Sprintf("namespace: is %s, and not %s", at, i.Namespace)}
	}
	return made, nil
}

// checkNames says what keeps an object's name or namespace from being one; empty where
// nothing does.
func checkNames(object *unstructured.Unstructured) string {
	if wrong := validation.IsDNS1123Subdomain(object.GetName()); len(wrong) > 0 {
		// Names of roles and of some other kinds may have colons; none has a slash.
		if strings.ContainsAny(object.GetName(), "/% \n\t") || object.GetName() == "." || object.GetName() == ".." {
			return fmt.Sprintf("name: %q is no name: %s", printable.Line(object.GetName(), 100), wrong[0])
		}
	}
	if namespace := object.GetNamespace(); namespace != "" {
		if wrong := validation.IsDNS1123Label(namespace); len(wrong) > 0 {
			return fmt.Sprintf("namespace: %q is no namespace: %s", printable.Line(namespace, 100), wrong[0])
		}
	}
	return ""
}

// readiness returns what says how an object fares that lacks something, or nothing that is known;
// nil where its kind does.
func (o blueprintObject) readiness(lacks string) func(*unstructured.Unstructured) objects.Standing {
	if lacks != "" {
		return func(*unstructured.Unstructured) objects.Standing {
			return objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: lacks}
		}
	}
	condition := o.Ready
	if condition == "" {
		return nil
	}
	return func(live *unstructured.Unstructured) objects.Standing {
		holds, err := readiness.Holds(condition, templates.Data{varObject: hooks.Shown(live)})
		switch {
		case err != nil:
			return objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "is not ready: ready cannot be told yet: " + err.Error()}
		case !holds:
			return objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "is not ready, as ready has it"}
		}
		return objects.Standing{Health: objects.Ready, Status: objects.StatusReady}
	}
}

// Kinds returns the kinds of a provider's objects, with their versions.
func (b *Blueprint) Kinds() []schema.GroupVersionKind {
	found := []schema.GroupVersionKind{{Version: "v1", Kind: "Secret"}}
	for _, object := range b.objects {
		gvk := (&unstructured.Unstructured{Object: object.template}).GroupVersionKind()
		if !slices.Contains(found, gvk) {
			found = append(found, gvk)
		}
	}
	return found
}
