// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package owner_test

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/owner"
	"github.com/strata-project/strata/internal/answers/snapshot/snapshottest"
	"github.com/strata-project/strata/internal/terminal"
)

const owners = `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: base, labels: {platform.kraan.io/name: main}}
spec: {version: 1.0.0, source: {kind: ApplicationBundle, name: bundle, path: ./network}}
status:
  version: 1.0.0
  resources:
  - {namespace: ns, name: web, kind: helmreleases.helm.toolkit.fluxcd.io, status: Deployed, file: web.yaml}
  - {name: ns, kind: Namespace, status: Deployed, file: ns.yaml}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {namespace: ns, name: web, labels: {kraan/layer: base}}
spec: {targetNamespace: apps}
status: {inventory: {entries: [{id: apps_listed__ConfigMap, v: v1}]}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {namespace: ns, name: far}
spec: {kubeConfig: {secretRef: {name: x}}}
status: {inventory: {entries: [{id: apps_far__ConfigMap, v: v1}]}}
---
`

func TestOwnerOf(t *testing.T) {
	s := snapshottest.New(t, owners)
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: apps\n"
	for _, test := range []struct{ name, object, want string }{
		{"an inventory lists it", configMap + "  name: listed", "ConfigMap apps/listed -> HelmRelease ns/web -> AddonsLayer base@1.0.0|./network/web.yaml of ApplicationBundle bundle|of platform main"},
		{"Flux's labels", configMap + "  name: x\n  labels: {helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: ns}", "ConfigMap apps/x -> HelmRelease ns/web -> AddonsLayer base@1.0.0|"},
		{"Helm's annotations", configMap + "  name: x\n  annotations: {meta.helm.sh/release-name: apps-web, meta.helm.sh/release-namespace: apps}", "-> HelmRelease ns/web -> AddonsLayer base@1.0.0|"},
		{"a Namespace", "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}", "Namespace ns -> AddonsLayer base@1.0.0|./network/ns.yaml of"},
		{"a layer", "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: base}", "AddonsLayer base@1.0.0|./network of"},
		{"on another cluster", configMap + "  name: far", "ConfigMap apps/far|no layer has it"},
		{"a label of a layer that is gone", configMap + "  name: x\n  labels: {kraan/layer: gone}", "no layer has it|it seems to belong to layer gone, which does not exist"},
		{"another release", configMap + "  name: x\n  annotations: {meta.helm.sh/release-name: other, meta.helm.sh/release-namespace: apps}", "no layer has it|it seems to belong to Helm release apps/other"},
		{"a HelmRelease that is gone", configMap + "  name: x\n  labels: {helm.toolkit.fluxcd.io/name: gone, helm.toolkit.fluxcd.io/namespace: ns}", "belong to HelmRelease ns/gone, which is not there"},
		{"kustomize-controller", configMap + "  name: x\n  labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}", "belong to Kustomization flux-system/apps of Flux"},
		{"Argo CD", configMap + "  name: x\n  annotations: {argocd.argoproj.io/tracking-id: 'shop:apps/Deployment:a/b'}", "belong to Application shop of Argo CD"},
		{"kubectl", configMap + "  name: x\n  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}'}", "whoever ran kubectl apply"},
		{"a HelmRelease of nobody", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {namespace: ns, name: far}", "HelmRelease ns/far|no layer has it"},
	} {
		got := strings.ReplaceAll(printing.Owner(terminal.Screen{}, owner.Of(s, snapshottest.Objects(t, test.object))), "\n  ", "|")
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
