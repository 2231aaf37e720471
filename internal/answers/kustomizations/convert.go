// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/sources"
)

// Version is that of every layer that is made of a Kustomization: others depend on it by
// name alone.
const Version = "0.0.0"

// Conversion is a layer that is made of a Kustomization.
type Conversion struct {
	// Of names the Kustomization, and File where it was found; empty on a cluster.
	Of   types.NamespacedName
	File string
	// Layer that it becomes; nil where none is needed.
	Layer *v1alpha1.AddonsLayer
	// Empty is true for one that applies nothing but other Kustomizations.
	Empty bool
	// Missing is true where its source has no such directory.
	Missing bool
	// Cluster that the layer needs; nil for the one that Strata runs in.
	Cluster *v1alpha1.RemoteCluster
	// Parent is the Kustomization that applies it; empty for none.
	Parent types.NamespacedName
	// Notes say what means something else than it did, and Problems what was not
	// converted, and why. Each begins with the field.
	Notes, Problems []string
}

// To names what the Kustomization is handed over to.
func (c *Conversion) To() string {
	if c.Layer == nil {
		return "nothing"
	}
	return c.Layer.Name
}

func (c *Conversion) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

func (c *Conversion) problem(format string, args ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}

// maxLayerName is how long the name of a layer may be: it is the value of a label.
const maxLayerName = 63

// convert makes a layer of a Kustomization.
func (t *tree) convert(k *kustomizev1.Kustomization, with Options) Conversion {
	c := Conversion{Of: types.NamespacedName{Namespace: k.Namespace, Name: k.Name}}
	layer := &v1alpha1.AddonsLayer{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.AddonsLayerKind},
		ObjectMeta: metav1.ObjectMeta{Name: t.names[c.Of]},
	}
	spec := &layer.Spec
	spec.Version, spec.Build = Version, v1alpha1.BuildFlux
	c.source(k, spec)
	c.dependencies(k, spec, t)
	c.generator(k, spec, with.SopsSecret)
	c.rollout(k, spec, t)
	c.identity(k, spec, with)
	for _, left := range variablesLeft(k) {
		c.problem("%s", left)
	}
	if len(layer.Name) > maxLayerName {
		c.problem("metadata.name: %s has more than %d characters, which is the most that a layer may have", layer.Name, maxLayerName)
	}
	if why := validation.NameIsDNSSubdomain(layer.Name, false); len(why) > 0 {
		c.problem("metadata.name: %s is no name of a layer: %s", layer.Name, strings.Join(why, "; "))
	}
	c.Layer = layer
	return c
}

// source converts where the files are.
func (c *Conversion) source(k *kustomizev1.Kustomization, spec *v1alpha1.AddonsLayerSpec) {
	from := k.Spec.SourceRef
	spec.Source = v1alpha1.SourceSpec{Name: from.Name, Namespace: cmp.Or(from.Namespace, k.Namespace), Path: layerPath(k.Spec.Path)}
	if from.Kind != sources.GitRepository {
		spec.Source.Kind = from.Kind
	}
	if spec.Source.Namespace != k.Namespace {
		spec.Namespace = k.Namespace
	}
	if strings.HasPrefix(path.Clean(k.Spec.Path), "..") {
		c.problem("spec.path: %s leads out of the source", k.Spec.Path)
	}
}

// layerPath returns a path as a layer has it.
func layerPath(of string) string {
	clean := strings.TrimPrefix(path.Clean("/"+of), "/")
	return "./" + clean
}

// dependencies converts what comes first.
func (c *Conversion) dependencies(k *kustomizev1.Kustomization, spec *v1alpha1.AddonsLayerSpec, t *tree) {
	for i, on := range k.Spec.DependsOn {
		other := types.NamespacedName{Namespace: cmp.Or(on.Namespace, k.Namespace), Name: on.Name}
		_, found := t.byKey[other]
		if !found && t.names[other] == "" {
			c.problem("spec.dependsOn[%d]: there is no Kustomization %s, so the layer waits for nothing in its place", i, other)
			continue
		}
		if on.ReadyExpr != "" {
			name := cmp.Or(t.names[other], other.Name)
			c.problem("spec.dependsOn[%d].readyExpr: a layer waits until %s is deployed, and for nothing else: write what %s must be in its healthCheckExprs",
				i, name, name)
		}
		names := t.waitsFor(other)
		if len(names) == 0 {
			c.note("spec.dependsOn[%d]: %s needs no layer, and waits for nothing that it applies", i, other)
		}
		for _, name := range names {
			if name != t.names[c.Of] && !slices.Contains(spec.Prereqs.DependsOn, name) {
				spec.Prereqs.DependsOn = append(spec.Prereqs.DependsOn, name)
			}
		}
	}
}

// generator converts how objects are made.
func (c *Conversion) generator(k *kustomizev1.Kustomization, spec *v1alpha1.AddonsLayerSpec, sopsSecret string) {
	spec.TargetNamespace, spec.NamePrefix, spec.NameSuffix = k.Spec.TargetNamespace, k.Spec.NamePrefix, k.Spec.NameSuffix
	spec.Components, spec.IgnoreMissingComponents = k.Spec.Components, k.Spec.IgnoreMissingComponents
	spec.Patches, spec.Images = k.Spec.Patches, k.Spec.Images
	for _, option := range k.Spec.BuildMetadata {
		spec.BuildMetadata = append(spec.BuildMetadata, string(option))
	}
	if of := k.Spec.CommonMetadata; of != nil {
		spec.CommonMetadata = &v1alpha1.CommonMetadata{Labels: of.Labels, Annotations: of.Annotations}
	}
	if of := k.Spec.PostBuild; of != nil {
		spec.PostBuild = &v1alpha1.PostBuild{Substitute: of.Substitute, SubstituteStrategy: v1alpha1.SubstituteStrategy(of.SubstituteStrategy)}
		for _, from := range of.SubstituteFrom {
			spec.PostBuild.SubstituteFrom = append(spec.PostBuild.SubstituteFrom, v1alpha1.SubstituteReference{
				Kind: from.Kind, Name: from.Name, Optional: from.Optional,
			})
		}
	}
	if of := k.Spec.Decryption; of != nil {
		switch {
		case of.SecretRef == nil && sopsSecret == "":
			c.problem("spec.decryption: without secretRef Flux takes the keys of its controller, and a layer has none: " +
				"name a Secret with a key of age or PGP by --sops-secret, which must be in the namespace of each Kustomization")
		case of.SecretRef == nil:
			spec.Decryption = &v1alpha1.Decryption{Provider: of.Provider, SecretRef: v1alpha1.SecretName{Name: sopsSecret}}
			c.note("spec.decryption: takes the keys of Secret %s/%s, which must be there", k.Namespace, sopsSecret)
		default:
			spec.Decryption = &v1alpha1.Decryption{Provider: of.Provider, SecretRef: v1alpha1.SecretName{Name: of.SecretRef.Name}}
		}
		if of.ServiceAccountName != "" {
			c.problem("spec.decryption.serviceAccountName: keys of cloud providers and of Vault are not used: encrypt for a key of age or PGP, too")
		}
	}
	if len(k.Spec.Ignore) > 0 {
		c.problem("spec.ignore: a layer keeps every field that its files say: take those out of the files that others are to set")
	}
}

// orphanGrace is how long what leaves a layer waits for another one. Flux removes it at
// once; a commit that moves it reaches two layers within seconds.
const orphanGrace = time.Minute

// rollout converts how objects are applied, judged and removed.
func (c *Conversion) rollout(k *kustomizev1.Kustomization, spec *v1alpha1.AddonsLayerSpec, t *tree) {
	interval := k.Spec.Interval
	if interval.Duration > 0 {
		spec.Interval = &interval
	}
	spec.OrphanGrace = &metav1.Duration{Duration: orphanGrace}
	spec.Timeout, spec.Hold, spec.Force = k.Spec.Timeout, k.Spec.Suspend, k.Spec.Force
	if k.Spec.RetryInterval != nil {
		c.note("spec.retryInterval: left out, because a layer tries again by itself, and at once when something changes")
	}
	no := false
	if !k.Spec.Wait {
		spec.Wait = &no
		checked := checksOf(k)
		for _, check := range k.Spec.HealthChecks {
			if check.Kind == kustomizationKind && len(checked) > 0 {
				of := checked[0]
				checked = checked[1:]
				if _, found := t.byKey[of]; found || t.names[of] != "" {
					c.note("spec.healthChecks: Kustomization %s is left out, and layers that depend on this one wait for its layer", of)
					continue
				}
			}
			spec.HealthChecks = append(spec.HealthChecks, v1alpha1.HealthCheck{
				APIVersion: check.APIVersion, Kind: check.Kind, Name: check.Name, Namespace: check.Namespace,
			})
		}
	} else if len(k.Spec.HealthChecks) > 0 {
		c.note("spec.healthChecks: left out, because wait is true, and Flux does not look at them then")
	}
	for i, expr := range k.Spec.HealthCheckExprs {
		if expr.Kind == "" {
			c.problem("spec.healthCheckExprs[%d].kind: is empty: say which kind it is for", i)
			continue
		}
		spec.HealthCheckExprs = append(spec.HealthCheckExprs, v1alpha1.HealthCheckExpr{
			APIVersion: expr.APIVersion, Kind: expr.Kind, InProgress: expr.InProgress, Failed: expr.Failed, Current: expr.Current,
		})
	}
	if !k.Spec.Prune {
		spec.Prune = &no
	}
	switch k.Spec.DeletionPolicy {
	case "", kustomizev1.DeletionPolicyMirrorPrune:
	case kustomizev1.DeletionPolicyWaitForTermination:
		spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
	default:
		spec.DeletionPolicy = v1alpha1.DeletionPolicy(k.Spec.DeletionPolicy)
	}
}

// identity converts as whom and where objects are written.
func (c *Conversion) identity(k *kustomizev1.Kustomization, spec *v1alpha1.AddonsLayerSpec, with Options) {
	spec.ServiceAccountName = c.account(k.Spec.ServiceAccountName, with.Account)
	if slices.Contains(with.Reserved, spec.ServiceAccountName) && spec.ServiceAccountName != "" {
		c.problem("spec.serviceAccountName: %s is an account of Flux itself, which no layer may act as: "+
			"name one that has the rights of this layer", spec.ServiceAccountName)
	}
	to := k.Spec.KubeConfig
	if to == nil {
		return
	}
	if to.SecretRef == nil {
		c.problem("spec.kubeConfig.configMapRef: clusters are reached by a kubeconfig in a Secret: make one, and a RemoteCluster of it")
		return
	}
	// What Flux looks up beside the Kustomization, a layer has in the RemoteCluster's namespace.
	spec.Namespace = ""
	spec.Cluster = &v1alpha1.ClusterReference{Namespace: k.Namespace, Name: to.SecretRef.Name}
	c.Cluster = &v1alpha1.RemoteCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.RemoteClusterKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: to.SecretRef.Name},
		Spec: v1alpha1.RemoteClusterSpec{KubeConfig: v1alpha1.KubeConfigSource{
			SecretRef: v1alpha1.SecretKeyReference{Name: to.SecretRef.Name, Key: to.SecretRef.Key},
		}},
	}
}

// Manifest returns an object as a file has it: without status, and without what says
// nothing.
func Manifest(of runtime.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		return nil, fmt.Errorf("cannot write the manifest: %w", err)
	}
	delete(fields, "status")
	object := &unstructured.Unstructured{Object: fields}
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	for _, field := range []string{"interval", "timeout", "orphanGrace"} {
		if text, found, _ := unstructured.NestedString(fields, "spec", field); found {
			_ = unstructured.SetNestedField(fields, shortDuration(text), "spec", field) // it is a mapping
		}
	}
	return object, nil
}

// shortDuration returns a duration as people write it: 1h for 1h0m0s.
func shortDuration(text string) string {
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
