// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sops"
)

// buildOf returns how a layer's directory becomes objects, with the variables that the
// cluster has. They are read with the rights of whoever asks. The error is a
// *directories.ContentError where something is not there.
func (g *Plan) buildOf(ctx context.Context, layer *v1alpha1.AddonsLayer) (builds.Build, error) {
	if !builds.IsGiven(&layer.Spec) {
		return builds.Build{}, nil
	}
	var given []builds.Variables
	unknown := false
	if after := layer.Spec.PostBuild; after != nil {
		for i, ref := range after.SubstituteFrom {
			variables, known, err := g.variables(ctx, layer, ref)
			unknown = unknown || !known
			if err != nil {
				return builds.Build{}, &directories.ContentError{
					Reason: v1alpha1.ReasonVariablesUnavailable, Field: fmt.Sprintf("spec.postBuild.substituteFrom[%d]", i), Message: err.Error(),
				}
			}
			given = append(given, variables)
		}
	}
	how, err := builds.Of(&layer.Spec, given...)
	g.confidential = append(g.confidential, how.Confidential()...)
	if unknown {
		how = how.WithVariablesUnknown()
	}
	if err != nil || how.Decryption == nil {
		return how, err
	}
	return g.withKeys(ctx, layer, how), nil
}

// withKeys adds the keys that whoever asks may read. Without them files stay encrypted, and
// the plan says so.
func (g *Plan) withKeys(ctx context.Context, layer *v1alpha1.AddonsLayer, how builds.Build) builds.Build {
	id := objects.ID{Kind: "Secret", Namespace: g.settings.NamespaceFor(layer), Name: layer.Spec.Decryption.SecretRef.Name}
	if g.isOffline() {
		g.noteOf([]string{layer.Name}, "layer %s: what is encrypted stays so without a cluster, which has the keys of %s", layer.Name, id)
		return how
	}
	found := g.read(ctx, []objects.ID{id})[id]
	if found == nil {
		g.noteOf([]string{layer.Name}, "layer %s: what is encrypted stays so, because you may not get %s, or it does not exist", layer.Name, id)
		return how
	}
	keys, err := sops.KeysOfSecret(found)
	if err != nil {
		g.noteOf([]string{layer.Name}, "layer %s: what is encrypted stays so: %s: %v", layer.Name, id, err)
		return how
	}
	return how.With(keys)
}

// variables reads what a ConfigMap or Secret gives. Without a cluster it is what the files
// have, and known is false where they do not say it.
func (g *Plan) variables(ctx context.Context, layer *v1alpha1.AddonsLayer, ref v1alpha1.SubstituteReference) (v builds.Variables, known bool, _ error) {
	id := objects.ID{Kind: ref.Kind, Namespace: g.settings.NamespaceFor(layer), Name: ref.Name}
	if g.isOffline() {
		if err := g.readGiving(ctx); err != nil {
			return v, false, err
		}
		if v, known = builds.KnownVariables(g.giving, id.Kind, id.Namespace, id.Name); known {
			g.noteOf([]string{layer.Name}, "layer %s: the variables of %s are those of the folder", layer.Name, id)
		} else {
			g.noteOf([]string{layer.Name}, "layer %s: the variables of %s are not known without a cluster, and stay as they are written", layer.Name, id)
		}
		return v, known, nil
	}
	found := g.read(ctx, []objects.ID{id})[id]
	switch {
	case found == nil && g.unread[id]:
		return v, true, fmt.Errorf("you may not get %s, which gives variables", id)
	case found == nil && ref.Optional:
		return v, true, nil
	case found == nil:
		return v, true, errors.New("there is no " + id.String())
	}
	v, err := builds.VariablesOf(found)
	return v, true, err
}

// readGiving reads the ConfigMaps and Secrets that stand in the files of the folder, once.
func (g *Plan) readGiving(ctx context.Context) error {
	if g.giving != nil || g.repository == nil {
		return nil
	}
	found, _, err := g.repository.Look(ctx, []string{"ConfigMap", "Secret"})
	g.giving = []*unstructured.Unstructured{}
	for _, manifest := range found {
		g.giving = append(g.giving, manifest.Object)
	}
	return err
}

// masked returns changes without the values of Secrets that objects are made with, or
// without any.
func (g *Plan) masked(fields []charts.FieldChange, all bool) []charts.FieldChange {
	if len(g.confidential) == 0 && !all || g.options.Charts.ShowSecrets {
		return fields
	}
	shown := make([]charts.FieldChange, 0, len(fields))
	for _, field := range fields {
		text := fmt.Sprint(field.From, field.To)
		if all || slices.ContainsFunc(g.confidential, func(value string) bool { return value != "" && strings.Contains(text, value) }) {
			field = field.Masked()
		}
		shown = append(shown, field)
	}
	return shown
}

// isDecrypted tells whether an object of a layer may hold what was encrypted.
func (r *chartWork) isDecrypted(layer string, id objects.ID) bool {
	directory := r.world.Contents[layer].Directory
	return directory != nil && slices.ContainsFunc(directory.Manifests, func(m directories.Manifest) bool { return m.Decrypted && m.ID() == id })
}
