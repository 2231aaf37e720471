// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/sources"
)

// AccountOf returns the ServiceAccount that writes a layer's objects: the one
// that the layer names, or else the settings' default, in the namespace of the
// layer's source; for a layer of another cluster, on that cluster, in the namespace
// that the RemoteCluster has here. The zero value means the controller itself.
func AccountOf(layer *v1alpha1.AddonsLayer, settings Settings) types.NamespacedName {
	name := cmp.Or(layer.Spec.ServiceAccountName, settings.DefaultServiceAccount)
	if name == "" {
		return types.NamespacedName{}
	}
	if cluster := placement.Of(layer, settings.Namespace); cluster.Name != "" {
		// On the other cluster, in the namespace in which Flux looks for the
		// account of a release of this layer.
		return types.NamespacedName{Namespace: cluster.Namespace, Name: name}
	}
	return types.NamespacedName{Namespace: sources.Of(layer, settings.Namespace).Namespace, Name: name}
}

// actor returns the ServiceAccount that writes an object of the layer; the zero
// value means the controller itself, which writes what Flux installs from for
// layers of other clusters.
func (o Observation) actor(id objects.ID) types.NamespacedName {
	if o.Remote != nil && id.Cluster == "" {
		return types.NamespacedName{}
	}
	return AccountOf(o.Layer, o.Settings)
}

// CheckAccount refuses an account whose parts are no names: of those the name
// of a user is made, in which a colon would name somebody else.
func CheckAccount(account types.NamespacedName) error {
	if problems := validation.IsDNS1123Label(account.Namespace); len(problems) > 0 {
		return fmt.Errorf("%q is no namespace: %s", account.Namespace, strings.Join(problems, "; "))
	}
	if problems := validation.IsDNS1123Subdomain(account.Name); len(problems) > 0 {
		return fmt.Errorf("%q is no name of a ServiceAccount: %s", account.Name, strings.Join(problems, "; "))
	}
	return nil
}

// AccountMissingError says that a layer's account does not exist. RBAC would
// still give an account that was deleted the rights that are bound to its name.
type AccountMissingError struct{ Account types.NamespacedName }

// Error names the account.
func (e *AccountMissingError) Error() string {
	return fmt.Sprintf("there is no ServiceAccount %s", e.Account)
}

// accountGate wants an account that can be one, and any where one is required.
func accountGate(o Observation) *Blocked {
	account := AccountOf(o.Layer, o.Settings)
	if account.Name == "" {
		if !o.Settings.RequireServiceAccount {
			return nil
		}
		return accessDenied("spec.serviceAccountName: the layer names no account, and the controller writes no layer with its own rights (--require-service-account): name one of the namespace of the layer's source or, for another cluster, of the RemoteCluster's")
	}
	if err := CheckAccount(account); err != nil {
		return &Blocked{
			State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonInvalidSpec, Stalled: true,
			Message: "cannot act as the layer's ServiceAccount: " + err.Error(),
		}
	}
	if err := o.Settings.CheckAccountUse(account, placement.Of(o.Layer, o.Settings.Namespace).Name != ""); err != nil {
		return &Blocked{
			State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonInvalidSpec, Stalled: true,
			Message: "spec.serviceAccountName: " + err.Error(),
		}
	}
	return nil
}

// MayUseSource tells whether a layer's source, and with it the accounts of the
// source's namespace, are open to layers. A bundle is of no namespace.
func MayUseSource(layer *v1alpha1.AddonsLayer, settings Settings) bool {
	return settings.opens(sources.Of(layer, settings.Namespace).Namespace)
}

// opens tells whether layers may use the sources and accounts of a namespace.
func (s Settings) opens(namespace string) bool {
	return !s.NoCrossNamespaceRefs || namespace == s.Namespace || slices.Contains(s.SourceNamespaces, namespace)
}

// sourceAccessGate wants the layer's source in a namespace that is open to
// layers, and its cluster in that of the source, where references across
// namespaces are refused; a bundle is of no namespace, so its cluster must be in
// an open one. The gate comes before everything that would speak of the source.
func sourceAccessGate(o Observation) *Blocked {
	if !o.Settings.NoCrossNamespaceRefs {
		return nil
	}
	source := sources.Of(o.Layer, o.Settings.Namespace).Namespace
	if !MayUseSource(o.Layer, o.Settings) {
		return accessDenied(fmt.Sprintf("spec.source.namespace: %s is neither the controller's namespace, %s, nor one of --source-namespaces, and references across namespaces are refused (--no-cross-namespace-refs)",
			source, o.Settings.Namespace))
	}
	cluster := placement.Of(o.Layer, o.Settings.Namespace)
	switch {
	case cluster.Name == "":
	case sources.IsOfBundle(o.Layer) && !o.Settings.opens(cluster.Namespace):
		return accessDenied(fmt.Sprintf("spec.cluster.namespace: %s is neither the controller's namespace, %s, nor one of --source-namespaces, and references across namespaces are refused (--no-cross-namespace-refs)",
			cluster.Namespace, o.Settings.Namespace))
	case !sources.IsOfBundle(o.Layer) && cluster.Namespace != source:
		return accessDenied(fmt.Sprintf("spec.cluster.namespace: %s is not the namespace of the layer's source, %s, and references across namespaces are refused (--no-cross-namespace-refs)",
			cluster.Namespace, source))
	}
	return nil
}

// contentAccessGate wants the objects of the layer to refer to their own
// namespaces alone, where references across namespaces are refused: as they were
// written, and as they were put beside the RemoteCluster.
func contentAccessGate(o Observation) *Blocked {
	if !o.Settings.NoCrossNamespaceRefs || o.Directory == nil {
		return nil
	}
	if blocked := crossing(o.Directory.Written); blocked != nil {
		return blocked
	}
	return crossing(o.Directory)
}

func crossing(directory *directories.Directory) *Blocked {
	if directory == nil {
		return nil
	}
	for _, manifest := range directory.Manifests {
		field, namespace := placement.ForeignReference(manifest.Object)
		if field == "" {
			continue
		}
		return accessDenied((&directories.ContentError{
			File: manifest.File, Line: manifest.Line, Field: field,
			Message: fmt.Sprintf("%s refers to the namespace %s, and references across namespaces are refused (--no-cross-namespace-refs)",
				manifest.ID(), namespace),
		}).Error())
	}
	return nil
}

func accessDenied(message string) *Blocked {
	return &Blocked{State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonAccessDenied, Stalled: true, Message: message}
}

// kindGate wants to be allowed to look at every kind of the layer.
func kindGate(o Observation) *Blocked {
	if o.KindError == nil {
		return nil
	}
	return &Blocked{
		State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonApplyFailed, Retry: o.KindError, Message: kindMessage(o),
	}
}

// kindMessage says which right on a kind the controller itself lacks, and what
// to grant: it watches also what an account writes.
func kindMessage(o Observation) string {
	verbs := ""
	if account := AccountOf(o.Layer, o.Settings); account.Name != "" {
		verbs = fmt.Sprintf(", with the verbs get, list and watch, since ServiceAccount %s writes it", account)
	}
	return fmt.Sprintf("the controller lacks rights: %v; add the kind to rbac.kinds of the chart%s", o.KindError, verbs)
}

// failure is what a failed action says of itself.
type failure struct {
	// reason is empty where the action's own applies.
	reason string
	// as is the account that acted, to follow what it acted on.
	as      string
	message string
}

// failureOf explains the error of an action that an account has tried, or the
// controller itself.
func failureOf(account types.NamespacedName, err error) failure {
	var missing *AccountMissingError
	if errors.As(err, &missing) {
		account = missing.Account // without it nothing is written at all
	}
	if account.Name == "" {
		return failure{message: err.Error()}
	}
	failed := failure{as: fmt.Sprintf(" as ServiceAccount %s", account), message: err.Error()}
	denial, denied := dependents.DenialOf(err)
	switch {
	case missing != nil:
		failed.reason, failed.message = v1alpha1.ReasonServiceAccountNotFound, "that account does not exist"
	case denied && denial.OfImpersonation():
		failed.reason = v1alpha1.ReasonImpersonationDenied
		failed.message = "the controller may not impersonate that account; add it to rbac.impersonate of the chart"
	case denied:
		failed.message = "it may not " + denial.String()
	}
	return failed
}
