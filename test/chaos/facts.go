// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// revision is one revision of a Helm release, as Helm stores it.
type revision struct {
	Number  int
	Status  string
	Content content
	// Made is when it was begun, First when the release was installed.
	Made, First time.Time
}

// facts are what the cluster holds at one moment.
type facts struct {
	Layers   map[string]v1alpha1.AddonsLayer
	Releases map[string]helmv2.HelmRelease
	// Helm holds the revisions of releases, the oldest first.
	Helm map[string][]revision
	// Made holds what the charts made, by name: the value that it carries.
	Made map[string]string
	// Settings holds the ConfigMaps that layers have, by name.
	Settings map[string]corev1.ConfigMap
}

// look reads everything.
func look(ctx context.Context, c client.Client) (facts, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	f := facts{
		Layers:   map[string]v1alpha1.AddonsLayer{},
		Releases: map[string]helmv2.HelmRelease{},
		Helm:     map[string][]revision{},
		Made:     map[string]string{},
		Settings: map[string]corev1.ConfigMap{},
	}
	layers, releases, secrets := &v1alpha1.AddonsLayerList{}, &helmv2.HelmReleaseList{}, &corev1.SecretList{}
	maps, deployments := &corev1.ConfigMapList{}, &appsv1.DeploymentList{}
	for _, list := range []client.ObjectList{layers, releases, secrets, maps, deployments} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return f, err
		}
	}
	for _, layer := range layers.Items {
		f.Layers[layer.Name] = layer
	}
	for _, release := range releases.Items {
		f.Releases[release.Name] = release
	}
	for i := range secrets.Items {
		name := secrets.Items[i].Labels["name"]
		if secrets.Items[i].Labels["owner"] != "helm" {
			continue
		}
		found, err := readRevision(&secrets.Items[i])
		if err != nil {
			return f, err
		}
		f.Helm[name] = append(f.Helm[name], found)
	}
	for name := range f.Helm {
		slices.SortFunc(f.Helm[name], func(a, b revision) int { return cmp.Compare(a.Number, b.Number) })
	}
	for _, made := range maps.Items {
		switch {
		case made.Labels[v1alpha1.LayerLabel] != "":
			f.Settings[made.Name] = made
		case made.Name != "kube-root-ca.crt":
			f.Made[made.Name] = cmp.Or(made.Data["value"], made.Data["message"])
		}
	}
	for _, made := range deployments.Items {
		image := made.Spec.Template.Spec.Containers[0].Image
		f.Made[made.Name] = valueOf("deployment", map[string]any{"image": image})
	}
	return f, nil
}

// readRevision reads Helm's own record: JSON, compressed, in base64.
func readRevision(secret *corev1.Secret) (revision, error) {
	var stored struct {
		Version int `json:"version"`
		Info    struct {
			Status string    `json:"status"`
			First  time.Time `json:"first_deployed"`
			Last   time.Time `json:"last_deployed"`
		} `json:"info"`
		Chart struct {
			Metadata struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"metadata"`
		} `json:"chart"`
		Config map[string]any `json:"config"`
	}
	packed, err := base64.StdEncoding.DecodeString(string(secret.Data["release"]))
	if err != nil {
		return revision{}, fmt.Errorf("cannot read Secret %s: %w", secret.Name, err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return revision{}, fmt.Errorf("cannot read Secret %s: %w", secret.Name, err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		return revision{}, fmt.Errorf("cannot read Secret %s: %w", secret.Name, err)
	}
	if err := json.Unmarshal(plain, &stored); err != nil {
		return revision{}, fmt.Errorf("cannot read Secret %s: %w", secret.Name, err)
	}
	chart := stored.Chart.Metadata
	return revision{
		Number: stored.Version, Status: stored.Info.Status, Made: stored.Info.Last, First: stored.Info.First,
		Content: content{Chart: chart.Name, Version: chart.Version, Value: valueOf(chart.Name, stored.Config)},
	}, nil
}
