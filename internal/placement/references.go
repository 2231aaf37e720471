// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/sources"
)

// referTo says what a field of an object of Flux refers to.
type referTo int

const (
	// toNothing is a field that has the name of a reference and is none, or one
	// that may hold anything; nothing below it is looked at.
	toNothing referTo = iota
	// toSource names a source, with kind, name and namespace; toSources is a list of
	// such.
	toSource
	toSources
	// toLocalSource names a source in the object's own namespace, of one kind or of
	// the one that it says.
	toLocalSource
	// toChartSource is the specification of a chart, whose sourceRef names a source
	// and whose verify.secretRef a Secret beside that.
	toChartSource
	// toSecret names one in the object's own namespace, and toValues is a list of
	// ConfigMaps and Secrets there.
	toSecret
	toValues
	// toCluster names a kubeconfig in the object's own namespace.
	toCluster
	// toRelease is a list of objects of the same kind, with name and namespace.
	toRelease
	// toOthers names objects of any kind, or is a list of them, with name and
	// namespace.
	toOthers
	// toLocal names an object of Flux in the object's own namespace, which goes where
	// the object goes.
	toLocal
	// toAccount is the name of a ServiceAccount in the object's own namespace.
	toAccount
)

// reference is a field of a kind that refers to something: names with dots between,
// and [] for each item of a list.
type reference struct {
	path string
	to   referTo
	// kind that toLocalSource means; empty where the field says it.
	kind string
}

const (
	kustomizeGroup    = "kustomize.toolkit.fluxcd.io"
	imageGroup        = "image.toolkit.fluxcd.io"
	notificationGroup = "notification.toolkit.fluxcd.io"
	extensionsGroup   = "source.extensions.fluxcd.io"
)

// referencesOf says of objects of Flux's kinds what they refer to, and how. A field
// that is not in it, and has the name of a reference, is refused where the object
// would be put elsewhere.
var referencesOf = map[schema.GroupKind][]reference{
	kinds.HelmReleaseKind: {
		{path: "spec.chart.spec", to: toChartSource},
		{path: "spec.chartRef", to: toSource},
		{path: "spec.valuesFrom", to: toValues},
		{path: "spec.dependsOn", to: toRelease},
		{path: "spec.kubeConfig", to: toCluster},
		{path: "spec.serviceAccountName", to: toAccount},
		{path: "spec.values"},
		{path: "spec.postRenderers"},
		{path: "spec.commonMetadata"},
	},
	{Group: kustomizeGroup, Kind: "Kustomization"}: {
		{path: "spec.sourceRef", to: toSource},
		{path: "spec.postBuild.substituteFrom", to: toValues},
		{path: "spec.decryption.secretRef", to: toSecret},
		{path: "spec.decryption.serviceAccountName", to: toAccount},
		{path: "spec.dependsOn", to: toRelease},
		{path: "spec.kubeConfig", to: toCluster},
		{path: "spec.serviceAccountName", to: toAccount},
		{path: "spec.postBuild.substitute"},
		{path: "spec.patches"},
		{path: "spec.patchesStrategicMerge"},
		{path: "spec.patchesJson6902"},
		{path: "spec.commonMetadata"},
		{path: "spec.images"},
		// Objects of the cluster that it applies to: what it waits for there.
		{path: "spec.healthChecks"},
		{path: "spec.healthCheckExprs"},
	},
	{Group: sources.Group, Kind: "GitRepository"}: {
		{path: "spec.secretRef", to: toSecret},
		{path: "spec.proxySecretRef", to: toSecret},
		{path: "spec.verify.secretRef", to: toSecret},
		{path: "spec.serviceAccountName", to: toAccount},
		{path: "spec.include[].repository", to: toLocalSource, kind: "GitRepository"},
		{path: "spec.ref"},        // a branch, tag or commit
		{path: "spec.accessFrom"}, // as below
	},
	{Group: sources.Group, Kind: "OCIRepository"}: {
		{path: "spec.secretRef", to: toSecret},
		{path: "spec.certSecretRef", to: toSecret},
		{path: "spec.proxySecretRef", to: toSecret},
		{path: "spec.verify.secretRef", to: toSecret},
		{path: "spec.verify.trustedRootSecretRef", to: toSecret},
		{path: "spec.serviceAccountName", to: toAccount},
		{path: "spec.ref"},        // a tag or digest
		{path: "spec.accessFrom"}, // as below
	},
	{Group: sources.Group, Kind: "HelmRepository"}: {
		{path: "spec.secretRef", to: toSecret},
		{path: "spec.certSecretRef", to: toSecret},
		{path: "spec.accessFrom"}, // who may refer to it, of which Flux makes no use
	},
	{Group: sources.Group, Kind: "HelmChart"}: {
		{path: "spec.sourceRef", to: toLocalSource},
		{path: "spec.verify.secretRef", to: toSecret},
	},
	{Group: sources.Group, Kind: "Bucket"}: {
		{path: "spec.secretRef", to: toSecret},
		{path: "spec.certSecretRef", to: toSecret},
		{path: "spec.proxySecretRef", to: toSecret},
		{path: "spec.sts.secretRef", to: toSecret},
		{path: "spec.sts.certSecretRef", to: toSecret},
		{path: "spec.serviceAccountName", to: toAccount},
		{path: "spec.accessFrom"}, // as above
	},
	{Group: sources.Group, Kind: "ExternalArtifact"}:    {{path: "spec.sourceRef", to: toOthers}},
	{Group: extensionsGroup, Kind: "ArtifactGenerator"}: {{path: "spec.sources", to: toSources}},
	{Group: imageGroup, Kind: "ImageRepository"}: {
		{path: "spec.secretRef", to: toSecret},
		{path: "spec.certSecretRef", to: toSecret},
		{path: "spec.proxySecretRef", to: toSecret},
		{path: "spec.serviceAccountName", to: toAccount},
		{path: "spec.accessFrom"},
	},
	{Group: imageGroup, Kind: "ImagePolicy"}:           {{path: "spec.imageRepositoryRef", to: toOthers}},
	{Group: imageGroup, Kind: "ImageUpdateAutomation"}: {{path: "spec.sourceRef", to: toOthers}, {path: "spec.git.commit.signingKey.secretRef", to: toSecret}},
	{Group: notificationGroup, Kind: "Alert"}:          {{path: "spec.eventSources", to: toOthers}, {path: "spec.providerRef", to: toLocal}},
	{Group: notificationGroup, Kind: "Receiver"}:       {{path: "spec.resources", to: toOthers}, {path: "spec.secretRef", to: toSecret}},
	{Group: notificationGroup, Kind: "Provider"}: {
		{path: "spec.secretRef", to: toSecret},
		{path: "spec.certSecretRef", to: toSecret},
		{path: "spec.proxySecretRef", to: toSecret},
		{path: "spec.serviceAccountName", to: toAccount},
	},
}

// foundReference is one reference of an object.
type foundReference struct {
	reference
	// field is where it is, with the items of lists counted.
	field string
	value any
}

// referencesIn returns what an object refers to, as it was written. The values are
// the object's own.
func referencesIn(obj *unstructured.Unstructured) []foundReference {
	var found []foundReference
	for _, ref := range referencesOf[obj.GroupVersionKind().GroupKind()] {
		if ref.to != toNothing {
			found = appendFound(found, ref, obj.Object, strings.Split(ref.path, "."), "")
		}
	}
	return found
}

func appendFound(found []foundReference, ref reference, in any, path []string, field string) []foundReference {
	if len(path) == 0 {
		return append(found, foundReference{ref, field, in})
	}
	name, isList := strings.CutSuffix(path[0], "[]")
	fields, _ := in.(map[string]any)
	value, has := fields[name]
	if !has {
		return found
	}
	at := strings.TrimPrefix(field+"."+name, ".")
	if !isList {
		return appendFound(found, ref, value, path[1:], at)
	}
	items, _ := value.([]any)
	for i, item := range items {
		found = appendFound(found, ref, item, path[1:], fmt.Sprintf("%s[%d]", at, i))
	}
	return found
}

// unknownReference returns the first field of an object of a kind of Flux that has
// the name of a reference and is not known to be one; empty where there is none. A
// newer Flux may have it.
func unknownReference(obj *unstructured.Unstructured) string {
	known := map[string]bool{}
	for _, ref := range referencesOf[obj.GroupVersionKind().GroupKind()] {
		known[ref.path] = true
	}
	return unknownBelow(known, obj.Object["spec"], "spec")
}

func unknownBelow(known map[string]bool, in any, path string) string {
	switch value := in.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			at := path + "." + name
			switch {
			case at == chartSpecPath:
				if field := unknownBelow(chartSpecFields, value[name], at); field != "" {
					return field
				}
			case known[at]:
			case namesReference(name):
				return at
			default:
				if field := unknownBelow(known, value[name], at); field != "" {
					return field
				}
			}
		}
	case []any:
		for _, item := range value {
			if field := unknownBelow(known, item, path+"[]"); field != "" {
				return field
			}
		}
	}
	return ""
}

const chartSpecPath = "spec.chart.spec"

// chartSpecFields are the references of a toChartSource.
var chartSpecFields = map[string]bool{
	chartSpecPath + ".sourceRef": true, chartSpecPath + ".verify.secretRef": true,
}

// namesReference tells the names that fields of references have in Flux's kinds.
func namesReference(name string) bool {
	for _, end := range []string{"Ref", "Refs", "From", "Reference", "References", "serviceAccountName", "ServiceAccountName", "kubeConfig", "dependsOn"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// ForeignReference returns the first field of an object that names another
// namespace than the object's own, and that namespace.
func ForeignReference(obj *unstructured.Unstructured) (field, namespace string) {
	for _, found := range referencesIn(obj) {
		if found.to == toChartSource {
			fields, _ := found.value.(map[string]any)
			found.field, found.value = found.field+".sourceRef", fields["sourceRef"]
		}
		if foreign := foreignNamespace(found.value, obj.GetNamespace()); foreign != "" {
			return found.field + ".namespace", foreign
		}
		list, _ := found.value.([]any)
		for i, item := range list {
			if foreign := foreignNamespace(item, obj.GetNamespace()); foreign != "" {
				return fmt.Sprintf("%s[%d].namespace", found.field, i), foreign
			}
		}
	}
	return "", ""
}

func foreignNamespace(reference any, own string) string {
	fields, _ := reference.(map[string]any)
	if namespace, _ := fields["namespace"].(string); namespace != own {
		return namespace
	}
	return ""
}
