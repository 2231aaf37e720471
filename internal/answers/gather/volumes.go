// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/impact"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/placement"
)

// volumes looks up which volumes depend on releases that Flux would install anew, as the
// controller does, on the cluster that Strata runs in. What may not be looked up is noted,
// and taken for none: the controller may.
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
		releases := o.Reinstalled()
		if len(releases) == 0 || placement.Of(layer, g.settings.Namespace).Name != "" {
			continue
		}
		found, err := g.volumesOf(ctx, impact.Lookup{Layer: layer, Departing: releases})
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

func (g *Plan) volumesOf(ctx context.Context, look impact.Lookup) ([]layers.Blocker, error) {
	config, err := g.cluster.Config()
	if err != nil {
		return nil, err
	}
	made, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("cannot ask the cluster: %w", err)
	}
	look.Flux, look.Known, look.Definitions, look.Past, look.Mapper = made, made, made, made, made.RESTMapper()
	return look.Volumes(ctx)
}
