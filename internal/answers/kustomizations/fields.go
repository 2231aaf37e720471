// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kustomizations makes layers of Flux's Kustomizations, from values: it reads no
// cluster and no file.
package kustomizations

// Treatment says what becomes of a field of a Kustomization.
type Treatment string

// The treatments.
const (
	// Kept has the same name and meaning in a layer.
	Kept Treatment = "kept"
	// Mapped is said in another way.
	Mapped Treatment = "mapped"
	// Dropped means nothing to a layer, and changes nothing.
	Dropped Treatment = "dropped"
	// Refused is not converted, and is named.
	Refused Treatment = "refused"
)

// Field is one of a Kustomization's spec.
type Field struct {
	// Name as in the manifest, below spec.
	Name      string
	Treatment Treatment
	// Says what it becomes, or why it becomes nothing.
	Says string
}

// Fields lists every field of a Kustomization's spec, in the order of their names.
func Fields() []Field {
	return []Field{
		{"buildMetadata", Kept, ""},
		{"commonMetadata", Kept, ""},
		{"components", Kept, ""},
		{"decryption", Kept, "keys of age and PGP from a Secret; serviceAccountName, and decryption without a Secret, are refused"},
		{"deletionPolicy", Mapped, "MirrorPrune is the default, WaitForTermination becomes Delete"},
		{"dependsOn", Mapped, "prereqs.dependsOn, with the layers' names; readyExpr is refused"},
		{"force", Kept, ""},
		{"healthCheckExprs", Kept, ""},
		{"healthChecks", Kept, "left out where wait is true, where Flux ignores them"},
		{"ignore", Refused, "fields that are left to others have no place in a layer yet"},
		{"ignoreMissingComponents", Kept, ""},
		{"images", Kept, ""},
		{"interval", Kept, "a safety net only: a layer sees changes at once"},
		{"kubeConfig", Mapped, "a RemoteCluster of the Secret; configMapRef is refused"},
		{"namePrefix", Kept, ""},
		{"nameSuffix", Kept, ""},
		{"patches", Kept, ""},
		{"path", Mapped, "source.path"},
		{"postBuild", Kept, ""},
		{"prune", Kept, ""},
		{"retryInterval", Dropped, "a layer tries again by itself, and when something changes"},
		{"serviceAccountName", Kept, "the --default-service-account of kustomize-controller where it is empty"},
		{"sourceRef", Mapped, "source"},
		{"suspend", Mapped, "hold"},
		{"targetNamespace", Kept, ""},
		{"timeout", Kept, ""},
		{"wait", Mapped, "the default; false is written where it is not true"},
	}
}
