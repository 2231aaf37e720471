// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/test/bench/meter"
	"github.com/strata-project/strata/test/controlplane"
)

// sourcesPath is where the API serves the sources of a run.
const sourcesPath = "/apis/source.toolkit.fluxcd.io/v1/namespaces/" + namespace + "/gitrepositories"

// bed is what a system lies on while it is measured: a control plane, a
// repository, the stand-in, and records of what happens.
type bed struct {
	plane *controlplane.ControlPlane
	git   *controlplane.GitServer
	repo  *controlplane.Repo
	// client is the measuring program's own.
	client rest.Interface
	// dir is for what systems write, and for their logs.
	dir  string
	logf func(format string, args ...any)

	// work is what the scenario is about, and revision its last commit.
	work     *workload
	revision string

	audit     *meter.AuditLog
	downloads *meter.Downloads

	// remote stands in for the clusters of a fleet; nil where there is none.
	remote *remoteBed
	// clusters is the record of the RemoteClusters, counted that of whether they
	// count all of their layers as deployed, and put that of what those have there.
	clusters, counted, put *layerRecord

	releases *releaseRecord
	layers   *layerRecord
	sources  *sourceRecord

	// lasting ends with the bed, and with it all watches.
	lasting context.Context
	end     context.CancelFunc
	closers []func() error
}

// makeBed starts a control plane and what belongs to it, and counts what a user
// asks of it. The caller closes it, also beside an error. The context ends
// its watches.
func makeBed(ctx context.Context, o *options, work *workload, user string) (*bed, error) {
	b := &bed{
		work:     work,
		logf:     o.logf,
		releases: newReleaseRecord(),
		layers:   newLayerRecord(),
		sources:  newSourceRecord(),
		clusters: newLayerRecord(),
		counted:  newLayerRecord(),
		put:      newLayerRecord(),
	}
	b.lasting, b.end = context.WithCancel(ctx)
	ctx = b.lasting
	if err := b.startPlane(ctx, user); err != nil {
		return b, err
	}
	if len(work.clusters) > 0 {
		if err := b.startRemote(ctx); err != nil {
			return b, err
		}
	}
	var err error
	if b.client, err = restClient(b.plane.Config()); err != nil {
		return b, err
	}
	if err := b.furnish(ctx); err != nil {
		return b, err
	}
	standIn, err := b.account(ctx, "stand-in")
	if err != nil {
		return b, err
	}
	client, err := restClient(standIn.Config)
	if err != nil {
		return b, err
	}
	if err := startStandIn(ctx, client, o.readyDelay, b.releases, b.logf); err != nil {
		return b, err
	}
	return b, watch(ctx, b.client, sourcesPath, b.lookAtSource)
}

// startPlane starts the control plane, with what counts the requests of a user
// and the artifacts that are fetched.
func (b *bed) startPlane(ctx context.Context, user string) error {
	var err error
	if b.dir, err = os.MkdirTemp("", "strata-bench-"); err != nil {
		return err
	}
	b.onClose(func() error { return os.RemoveAll(b.dir) })
	audit, err := meter.AuditArgs(b.dir, user)
	if err != nil {
		return err
	}
	b.audit = meter.OpenAuditLog(b.dir)
	storage, release, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	b.onClose(func() error { release(); return nil })
	if b.downloads, err = meter.CountDownloads(controlplane.Loopback(storage)); err != nil {
		return err
	}
	b.onClose(b.downloads.Close)
	b.plane, err = controlplane.Start(ctx, controlplane.Options{
		With: []controlplane.Component{controlplane.SourceController},
		Args: map[controlplane.Component][]string{
			controlplane.APIServer:        audit,
			controlplane.SourceController: b.downloads.Args(),
		},
	})
	if err != nil {
		return err
	}
	b.onClose(b.plane.Stop)
	return nil
}

// furnish makes the namespace, the repository with the manifests of all layers,
// and the sources, which are suspended until the scenario begins.
func (b *bed) furnish(ctx context.Context) error {
	if err := b.plane.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	if err := bindAccounts(ctx, b.client); err != nil {
		return err
	}
	var err error
	if b.git, err = controlplane.NewGitServer(); err != nil {
		return err
	}
	b.onClose(b.git.Close)
	if b.repo, err = b.git.NewRepo("addons"); err != nil {
		return err
	}
	if err := b.commit(b.work.files()); err != nil {
		return err
	}
	if b.work.key != nil {
		secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": keySecret}, "stringData": b.work.key}
		if err := createObject(ctx, b.client, "/api/v1/namespaces/"+namespace+"/secrets", secret); err != nil {
			return fmt.Errorf("cannot create Secret %s: %w", keySecret, err)
		}
		if _, err := b.account(ctx, deployer); err != nil {
			return err
		}
	}
	for _, name := range b.work.sources() {
		source := map[string]any{
			"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
			"metadata": map[string]any{"name": name, "namespace": namespace},
			"spec": map[string]any{
				"url": b.repo.URL(), "interval": "1h", "suspend": true,
				"ref": map[string]any{"branch": controlplane.Branch},
			},
		}
		if err := createObject(ctx, b.client, sourcesPath, source); err != nil {
			return fmt.Errorf("cannot create GitRepository %s: %w", name, err)
		}
	}
	return nil
}

// bindAccounts lets the accounts of the run do everything.
func bindAccounts(ctx context.Context, client rest.Interface) error {
	binding := rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + namespace}},
	}
	if err := createObject(ctx, client, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding); err != nil {
		return fmt.Errorf("cannot bind the accounts of the run: %w", err)
	}
	return nil
}

// account makes a ServiceAccount of the run, which may do everything, and
// returns its identity.
func (b *bed) account(ctx context.Context, name string) (controlplane.Identity, error) {
	return accountOf(ctx, b.plane, b.client, name)
}

// accountOf makes a ServiceAccount on a control plane and returns its identity.
func accountOf(ctx context.Context, plane *controlplane.ControlPlane, client rest.Interface, name string) (controlplane.Identity, error) {
	account := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name}}
	if err := createObject(ctx, client, "/api/v1/namespaces/"+namespace+"/serviceaccounts", account); err != nil {
		return controlplane.Identity{}, fmt.Errorf("cannot create ServiceAccount %s: %w", name, err)
	}
	return plane.ServiceAccount(ctx, namespace, name)
}

// accountUser returns the name that an account of the run has at the API server.
func accountUser(name string) string { return "system:serviceaccount:" + namespace + ":" + name }

// commit commits files; the sources have yet to fetch them.
func (b *bed) commit(files map[string]string) error {
	sha, err := b.repo.Commit("change", files)
	if err != nil {
		return err
	}
	b.revision = controlplane.Branch + "@sha1:" + sha
	return nil
}

// fetch has the sources fetch the last commit. It returns when a source was seen
// to have it, or the first of all where none is named.
func (b *bed) fetch(ctx context.Context, source string) (time.Time, error) {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}},"spec":{"suspend":false}}`,
		time.Now().Format(time.RFC3339Nano))
	for _, name := range b.work.sources() {
		if err := b.client.Patch(types.MergePatchType).AbsPath(sourcesPath, name).Body([]byte(patch)).Do(ctx).Error(); err != nil {
			return time.Time{}, fmt.Errorf("cannot ask source %s to fetch: %w", name, err)
		}
	}
	key := b.revision
	if source != "" {
		key = arrivalAt(source, b.revision)
	}
	select {
	case <-b.sources.arrival(key):
		return b.sources.arrived(key), nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("%w: waited for source-controller to fetch %s", errTimeout, b.revision)
	}
}

// lookAtSource takes in a change of a source.
func (b *bed) lookAtSource(seen change) {
	var status struct {
		Artifact *struct {
			Revision string `json:"revision"`
		} `json:"artifact"`
	}
	if json.Unmarshal(seen.Object.Status, &status) == nil && status.Artifact != nil {
		b.sources.tell(seen.Object.Metadata.Name, status.Artifact.Revision, seen.At)
	}
}

// watchLayers begins to watch the objects that a controller has for layers.
func (b *bed) watchLayers(c Controller) error {
	return watch(b.lasting, b.client, c.Path(), func(seen change) { b.layers.tell(seen, c.Settled(seen.Object)) })
}

// declare gives a controller the objects of all layers.
func (b *bed) declare(ctx context.Context, c Controller) error {
	for _, l := range b.work.layers {
		if err := createObject(ctx, b.client, c.Path(), c.Object(l)); err != nil {
			return fmt.Errorf("cannot create the object of %s: %w", l.Name, err)
		}
	}
	return nil
}

// onClose adds what close must do, before what was added earlier.
func (b *bed) onClose(closer func() error) { b.closers = append(b.closers, closer) }

// close ends everything that belongs to the bed: the watches first, which the
// API server would wait for.
func (b *bed) close() error {
	b.end()
	var problems []error
	for _, closer := range slices.Backward(b.closers) {
		problems = append(problems, closer())
	}
	b.closers = nil
	return errors.Join(problems...)
}

// restClient returns a client for any path, without throttling.
func restClient(config *rest.Config) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.DisableCompression = -1, true
	config.ContentType, config.AcceptContentTypes = jsonType, jsonType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	return client.Discovery().RESTClient(), nil
}
