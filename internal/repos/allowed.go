// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"reflect"

	"sigs.k8s.io/kustomize/api/builtins" //nolint:staticcheck // the types that kustomize itself decodes into; there is no other place for them
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// role is what kustomize does with the value of a field.
type role int

const (
	// isValue is a value that stays one: kustomize opens nothing for it. What is in it is
	// judged in turn.
	isValue role = iota + 1
	// isFile is the name of a file that is loaded.
	isFile
	// isSource is the name of a file, or key=file.
	isSource
	// isResource is the name of a file, or of a directory with a kustomization.
	isResource
	// isDirectory is the name of a directory with a kustomization.
	isDirectory
	// isPatch is the name of a file, or a patch.
	isPatch
	// isPlugin is the name of a file, or what is in such a file: what else is to be done.
	isPlugin
	// isSchema says in which file, or in which version, the schema of objects is.
	isSchema
	// isChart would run a program.
	isChart
)

// fields of a type that may be there, and what kustomize does with them.
type fields map[string]role

func all(names ...string) fields {
	of := fields{}
	for _, name := range names {
		of[name] = isValue
	}
	return of
}

func (f fields) and(as role, names ...string) fields {
	for _, name := range names {
		f[name] = as
	}
	return f
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// allowed is everything that a kustomization may hold. What is in no list is refused,
// and so is what a later kustomize adds, before somebody has looked at what it opens.
var allowed = map[reflect.Type]fields{
	typeOf[types.Kustomization](): all("TypeMeta", "MetaData", "NamePrefix", "NameSuffix", "Namespace", "CommonLabels", "Labels",
		"CommonAnnotations", "PatchesJson6902", "Patches", "Images", "ImageTags", "Replacements", "Replicas", "Vars", "SortOptions",
		"ConfigMapGenerator", "SecretGenerator", "GeneratorOptions", "BuildMetadata").
		and(isResource, "Resources", "Bases").and(isDirectory, "Components").and(isFile, "Crds", "Configurations").
		and(isPatch, "PatchesStrategicMerge").and(isPlugin, "Generators", "Transformers", "Validators").
		and(isSchema, "OpenAPI").and(isChart, "HelmGlobals", "HelmCharts", "HelmChartInflationGenerator"),
	typeOf[types.TypeMeta]():          all("Kind", "APIVersion"),
	typeOf[types.ObjectMeta]():        all("Name", "Namespace", "Labels", "Annotations"),
	typeOf[types.Label]():             all("Pairs", "IncludeSelectors", "IncludeTemplates", "FieldSpecs"),
	typeOf[types.FieldSpec]():         all("Gvk", "Path", "CreateIfNotPresent"),
	typeOf[resid.Gvk]():               all("Group", "Version", "Kind"),
	typeOf[resid.ResId]():             all("Gvk", "Name", "Namespace"),
	typeOf[types.Patch]():             all("Patch", "Target", "Options").and(isFile, "Path"),
	typeOf[types.PatchArgs]():         all("AllowNameChange", "AllowKindChange"),
	typeOf[types.Selector]():          all("ResId", "AnnotationSelector", "LabelSelector"),
	typeOf[types.Image]():             all("Name", "NewName", "TagSuffix", "NewTag", "Digest"),
	typeOf[types.ReplacementField]():  all("Replacement").and(isFile, "Path"),
	typeOf[types.Replacement]():       all("Source", "Targets", "SourceValue"),
	typeOf[types.SourceSelector]():    all("ResId", "FieldPath", "Options"),
	typeOf[types.TargetSelector]():    all("Select", "Reject", "FieldPaths", "Options"),
	typeOf[types.FieldOptions]():      all("Delimiter", "Index", "Encoding", "Create"),
	typeOf[types.Replica]():           all("Name", "Count"),
	typeOf[types.Var]():               all("Name", "ObjRef", "FieldRef"),
	typeOf[types.Target]():            all("APIVersion", "Gvk", "Name", "Namespace"),
	typeOf[types.FieldSelector]():     all("FieldPath"),
	typeOf[types.SortOptions]():       all("Order", "LegacySortOptions"),
	typeOf[types.LegacySortOptions](): all("OrderFirst", "OrderLast"),
	typeOf[types.ConfigMapArgs]():     all("GeneratorArgs"),
	typeOf[types.SecretArgs]():        all("GeneratorArgs", "Type"),
	typeOf[types.GeneratorArgs]():     all("Namespace", "Name", "Behavior", "KvPairSources", "Options"),
	typeOf[types.KvPairSources]():     all("LiteralSources").and(isSource, "FileSources").and(isFile, "EnvSources", "EnvSource"),
	typeOf[types.GeneratorOptions]():  all("Labels", "Annotations", "DisableNameSuffixHash", "Immutable"),

	// What plug-ins are told that are part of kustomize.
	typeOf[builtins.AnnotationsTransformerPlugin]():         all("Annotations", "FieldSpecs"),
	typeOf[builtins.ConfigMapGeneratorPlugin]():             all("ObjectMeta", "ConfigMapArgs"),
	typeOf[builtins.HashTransformerPlugin]():                all(),
	typeOf[builtins.IAMPolicyGeneratorPlugin]():             all("IAMPolicyGeneratorArgs"),
	typeOf[types.IAMPolicyGeneratorArgs]():                  all("Cloud", "KubernetesService", "ServiceAccount"),
	typeOf[types.KubernetesService]():                       all("Name", "Namespace"),
	typeOf[types.ServiceAccount]():                          all("Name", "ProjectId"),
	typeOf[builtins.ImageTagTransformerPlugin]():            all("ImageTag", "FieldSpecs"),
	typeOf[builtins.LabelTransformerPlugin]():               all("Labels", "FieldSpecs"),
	typeOf[builtins.NamespaceTransformerPlugin]():           all("ObjectMeta", "FieldSpecs", "UnsetOnly", "SetRoleBindingSubjects"),
	typeOf[builtins.PatchJson6902TransformerPlugin]():       all("Target", "JsonOp").and(isFile, "Path"),
	typeOf[builtins.PatchStrategicMergeTransformerPlugin](): all("Patches").and(isPatch, "Paths"),
	typeOf[builtins.PatchTransformerPlugin]():               all("Patch", "Target", "Options").and(isFile, "Path"),
	typeOf[prefixAndSuffix]():                               all("Prefix", "Suffix", "FieldSpecs"),
	typeOf[builtins.PrefixTransformerPlugin]():              all("Prefix", "FieldSpecs"),
	typeOf[builtins.SecretGeneratorPlugin]():                all("ObjectMeta", "SecretArgs"),
	typeOf[builtins.SuffixTransformerPlugin]():              all("Suffix", "FieldSpecs"),
	typeOf[builtins.ReplacementTransformerPlugin]():         all("ReplacementList"),
	typeOf[builtins.ReplicaCountTransformerPlugin]():        all("Replica", "FieldSpecs"),
	typeOf[builtins.ValueAddTransformerPlugin]():            all("Value", "Targets").and(isFile, "TargetFilePath"),
	valueTarget: all("Selector", "FieldPath", "FilePathPosition"),
}

// valueTarget is a type that kustomize does not name to others.
var valueTarget = reflect.TypeFor[builtins.ValueAddTransformerPlugin]().Field(1).Type.Elem()

// prefixAndSuffix is what PrefixSuffixTransformer reads: two plug-ins in one.
type prefixAndSuffix struct {
	Prefix     string        `json:"prefix,omitempty"`
	Suffix     string        `json:"suffix,omitempty"`
	FieldSpecs types.FsSlice `json:"fieldSpecs,omitempty"`
}

// plugins are those that may run, by their kinds, and what they are told.
var plugins = map[string]func() any{
	"AnnotationsTransformer":         func() any { return &builtins.AnnotationsTransformerPlugin{} },
	"ConfigMapGenerator":             func() any { return &builtins.ConfigMapGeneratorPlugin{} },
	"HashTransformer":                func() any { return &builtins.HashTransformerPlugin{} },
	"IAMPolicyGenerator":             func() any { return &builtins.IAMPolicyGeneratorPlugin{} },
	"ImageTagTransformer":            func() any { return &builtins.ImageTagTransformerPlugin{} },
	"LabelTransformer":               func() any { return &builtins.LabelTransformerPlugin{} },
	"NamespaceTransformer":           func() any { return &builtins.NamespaceTransformerPlugin{} },
	"PatchJson6902Transformer":       func() any { return &builtins.PatchJson6902TransformerPlugin{} },
	"PatchStrategicMergeTransformer": func() any { return &builtins.PatchStrategicMergeTransformerPlugin{} },
	"PatchTransformer":               func() any { return &builtins.PatchTransformerPlugin{} },
	"PrefixSuffixTransformer":        func() any { return &prefixAndSuffix{} },
	"PrefixTransformer":              func() any { return &builtins.PrefixTransformerPlugin{} },
	"ReplacementTransformer":         func() any { return &builtins.ReplacementTransformerPlugin{} },
	"ReplicaCountTransformer":        func() any { return &builtins.ReplicaCountTransformerPlugin{} },
	"SecretGenerator":                func() any { return &builtins.SecretGeneratorPlugin{} },
	"SuffixTransformer":              func() any { return &builtins.SuffixTransformerPlugin{} },
	"ValueAddTransformer":            func() any { return &builtins.ValueAddTransformerPlugin{} },
}
