// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/sources"
)

// planParts are what a plan reads of a cluster.
var planParts = append([]snapshot.Part{
	snapshot.Layers, snapshot.Releases, snapshot.Clusters, snapshot.Bundles, snapshot.Applications, snapshot.HelmRepositories, snapshot.HelmCharts,
}, snapshot.Sources...)

// ownerParts have names of objects kept for them, and refer to Secrets that are given to
// nobody. Those of them that layers list are read one by one, as they are on the cluster.
var ownerParts = []snapshot.Part{snapshot.HostClusters, snapshot.Claims, snapshot.Providers}

// Plan is what the controller would decide from: a cluster as it is, and what would be
// committed.
type Plan struct {
	*snapshot.Snapshot
	cluster *Cluster
	options PlanOptions
	// client reaches the cluster, and mapper knows its kinds; both are nil where
	// there is none.
	client dynamic.Interface
	mapper meta.RESTMapper
	// through carries requests for artifacts.
	through  *throughServer
	settings layers.Settings
	// defaults are what the cluster fills in.
	defaults defaults
	// repository stands for source; nil where every layer has what its source holds.
	repository *repository.Repository
	source     sources.Ref
	// artifact is what source-controller would make of the repository.
	artifact fs.FS
	// session reads the repository, and store the artifacts of sources, for one World.
	session *repos.Session
	store   *repos.Store
	// files are what specifies layers, where that is in the repository.
	files map[string]string
	// Planned are the layers as they would be. The caller may change them before a world is
	// made.
	Planned []*v1alpha1.AddonsLayer
	// away holds sources whose artifacts cannot be fetched. Where lenient is true
	// their layers are left alone; otherwise that is an error.
	away map[sources.Ref]error
	// unread holds objects that may not be read.
	unread map[objects.ID]bool
	// confidential are values of Secrets that objects are made with.
	confidential []string
	// giving are ConfigMaps and Secrets of the files, which give variables where there is no
	// cluster; nil until they are asked for. defined are the scopes of kinds that files define.
	giving  []*unstructured.Unstructured
	defined map[schema.GroupKind]objects.Scope
	// unreadable says why objects cannot be read, other than for lack of rights.
	unreadable map[objects.ID]error
	// notes say what the plan goes by that may not be so.
	notes []note
}

// isOffline tells whether there is no cluster.
func (g *Plan) isOffline() bool { return g.client == nil }

// World returns what a forecast is made from.
func (g *Plan) World(ctx context.Context) (forecast.World, error) {
	temp, err := os.MkdirTemp("", "kubectl-strata-")
	if err != nil {
		return forecast.World{}, fmt.Errorf("cannot make a folder for artifacts: %w", err)
	}
	defer func() { _ = os.RemoveAll(temp) }()
	options := repos.Options{Dir: temp}
	if g.through != nil {
		options.Transport = g.through
	}
	if g.store, err = repos.New(options); err != nil {
		return forecast.World{}, err
	}
	g.session = repos.NewSession()
	defer g.session.Close()
	w := forecast.World{
		Now: g.Now, Settings: g.settings, Version: g.Version, Layers: g.Planned, Clusters: g.Clusters, Contents: map[string]forecast.Content{},
		Complete: g.defaults.complete, Owned: g.ownedName, Refuses: g.refuses,
	}
	for _, layer := range g.Planned {
		content, err := g.content(ctx, layer)
		if err != nil {
			return w, err
		}
		if err := g.restored(ctx, layer, &content); err != nil {
			return w, err
		}
		w.Contents[layer.Name] = content
	}
	g.noteWaits(w)
	if err := g.place(ctx, w); err != nil {
		return w, err
	}
	if err := g.objects(ctx, &w); err != nil {
		return w, err
	}
	return w, g.volumes(ctx, &w)
}

// archive finds out what source-controller would make of the repository. Only a
// GitRepository leaves files out when it is fetched.
func (g *Plan) archive(ctx context.Context) (err error) {
	g.artifact = g.repository.Files
	if g.source.Kind != sources.GitRepository {
		return nil
	}
	ignore := ""
	if live := g.Objects[g.source.ID()]; live != nil {
		ignore, _, _ = unstructured.NestedString(live.Object, "spec", "ignore")
	}
	g.artifact, err = g.repository.Artifact(ctx, ignore)
	return err
}

// content returns what a layer would list, as it is written.
func (g *Plan) content(ctx context.Context, layer *v1alpha1.AddonsLayer) (forecast.Content, error) {
	ref := sources.Of(layer, g.settings.Namespace)
	switch {
	case sources.IsOfBundle(layer):
		return g.filled(ctx, layer)
	case g.repository == nil:
		return g.fetched(ctx, layer, ref)
	case ref != g.source:
		return forecast.Content{Fixed: true}, nil
	}
	source := &layers.Source{Generation: 1, ObservedGeneration: 1, Ready: true}
	if !g.isOffline() {
		live := g.Objects[ref.ID()]
		if live == nil {
			g.noteOf([]string{layer.Name}, "the cluster has no %s: nothing is deployed from it until it is there", ref)
			return forecast.Content{}, nil
		}
		parsed, err := repos.ParseSource(live)
		if err != nil {
			return forecast.Content{}, err
		}
		if source, _ = parsed.Observed(); source.Suspended {
			g.noteOf([]string{layer.Name}, "%s is suspended: nothing of this is fetched until it is resumed", ref)
		}
		source.ObservedGeneration, source.ArtifactGeneration, source.Suspended, source.Ready, source.Message = source.Generation, source.Generation, false, true, ""
	}
	source.Revision, source.Digest, source.URL = g.repository.Revision, "sha256:"+strings.Repeat("0", 64), ""
	var directory *directories.Directory
	how, err := g.buildOf(ctx, layer)
	if err == nil {
		directory, err = g.session.ParseAs(ctx, g.artifact, layer.Spec.Source.Path, how)
	}
	if directory != nil {
		directory.Revision = g.repository.Revision
		for _, name := range directory.Ignored {
			g.noteOf([]string{layer.Name}, "%s has several documents, and kustomize reads the first alone: make it one", name)
		}
	}
	var content *directories.ContentError
	if err != nil && !errors.As(err, &content) {
		return forecast.Content{}, fmt.Errorf("cannot read %s of %s: %w", layer.Spec.Source.Path, g.repository.Name, err)
	}
	found := forecast.Content{Source: source, Directory: directory, Err: err}
	if content != nil {
		unread, err := repos.UnreadOf(ctx, g.artifact, layer.Spec.Source.Path, how)
		if err != nil {
			return forecast.Content{}, fmt.Errorf("cannot read %s of %s: %w", layer.Spec.Source.Path, g.repository.Name, err)
		}
		found.Unread = &unread
	}
	return found, nil
}

// fetched returns what a layer's source holds for it now.
func (g *Plan) fetched(ctx context.Context, layer *v1alpha1.AddonsLayer, ref sources.Ref) (forecast.Content, error) {
	live := g.Objects[ref.ID()]
	if live == nil {
		for part, err := range g.Unread {
			if part.Kind == ref.Kind && apierrors.IsForbidden(err) {
				return forecast.Content{}, fmt.Errorf("you may not list %s: ask for the role view, or give --from-dir or --from-git", part.GroupResource())
			}
		}
		return forecast.Content{}, nil
	}
	parsed, err := repos.ParseSource(live)
	if err != nil {
		return forecast.Content{}, err
	}
	source, artifact := parsed.Observed()
	content := forecast.Content{Source: source}
	if artifact == nil {
		return content, nil
	}
	how, err := g.buildOf(ctx, layer)
	if content.Err = cmp.Or(err, g.away[ref]); content.Err == nil {
		content.Directory, content.Err = g.store.Directory(ctx, *artifact, layer.Spec.Source.Path, how)
	}
	if content.Err == nil {
		return content, nil
	}
	var mistake *directories.ContentError
	if errors.As(content.Err, &mistake) {
		if unread, err := g.store.Unread(ctx, *artifact, layer.Spec.Source.Path, how); err == nil {
			content.Unread = &unread
		}
		return content, nil
	}
	g.away[ref] = content.Err
	if g.options.Lenient {
		return forecast.Content{Fixed: true}, ctx.Err()
	}
	return content, fmt.Errorf(
		"cannot fetch what %s holds: %w; where the cluster's services cannot be reached from here, ask for the right to get services/proxy in the namespace of source-controller, or give --from-dir or --from-git",
		ref,
		content.Err,
	)
}

// filled returns what a layer holds of its bundle.
func (g *Plan) filled(ctx context.Context, layer *v1alpha1.AddonsLayer) (forecast.Content, error) {
	at := slices.IndexFunc(g.Bundles, func(bundle *v1alpha1.ApplicationBundle) bool { return bundle.Name == layer.Spec.Source.Name })
	if at < 0 {
		return forecast.Content{}, nil
	}
	request := g.fillingRequest(ctx, layer, g.Bundles[at])
	source := &layers.Source{
		Generation:         request.Bundle.Generation,
		ObservedGeneration: request.Bundle.Generation,
		Ready:              true,
		Revision:           request.Bundle.Spec.Version,
	}
	var waiting *bundles.Waiting
	directory, err := g.store.Assemble("layer "+layer.Name, source.Revision, func() ([]directories.Manifest, error) { return bundles.Render(request) })
	if errors.As(err, &waiting) {
		source.Message = waiting.Reason
		return forecast.Content{Source: source}, nil
	}
	source.Digest = "sha256:" + strings.Repeat("0", 64)
	content := forecast.Content{Source: source, Directory: directory, Err: err}
	if before := bundles.Before(g.Bundles, request.Bundle, layer.Status.Version); before != nil {
		// What cannot be rendered is not known to be left out, and is guarded.
		if manifests, err := bundles.RenderBefore(g.fillingRequest(ctx, layer, before)); err == nil {
			content.Before = &directories.Directory{Manifests: manifests}
		}
	}
	return content, nil
}

// restored reads what a layer goes back to, as the controller does: what the cluster
// keeps of it, or the artifact that it came from.
func (g *Plan) restored(ctx context.Context, layer *v1alpha1.AddonsLayer, content *forecast.Content) error {
	id := layers.RestoreID(layer)
	at := slices.IndexFunc(layer.Status.History, func(entry v1alpha1.HistoryEntry) bool { return entry.ID == id })
	if id == "" || at < 0 || content.Fixed {
		return nil
	}
	entry := layer.Status.History[at]
	content.RestoreError = "neither the cluster nor the source has it any more"
	if entry.Kept {
		secret := objects.ID{Kind: "Secret", Namespace: g.settings.Namespace, Name: repos.RevisionName(layer.Name, entry.Digest)}
		if kept := g.read(ctx, []objects.ID{secret})[secret]; kept != nil {
			text, _, _ := unstructured.NestedString(kept.Object, "data", repos.RevisionKey)
			data, err := base64.StdEncoding.DecodeString(text)
			if err == nil {
				content.Restored, err = unpacked(data, entry.Digest)
			}
			if err != nil {
				content.RestoreError = fmt.Sprintf("cannot use %s: %v", secret, err)
			}
		} else if g.unread[secret] {
			content.RestoreError = fmt.Sprintf("you may not get %s, which keeps it", secret)
		}
	}
	if content.Restored != nil || entry.Artifact == nil {
		return ctx.Err()
	}
	artifact := repos.Artifact{URL: entry.Artifact.URL, Revision: entry.Revision, Digest: entry.Artifact.Digest}
	var directory *directories.Directory
	how, err := g.buildOf(ctx, layer)
	if err == nil {
		directory, err = g.store.Directory(ctx, artifact, entry.Artifact.Path, how)
	}
	switch {
	case errors.Is(err, repos.ErrNotFound):
	case err != nil:
		content.RestoreError = err.Error()
	case directory.Digest != entry.Digest && !digests.IsKeyed(entry.Digest):
		content.RestoreError = fmt.Sprintf("the artifact of revision %s holds something else", entry.Revision)
	default:
		directory.Digest = entry.Digest
		content.Restored, content.RestoreError = directory, ""
	}
	return ctx.Err()
}

// unpacked returns what the cluster keeps of a layer. Whether it is what was deployed
// only the controller can tell where the digest is one that needs its key.
func unpacked(data []byte, digest string) (*directories.Directory, error) {
	if !digests.IsKeyed(digest) {
		return repos.UnpackRevision(data, digest, digests.Key{})
	}
	directory, err := repos.ReadRevision(data)
	if err == nil {
		directory.Digest = digest
	}
	return directory, err
}

// place puts the directories of layers of other clusters where they belong. What
// layers of the same cluster bring is looked for by the names that it has there, so
// that all are put once to know these names.
func (g *Plan) place(ctx context.Context, w forecast.World) error {
	listed := map[objects.ID][]string{}
	for _, lists := range []func(layer, cluster string) func(objects.ID) bool{
		func(string, string) func(objects.ID) bool { return nil },
		func(_, cluster string) func(objects.ID) bool {
			return func(id objects.ID) bool { return slices.Contains(listed[id], cluster) }
		},
	} {
		put := map[string]*directories.Directory{}
		for _, layer := range g.Planned {
			content := w.Contents[layer.Name]
			name := placement.Of(layer, g.settings.Namespace)
			if name.Name == "" || content.Directory == nil {
				continue
			}
			cluster := placement.ClusterName(name)
			place := placement.Place{Layer: layer.Name, Cluster: name, Account: g.settings.AccountFor(layer).Name, Lists: lists(layer.Name, cluster)}
			place.OwnNamespaceOnly = g.settings.NoCrossNamespaceRefs
			place.Given = g.given(ctx, place, place.Reads(content.Directory))
			directory, err := place.Put(content.Directory)
			if err != nil {
				content.Directory, content.Err = nil, err
				w.Contents[layer.Name] = content
				continue
			}
			if content.Restored != nil && lists("", "") == nil {
				if content.Restored, err = place.Put(content.Restored); err != nil {
					content.RestoreError = err.Error()
				}
				w.Contents[layer.Name] = content
			}
			if content.Before != nil && lists("", "") == nil {
				if content.Before, err = place.Put(content.Before); err != nil {
					content.Before = nil
				}
				w.Contents[layer.Name] = content
			}
			put[layer.Name] = directory
			for _, manifest := range directory.Manifests {
				listed[manifest.ID()] = append(listed[manifest.ID()], cluster)
			}
		}
		if lists("", "") == nil {
			continue
		}
		for name, directory := range put {
			content := w.Contents[name]
			content.Directory = directory
			w.Contents[name] = content
		}
	}
	return ctx.Err()
}

// merge takes up the layers, and other objects of Strata, that are in the
// repository: who is there is changed, and who is not there comes to be. Layers
// that the repository lacks stay.
func (g *Plan) merge(ctx context.Context, below []string) error {
	g.files = map[string]string{}
	g.Planned = slices.Clone(g.Layers)
	if g.repository == nil {
		return nil
	}
	manifests, err := g.repository.Manifests(ctx, below...)
	if err != nil {
		return fmt.Errorf("%w; --layers says which files and folders hold the layers of this cluster", err)
	}
	written := map[objects.ID]repository.Manifest{}
	for _, manifest := range manifests {
		id := objects.IDOf(manifest.Object)
		first, twice := written[id]
		if twice && !reflect.DeepEqual(first.Object.Object, manifest.Object.Object) {
			return fmt.Errorf(
				"%s is in %s and in %s, and they differ: say with --layers which files or folders are meant for this cluster",
				id,
				first.File,
				manifest.File,
			)
		}
		if !twice {
			written[id] = manifest
		}
	}
	for _, id := range objects.SortIDs(slices.Collect(maps.Keys(written))) {
		manifest := written[id]
		one, err := snapshot.New(g.Now, manifest.Object)
		if err != nil {
			return fmt.Errorf("%s: %w", manifest.File, err)
		}
		for _, layer := range one.Layers {
			g.files[layer.Name] = manifest.File
			g.take(layer)
		}
		for _, cluster := range one.Clusters {
			g.Clusters = replaced(g.Clusters, cluster, func(live *v1alpha1.RemoteCluster) { cluster.Status = live.Status })
		}
		for _, bundle := range one.Bundles {
			g.Bundles = replaced(g.Bundles, bundle, func(live *v1alpha1.ApplicationBundle) {
				bundle.Status, bundle.Generation = live.Status, live.Generation
			})
		}
		for _, app := range one.Applications {
			g.Applications = replaced(g.Applications, app, func(live *v1alpha1.HelmApplication) { app.Status = live.Status })
		}
	}
	return nil
}

// take has a layer be as it is written.
func (g *Plan) take(written *v1alpha1.AddonsLayer) {
	for i, live := range g.Planned {
		if live.Name != written.Name {
			continue
		}
		changed := live.DeepCopy()
		changed.Labels, changed.Annotations = over(live.Labels, written.Labels), over(live.Annotations, written.Annotations)
		if !reflect.DeepEqual(live.Spec, written.Spec) {
			changed.Spec = written.Spec
			changed.Generation++
		}
		g.Planned[i] = changed
		return
	}
	written.Generation = 1
	written.Status = v1alpha1.AddonsLayerStatus{ObservedGeneration: -1}
	g.Planned = append(g.Planned, written)
	slices.SortFunc(g.Planned, func(a, b *v1alpha1.AddonsLayer) int { return strings.Compare(a.Name, b.Name) })
}

// over returns labels or annotations with those that are written over them.
func over(live, written map[string]string) map[string]string {
	merged := maps.Clone(live)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, written)
	return merged
}

// replaced returns objects with one in the place of that of the same name, of
// which it keeps something, or beside them.
func replaced[T interface {
	GetNamespace() string
	GetName() string
}](objs []T, with T, keep func(live T)) []T {
	objs = slices.Clone(objs)
	for i, live := range objs {
		if live.GetNamespace() == with.GetNamespace() && live.GetName() == with.GetName() {
			keep(live)
			objs[i] = with
			return objs
		}
	}
	return append(objs, with)
}
