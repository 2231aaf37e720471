// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// maker is a Platform shop whose bundle makes a cluster and has a release and a ConfigMap there.
type maker struct {
	*fixture
	*guise
	// made returns the events of RemoteClusters since the beginning.
	made func() map[types.UID]bool
}

func newMaker(t *testing.T) *maker {
	f := newBareFixture(t)
	f.withClusters = true
	f.startFleet(time.Minute)
	m := &maker{fixture: f, guise: f.newGuise("dead-"+f.namespace, "")}
	events := f.watched(&v1alpha1.RemoteClusterList{})
	m.made = func() map[types.UID]bool {
		seen := map[types.UID]bool{}
		for _, event := range events() {
			if cluster, is := event.Object.(*v1alpha1.RemoteCluster); is && cluster.Namespace == f.namespace {
				seen[cluster.UID] = true
			}
		}
		return seen
	}
	f.must(f.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "inner"}, Data: map[string][]byte{"value": m.kubeconfig()},
	}))
	f.application("net", func(v *v1alpha1.HelmApplicationVersion) {
		v.Namespace = &v1alpha1.ApplicationNamespace{Name: f.namespace}
	})
	f.bundleOf("one", "1.0.0", `
  layers:
  - name: inner
    remoteCluster: {kubeConfig: {secretRef: {name: inner, namespace: NAMESPACE}}, interval: 1s, labels: {test: NAMESPACE}}
  - name: gpu
    onClusterOf: inner
    objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: there, namespace: NAMESPACE}, data: {text: stays}}]
  - name: net
    onClusterOf: inner
    applications: [{name: net, application: NAMESPACE-net, version: 1.0.0}]
`)
	f.platform("shop", "  bundle: {family: NAMESPACE}\n")
	f.indexed()
	m.chart(f.readyOne())
	f.installed("shop", "1.0.0", 3)
	return m
}

// chart plays helm-controller, which makes a HelmChart for a release.
func (m *maker) chart(release helmv2.HelmRelease) {
	m.Helper()
	of := release.Spec.Chart.Spec
	chart := &sourcev1.HelmChart{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: release.Namespace + "-" + release.Name},
		Spec: sourcev1.HelmChartSpec{
			Chart: of.Chart, Version: of.Version, SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: of.SourceRef.Kind, Name: of.SourceRef.Name},
		},
	}
	m.must(m.client.Create(m.ctx, chart, client.FieldOwner("helm-controller")))
}

// remote returns the RemoteCluster that the bundle has made.
func (m *maker) remote() *v1alpha1.RemoteCluster {
	m.Helper()
	list := &v1alpha1.RemoteClusterList{}
	m.must(m.client.List(m.ctx, list, client.InNamespace(m.namespace)))
	if len(list.Items) != 1 {
		m.Fatalf("there are %d RemoteClusters", len(list.Items))
	}
	return &list.Items[0]
}

// dies has the cluster answer no more, and waits until that is known.
func (m *maker) dies() {
	m.Helper()
	m.dead.Store(true)
	m.eventually("the cluster is away", func() error {
		if conditions := m.remote().Status.Conditions; !meta.IsStatusConditionFalse(conditions, v1alpha1.ReachableCondition) {
			return fmt.Errorf("it is %+v", conditions)
		}
		return nil
	})
}

// leftBehind checks that everything here has gone, that what is on the cluster stays, and that
// no RemoteCluster was made anew.
func (m *maker) leftBehind() {
	m.Helper()
	m.isGone(&v1alpha1.Platform{}, "shop")
	repositories, charts, clusters := &sourcev1.HelmRepositoryList{}, &sourcev1.HelmChartList{}, &v1alpha1.RemoteClusterList{}
	m.must(m.client.List(m.ctx, repositories, client.InNamespace(m.namespace)))
	m.must(m.client.List(m.ctx, charts, client.InNamespace(m.namespace)))
	m.must(m.client.List(m.ctx, clusters, client.InNamespace(m.namespace)))
	if len(charts.Items) > 0 {
		m.Errorf("HelmChart %s is left, and would fail for ever", charts.Items[0].Name)
	}
	if releases := m.helmReleases(); len(releases)+len(repositories.Items)+len(clusters.Items) > 0 {
		m.Errorf("there are %d HelmReleases, %d HelmRepositories and %d RemoteClusters", len(releases), len(repositories.Items), len(clusters.Items))
	}
	m.text("there", "text", "stays")
	if made := m.made(); len(made) != 1 {
		m.Errorf("%d RemoteClusters were made: %v", len(made), made)
	}
}

// A cluster that a bundle has made and that does not answer any more is given up by its
// RemoteCluster while its Platform is being deleted: the layers on it go with it, and the layer
// that has made it does not make it again.
func TestDeadClusterIsGivenUp(t *testing.T) {
	m := newMaker(t)
	m.dies()
	m.deletePlatform("shop")
	m.platformSays("shop", v1alpha1.ReasonDeleting, "on the Platform leaves behind")
	remote := m.remote()
	m.annotateCluster(remote.Name, v1alpha1.AbandonAnnotation, "true")
	m.must(m.client.Delete(m.ctx, remote))
	m.leftBehind()
}

// One annotation on the Platform does all of that.
func TestDeadClusterIsGivenUpOnThePlatform(t *testing.T) {
	m := newMaker(t)
	m.dies()
	m.deletePlatform("shop")
	m.platformSays("shop", v1alpha1.ReasonDeleting, "on the Platform leaves behind")
	m.patchPlatform("shop", `{"metadata":{"annotations":{"`+v1alpha1.AbandonAnnotation+`":"true"}}}`)
	m.leftBehind()
}

// With the annotation what is on a cluster that answers is uninstalled as always.
func TestAnsweringClusterIsNotGivenUp(t *testing.T) {
	m := newMaker(t)
	m.patchPlatform("shop", `{"metadata":{"annotations":{"`+v1alpha1.AbandonAnnotation+`":"true"}}}`)
	m.deletePlatform("shop")
	m.isGone(&v1alpha1.Platform{}, "shop")
	there := &corev1.ConfigMap{}
	err := m.client.Get(m.ctx, types.NamespacedName{Namespace: m.namespace, Name: "there"}, there)
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("what is on the cluster is left behind: %v, %v", there.Data, err)
	}
	if written := strings.Join(m.written(), "\n"); !strings.Contains(written, "DELETE") {
		t.Errorf("the cluster was not asked: %s", written)
	}
}
