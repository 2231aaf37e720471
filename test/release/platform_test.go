// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// platform is a namespace with a repository of layers, whose names are its own.
type platform struct {
	*testing.T
	name string
	repo *controlplane.Repo
}

func newPlatform(t *testing.T, name string) *platform {
	t.Helper()
	p := &platform{T: t, name: name}
	ctx := t.Context()
	must(t, stack.plane.CreateNamespace(ctx, name))
	var err error
	p.repo, err = stack.git.NewRepo(name)
	must(t, err)
	p.commit(map[string]string{"README.md": "layers\n"})
	must(t, stack.client.Create(ctx, &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "addons"},
		Spec: sourcev1.GitRepositorySpec{
			URL: p.repo.URL(), Interval: metav1.Duration{Duration: time.Second}, Reference: &sourcev1.GitRepositoryRef{Branch: controlplane.Branch},
		},
	}))
	must(t, stack.client.Create(ctx, &sourcev1.HelmRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "charts"},
		Spec:       sourcev1.HelmRepositorySpec{URL: stack.charts.URL(), Interval: metav1.Duration{Duration: time.Hour}},
	}))
	return p
}

func (p *platform) commit(files map[string]string) string {
	p.Helper()
	commit, err := p.repo.Commit("change", files)
	must(p.T, err)
	return commit
}

// release is the manifest of a HelmRelease of a ConfigMap with a message.
func (p *platform) release(name, version, message string) string {
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s, namespace: %s}
spec:
  interval: 1h
  chart:
    spec:
      chart: configmap
      version: %s
      sourceRef: {kind: HelmRepository, name: charts}
  values: {message: %q}
`, name, p.name, version, message)
}

// layer makes the layer of a directory.
func (p *platform) layer(directory string, after ...string) {
	p.Helper()
	layer := &v1alpha1.AddonsLayer{
		ObjectMeta: metav1.ObjectMeta{Name: p.name + "-" + directory},
		Spec: v1alpha1.AddonsLayerSpec{
			Version: "1.0.0", Source: v1alpha1.SourceSpec{Namespace: p.name, Name: "addons", Path: "./" + directory},
			// Nobody takes over what is deleted here.
			OrphanGrace: &metav1.Duration{Duration: time.Second},
		},
	}
	for _, name := range after {
		layer.Spec.Prereqs.DependsOn = append(layer.Spec.Prereqs.DependsOn, p.name+"-"+name+"@1.0.0")
	}
	must(p.T, stack.client.Create(p.Context(), layer))
}

func (p *platform) got(ctx context.Context, directory string) (*v1alpha1.AddonsLayer, error) {
	layer := &v1alpha1.AddonsLayer{}
	return layer, stack.client.Get(ctx, client.ObjectKey{Name: p.name + "-" + directory}, layer)
}

// deployed waits until a layer is, at a version.
func (p *platform) deployed(directory, version string) {
	p.Helper()
	eventually(p.T, "layer "+directory+" is deployed", func(ctx context.Context) error {
		layer, err := p.got(ctx, directory)
		if err != nil {
			return err
		}
		if layer.Status.State != v1alpha1.StateDeployed || layer.Status.Version != version {
			return fmt.Errorf("%w: it is %s at %s: %+v", errNotYet, layer.Status.State, layer.Status.Version, layer.Status.Conditions)
		}
		return nil
	})
}

// releaseNamed returns a HelmRelease.
func (p *platform) releaseNamed(ctx context.Context, name string) (*helmv2.HelmRelease, error) {
	release := &helmv2.HelmRelease{}
	return release, stack.client.Get(ctx, client.ObjectKey{Namespace: p.name, Name: name}, release)
}

// gone deletes all layers, and waits until they have gone.
func (p *platform) gone() {
	p.Helper()
	must(p.T, stack.client.DeleteAllOf(p.Context(), &v1alpha1.AddonsLayer{}))
	eventually(p.T, "all layers are gone", func(ctx context.Context) error {
		list := &v1alpha1.AddonsLayerList{}
		if err := stack.client.List(ctx, list); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%w: %d are left, %s is %s", errNotYet, len(list.Items), list.Items[0].Name, list.Items[0].Status.State)
		}
		return nil
	})
}
