// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package firstlayers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/chartutil"
	"github.com/opencontainers/go-digest"
	"helm.sh/helm/v4/pkg/action"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/setup"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/observe"
)

// target is the cluster that is filled.
type target struct {
	config  *rest.Config
	client  dynamic.Interface
	typed   kubernetes.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	console *console.Console
}

func newTarget(c *console.Console, config *rest.Config) (*target, error) {
	config = rest.CopyConfig(config)
	// As with other commands: a handful of questions at once need no spacing.
	config.QPS, config.Burst = 50, 100
	t := &target{config: config, console: c.Through(config)}
	var err error
	if t.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if t.typed, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	t.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(t.typed.Discovery()))
	return t, nil
}

// see looks at what is wanted of the cluster.
func (t *target) see(ctx context.Context, wanted Wanted, loaded map[objects.ID]*charts.Installable) (Seen, error) {
	seen := Seen{Releases: map[string]Release{}, There: map[objects.ID]bool{}, Managed: map[objects.ID]bool{}}
	var err error
	if seen.NodesReady, _, err = t.nodesReady(ctx); err != nil {
		return seen, err
	}
	for _, layer := range wanted.Layers {
		if live, err := t.get(ctx, layerID(layer.Name)); err != nil {
			return seen, err
		} else if live != nil {
			seen.There[layerID(layer.Name)] = true
			continue
		}
		for _, object := range layer.Objects {
			live, err := t.get(ctx, object.ID)
			switch {
			case err != nil:
				return seen, err
			case object.ID.GroupKind() != kinds.HelmReleaseKind:
				seen.There[object.ID] = live != nil
				continue
			case live != nil && !isHalfHandedOver(live, layer.Name):
				seen.Managed[object.ID] = true
			}
			release, err := t.release(loaded[object.ID])
			if err != nil {
				return seen, fmt.Errorf("cannot see what is installed for %s: %w", object.ID, err)
			}
			if release != nil {
				seen.Releases[object.Exclusive] = releaseOf(release)
			}
		}
	}
	if !wanted.Install {
		return seen, nil
	}
	flux, err := t.deployments(ctx, fluxLabels)
	if err != nil {
		return seen, err
	}
	seen.Flux = len(flux) >= fluxControllers
	seen.FluxReady = seen.Flux && areReady(flux) == ""
	strata, err := t.deployments(ctx, gather.ControllerLabels)
	if err != nil {
		return seen, err
	}
	seen.Strata = len(strata) > 0
	for _, object := range wanted.Objects {
		id := objects.IDOf(object)
		live, err := t.get(ctx, id)
		if err != nil {
			return seen, err
		}
		seen.There[id] = live != nil
		if live != nil && id == layerID(id.Name) && !isDeployed(live) {
			seen.Undeployed = true
		}
	}
	return seen, nil
}

// get returns an object; nil where there is none, or none of its kind.
func (t *target) get(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	resource, err := t.resource(id)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", id, err)
	}
	live, err := resource.Get(ctx, id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", id, err)
	}
	return live, nil
}

// fresh is resource for a kind that may have come since kinds were asked for.
func (t *target) fresh(id objects.ID) (dynamic.ResourceInterface, error) {
	resource, err := t.resource(id)
	if meta.IsNoMatchError(err) {
		t.mapper.Reset()
		return t.resource(id)
	}
	return resource, err
}

// resource returns what objects of a kind are read and written by. The error is a
// NoMatchError where the cluster does not serve the kind.
func (t *target) resource(id objects.ID) (dynamic.ResourceInterface, error) {
	mapping, err := t.mapper.RESTMapping(id.GroupKind())
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return t.client.Resource(mapping.Resource), nil
	}
	return t.client.Resource(mapping.Resource).Namespace(id.Namespace), nil
}

// nodesReady tells whether there are Nodes and all of them are Ready; note says which is not.
func (t *target) nodesReady(ctx context.Context) (ready bool, note string, err error) {
	nodes, err := t.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, "", fmt.Errorf("cannot list the nodes: %w", err)
	}
	for _, node := range nodes.Items {
		at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		switch {
		case at < 0:
			return false, "node " + node.Name + " has not said how it is", nil
		case node.Status.Conditions[at].Status != corev1.ConditionTrue:
			return false, "node " + node.Name + " is not Ready: " + node.Status.Conditions[at].Message, nil
		}
	}
	return len(nodes.Items) > 0, "there are no nodes", nil
}

// fluxLabels are those of the controllers that Strata needs, and fluxControllers how many
// these are.
const (
	fluxLabels      = "app.kubernetes.io/component in (source-controller,helm-controller)"
	fluxControllers = 2
)

func (t *target) deployments(ctx context.Context, labels string) ([]appsv1.Deployment, error) {
	list, err := t.typed.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: labels})
	if err != nil {
		return nil, fmt.Errorf("cannot list the Deployments: %w", err)
	}
	return list.Items, nil
}

// areReady says which Deployment is not ready; empty where all are.
func areReady(all []appsv1.Deployment) string {
	for _, each := range all {
		if each.Status.ReadyReplicas == 0 {
			return fmt.Sprintf("Deployment %s/%s is not ready", each.Namespace, each.Name)
		}
	}
	return ""
}

// fluxReady tells whether Flux's controllers run; note says which does not.
func (t *target) fluxReady(ctx context.Context) (ready bool, note string, err error) {
	found, err := t.deployments(ctx, fluxLabels)
	if err != nil {
		return false, "", err
	}
	if len(found) < fluxControllers {
		return false, "there are no Deployments of source-controller and helm-controller", nil
	}
	if note = areReady(found); note == "" {
		return true, "", nil
	}
	for _, each := range found {
		if why := t.whyNotReady(ctx, each); why != "" {
			return false, note + ": " + why, nil
		}
	}
	return false, note, nil
}

// whyNotReady says what keeps a Pod of a Deployment from running; empty where nobody says so.
func (t *target) whyNotReady(ctx context.Context, of appsv1.Deployment) string {
	selector, err := metav1.LabelSelectorAsSelector(of.Spec.Selector)
	if err != nil {
		return ""
	}
	pods, err := t.typed.CoreV1().Pods(of.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return ""
	}
	for _, pod := range pods.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				return "Pod " + pod.Name + ": " + condition.Message
			}
		}
		for _, container := range pod.Status.ContainerStatuses {
			if waiting := container.State.Waiting; waiting != nil && waiting.Message != "" {
				return "Pod " + pod.Name + ": " + waiting.Message
			}
		}
	}
	return ""
}

// isDeployed tells whether a layer is as it was last asked for.
func isDeployed(layer *unstructured.Unstructured) bool {
	state, _, _ := unstructured.NestedString(layer.Object, "status", "state")
	observed, _, _ := unstructured.NestedInt64(layer.Object, "status", "observedGeneration")
	return state == string(v1alpha1.StateDeployed) && observed == layer.GetGeneration()
}

// helm returns how Helm's library reaches a release.
func (t *target) helm(of *charts.Installable) (*action.Configuration, error) {
	flags := t.console.Through(t.config).Flags
	flags.Namespace = &of.Namespace
	return setup.Helm(flags, of.Release.GetStorageNamespace())
}

// release returns the last revision of a release; nil where there is none.
func (t *target) release(of *charts.Installable) (*releasev1.Release, error) {
	helm, err := t.helm(of)
	if err != nil {
		return nil, err
	}
	return setup.LastRelease(helm, of.Name)
}

func releaseOf(release *releasev1.Release) Release {
	return Release{
		Chart: release.Chart.Metadata.Name, Version: release.Chart.Metadata.Version, Status: release.Info.Status,
		Config: chartutil.DigestValues(digest.Canonical, release.Config).String(),
	}
}

// Lacking returns, in words, those of some layers that a cluster does not have: all of them
// where none answers.
func Lacking(ctx context.Context, cluster *observe.Cluster, names []string) (string, error) {
	if cluster == nil || len(names) == 0 {
		return strings.Join(names, ", "), nil
	}
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		return "", err
	}
	var lacking []string
	for _, name := range names {
		_, err := client.Resource(snapshot.Layers.GroupVersionResource).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err): // the kind, too, may not be there
			lacking = append(lacking, name)
		case err != nil:
			return "", fmt.Errorf("cannot read %s: %w", layerID(name), err)
		}
	}
	return strings.Join(lacking, ", "), nil
}
