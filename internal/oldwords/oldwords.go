// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oldwords knows which words specifications had before. What was meant by one is
// not guessed: who has one is told the word of now, and nothing of it is written, moved
// or deleted until it says that.
//
// What was published is the same in old words and new ones: its digest is made of the old.
package oldwords

import (
	"cmp"
	"fmt"

	"github.com/strata-project/strata/api/v1alpha1"
)

// word is one that a specification has and should not.
type word struct {
	has      bool
	old, now string
}

// first says what to write for the first word that is there; empty for none.
func first(path string, words ...word) string {
	for _, w := range words {
		if w.has {
			return fmt.Sprintf("%s%s is now %s: write that", path, w.old, w.now)
		}
	}
	return ""
}

// InLayer says which old word an AddonsLayer has; empty for none.
func InLayer(layer *v1alpha1.AddonsLayer) string {
	if found := inWaits("spec.", layer.Spec.WaitFor); found != "" {
		return found
	}
	return first("spec.", word{len(layer.Spec.OldDeleteAfter) > 0, "deleteAfter", "teardownAfter"})
}

func inWaits(path string, waits []v1alpha1.WaitFor) string {
	for i, one := range waits {
		if found := first(fmt.Sprintf("%swaitFor[%d].", path, i), word{one.OldCondition != "", "condition", "readyExpr"}); found != "" {
			return found
		}
	}
	return ""
}

// InVersion says which old word a version of a HelmApplication has; empty for none.
func InVersion(version v1alpha1.HelmApplicationVersion) string {
	return first(
		"versions["+version.Version+"].",
		word{len(version.OldDependencies) > 0, "dependencies", "dependsOn"},
		word{len(version.OldRecommendations) > 0, "recommendations", "recommends"},
		word{version.OldKubernetes != "", "kubernetes", "kubeVersion"},
	)
}

// InEntry says which old word a HelmApplication has beside those of its versions; empty for
// none.
func InEntry(app *v1alpha1.HelmApplication) string {
	return first("", word{app.Spec.OldLicence != "", "licence", "license"})
}

// InApplication says which old word a HelmApplication has; empty for none.
func InApplication(app *v1alpha1.HelmApplication) string {
	if found := InEntry(app); found != "" {
		return found
	}
	for _, version := range app.Spec.Versions {
		if found := InVersion(version); found != "" {
			return found
		}
	}
	return ""
}

// InBundle says which old word an ApplicationBundle has; empty for none.
func InBundle(bundle *v1alpha1.ApplicationBundle) string {
	if found := first("", word{bundle.Spec.OldKubernetes != "", "kubernetes", "kubeVersion"}); found != "" {
		return found
	}
	for i := range bundle.Spec.Layers {
		if found := inBundleLayer(&bundle.Spec.Layers[i]); found != "" {
			return found
		}
	}
	return ""
}

func inBundleLayer(layer *v1alpha1.BundleLayer) string {
	path := "layers[" + layer.Name + "]."
	if found := first(path, word{layer.OldTeardown != nil, "teardown.after", "teardownAfter"}); found != "" {
		return found
	}
	waits := make([]v1alpha1.WaitFor, 0, len(layer.WaitFor))
	for _, wait := range layer.WaitFor {
		waits = append(waits, wait.WaitFor)
	}
	if found := inWaits(path, waits); found != "" {
		return found
	}
	if cluster := layer.RemoteCluster; cluster != nil {
		return first(
			path+"remoteCluster.",
			word{cluster.OldSecretRef != nil, "secretRef", "kubeConfig.secretRef"},
			word{cluster.OldNamespace != "", "namespace", "kubeConfig.secretRef.namespace"},
		)
	}
	return ""
}

// InPlatform says which old word a Platform has; empty for none.
func InPlatform(platform *v1alpha1.Platform) string {
	if platform.Spec.Upgrade.Mode == v1alpha1.UpgradeNotify {
		return "spec.upgrade.mode: Notify is no mode any more: write mode Manual and forceAfterEndOfLife: true"
	}
	upgrade := platform.Spec.Upgrade
	return first(
		"spec.upgrade.",
		word{len(upgrade.OldWindows) > 0, "windows", "maintenanceWindows"},
		word{upgrade.OldSemver != "", "semver", "maxStep"},
	)
}

// InCluster says which old word a RemoteCluster has; empty for none.
func InCluster(cluster *v1alpha1.RemoteCluster) string {
	return first("spec.", word{cluster.Spec.OldVia != nil, "via", "kubeConfig.clusterRef, and its namespace kubeConfig.secretRef.namespace"})
}

// WriteVersion writes a version in old words, for its digest.
func WriteVersion(version *v1alpha1.HelmApplicationVersion) {
	if len(version.DependsOn) > 0 {
		version.OldDependencies, version.DependsOn = version.DependsOn, nil
	}
	if len(version.Recommends) > 0 {
		version.OldRecommendations, version.Recommends = version.Recommends, nil
	}
	version.OldKubernetes, version.KubeVersion = cmp.Or(version.KubeVersion, version.OldKubernetes), ""
}

// WriteBundle writes a bundle in old words, for its digest.
func WriteBundle(bundle *v1alpha1.ApplicationBundleSpec) {
	bundle.OldKubernetes, bundle.KubeVersion = cmp.Or(bundle.KubeVersion, bundle.OldKubernetes), ""
	for i := range bundle.Layers {
		writeBundleLayer(&bundle.Layers[i])
	}
}

func writeBundleLayer(layer *v1alpha1.BundleLayer) {
	for i := range layer.WaitFor {
		one := &layer.WaitFor[i]
		one.OldCondition, one.ReadyExpr = cmp.Or(one.ReadyExpr, one.OldCondition), ""
	}
	if layer.TeardownAfter != nil {
		layer.OldTeardown, layer.TeardownAfter = &v1alpha1.OldTeardown{After: layer.TeardownAfter}, nil
	}
	if cluster := layer.RemoteCluster; cluster != nil && cluster.OldSecretRef == nil {
		secret := cluster.KubeConfig.SecretRef
		cluster.OldSecretRef, cluster.OldNamespace = &v1alpha1.OldSecretKey{Name: secret.Name, Key: secret.Key}, secret.Namespace
		cluster.KubeConfig = v1alpha1.BundleKubeConfig{}
	}
}
