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
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/reserved"
	"github.com/strata-project/strata/internal/sops"
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
	// how the directory becomes objects; nil where that is not known.
	how *builds.Build
}

// contentOf returns what an artifact holds for a layer; nil where there is none.
func (r *AddonsLayerReconciler) contentOf(layer *v1alpha1.AddonsLayer, artifact *repos.Artifact) content {
	if artifact == nil {
		return nil
	}
	found := fetched{artifacts: r.Artifacts, of: *artifact, path: layer.Spec.Source.Path}
	if how, known := r.knownBuilds.Known(layer); known {
		found.how = &how
	}
	return found
}

func (f fetched) directory(ctx context.Context) (*directories.Directory, error) {
	if f.how == nil {
		return nil, errUnknownBuild
	}
	return f.artifacts.Directory(ctx, f.of, f.path, *f.how)
}

func (f fetched) digest(ctx context.Context) (string, bool, error) {
	if f.how == nil {
		return "", false, errUnknownBuild
	}
	return f.artifacts.Digest(ctx, f.of, f.path, *f.how)
}

func (f fetched) key() string {
	if f.how == nil {
		return ""
	}
	return strings.TrimSuffix(f.of.Digest+"+"+f.how.Key(), "+")
}

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
// could make another content, and for what more is said.
func fillingKey(request bundles.Request, more ...string) (string, error) {
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
		Clusters              map[string]bundles.Cluster
		Common, Releases      any
		Objects               map[string]string `json:",omitempty"`
		More                  []string          `json:",omitempty"`
	}{
		More:   more,
		Common: request.Common, Releases: request.Releases,
		Layer: request.Layer, Path: request.Path, Instance: request.Instance, Inputs: request.Inputs,
		Bundle:       version{request.Bundle.UID, request.Bundle.Generation, request.Bundle.Status.Digest},
		Applications: make(map[string]version, len(request.Applications)), Cluster: request.Cluster, Clusters: request.Clusters,
	}
	for name, app := range request.Applications {
		basis.Applications[name] = version{app.UID, app.Generation, app.Status.Published}
	}
	for as, seen := range request.Objects {
		if basis.Objects == nil {
			basis.Objects = make(map[string]string, len(request.Objects))
		}
		basis.Objects[as] = strings.Join([]string{seen.Version, seen.Waits, seen.Refused}, "\n")
	}
	data, err := json.Marshal(basis)
	if err != nil {
		return "", fmt.Errorf("cannot name what layer %s is filled from: %w", request.Layer, err)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// errUnknownBuild says that it is not known yet how the directory of another layer
// becomes objects: what its variables are, that layer's own look reads.
var errUnknownBuild = errors.New("it is not known yet what the variables of the layer are")

// observeBuild reads what the layer's directory is to be built with.
func (o *observer) observeBuild(ctx context.Context) error {
	if !builds.IsGiven(&o.Layer.Spec) || !layers.MayUseSource(o.Layer, o.Settings) {
		return nil
	}
	how, err := o.buildOf(ctx)
	var mistake *directories.ContentError
	if errors.As(err, &mistake) {
		o.DirectoryError = err
		return nil
	}
	o.how = how
	return err
}

// buildOf returns how the directory becomes objects. The error is a
// *directories.ContentError where something that the layer names is not to be had.
func (o *observer) buildOf(ctx context.Context) (builds.Build, error) {
	var given []builds.Variables
	if after := o.Layer.Spec.PostBuild; after != nil {
		for i, ref := range after.SubstituteFrom {
			variables, err := o.variables(ctx, fmt.Sprintf("spec.postBuild.substituteFrom[%d]", i), ref)
			if err != nil {
				return builds.Build{}, err
			}
			given = append(given, variables)
		}
	}
	how, err := builds.Of(&o.Layer.Spec, given...)
	if err != nil || how.Decryption == nil {
		return how, err
	}
	const field = "spec.decryption.secretRef"
	secret, err := o.given(ctx, field, "Secret", o.Layer.Spec.Decryption.SecretRef.Name, v1alpha1.ReasonDecryptionKeysUnavailable)
	if err != nil {
		return how, err
	}
	if secret == nil {
		return how, unavailable(v1alpha1.ReasonDecryptionKeysUnavailable, field, "there is no %s: the layer goes on when it exists",
			o.givenID("Secret", o.Layer.Spec.Decryption.SecretRef.Name))
	}
	keys, err := sops.KeysOfSecret(secret)
	if err != nil {
		return how, unavailable(v1alpha1.ReasonDecryptionKeysUnavailable, field, "%s cannot be used: %v", objects.IDOf(secret), err)
	}
	return how.With(keys), nil
}

// variables reads what a ConfigMap or Secret gives.
func (o *observer) variables(ctx context.Context, field string, ref v1alpha1.SubstituteReference) (builds.Variables, error) {
	found, err := o.given(ctx, field, ref.Kind, ref.Name, v1alpha1.ReasonVariablesUnavailable)
	switch {
	case err != nil:
		return builds.Variables{}, err
	case found == nil && ref.Optional:
		return builds.Variables{}, nil
	case found == nil:
		return builds.Variables{}, unavailable(v1alpha1.ReasonVariablesUnavailable, field,
			"there is no %s: the layer goes on when it exists; with optional: true it goes on without it", o.givenID(ref.Kind, ref.Name))
	}
	variables, err := builds.VariablesOf(found)
	if err != nil {
		return builds.Variables{}, unavailable(v1alpha1.ReasonVariablesUnavailable, field, "%s cannot be used: %v", objects.IDOf(found), err)
	}
	return variables, nil
}

// givenID returns a ConfigMap or Secret that the layer names.
func (o *observer) givenID(kind, name string) objects.ID {
	return objects.ID{Kind: kind, Namespace: o.Settings.NamespaceFor(o.Layer), Name: name}
}

// given reads a ConfigMap or Secret that the layer names, and follows it; nil where there
// is none. It is read as the layer's account. A layer without one reads no more than what
// lies beside the controller.
func (o *observer) given(ctx context.Context, field, kind, name, reason string) (*unstructured.Unstructured, error) {
	id := o.givenID(kind, name)
	account := o.Settings.AccountFor(o.Layer)
	if account.Name == "" && id.Namespace != o.Settings.Namespace {
		return nil, unavailable(reason, field,
			"%s is not read, because the layer names no account: name a ServiceAccount of namespace %s in spec.serviceAccountName that may get, list and watch it",
			id, id.Namespace)
	}
	if why := reserved.Name(id, ""); why != "" {
		return nil, unavailable(reason, field, "%s %s", id, why)
	}
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	if kind == "Secret" {
		resource = corev1.SchemeGroupVersion.WithResource("secrets")
	}
	var found *unstructured.Unstructured
	var err error
	if account.Name == "" {
		found, err = o.reads.followed(ctx, id)
	} else {
		found, err = o.reads.followedAs(ctx, id, resource, "v1", account)
	}
	switch {
	case apierrors.IsForbidden(err):
		o.reads.unnoted()
		return nil, unavailable(reason, field, "ServiceAccount %s may not get, list and watch %s: a Role and RoleBinding for %s named %s let it",
			account, id, resource.Resource, id.Name)
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", id, err)
	case found == nil:
		return nil, nil
	}
	if why := reserved.Unreadable(id, found); why != "" {
		return nil, unavailable(reason, field, "%s %s", id, why)
	}
	return found, nil
}

// unavailable is a mistake about something that a field of the layer names.
func unavailable(reason, field, format string, args ...any) error {
	return &directories.ContentError{Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)}
}
