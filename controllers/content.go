// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/repos"
)

// content is where the directory of one layer comes from.
type content interface {
	// directory returns the directory.
	directory(ctx context.Context) (*directories.Directory, error)
	// digest returns the digest of its objects, and whether it is missing. It costs
	// less than the directory.
	digest(ctx context.Context) (digest string, missing bool, err error)
	// key names all that it is taken from: the directory is another one only where the
	// key is.
	key() string
	// artifact returns what is fetched for it; nil where nothing is.
	artifact() *repos.Artifact
}

// fetched is content of a source's artifact.
type fetched struct {
	artifacts Artifacts
	of        repos.Artifact
	path      string
}

// contentOf returns what an artifact holds for a layer; nil where there is none.
func (r *AddonsLayerReconciler) contentOf(layer *v1alpha1.AddonsLayer, artifact *repos.Artifact) content {
	if artifact == nil {
		return nil
	}
	return fetched{artifacts: r.Artifacts, of: *artifact, path: layer.Spec.Source.Path}
}

func (f fetched) directory(ctx context.Context) (*directories.Directory, error) {
	return f.artifacts.Directory(ctx, f.of, f.path)
}

func (f fetched) digest(ctx context.Context) (string, bool, error) {
	return f.artifacts.Digest(ctx, f.of, f.path)
}

func (f fetched) key() string { return f.of.Digest }

func (f fetched) artifact() *repos.Artifact { return &f.of }

// filled is content that a bundle is filled to.
type filled struct {
	r     *AddonsLayerReconciler
	layer *v1alpha1.AddonsLayer
	// digestOfAll is the digest of all that it is filled from, and revision the
	// version of the bundle.
	digestOfAll, revision string
}

func (f filled) directory(ctx context.Context) (*directories.Directory, error) {
	return f.r.Artifacts.Assemble(f.digestOfAll, f.revision, f.render(ctx))
}

func (f filled) digest(ctx context.Context) (string, bool, error) {
	digest, err := f.r.Artifacts.AssembledDigest(f.digestOfAll, f.render(ctx))
	return digest, false, err
}

func (f filled) key() string { return f.digestOfAll }

func (f filled) artifact() *repos.Artifact { return nil }

// render returns what renders the layer from what it was filled from before.
func (f filled) render(ctx context.Context) func() ([]directories.Manifest, error) {
	return func() ([]directories.Manifest, error) {
		request, err := f.r.fillingRequest(ctx, f.layer)
		if err != nil {
			return nil, err
		}
		key, err := fillingKey(request)
		if err != nil {
			return nil, err
		}
		if key != f.digestOfAll {
			return nil, errors.New("what the layer is filled from has changed meanwhile")
		}
		return bundles.Render(request)
	}
}

// fillingKey names what a layer is filled from: another one for everything that
// could make another content.
func fillingKey(request bundles.Request) (string, error) {
	type version struct {
		UID        types.UID
		Generation int64
		Published  any
	}
	basis := struct {
		Layer, Path, Instance string
		Inputs                any
		Bundle                version
		Applications          map[string]version
		Cluster               bundles.Cluster
	}{
		Layer: request.Layer, Path: request.Path, Instance: request.Instance, Inputs: request.Inputs,
		Bundle:       version{request.Bundle.UID, request.Bundle.Generation, request.Bundle.Status.Digest},
		Applications: make(map[string]version, len(request.Applications)), Cluster: request.Cluster,
	}
	for name, app := range request.Applications {
		basis.Applications[name] = version{app.UID, app.Generation, app.Status.Published}
	}
	data, err := json.Marshal(basis)
	if err != nil {
		return "", fmt.Errorf("cannot name what layer %s is filled from: %w", request.Layer, err)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
