// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standin stands in for Cluster API where there are no machines: of each Cluster
// it makes an API server with its own etcd, and one Node that no kubelet runs. It is no
// Cluster API. It knows no infrastructure, no Machines and no ClusterClasses, and it says
// so in each Cluster and each Node. What it keeps of Cluster API is what others can see of
// it: the kind, with its real definition; the Secret NAME-kubeconfig with its label and
// its type; the status; a finalizer; and that a cluster which is made twice has another
// API server, another port and other credentials.
package standin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/strata-project/strata/hack/controlplane/cache"
	"github.com/strata-project/strata/test/controlplane"
)

const (
	// Says is the annotation of what the stand-in makes.
	Says = "standin.example.dev/says"
	// says is its value.
	says = "a stand-in for Cluster API: an API server and no machines"
	// NetworkLabel is on the ConfigMap that stands for a network, which makes the Node
	// ready.
	NetworkLabel = "standin.example.dev/network"

	finalizer = "standin.example.dev/cluster"
	nodeName  = "stand-in"
	every     = 100 * time.Millisecond
)

var clusterKind = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"}

// NewCluster returns a Cluster that says no more than its network.
func NewCluster(namespace, name string) *unstructured.Unstructured {
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(clusterKind)
	cluster.SetNamespace(namespace)
	cluster.SetName(name)
	cluster.Object["spec"] = map[string]any{"clusterNetwork": map[string]any{"pods": map[string]any{"cidrBlocks": []any{"10.244.0.0/16"}}}}
	return cluster
}

// InstallCRDs installs the definitions of Cluster API on a control plane.
func InstallCRDs(ctx context.Context, plane *controlplane.ControlPlane) error {
	crds, err := controlplane.Binary(cache.ClusterAPICRDs)
	if err != nil {
		return err
	}
	return plane.InstallCRDs(ctx, crds)
}

// made is the cluster of a Cluster.
type made struct {
	plane  *controlplane.ControlPlane
	client client.Client
	name   string
}

// Maker makes the clusters of one management cluster. Close ends it with all of them.
type Maker struct {
	client    client.Client
	namespace string
	logf      func(format string, values ...any)
	stop      context.CancelFunc
	ended     chan struct{}

	mu    sync.Mutex
	byUID map[types.UID]made
}

// Start begins to make the clusters of a namespace of the management cluster that config
// reaches, and tells logf of each step. The definitions of Cluster API may come later.
func Start(ctx context.Context, config *rest.Config, namespace string, logf func(format string, values ...any)) (*Maker, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	reads, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	m := &Maker{client: reads, namespace: namespace, logf: logf, stop: stop, ended: make(chan struct{}), byUID: map[types.UID]made{}}
	go func() {
		defer close(m.ended)
		said := ""
		for ctx.Err() == nil {
			trouble := ""
			if err := m.look(ctx); err != nil && ctx.Err() == nil {
				trouble = err.Error()
			}
			if trouble != said && trouble != "" {
				logf("the stand-in tries again: %s", trouble)
			}
			said = trouble
			select {
			case <-ctx.Done():
			case <-time.After(every):
			}
		}
	}()
	return m, nil
}

// Close stops the maker and the clusters that it has made.
func (m *Maker) Close() error {
	m.stop()
	<-m.ended
	var problems []error
	for _, one := range m.byUID {
		problems = append(problems, one.plane.Stop())
	}
	return errors.Join(problems...)
}

// Plane returns the control plane that was made of a Cluster; nil where there is none.
func (m *Maker) Plane(name string) *controlplane.ControlPlane {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.byUID {
		if one.name == name {
			return one.plane
		}
	}
	return nil
}

// look makes, tends and unmakes clusters.
func (m *Maker) look(ctx context.Context) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(clusterKind.GroupVersion().WithKind("ClusterList"))
	if err := m.client.List(ctx, list, client.InNamespace(m.namespace)); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		return err
	}
	var problems []error
	for i := range list.Items {
		cluster := &list.Items[i]
		if !cluster.GetDeletionTimestamp().IsZero() {
			problems = append(problems, m.unmake(ctx, cluster))
			continue
		}
		problems = append(problems, m.make(ctx, cluster), m.tend(ctx, cluster))
	}
	return errors.Join(problems...)
}

// make starts the API server of a Cluster, and writes where it is and how it is reached.
func (m *Maker) make(ctx context.Context, cluster *unstructured.Unstructured) error {
	m.mu.Lock()
	_, there := m.byUID[cluster.GetUID()]
	m.mu.Unlock()
	if there {
		return nil
	}
	if controllerutil.AddFinalizer(cluster, finalizer) {
		annotations := cluster.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[Says] = says
		cluster.SetAnnotations(annotations)
		if err := m.client.Update(ctx, cluster); err != nil {
			return err
		}
	}
	m.logf("Cluster %s/%s is made by %s", cluster.GetNamespace(), cluster.GetName(), says)
	plane, err := controlplane.Start(ctx, controlplane.Options{With: controlplane.APIOnly()})
	if err != nil {
		return err
	}
	writes, err := client.New(plane.Config(), client.Options{Scheme: m.client.Scheme()})
	if err != nil {
		return errors.Join(err, plane.Stop())
	}
	m.mu.Lock()
	m.byUID[cluster.GetUID()] = made{plane, writes, cluster.GetName()}
	m.mu.Unlock()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Annotations: map[string]string{Says: says}}}
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "there is no network"},
	}
	if err := writes.Create(ctx, node); err != nil {
		return err
	}
	if err := m.writeKubeconfig(ctx, cluster, plane); err != nil {
		return err
	}
	return m.writeEndpoint(ctx, cluster, plane)
}

// writeKubeconfig writes the Secret that Cluster API writes.
func (m *Maker) writeKubeconfig(ctx context.Context, cluster *unstructured.Unstructured, plane *controlplane.ControlPlane) error {
	data, err := os.ReadFile(filepath.Clean(plane.Kubeconfig()))
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.GetNamespace(), Name: cluster.GetName() + "-kubeconfig",
			Labels: map[string]string{"cluster.x-k8s.io/cluster-name": cluster.GetName()},
		},
		Type: "cluster.x-k8s.io/secret", Data: map[string][]byte{"value": data},
	}
	err = m.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = m.client.Update(ctx, secret)
	}
	return err
}

// writeEndpoint writes the endpoint and the status of a Cluster.
func (m *Maker) writeEndpoint(ctx context.Context, cluster *unstructured.Unstructured, plane *controlplane.ControlPlane) error {
	address, err := url.Parse(plane.Config().Host)
	if err != nil {
		return err
	}
	port, err := strconv.ParseInt(address.Port(), 10, 32)
	if err != nil {
		return err
	}
	endpoint := map[string]any{"host": address.Hostname(), "port": port}
	if err := unstructured.SetNestedMap(cluster.Object, endpoint, "spec", "controlPlaneEndpoint"); err != nil {
		return err
	}
	if err := m.client.Update(ctx, cluster); err != nil {
		return err
	}
	now := metav1.Now().UTC().Format(time.RFC3339)
	cluster.Object["status"] = map[string]any{
		"phase":          "Provisioned",
		"initialization": map[string]any{"infrastructureProvisioned": true, "controlPlaneInitialized": true},
		"conditions": []any{map[string]any{
			"type": "Available", "status": "True", "reason": "StandIn", "message": says, "lastTransitionTime": now,
		}},
	}
	return m.client.Status().Update(ctx, cluster)
}

// tend makes the Node of a cluster ready when there is a network.
func (m *Maker) tend(ctx context.Context, cluster *unstructured.Unstructured) error {
	m.mu.Lock()
	one, there := m.byUID[cluster.GetUID()]
	m.mu.Unlock()
	if !there {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	networks := &corev1.ConfigMapList{}
	if err := one.client.List(ctx, networks, client.HasLabels{NetworkLabel}); err != nil || len(networks.Items) == 0 {
		return nil // an API server that a test has killed is no fault of the stand-in
	}
	node := &corev1.Node{}
	if err := one.client.Get(ctx, types.NamespacedName{Name: nodeName}, node); err != nil {
		return client.IgnoreNotFound(err)
	}
	if node.Status.Conditions[0].Status == corev1.ConditionTrue {
		return nil
	}
	m.logf("the Node of Cluster %s/%s is ready, since there is a network", cluster.GetNamespace(), cluster.GetName())
	node.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: says}
	return one.client.Status().Update(ctx, node)
}

// unmake stops the API server of a Cluster that is being deleted, and lets it go.
func (m *Maker) unmake(ctx context.Context, cluster *unstructured.Unstructured) error {
	m.mu.Lock()
	one, there := m.byUID[cluster.GetUID()]
	delete(m.byUID, cluster.GetUID())
	m.mu.Unlock()
	if there {
		m.logf("the API server of Cluster %s/%s is stopped", cluster.GetNamespace(), cluster.GetName())
		if err := one.plane.Stop(); err != nil {
			return err
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.GetNamespace(), Name: cluster.GetName() + "-kubeconfig"}}
	if err := client.IgnoreNotFound(m.client.Delete(ctx, secret)); err != nil {
		return err
	}
	if !controllerutil.RemoveFinalizer(cluster, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(m.client.Update(ctx, cluster))
}
