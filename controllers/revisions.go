// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/repos"
)

// errForeign says that a Secret of the name of a revision is not what this layer
// has kept.
var errForeign = errors.New("it is not what Strata has kept of this layer: somebody else has made or changed it; delete it")

// checkKept makes sure that a Secret is what this controller has kept of this very
// layer: a name comes out of a status, which others may write.
func checkKept(secret *corev1.Secret, layer *v1alpha1.AddonsLayer) error {
	isOwned := slices.ContainsFunc(secret.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.Kind == v1alpha1.AddonsLayerKind && ref.Name == layer.Name && ref.UID == layer.UID
	})
	if secret.Type != v1alpha1.RevisionType || secret.Labels[v1alpha1.RevisionOfLabel] != layer.Name || !isOwned {
		return errForeign
	}
	return nil
}

// revisions keeps what layers have deployed in the cluster, for when a layer
// must go back and its source has moved on. It is safe for concurrent use.
type revisions struct {
	// client writes, and reader reads past the cache.
	client client.Client
	reader client.Reader
	// artifacts of the sources, and what is at hand of them.
	artifacts Artifacts
	settings  layers.Settings
	// refused tells that a content of a layer cannot be kept.
	refused func(layer *v1alpha1.AddonsLayer, err error)

	mu sync.Mutex
	// tooLarge holds contents that cannot be kept.
	tooLarge map[string]bool
	// had holds, by the names of layers, the contents that this process knows each
	// of them to have had: read from its source, or kept for it.
	had map[string]contents
}

// contents are the digests of what a layer with a UID has had, the newest last.
type contents struct {
	uid     types.UID
	digests []string
}

// maxHad is how many contents are remembered of each layer.
const maxHad = 32

// has remembers that a layer's own source, or what the cluster keeps for it, holds a
// content. The status does not tell: whoever may write it could name that of another
// layer.
func (r *revisions) has(layer *v1alpha1.AddonsLayer, digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := r.had[layer.Name]
	if had.uid != layer.UID {
		had = contents{uid: layer.UID}
	}
	if slices.Contains(had.digests, digest) {
		return
	}
	if len(had.digests) >= maxHad {
		had.digests = had.digests[1:]
	}
	had.digests = append(slices.Clip(had.digests), digest)
	r.had[layer.Name] = had
}

func (r *revisions) forget(layer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.had, layer)
}

// known returns a content that a layer is known to have had, while it is in memory;
// otherwise nil.
func (r *revisions) known(layer *v1alpha1.AddonsLayer, digest string) *directories.Directory {
	r.mu.Lock()
	had := r.had[layer.Name]
	r.mu.Unlock()
	if had.uid != layer.UID || !slices.Contains(had.digests, digest) {
		return nil
	}
	directory, _ := r.artifacts.ByDigest(digest)
	return directory
}

// read returns the content of a deployment: from memory, from the cluster where
// it is kept there, and else from the artifact that it came from, as long as
// that is cached or the source has it. The history is a report: an address of it
// is used only where the layer's source has its present artifact, too.
func (r *revisions) read(
	ctx context.Context,
	layer *v1alpha1.AddonsLayer,
	entry v1alpha1.HistoryEntry,
	present *repos.Artifact,
	how builds.Build,
) (*directories.Directory, error) {
	if directory := r.known(layer, entry.Digest); directory != nil {
		return directory, nil
	}
	var directory *directories.Directory
	err := errors.New("neither the cluster nor the source has it any more")
	if entry.Kept {
		if directory, err = r.kept(ctx, layer, entry.Digest); err == nil {
			r.artifacts.Remember(directory)
			r.has(layer, entry.Digest)
			return directory, nil
		}
	}
	if entry.Artifact == nil {
		return nil, err
	}
	if !repos.IsBeside(entry.Artifact, layer.Spec.Source.Path, present) {
		return nil, fmt.Errorf("%w, and it did not come from where the source has its present artifact: "+
			"with spec.rollback the cluster keeps what is deployed from then on", err)
	}
	artifact := repos.Artifact{URL: entry.Artifact.URL, Revision: entry.Revision, Digest: entry.Artifact.Digest}
	directory, fetching := r.artifacts.Directory(ctx, artifact, entry.Artifact.Path, how)
	switch {
	case errors.Is(fetching, repos.ErrNotFound):
		return nil, err
	case fetching != nil:
		return nil, fetching
	case directory.Digest != entry.Digest && !r.settings.DigestKey.Fits(directory.Manifests, entry.Digest):
		return nil, fmt.Errorf("the artifact of revision %s holds something else", entry.Revision)
	}
	// The history may know it by a digest of before there was a key.
	directory.Digest = entry.Digest
	r.has(layer, entry.Digest)
	return directory, nil
}

func (r *revisions) kept(ctx context.Context, layer *v1alpha1.AddonsLayer, digest string) (*directories.Directory, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: r.settings.Namespace, Name: repos.RevisionName(layer.Name, digest)}
	if err := r.reader.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("cannot read Secret %s: %w", key, err)
	}
	if err := checkKept(secret, layer); err != nil {
		return nil, fmt.Errorf("cannot use Secret %s: %w", key, err)
	}
	directory, err := repos.UnpackRevision(secret.Data[repos.RevisionKey], digest, r.settings.DigestKey)
	if err != nil {
		return nil, fmt.Errorf("cannot use Secret %s: %w", key, err)
	}
	return directory, nil
}

// keep sees to it that the cluster holds what a layer may have to go back to,
// and no more, and notes that in the status. It writes nothing where nothing
// changes. Secrets of a layer that is gone are garbage-collected.
func (r *revisions) keep(ctx context.Context, o *layers.Observation, before []v1alpha1.HistoryEntry, status *v1alpha1.AddonsLayerStatus) error {
	if !o.Layer.DeletionTimestamp.IsZero() {
		return nil
	}
	wanted := layers.KeptDigests(o.Layer, *status)
	var failed error
	for i := range status.History {
		entry := &status.History[i]
		if entry.Kept || !slices.Contains(wanted, entry.Digest) {
			continue
		}
		kept := slices.ContainsFunc(status.History, func(e v1alpha1.HistoryEntry) bool { return e.Kept && e.Digest == entry.Digest })
		if !kept {
			var err error
			kept, err = r.create(ctx, o, entry.Digest)
			failed = errors.Join(failed, err)
		}
		entry.Kept = kept
	}
	for i := range status.History {
		if entry := &status.History[i]; entry.Kept && !slices.Contains(wanted, entry.Digest) {
			err := r.remove(ctx, o.Layer, entry.Digest)
			failed = errors.Join(failed, err)
			entry.Kept = err != nil
		}
	}
	// What has left the history altogether is not left behind either.
	for _, entry := range before {
		if entry.Kept && !slices.ContainsFunc(status.History, func(e v1alpha1.HistoryEntry) bool { return e.Digest == entry.Digest }) {
			failed = errors.Join(failed, r.remove(ctx, o.Layer, entry.Digest))
		}
	}
	return failed
}

// create keeps a content, as far as it is at hand and not too large.
func (r *revisions) create(ctx context.Context, o *layers.Observation, digest string) (bool, error) {
	directory := r.atHand(o, digest)
	if directory == nil || r.isTooLarge(digest) {
		return false, nil
	}
	data, err := repos.PackRevision(directory)
	if err != nil {
		r.refuse(o.Layer, digest, err)
		return false, nil
	}
	yes := true
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.settings.Namespace, Name: repos.RevisionName(o.Layer.Name, digest),
			Labels:      map[string]string{v1alpha1.RevisionOfLabel: o.Layer.Name},
			Annotations: map[string]string{v1alpha1.DigestAnnotation: digest},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.AddonsLayerKind, Name: o.Layer.Name, UID: o.Layer.UID,
			}},
		},
		Type: v1alpha1.RevisionType, Immutable: &yes, Data: map[string][]byte{repos.RevisionKey: data},
	}
	err = r.client.Create(ctx, secret.DeepCopy(), client.FieldOwner(dependents.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		err = r.replace(ctx, secret)
	}
	if err != nil {
		return false, fmt.Errorf("cannot keep what layer %s has deployed in Secret %s/%s: %w", o.Layer.Name, secret.Namespace, secret.Name, err)
	}
	return true, nil
}

// replace makes a Secret anew that an earlier layer of the same name has left,
// because that would be garbage-collected. One of this layer stays.
func (r *revisions) replace(ctx context.Context, secret *corev1.Secret) error {
	found := &corev1.Secret{}
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(secret), found); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(found.OwnerReferences, secret.OwnerReferences) && bytes.Equal(found.Data[repos.RevisionKey], secret.Data[repos.RevisionKey]) {
		return nil
	}
	if found.Type != v1alpha1.RevisionType || found.Labels[v1alpha1.RevisionOfLabel] != secret.Labels[v1alpha1.RevisionOfLabel] {
		return errForeign
	}
	if err := r.client.Delete(ctx, found, client.Preconditions{UID: &found.UID}); err != nil {
		return err
	}
	return r.client.Create(ctx, secret, client.FieldOwner(dependents.FieldManager))
}

// atHand returns a content that needs not be fetched, or nil.
func (r *revisions) atHand(o *layers.Observation, digest string) *directories.Directory {
	for _, directory := range []*directories.Directory{o.Directory, o.Deployed, o.Restored} {
		if directory == nil || directory.Digest != digest {
			continue
		}
		if directory.Written != nil {
			return directory.Written
		}
		return directory
	}
	return r.known(o.Layer, digest)
}

// remove removes what was kept. A Secret that is something else stays: who can write
// a status can name any.
func (r *revisions) remove(ctx context.Context, layer *v1alpha1.AddonsLayer, digest string) error {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: r.settings.Namespace, Name: repos.RevisionName(layer.Name, digest)}
	err := r.reader.Get(ctx, key, secret)
	if err == nil && checkKept(secret, layer) != nil {
		return nil
	}
	if err == nil {
		err = r.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove Secret %s: %w", key, err)
	}
	return nil
}

func (r *revisions) isTooLarge(digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tooLarge[digest]
}

// refuse says once that a content is not kept.
func (r *revisions) refuse(layer *v1alpha1.AddonsLayer, digest string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tooLarge) > 1000 {
		clear(r.tooLarge)
	}
	r.tooLarge[digest] = true
	r.refused(layer, err)
}
