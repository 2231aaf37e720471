// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
)

// keyOf returns a key of digests that begins with a byte.
func (f *fixture) keyOf(first byte) digests.Key {
	f.Helper()
	data := make([]byte, 32)
	for i := range data {
		data[i] = first + byte(i)
	}
	key, err := digests.NewKey(data)
	f.must(err)
	return key
}

// restarts is a fleet whose controller comes and goes.
type restarts struct {
	*fleet
	config *rest.Config
}

func newRestarts(t *testing.T) *restarts {
	t.Helper()
	f := newIdleFleet(t)
	return &restarts{fleet: f, config: f.asController(rulesOfRemoteClusters)}
}

// begin starts a controller with a key of digests, and end stops it.
func (r *restarts) begin(key digests.Key) {
	r.Helper()
	mgr, reconciler := r.assemble(r.config, managerOptions(), time.Second)
	reconciler.Settings.DigestKey = key
	r.startWithClusters(mgr, reconciler)
}

func (r *restarts) end() {
	r.Helper()
	r.cancel()
	r.stopped()
	r.must(<-r.ended)
}

// clusterIs waits until the RemoteCluster says why it is ready or not.
func (r *restarts) clusterIs(reason string, words ...string) {
	r.Helper()
	r.eventually("the RemoteCluster is "+reason, func() error {
		ready := meta.FindStatusCondition(r.clusterStatus("prod").Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Reason != reason {
			return fmt.Errorf("it is %+v", ready)
		}
		for _, word := range words {
			if !strings.Contains(ready.Message, word) {
				return fmt.Errorf("it says %s", ready.Message)
			}
		}
		return nil
	})
}

// changeCopy changes Strata's own copy of the kubeconfig, as who may write Secrets can.
func (r *restarts) changeCopy(change func(*corev1.Secret)) *corev1.Secret {
	r.Helper()
	secret := r.secretIs("strata-kubeconfig-prod")
	change(secret)
	r.must(r.client.Update(r.ctx, secret))
	return secret
}

// copyHas waits until the copy is of a kubeconfig, and has a MAC other than one.
func (r *restarts) copyHas(kubeconfig []byte, other string) string {
	r.Helper()
	mac := ""
	r.eventually("the copy is authenticated", func() error {
		secret := r.secretIs("strata-kubeconfig-prod")
		mac = secret.Annotations[v1alpha1.CopyMACAnnotation]
		if mac == "" || mac == other || !bytes.Equal(secret.Data["value"], kubeconfig) {
			return fmt.Errorf("it has the annotations %v", secret.Annotations)
		}
		return nil
	})
	return mac
}

// source makes the Secret of the kubeconfig again, and loseSource deletes it.
func (r *restarts) source(kubeconfig []byte) {
	r.Helper()
	r.must(r.client.Create(r.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "prod"}, Data: map[string][]byte{"value": kubeconfig},
	}))
}

func (r *restarts) loseSource() {
	r.Helper()
	r.must(r.client.Delete(r.ctx, r.secretIs("prod")))
}

// evil listens for who is led astray.
func (f *fixture) evil() (address string, connections *atomic.Int32) {
	f.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	f.must(err)
	connections = &atomic.Int32{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = conn.Close()
		}
	}()
	f.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String(), connections
}

// A copy that was changed while no controller ran leads nobody astray, also where
// there is nothing left to compare it with: nothing connects to where it leads, and
// Flux is stopped, until the Secret is back.
func TestForgedCopyOfAKubeconfigIsNotUsed(t *testing.T) {
	f := newRestarts(t)
	kubeconfig, err := os.ReadFile(f.other.Kubeconfig())
	f.must(err)
	f.begin(f.keyOf(7))
	f.joinProd()
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
	f.onFleet("base", "")
	release := types.NamespacedName{Namespace: f.namespace, Name: f.appears("base", "a")}
	f.ready(release.Name)
	f.deployed("base", "main@sha1:1")
	f.copyHas(kubeconfig, "")
	suspended := func(want bool) {
		t.Helper()
		f.eventually(fmt.Sprintf("the release is suspended: %t", want), func() error {
			found := &helmv2.HelmRelease{}
			f.must(f.client.Get(f.ctx, release, found))
			if found.Spec.Suspend != want {
				return fmt.Errorf("it is not; the layer is %+v", f.get("base").Status.Conditions)
			}
			return nil
		})
	}

	// One that is as it was written goes on alone.
	f.loseSource()
	f.clusterIs(v1alpha1.ReasonCredentialsSourceGone)
	f.end()
	f.begin(f.keyOf(7))
	f.publish("main@sha1:2", map[string]string{"base/a.yaml": f.release("a"), "base/b.yaml": f.release("b")})
	f.eventually("another release is written", func() error {
		if f.released("b") == "" {
			return fmt.Errorf("the layer is %+v", f.get("base").Status.Conditions)
		}
		return nil
	})
	f.ready(f.released("b"))
	f.deployed("base", "main@sha1:2")
	f.clusterIs(v1alpha1.ReasonCredentialsSourceGone, "the copy of it is used")
	suspended(false)

	f.end()
	address, connections := f.evil()
	forged := f.changeCopy(func(s *corev1.Secret) {
		s.Data["value"] = regexp.MustCompile(`https://127\.0\.0\.1:\d+`).ReplaceAll(s.Data["value"], []byte("https://"+address))
	})
	if bytes.Equal(forged.Data["value"], kubeconfig) {
		t.Fatal("nothing was forged")
	}
	f.begin(f.keyOf(7))
	f.clusterIs(v1alpha1.ReasonCopyUnverified, "Secret "+f.namespace+"/prod has gone, and the copy of it", "is not used", "put it back")
	suspended(true)
	f.reason("base", v1alpha1.ReasonClusterMistaken, "is not used")
	if n := connections.Load(); n > 0 {
		t.Errorf("there were %d connections to where the forged copy leads", n)
	}
	if now := f.secretIs("strata-kubeconfig-prod"); now.ResourceVersion != forged.ResourceVersion {
		t.Errorf("the forged copy was written: %+v", now.ManagedFields)
	}

	f.source(kubeconfig)
	f.clusterIs(v1alpha1.ReasonReachable)
	f.copyHas(kubeconfig, "")
	suspended(false)
	f.ready(release.Name)
	f.ready(f.released("b"))
	f.deployed("base", "main@sha1:2")
	if n := connections.Load(); n > 0 {
		t.Errorf("there were %d connections to where the forged copy led", n)
	}
}

// A copy of an earlier version, or one of another key, gets its MAC where its source is
// there, and is not used where that has gone.
func TestCopyOfAKubeconfigGetsItsMAC(t *testing.T) {
	f := newRestarts(t)
	kubeconfig, err := os.ReadFile(f.other.Kubeconfig())
	f.must(err)
	f.begin(f.keyOf(7))
	f.joinProd()
	first := f.copyHas(kubeconfig, "")
	unmarked := func() {
		f.changeCopy(func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.CopyMACAnnotation) })
	}
	f.end()
	unmarked()
	f.begin(f.keyOf(7))
	if again := f.copyHas(kubeconfig, ""); again != first {
		t.Error("the same copy has another MAC")
	}

	f.end()
	f.begin(f.keyOf(9))
	f.copyHas(kubeconfig, first)
	f.end()
	f.loseSource()
	f.begin(f.keyOf(7))
	f.clusterIs(v1alpha1.ReasonCopyUnverified)
	f.end()
	unmarked()
	f.begin(f.keyOf(9))
	f.clusterIs(v1alpha1.ReasonCopyUnverified)
	f.source(kubeconfig)
	f.clusterIs(v1alpha1.ReasonReachable)
	f.copyHas(kubeconfig, first)
}
