// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/upgrade"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/terminal"
)

const canUpgradeLong = `Say whether layers are ready for another version of Kubernetes, and why not.

A layer says no where the version is not within the range of its
prereqs.k8sVersion, of its ApplicationBundle or of a HelmApplication in it;
and for each of its HelmReleases where the chart refuses the version, where
it renders objects at API versions that are not served there, or where the
release is deployed with such: Helm cannot upgrade it then any more. The
charts are rendered at the versions that are deployed, with the values that
are in the cluster, but for those of Secrets, in the place of which charts see
what stands in for them, unless --show-secrets is given. They are fetched from
where the releases have them from, and kept in the cache folder of the user.

A layer is unknown where a chart cannot be rendered: its repository is away,
it is a folder of a Git repository or a bucket, or its values may not be
read. Values in Secrets need the right to get them.

Which API versions are removed is what the types of Kubernetes 1.36 say, with
the removals that were announced then for later versions. Not looked at are
objects that layers have without Helm, releases that Flux Kustomizations
make, and what runs in the cluster beside the layers.

Exit codes:
  0  all layers are ready
  1  it cannot be said
  2  a layer is not ready, or that is not known`

const canUpgradeExamples = `  # All layers
  kubectl strata can-upgrade --k8s 1.37

  # Two of them, for other programs
  kubectl strata can-upgrade --k8s 1.37 base monitoring -o json

  # Those of one cluster
  kubectl strata can-upgrade --k8s 1.37 --cluster fleet/prod`

// canUpgradeCommands returns the command that looks at another version of Kubernetes.
func canUpgradeCommands(t *tool) []*cobra.Command {
	var to, cluster, output string
	var o chartOptions
	command := &cobra.Command{
		Use: "can-upgrade --k8s VERSION [LAYER...]", Short: "Say whether layers are ready for another version of Kubernetes",
		Long: canUpgradeLong, Example: canUpgradeExamples,
		RunE: func(command *cobra.Command, names []string) error {
			report, err := t.canUpgrade(command.Context(), to, cluster, o, names)
			if err != nil {
				return err
			}
			if output == "" {
				err = printing.Upgrade(t.out, t.screen, report)
			} else {
				err = t.printAs(output, report)
			}
			if err == nil && report.Upgrade != upgrade.Yes {
				return errBlocked
			}
			return err
		},
	}
	command.Flags().StringVar(&to, "k8s", "", "the version of Kubernetes to look at, such as 1.37 (required)")
	command.Flags().StringVar(&cluster, "cluster", "", "look at the layers of this RemoteCluster only, as [NAMESPACE/]NAME")
	o.secretsFlag(command.Flags())
	outputFlag(command, &output, "json", "yaml")
	return []*cobra.Command{command}
}

// canUpgradeParts are what is read of a cluster.
var canUpgradeParts = append([]snapshot.Part{
	snapshot.Layers, snapshot.Releases, snapshot.Clusters, snapshot.Bundles, snapshot.Applications, snapshot.HelmRepositories, snapshot.HelmCharts,
}, snapshot.Sources...)

func (t *tool) canUpgrade(ctx context.Context, to, cluster string, o chartOptions, names []string) (upgrade.Report, error) {
	if to == "" {
		return upgrade.Report{}, errors.New("--k8s is missing: name the version of Kubernetes to look at, such as 1.37")
	}
	if _, err := charts.RemovedAPIs(nil, to); err != nil {
		return upgrade.Report{}, fmt.Errorf("--k8s: %w", err)
	}
	progress := t.progress()
	defer progress.Done()
	progress.Say("reading the cluster")
	s, err := t.cluster.Read(ctx, canUpgradeParts...)
	if err != nil {
		return upgrade.Report{}, err
	}
	t.warnUnread(s, "what depends on them is not known")
	chosen, err := chooseLayers(s, cluster, names)
	if err != nil {
		return upgrade.Report{}, err
	}
	in := upgrade.Input{
		Kubernetes: to, Layers: chosen, Bundles: s.Bundles, Applications: s.Applications,
		Unread: map[string]string{}, Releases: map[dependents.ID]upgrade.Release{},
	}
	for part, err := range s.Unread {
		in.Unread[part.Kind] = unreadable(err, part.GroupVersionResource).Error()
	}
	work, err := t.newUpgradeWork(s, to, o)
	if err != nil {
		return upgrade.Report{}, err
	}
	if in.Releases, err = work.all(ctx, chosen, progress); err != nil {
		return upgrade.Report{}, explain(err, t.flags, layerKind)
	}
	return upgrade.Of(in), nil
}

// chooseLayers returns the layers of these names, or all of them, on a cluster.
func chooseLayers(s *snapshot.Snapshot, cluster string, names []string) ([]*v1alpha1.AddonsLayer, error) {
	for _, name := range names {
		if s.Layer(name) == nil {
			return nil, noLayer(s, name)
		}
	}
	var chosen []*v1alpha1.AddonsLayer
	for _, layer := range s.Layers {
		if isOn(layer, cluster) && (len(names) == 0 || slices.Contains(names, layer.Name)) {
			chosen = append(chosen, layer)
		}
	}
	if cluster != "" && len(chosen) == 0 {
		return nil, fmt.Errorf("no layer belongs on RemoteCluster %s: kubectl strata clusters shows those there are", cluster)
	}
	return chosen, nil
}

// isOn tells whether a layer belongs on a RemoteCluster; empty stands for any place.
func isOn(layer *v1alpha1.AddonsLayer, cluster string) bool {
	at := layers.PlaceOf(layer, "")
	switch {
	case cluster == "":
		return true
	case at.Name == "":
		return false
	case at.Namespace == "":
		// The controller knows the namespace that it means.
		return cluster == at.Name || strings.HasSuffix(cluster, "/"+at.Name)
	}
	return cluster == at.Name || cluster == at.String()
}

// unreadable says why something may not be read.
func unreadable(err error, resource schema.GroupVersionResource) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not read %s", resource.GroupResource())
	}
	return fmt.Errorf("the cluster does not serve %s", resource.GroupResource())
}

// upgradeWork looks at releases.
type upgradeWork struct {
	*snapshot.Snapshot
	client   dynamic.Interface
	renderer *charts.Renderer
	options  chartOptions
	to       string
	// version of the cluster, and the API versions that others than Kubernetes have
	// there with whether their objects are in namespaces; of the cluster that the
	// command asks.
	version    string
	served     []string
	namespaced map[schema.GroupKind]bool

	mu   sync.Mutex
	seen map[dependents.ID]*unstructured.Unstructured
}

func (t *tool) newUpgradeWork(s *snapshot.Snapshot, to string, o chartOptions) (*upgradeWork, error) {
	config, err := restConfig(t.flags)
	if err != nil {
		return nil, err
	}
	w := &upgradeWork{Snapshot: s, to: to, options: o, namespaced: map[schema.GroupKind]bool{}, seen: map[dependents.ID]*unstructured.Unstructured{}}
	if w.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	if w.renderer, err = newRenderer(""); err != nil {
		return nil, err
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	// Without these, charts see a cluster with nothing but Kubernetes.
	if info, err := asked.ServerVersion(); err == nil {
		w.version = info.GitVersion
	}
	_, lists, _ := asked.ServerGroupsAndResources()
	w.serves(lists)
	return w, nil
}

// serves remembers what the cluster serves, and will serve after the upgrade.
func (w *upgradeWork) serves(lists []*metav1.APIResourceList) {
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetGroupVersionKind(version.WithKind(resource.Kind))
			if removed, err := charts.RemovedAPIs([]*unstructured.Unstructured{object}, w.to); err != nil || len(removed) > 0 {
				continue
			}
			w.namespaced[schema.GroupKind{Group: version.Group, Kind: resource.Kind}] = resource.Namespaced
			w.served = append(w.served, list.GroupVersion, list.GroupVersion+"/"+resource.Kind)
		}
	}
}

// all looks at the releases of layers, some at once.
func (w *upgradeWork) all(ctx context.Context, of []*v1alpha1.AddonsLayer, progress *terminal.Progress) (map[dependents.ID]upgrade.Release, error) {
	found := map[dependents.ID]upgrade.Release{}
	ids := upgrade.ReleasesOf(of...)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(renderers)
	for _, id := range ids {
		release := w.Objects[id]
		if release == nil {
			continue
		}
		group.Go(func() error {
			looked := w.release(ctx, release)
			w.mu.Lock()
			defer w.mu.Unlock()
			found[id] = looked
			progress.Say("rendered %d of %d charts", len(found), len(ids))
			return ctx.Err()
		})
	}
	return found, group.Wait()
}

// release looks at one release.
func (w *upgradeWork) release(ctx context.Context, release *unstructured.Unstructured) upgrade.Release {
	deployed := upgrade.DeployedBy(release)
	looked := upgrade.Release{Chart: strings.TrimSpace(deployed.Chart + " " + deployed.Version)}
	looked.Live, _ = charts.RemovedAPIs(upgrade.InventoryOf(release), w.to) // the version was read before
	rendering, err := w.render(ctx, release, deployed, w.to)
	if err == nil {
		looked.Rendered, _ = charts.RemovedAPIs(slices.Concat(rendering.Objects, rendering.Hooks, rendering.CRDs), w.to)
		return looked
	}
	looked.Problem = err.Error()
	var problem *charts.Problem
	switch {
	case errors.Is(err, charts.ErrKubeVersion):
		looked.Refuses = true
	case errors.As(err, &problem) && problem.Reason == charts.RenderFailed:
		// Where it fails today, too, that says nothing of the version.
		if today := w.versionFor(release); today != "" {
			_, err = w.render(ctx, release, deployed, today)
			looked.Refuses = err == nil
		}
	}
	return looked
}

// versionFor returns the version of the cluster that a release is for; empty where
// it is not known.
func (w *upgradeWork) versionFor(release *unstructured.Unstructured) string {
	if !isRemote(release) {
		return w.version
	}
	for _, cluster := range w.Clusters {
		name, _, _ := unstructured.NestedString(release.Object, "spec", "kubeConfig", "secretRef", "name")
		if cluster.Namespace == release.GetNamespace() && layers.KubeConfigName(cluster.Name) == name {
			return cluster.Status.Version
		}
	}
	return ""
}

func isRemote(release *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedMap(release.Object, "spec", "kubeConfig")
	return found
}

func (w *upgradeWork) render(ctx context.Context, release *unstructured.Unstructured, deployed upgrade.Deployment, version string) (*charts.Rendering, error) {
	request := charts.Request{
		Release: upgrade.Pin(release, deployed), KubeVersion: version, Revision: deployed.Revision + 1,
		Find: func(ctx context.Context, id dependents.ID) (*unstructured.Unstructured, error) {
			object, err := w.find(ctx, id)
			return upgrade.Pin(object, deployed), err
		},
		// What is rendered is what the cluster has, as it has it.
		Trust:   func(*unstructured.Unstructured) charts.Trust { return charts.TrustAll },
		Secrets: charts.Secrets{True: w.options.showSecrets},
	}
	if !isRemote(release) {
		request.APIVersions = w.served
		request.Namespaced = func(kind schema.GroupKind) (namespaced, known bool) {
			namespaced, known = w.namespaced[kind]
			return namespaced, known
		}
	}
	rendering, err := w.renderer.Render(ctx, request)
	return rendering, refusedStandIns(err)
}

// find returns what a release refers to: a source that was read, or a ConfigMap or
// Secret, which is read once.
func (w *upgradeWork) find(ctx context.Context, id dependents.ID) (*unstructured.Unstructured, error) {
	if object := w.Objects[id]; object != nil {
		return object, nil
	}
	for part, err := range w.Unread {
		if part.Group == id.Group && part.Kind == id.Kind {
			return nil, unreadable(err, part.GroupVersionResource)
		}
	}
	resource, is := map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"}[id.Kind]
	if id.Group != "" || !is {
		return nil, nil
	}
	w.mu.Lock()
	object, known := w.seen[id]
	w.mu.Unlock()
	if known {
		return object, nil
	}
	core := schema.GroupVersionResource{Version: "v1", Resource: resource}
	object, err := w.client.Resource(core).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		object = nil
	case apierrors.IsForbidden(err):
		return nil, unreadable(err, core)
	case err != nil:
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[id] = object
	return object, nil
}
