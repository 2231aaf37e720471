// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/platforms"
)

// platformReader reads what Platforms are decided from.
type platformReader struct {
	tool   *tool
	client dynamic.Interface
	world  fleet.World
	// version of the API server; empty where it does not say.
	version string
	// missing says what could not be read.
	missing []string
}

func (t *tool) platforms(ctx context.Context) (*platformReader, error) {
	w, s, err := t.world(ctx, snapshot.Platforms, "what follows from them is not known")
	if err != nil {
		return nil, err
	}
	config, err := restConfig(t.flags)
	if err != nil {
		return nil, err
	}
	p := &platformReader{tool: t, world: w}
	if p.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	for part, err := range s.Unread {
		p.missing = append(p.missing, fmt.Sprintf("%s: %v", part.GroupResource(), err))
	}
	slices.Sort(p.missing)
	if asked, err := discovery.NewDiscoveryClientForConfig(config); err == nil {
		if found, err := asked.ServerVersion(); err == nil {
			p.version = found.GitVersion
		}
	}
	return p, nil
}

func (p *platformReader) find(name string) (*v1alpha1.Platform, error) {
	var names []string
	for _, platform := range p.world.Platforms {
		if platform.Name == name {
			return platform, nil
		}
		names = append(names, platform.Name)
	}
	return nil, noSuch(snapshot.Platforms, name, names)
}

// observe gathers what the controller would decide from at a moment.
func (p *platformReader) observe(ctx context.Context, platform *v1alpha1.Platform, at time.Time) platforms.Observation {
	o := platforms.Observation{
		Now: at, Namespace: p.world.Namespace, Platform: platforms.Trusted(platform), Bundles: p.world.Bundles, Version: p.version,
		Catalogue: map[string]*v1alpha1.HelmApplication{}, Clusters: map[types.NamespacedName]*v1alpha1.RemoteCluster{},
		ConfigMaps: map[types.NamespacedName]map[string]string{}, ConfigMapErrors: map[types.NamespacedName]error{}, Taken: map[string]*v1alpha1.AddonsLayer{},
	}
	for _, app := range p.world.Applications {
		o.Catalogue[app.Name] = app
	}
	for _, cluster := range p.world.Clusters {
		o.Clusters[types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}] = cluster
	}
	others := map[string]*v1alpha1.AddonsLayer{}
	for _, layer := range p.world.Layers {
		if layer.Labels[v1alpha1.PlatformLabel] == platform.Name {
			o.Layers = append(o.Layers, layer)
		} else {
			others[layer.Name] = layer
		}
	}
	if platform.DeletionTimestamp.IsZero() {
		for _, ref := range platform.Spec.InputsFrom {
			p.configMap(ctx, &o, types.NamespacedName{Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name})
		}
	}
	for _, name := range platforms.Names(o) {
		if other := others[name]; other != nil {
			o.Taken[name] = other
		}
	}
	return o
}

func (p *platformReader) configMap(ctx context.Context, o *platforms.Observation, name types.NamespacedName) {
	found, err := p.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		o.ConfigMapErrors[name] = err
		p.missing = append(p.missing, fmt.Sprintf("ConfigMap %s: %v", name, err))
	default:
		data, _, _ := unstructured.NestedStringMap(found.Object, "data")
		o.ConfigMaps[name] = data
	}
}

// tellMissing says what could not be read beside lists, which are told already.
func (p *platformReader) tellMissing(t *tool) {
	for _, missing := range p.missing {
		if strings.HasPrefix(missing, "ConfigMap ") {
			t.paragraph(t.errOut, "kubectl strata: cannot read %s", missing)
		}
	}
}
