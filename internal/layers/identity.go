// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/sources"
)

// AccountFor returns the ServiceAccount that a layer acts as; the zero value means the
// controller itself.
func (s Settings) AccountFor(layer *v1alpha1.AddonsLayer) types.NamespacedName {
	return accounts.Of(layer, s.DefaultServiceAccount, s.Namespace)
}

// NamespaceFor returns where the ConfigMaps and Secrets are that a layer names.
func (s Settings) NamespaceFor(layer *v1alpha1.AddonsLayer) string {
	return accounts.NamespaceOf(layer, s.Namespace)
}

// actor returns the ServiceAccount that writes an object of the layer; the zero
// value means the controller itself, which writes what Flux installs from for
// layers of other clusters.
func (o Observation) actor(id objects.ID) types.NamespacedName {
	if o.Remote != nil && id.Cluster == "" {
		return types.NamespacedName{}
	}
	return o.Settings.AccountFor(o.Layer)
}

// accountGate wants an account that can be one, and any where one is required.
func accountGate(o Observation) *Blocked {
	account := o.Settings.AccountFor(o.Layer)
	if account.Name == "" {
		if !o.Settings.RequireServiceAccount {
			return nil
		}
		return accessDenied(
			"spec.serviceAccountName: the layer names no account, and the controller writes no layer with its own rights (--require-service-account): name one of the namespace of the layer's source or, for another cluster, of the RemoteCluster's",
		)
	}
	if err := accounts.Check(account); err != nil {
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
	return settings.Opens(sources.Of(layer, settings.Namespace).Namespace)
}

// Opens tells whether layers may use the sources and accounts of a namespace.
func (s Settings) Opens(namespace string) bool {
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
		return accessDenied(
			fmt.Sprintf(
				"spec.source.namespace: %s is neither the controller's namespace, %s, nor one of --source-namespaces, and references across namespaces are refused (--no-cross-namespace-refs)",
				source,
				o.Settings.Namespace,
			),
		)
	}
	if namespace := o.Layer.Spec.Namespace; namespace != "" && !o.Settings.Opens(namespace) {
		return accessDenied(fmt.Sprintf(
			"spec.namespace: %s is neither the controller's namespace, %s, nor one of --source-namespaces, and references across namespaces are refused (--no-cross-namespace-refs)",
			namespace, o.Settings.Namespace,
		))
	}
	cluster := placement.Of(o.Layer, o.Settings.Namespace)
	switch {
	case cluster.Name == "":
	case sources.IsOfBundle(o.Layer) && !o.Settings.Opens(cluster.Namespace):
		return accessDenied(
			fmt.Sprintf(
				"spec.cluster.namespace: %s is neither the controller's namespace, %s, nor one of --source-namespaces, and references across namespaces are refused (--no-cross-namespace-refs)",
				cluster.Namespace,
				o.Settings.Namespace,
			),
		)
	case !sources.IsOfBundle(o.Layer) && cluster.Namespace != source:
		return accessDenied(
			fmt.Sprintf(
				"spec.cluster.namespace: %s is not the namespace of the layer's source, %s, and references across namespaces are refused (--no-cross-namespace-refs)",
				cluster.Namespace,
				source,
			),
		)
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

// secretNameGate wants no name that is made of a value of a Secret, where these are refused.
func secretNameGate(o Observation) *Blocked {
	if !o.Settings.NoSecretsInNames || o.Directory == nil {
		return nil
	}
	for i := range o.Directory.Manifests {
		manifest := &o.Directory.Manifests[i]
		if len(manifest.Named) == 0 {
			continue
		}
		return accessDenied((&directories.ContentError{
			File: manifest.File, Line: manifest.Line,
			Message: fmt.Sprintf("the name of a %s is made of %s, which a Secret gives, and names are told (--no-secrets-in-names): give that from a ConfigMap, or name the object otherwise",
				manifest.Object.GetKind(), strings.Join(manifest.Named, ", ")),
		}).Error())
	}
	return nil
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
	if account := o.Settings.AccountFor(o.Layer); account.Name != "" {
		verbs = fmt.Sprintf(", with the verbs get, list and watch, since ServiceAccount %s writes it", account)
	}
	return fmt.Sprintf("the controller lacks rights: %v; add the kind to rbac.kinds of the chart%s", o.KindError, verbs)
}
