// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package firstlayers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/object"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/chartutil"
	"github.com/opencontainers/go-digest"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/setup"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

// observation is what helm-controller compares a release by, in the order of its fields.
// A release that differs is upgraded once, as one that it has never seen.
type observation struct {
	Name          string           `json:"name"`
	Version       int              `json:"version"`
	Info          releasev1.Info   `json:"info"`
	ChartMetadata chartv2.Metadata `json:"chartMetadata"`
	Config        map[string]any   `json:"config"`
	Manifest      string           `json:"manifest"`
	Hooks         []releasev1.Hook `json:"hooks"`
	Namespace     string           `json:"namespace"`
}

// snapshotOf returns what helm-controller would have noted, had it installed the release.
func snapshotOf(release *releasev1.Release) (*helmv2.Snapshot, error) {
	seen := observation{
		Name: release.Name, Version: release.Version, Info: *release.Info, ChartMetadata: *release.Chart.Metadata,
		Manifest: release.Manifest, Namespace: release.Namespace,
	}
	if len(release.Config) > 0 {
		seen.Config = release.Config
	}
	for _, hook := range release.Hooks {
		if !slices.Contains(hook.Events, releasev1.HookTest) {
			seen.Hooks = append(seen.Hooks, *hook)
		}
	}
	sum, err := digestOf(seen)
	if err != nil {
		return nil, err
	}
	return &helmv2.Snapshot{
		APIVersion: helmv2.CurrentSnapshotAPIVersion, Digest: sum,
		Name: release.Name, Namespace: release.Namespace, Version: release.Version,
		ChartName: release.Chart.Metadata.Name, ChartVersion: release.Chart.Metadata.Version, AppVersion: release.Chart.Metadata.AppVersion,
		ConfigDigest:  chartutil.DigestValues(digest.Canonical, release.Config).String(),
		FirstDeployed: metav1.NewTime(release.Info.FirstDeployed),
		LastDeployed:  metav1.NewTime(release.Info.LastDeployed),
		Deleted:       metav1.NewTime(release.Info.Deleted),
		Status:        release.Info.Status.String(), Action: helmv2.ReleaseActionInstall,
	}, nil
}

// digestOf returns the digest of a value as helm-controller makes it: of its JSON, and the
// newline that an encoder ends it with.
func digestOf(value any) (string, error) {
	digester := digest.Canonical.Digester()
	if err := json.NewEncoder(digester.Hash()).Encode(value); err != nil {
		return "", err
	}
	return digester.Digest().String(), nil
}

// statusOf returns the status that helm-controller finds a release in sync by.
func statusOf(release *releasev1.Release, of *charts.Installable) (map[string]any, error) {
	snapshot, err := snapshotOf(release)
	if err != nil {
		return nil, err
	}
	status := map[string]any{
		"history":          []any{snapshot},
		"storageNamespace": of.Release.GetStorageNamespace(),
		// What helm-controller makes of Ready is what Released says.
		"conditions": []any{metav1.Condition{
			Type: helmv2.ReleasedCondition, Status: metav1.ConditionTrue, Reason: helmv2.InstallSucceededReason,
			LastTransitionTime: metav1.NewTime(release.Info.LastDeployed),
			Message: fmt.Sprintf("Helm install succeeded for release %s/%s.v%d with chart %s@%s",
				release.Namespace, release.Name, release.Version, snapshot.ChartName, snapshot.ChartVersion),
		}},
	}
	if renderers := of.Release.Spec.PostRenderers; renderers != nil {
		if status["observedPostRenderersDigest"], err = digestOf(renderers); err != nil {
			return nil, err
		}
	}
	if common := of.Release.Spec.CommonMetadata; common != nil {
		if status["observedCommonMetadataDigest"], err = digestOf(common); err != nil {
			return nil, err
		}
	}
	return status, nil
}

// inventoryOf returns what a release has made, as helm-controller notes it.
func (t *target) inventoryOf(release *releasev1.Release, of *charts.Installable) (map[string]any, error) {
	made, err := setup.Objects(release.Manifest)
	if err != nil {
		return nil, err
	}
	for _, crd := range of.Chart.CRDObjects() {
		found, err := setup.Objects(string(crd.File.Data))
		if err != nil {
			return nil, err
		}
		made = append(made, found...)
	}
	var entries []any
	for _, each := range made {
		gvk := each.GroupVersionKind()
		mapping, err := t.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, err
		}
		id := object.ObjMetadata{GroupKind: gvk.GroupKind(), Name: each.GetName()}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			id.Namespace = cmp.Or(each.GetNamespace(), release.Namespace)
		}
		entries = append(entries, map[string]any{"id": id.String(), "v": gvk.Version})
	}
	return map[string]any{"entries": entries}, nil
}

// handOver makes the HelmRelease of a release that runs, in the name of its layer. It is
// suspended until helm-controller can see that the release is as it should be.
func (t *target) handOver(ctx context.Context, wanted *dependents.Dependent, of *charts.Installable) error {
	// The release may have brought kinds of its own.
	t.mapper.Reset()
	release, err := t.release(of)
	switch {
	case err != nil:
		return err
	case release == nil || release.Info.Status != releasecommon.StatusDeployed:
		return fmt.Errorf("the Helm release %s/%s is not deployed any more: run it again", of.Namespace, of.Name)
	}
	status, err := statusOf(release, of)
	if err != nil {
		return err
	}
	if status["inventory"], err = t.inventoryOf(release, of); err != nil {
		return err
	}
	suspended := wanted.Manifest().DeepCopy()
	if err := unstructured.SetNestedField(suspended.Object, true, "spec", "suspend"); err != nil {
		return err
	}
	if err := t.apply(ctx, suspended); err != nil {
		return err
	}
	resource, err := t.resource(wanted.ID)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, wanted.ID.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: dependents.FieldManager}, "status")
	if err != nil {
		return err
	}
	return t.apply(ctx, wanted.Manifest())
}

// isHalfHandedOver tells whether a HelmRelease is one that handOver has begun with, and not
// brought to its end.
func isHalfHandedOver(live *unstructured.Unstructured, layer string) bool {
	suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend")
	isOurs := slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == dependents.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil &&
			strings.Contains(entry.FieldsV1.GetRawString(), `"f:suspend"`)
	})
	return suspended && isOurs && live.GetLabels()[v1alpha1.LayerLabel] == layer
}

// apply applies an object as the controller would.
func (t *target) apply(ctx context.Context, wanted *unstructured.Unstructured) error {
	data, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	force := true
	resource, err := t.fresh(objects.IDOf(wanted))
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, wanted.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: dependents.FieldManager, Force: &force})
	return err
}
