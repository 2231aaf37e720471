// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/impact"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/placement"
)

// volumes looks up which volumes depend on releases that Flux would install anew, as the
// controller does, on the cluster of their layer. What may not be looked up is noted, and
// taken for none: the controller may.
func (g *Plan) volumes(ctx context.Context, w *forecast.World) error {
	if g.isOffline() {
		return nil
	}
	w.Volumes = map[string][]layers.Blocker{}
	for _, layer := range g.Planned {
		content := w.Contents[layer.Name]
		o := layers.Observation{
			Now: w.Now, Settings: w.Settings, Layer: layer,
			ObservedContents: layers.ObservedContents{Directory: content.Directory, Restored: content.Restored},
			ObservedObjects:  layers.ObservedObjects{Live: w.Objects},
		}
		name := placement.Of(layer, g.settings.Namespace)
		if name.Name != "" {
			o.Remote = &layers.Remote{Name: name}
		}
		releases := o.Reinstalled()
		if len(releases) == 0 {
			continue
		}
		found, err := g.volumesOf(ctx, placement.ClusterName(name), impact.Lookup{Layer: layer, Departing: releases})
		if err != nil {
			g.noteOf([]string{layer.Name}, "whether volumes depend on what Flux installs anew is not known: %v", err)
			continue
		}
		for _, each := range found {
			if each.Unknown != "" {
				g.noteOf([]string{layer.Name}, "of what Flux installs anew %s", each)
				continue
			}
			w.Volumes[layer.Name] = append(w.Volumes[layer.Name], each)
		}
		if len(w.Volumes[layer.Name]) > 0 && layer.Annotations[v1alpha1.AllowReinstallAnnotation] == v1alpha1.AllowNext {
			for _, each := range w.Volumes[layer.Name] {
				g.noteOf([]string{layer.Name}, "of what Flux installs anew %s", each)
			}
		}
	}
	return ctx.Err()
}

// volumesOf looks up the volumes of releases on a cluster; empty for the one that Strata runs
// in.
func (g *Plan) volumesOf(ctx context.Context, cluster string, look impact.Lookup) ([]layers.Blocker, error) {
	home, err := g.cluster.asks()
	if err != nil {
		return nil, err
	}
	look.Flux, look.Known, look.Definitions, look.Past, look.Mapper = home, home, home, home, home.RESTMapper()
	if cluster == "" {
		return look.Volumes(ctx)
	}
	beyond, err := g.cluster.Beneath(ctx, why.Place{Cluster: cluster}, WhyOptions{Stay: g.options.Stay, Allowed: g.options.Allowed})
	if err != nil {
		return nil, fmt.Errorf("RemoteCluster %s: %w", cluster, err)
	}
	short, cancel := context.WithTimeout(ctx, farTime)
	defer cancel()
	there, err := beyond.asks()
	if err != nil {
		return nil, fmt.Errorf("RemoteCluster %s: %w", cluster, address.Error(err))
	}
	look.Definitions, look.Past, look.Mapper = there, there, there.RESTMapper()
	found, err := look.Volumes(short)
	switch {
	case err != nil && ctx.Err() == nil && short.Err() != nil:
		return nil, fmt.Errorf("RemoteCluster %s has not answered within %s", cluster, farTime)
	case err != nil:
		return nil, fmt.Errorf("RemoteCluster %s: %w", cluster, address.Error(err))
	}
	return found, nil
}

// asks returns a client that reads the cluster and keeps nothing.
func (c *Cluster) asks() (client.Client, error) {
	return made(c, func(config *rest.Config, web *http.Client) (client.Client, error) {
		return client.New(config, client.Options{HTTPClient: web})
	})
}
