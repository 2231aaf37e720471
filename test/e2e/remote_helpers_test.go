// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// farCluster is another cluster: an API server with its own etcd.
type farCluster struct {
	*controlplane.ControlPlane
	client client.WithWatch
}

// farClusters are those that the tests share; they start with the first test that
// needs one.
var farClusters struct {
	sync.Mutex
	started []*farCluster
}

// startFar starts a cluster that is stopped by tearDown, or by the test.
func startFar(ctx context.Context, with []controlplane.Component) (*farCluster, error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{With: with})
	if err != nil {
		return nil, err
	}
	made, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: stack.client.Scheme()})
	if err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return &farCluster{plane, made}, nil
}

// far returns the first or second of the clusters that all tests share, which
// nobody may stop.
func (f *fixture) far(number int) *farCluster {
	f.Helper()
	farClusters.Lock()
	defer farClusters.Unlock()
	for len(farClusters.started) <= number {
		started, err := startFar(f.ctx, controlplane.APIOnly())
		f.must(err)
		farClusters.started = append(farClusters.started, started)
	}
	return farClusters.started[number]
}

// mortalFar returns a cluster of the test's own, which it may stop.
func (f *fixture) mortalFar() *farCluster { return f.farWith(controlplane.APIOnly()...) }

// farWith is as mortalFar, with more than an API server.
func (f *fixture) farWith(components ...controlplane.Component) *farCluster {
	f.Helper()
	started, err := startFar(f.ctx, components)
	f.must(err)
	f.Cleanup(func() {
		if err := started.Stop(); err != nil {
			f.Error(err)
		}
	})
	return started
}

// stopFar stops the clusters that the tests shared.
func stopFar() error {
	farClusters.Lock()
	defer farClusters.Unlock()
	var problems []error
	for _, started := range farClusters.started {
		problems = append(problems, started.Stop())
	}
	return errors.Join(problems...)
}

// kubeconfig returns the administrator's kubeconfig.
func (c *farCluster) kubeconfig(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// kubeconfigOf writes down how a configuration reaches a cluster.
func kubeconfigOf(t *testing.T, config *rest.Config) []byte {
	t.Helper()
	data, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "it",
		Contexts:       map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"it": {Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"it": {
			Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// kubeconfigSecret makes or changes a Secret with a kubeconfig, or anything else
// under the key value.
func (f *fixture) kubeconfigSecret(on client.Client, namespace, name string, data []byte) {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"value": data}}
	err := on.Create(f.ctx, secret)
	if err != nil {
		err = on.Update(f.ctx, secret)
	}
	f.must(err)
}

// remoteCluster makes a RemoteCluster of the fixture's namespace, which reads the
// Secret of its name.
func (f *fixture) remoteCluster(name string, options ...func(*v1alpha1.RemoteCluster)) types.NamespacedName {
	f.Helper()
	cluster := &v1alpha1.RemoteCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: name},
		Spec: v1alpha1.RemoteClusterSpec{
			KubeConfig: v1alpha1.KubeConfigSource{SecretRef: v1alpha1.SecretKeyReference{Name: name}},
			Interval:   &metav1.Duration{Duration: time.Second},
		},
	}
	for _, option := range options {
		option(cluster)
	}
	f.must(stack.client.Create(f.ctx, cluster))
	f.Cleanup(func() {
		if f.Failed() {
			found := &v1alpha1.RemoteCluster{}
			if err := stack.client.Get(f.ctx, client.ObjectKeyFromObject(cluster), found); err == nil {
				data, _ := yaml.Marshal(found.Status)
				f.Logf("RemoteCluster %s deleted %v:\n%s", found.Name, found.DeletionTimestamp, data)
			}
		}
	})
	return client.ObjectKeyFromObject(cluster)
}

// joined makes a RemoteCluster of a cluster, with the administrator's kubeconfig,
// and waits until it is ready.
func (f *fixture) joined(name string, far *farCluster, options ...func(*v1alpha1.RemoteCluster)) types.NamespacedName {
	f.Helper()
	f.kubeconfigSecret(stack.client, f.prefix, name, far.kubeconfig(f.T))
	key := f.remoteCluster(name, options...)
	f.clusterSays(key, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	return key
}

// clusterSays waits until a condition of a RemoteCluster has a status and a
// reason, and a message with all of the words.
func (f *fixture) clusterSays(key types.NamespacedName, kind string, status metav1.ConditionStatus, reason string, words ...string) *v1alpha1.RemoteCluster {
	f.Helper()
	found := &v1alpha1.RemoteCluster{}
	f.eventually(fmt.Sprintf("RemoteCluster %s is %s=%s %s %q", key, kind, status, reason, words), func() error {
		if err := stack.client.Get(f.ctx, key, found); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(found.Status.Conditions, kind)
		if condition == nil || condition.Status != status || condition.Reason != reason {
			return fmt.Errorf("it says %+v", condition)
		}
		for _, word := range words {
			if !strings.Contains(condition.Message, word) {
				return fmt.Errorf("its message lacks %q: %s", word, condition.Message)
			}
		}
		return nil
	})
	return found
}

// clusterHas waits until a RemoteCluster counts its layers so, which it does a
// moment after they are.
func (f *fixture) clusterHas(key types.NamespacedName, want v1alpha1.LayerCount) *v1alpha1.RemoteCluster {
	f.Helper()
	found := &v1alpha1.RemoteCluster{}
	f.eventually(fmt.Sprintf("RemoteCluster %s counts %+v", key, want), func() error {
		if err := stack.client.Get(f.ctx, key, found); err != nil {
			return err
		}
		if found.Status.Layers != want {
			return fmt.Errorf("it counts %+v", found.Status.Layers)
		}
		return nil
	})
	return found
}

// on puts a layer on a RemoteCluster.
func on(cluster types.NamespacedName) func(*v1alpha1.AddonsLayer) {
	return func(layer *v1alpha1.AddonsLayer) {
		layer.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: cluster.Namespace, Name: cluster.Name}
	}
}

// configMapOn returns the data of a ConfigMap on a cluster, or an error.
func (f *fixture) configMapOn(on client.Client, namespace, name string) (map[string]string, error) {
	found := &corev1.ConfigMap{}
	if err := on.Get(f.ctx, types.NamespacedName{Namespace: namespace, Name: name}, found); err != nil {
		return nil, err
	}
	return found.Data, nil
}
