// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/yaml"
)

// krewPlugin is a manifest of krew, as far as it is used here.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string     `json:"uri"`
	SHA256 string     `json:"sha256"`
	Bin    string     `json:"bin"`
	Files  []krewFile `json:"files"`
}

type krewFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// krew writes the manifest by which kubectl krew installs the plug-in.
func (r *release) krew(context.Context) error {
	if r.ociOnly {
		return nil
	}
	plugin := krewPlugin{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": "strata"}}
	plugin.Spec = krewSpec{
		Version: r.version, Homepage: source, ShortDescription: "Keep the add-ons of clusters in layers",
		Description: "Shows, explains, plans and changes the layers of Strata, which keeps the\nadd-ons of Kubernetes clusters in order over Flux.\n",
	}
	for _, p := range r.wanted {
		name := r.archiveName(p)
		sum, err := r.sum(name)
		if err != nil {
			return err
		}
		of := krewPlatform{URI: fmt.Sprintf("%s/releases/download/%s/%s", source, r.version, name), SHA256: sum, Bin: programName(p)}
		of.Selector.MatchLabels = map[string]string{"os": p.os, "arch": p.arch}
		of.Files = []krewFile{{programName(p), "."}, {"LICENSE", "."}, {"THIRD_PARTY_NOTICES.txt", "."}}
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, of)
	}
	data, err := yaml.Marshal(plugin)
	if err != nil {
		return fmt.Errorf("cannot write krew's manifest: %w", err)
	}
	return r.keep("strata.yaml", data)
}
