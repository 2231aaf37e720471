// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/test/bench/report"
)

// rolloutScenarios are what happens to a fleet that a Platform looks after.
var rolloutScenarios = []scenario{
	{name: report.RolloutInstall, run: runRolloutInstall},
	{name: report.Rollout, run: runRollout, changing: true},
}

const (
	// rolloutPlatform is the Platform, whose bundles are of the family rolloutFamily.
	rolloutPlatform, rolloutFamily = "fleet", "bench"
	// stageLabel says in which stage a cluster is.
	stageLabel = "stage"
	// versionBefore and versionAfter are those of the bundle.
	versionBefore, versionAfter = "1.0.0", "1.1.0"
)

// The stages: one cluster of a hundred, then one of ten, then the rest.
const (
	stageCanary, stageEarly, stageRest = "canary", "early", "(rest)"
)

// stageOf returns the stage of the cluster at a place of all clusters.
func stageOf(i, clusters int) string {
	switch {
	case i < max(clusters/100, 1):
		return stageCanary
	case i < max(clusters/10, 2):
		return stageEarly
	}
	return stageRest
}

// rolloutBundle returns a version of the bundle: layers of some releases each, which do not
// depend on each other. The releases are written out, since charts of a catalogue would have
// source-controller fetch them for each cluster, which is not what is measured.
func rolloutBundle(of size, version, mark string) (*v1alpha1.ApplicationBundle, error) {
	bundle := &v1alpha1.ApplicationBundle{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationBundleKind},
		ObjectMeta: metav1.ObjectMeta{Name: rolloutFamily + "-" + version},
		Spec:       v1alpha1.ApplicationBundleSpec{Family: rolloutFamily, Version: version},
	}
	if version == versionAfter {
		bundle.Spec.UpgradesFrom = []string{versionBefore}
	}
	for j := range of.layers {
		layer := v1alpha1.BundleLayer{Name: fmt.Sprintf("layer-%02d", j)}
		for k := range of.releases {
			release, err := yaml.YAMLToJSON([]byte(manifest(fmt.Sprintf("layer-%02d-release-%02d", j, k), mark)))
			if err != nil {
				return nil, fmt.Errorf("cannot write a release: %w", err)
			}
			layer.Objects = append(layer.Objects, v1alpha1.Manifest{JSON: apiextensionsv1.JSON{Raw: release}})
		}
		bundle.Spec.Layers = append(bundle.Spec.Layers, layer)
	}
	return bundle, nil
}

// rolloutPlatformAt returns the Platform, whose roll-outs go in three stages.
func rolloutPlatformAt(version string) *v1alpha1.Platform {
	share := func(percent string) *intstr.IntOrString {
		value := intstr.FromString(percent)
		return &value
	}
	stage := func(name, atOnce string) v1alpha1.RolloutStage {
		return v1alpha1.RolloutStage{
			Name: name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{stageLabel: name}}, MaxUnavailable: share(atOnce),
		}
	}
	return &v1alpha1.Platform{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PlatformKind},
		ObjectMeta: metav1.ObjectMeta{Name: rolloutPlatform},
		Spec: v1alpha1.PlatformSpec{
			Bundle:          &v1alpha1.PlatformBundle{Family: rolloutFamily, Version: version},
			ClusterSelector: &v1alpha1.ClusterSelector{Namespace: namespace},
			Rollout: v1alpha1.RolloutSpec{
				Stages: []v1alpha1.RolloutStage{stage(stageCanary, "100%"), stage(stageEarly, "30%")}, MaxUnavailable: share("10%"),
			},
		},
	}
}

// newRollout makes clusters on each of which a bundle is installed. Its layers are known
// beforehand, so that a plain client writes the same.
func newRollout(of size) (*workload, error) {
	w := &workload{marks: map[string]string{}, puts: map[string]put{}, built: map[string]string{"README": "There are no directories.\n"}, bundled: true}
	for i := range of.clusters {
		w.clusters = append(w.clusters, fmt.Sprintf("cluster-%04d", i))
	}
	return w, w.bundle(of, versionBefore, "first")
}

// bundle fills the layers with what a version of the bundle comes to.
func (w *workload) bundle(of size, version, mark string) error {
	bundle, err := rolloutBundle(of, version, mark)
	if err != nil {
		return err
	}
	w.layers = nil
	for _, cluster := range w.clusters {
		for j := range of.layers {
			l := layer{Name: fmt.Sprintf("%s-%s-layer-%02d", rolloutPlatform, cluster, j), Cluster: cluster}
			manifests, err := bundles.Render(bundles.Request{
				Layer: l.Name, Instance: rolloutPlatform + "-" + namespace + "-" + cluster, Bundle: bundle, Path: fmt.Sprintf("./layer-%02d", j),
				Cluster: bundles.Cluster{Name: types.NamespacedName{Namespace: namespace, Name: cluster}},
			})
			if err != nil {
				return fmt.Errorf("cannot fill layer %s: %w", l.Name, err)
			}
			if err := w.put(l, &directories.Directory{Manifests: manifests}, mark, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// wants has a version of the bundle be what all layers are to come to.
func (s *session) wants(version, mark string) error {
	s.revision = version
	return s.work.bundle(s.rolloutSize(), version, mark)
}

// publish creates a version of the bundle.
func (s *session) publish(ctx context.Context, version, mark string) error {
	bundle, err := rolloutBundle(s.rolloutSize(), version, mark)
	if err != nil {
		return err
	}
	return s.create(ctx, "applicationbundles", bundle)
}

// runRolloutInstall installs the first version on all clusters.
func runRolloutInstall(ctx context.Context, s *session, r *report.Result) error {
	s.revision = versionBefore
	system, ok := s.system.(FleetController)
	if !ok {
		start := time.Now()
		return s.pushAll(ctx, r, start)
	}
	if err := s.makeKubeconfigs(ctx); err != nil {
		return err
	}
	var err error
	if s.rssBefore, err = s.rss(); err != nil {
		return err
	}
	if err := s.joinAll(ctx, system); err != nil {
		return err
	}
	start := time.Now()
	if err := s.publish(ctx, versionBefore, "first"); err != nil {
		return err
	}
	if err := s.create(ctx, "platforms", rolloutPlatformAt(versionBefore)); err != nil {
		return err
	}
	end, err := s.deployed(ctx)
	if err != nil {
		return err
	}
	r.Figures = append(r.Figures, seconds(report.AllDeployed, end.Sub(start)))
	if err := s.calm(ctx); err != nil {
		return err
	}
	return s.rssPerCluster(r)
}

// joinAll gives the system its clusters, with their stages, and waits until all are Ready.
func (s *session) joinAll(ctx context.Context, system FleetController) error {
	err := watch(s.lasting, s.client, system.ClusterPath(), func(seen change) {
		state := ""
		if system.Joined(seen.Object) {
			state = joined
		}
		s.clusters.tell(seen, state)
	})
	if err != nil {
		return err
	}
	places := make([]int, len(s.work.clusters))
	for i := range places {
		places[i] = i
	}
	err = each(ctx, places, func(ctx context.Context, i int) error {
		name := s.work.clusters[i]
		return createObject(ctx, s.client, system.ClusterPath(), map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.RemoteClusterKind,
			"metadata": map[string]any{"name": name, "labels": map[string]any{stageLabel: stageValue(stageOf(i, len(places)))}},
			"spec":     map[string]any{"kubeConfig": map[string]any{"secretRef": map[string]any{"name": name}}},
		})
	})
	if err != nil {
		return fmt.Errorf("cannot create the object of a cluster: %w", err)
	}
	_, err = awaitAll(ctx, "all clusters to be reached", s.clusters, joined, len(s.work.clusters))
	return err
}

// stageValue is how a label names a stage.
func stageValue(stage string) string {
	if stage == stageRest {
		return "rest"
	}
	return stage
}

// rolloutSize is the size of the bundle.
func (s *session) rolloutSize() size {
	layers := len(s.work.layers) / len(s.work.clusters)
	return size{clusters: len(s.work.clusters), layers: layers, releases: s.work.releases() / len(s.work.layers)}
}

// create creates an object of Strata.
func (s *session) create(ctx context.Context, resource string, obj any) error {
	content, err := declared(obj)
	if err != nil {
		return err
	}
	if err := createObject(ctx, s.client, ownPath(resource), content); err != nil {
		return fmt.Errorf("cannot create one of %s: %w", resource, err)
	}
	return nil
}

func ownPath(resource string) string {
	return "/apis/" + v1alpha1.GroupVersion.String() + "/" + resource
}

// pushAll has a plain client write everything, and waits until it is Ready.
func (s *session) pushAll(ctx context.Context, r *report.Result, start time.Time) error {
	pusher, ok := s.system.(Pusher)
	if !ok {
		return errors.New("the system knows of no other clusters")
	}
	if err := pusher.Push(ctx, s.work.manifestsOf(s.work.layers)); err != nil {
		return err
	}
	end, err := s.deployed(ctx)
	if err != nil {
		return err
	}
	r.Figures = append(r.Figures, seconds(report.AllDeployed, end.Sub(start)))
	return nil
}

// runRollout takes all clusters to the next version, stage by stage.
func runRollout(ctx context.Context, s *session, r *report.Result) error {
	if err := s.wants(versionAfter, "second"); err != nil {
		return err
	}
	start := time.Now()
	if !s.controlled() {
		return s.pushAll(ctx, r, start)
	}
	done := &stageTimes{at: map[string]time.Time{}}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	err := watch(watching, s.client, ownPath("platforms"), done.tell)
	if err != nil {
		return err
	}
	if err := s.publish(ctx, versionAfter, "second"); err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"spec":{"bundle":{"version":%q}}}`, versionAfter)
	err = s.client.Patch(types.MergePatchType).AbsPath(ownPath("platforms"), rolloutPlatform).Body([]byte(patch)).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("cannot ask for version %s: %w", versionAfter, err)
	}
	for _, stage := range []struct{ name, figure string }{{stageCanary, report.CanaryDone}, {stageEarly, report.EarlyDone}} {
		var at time.Time
		err := await(ctx, lookEvery, "stage "+stage.name+" to be done", func() string { return "it is not" }, func() bool {
			at = done.of(stage.name)
			return !at.IsZero()
		})
		if err != nil {
			return err
		}
		r.Figures = append(r.Figures, seconds(stage.figure, at.Sub(start)))
	}
	end, err := s.deployed(ctx)
	if err != nil {
		return err
	}
	r.Figures = append(r.Figures, seconds(report.AllDeployed, end.Sub(start)))
	if err := s.calm(ctx); err != nil {
		return err
	}
	return s.rssPerCluster(r)
}

// stageTimes is when each stage was first seen to be done. It is safe for concurrent use.
type stageTimes struct {
	mu sync.Mutex
	at map[string]time.Time
}

// tell takes in a change of the Platform.
func (t *stageTimes) tell(seen change) {
	var status v1alpha1.PlatformStatus
	if len(seen.Object.Status) == 0 || json.Unmarshal(seen.Object.Status, &status) != nil || status.Rollout == nil || status.Rollout.Target != versionAfter {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, stage := range status.Rollout.Passed {
		if t.at[stage].IsZero() {
			t.at[stage] = seen.At
		}
	}
}

// of returns when a stage was done; zero where it is not.
func (t *stageTimes) of(stage string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at[stage]
}

// declared returns an object as it is created: the status is the controller's, also an
// empty one.
func declared(obj any) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot convert an object: %w", err)
	}
	delete(content, "status")
	return content, nil
}
