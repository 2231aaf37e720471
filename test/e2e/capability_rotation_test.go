// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/postgres"
)

// A bundle asks for the next passwords of an application's database. A client that stays
// connected keeps its session; one that connects anew at each moment, with what the release
// gives it, always gets in; and once the release has the next password, the one of before gets
// nobody in any more.
func TestPasswordsOfADatabaseRotate(t *testing.T) {
	f := newCapabilityFixture(t)
	app := &v1alpha1.HelmApplication{}
	f.written(app, shopApplication)
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, app))) })
	port := f.freePort()
	bundle := func(version, requires string) {
		f.bundle(version, fmt.Sprintf("  upgradesFrom: [1.0.x]\n  layers: [{name: apps, applications: [{name: shop, application: PREFIX-shop, version: 1.0.0, "+
			"requires: [{name: db, parameters: {port: %d}%s}]}]}]\n", port, requires))
	}
	bundle("1.0.0", "")
	f.platform("shop", "  bundle: {family: PREFIX}\n  layerTemplate: {orphanGrace: 1s}\n")
	f.provider(rotatingProvider())
	server := f.runServer("shop-db-server")
	f.alterUsers(server, "shop-db", "shop-db-users-0one", port)
	f.state("shop-apps", v1alpha1.StateDeployed)
	first := f.released("shop")
	stays := server.Connect(t, first)
	if who := stays.Ask("SELECT current_user"); who != "app0" {
		t.Fatalf("the client is %q", who)
	}

	t.Log("the next password is asked for")
	connected, stop := f.reconnects(server, "shop")
	bundle("1.1.0", ", rotation: {number: 1, keepPrevious: 0s}")
	f.moveTo("shop", "1.1.0")
	f.alterUsers(server, "shop-db", "shop-db-users-1both", port)
	f.eventually("the release has the next password", func() error {
		if now := f.released("shop"); now == first || !strings.HasPrefix(now, "postgresql://app1:") {
			return fmt.Errorf("it has that of %.20s", now)
		}
		return nil
	})
	second := f.released("shop")
	f.alterUsers(server, "shop-db", "shop-db-users-1one", port)
	f.eventually("the rotation is over", func() error {
		claim := f.claimOf("shop-db")
		if claim.Status.Rotation != 1 || meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.RotatingCondition) != nil {
			return fmt.Errorf("it says %+v", claim.Status)
		}
		return nil
	})
	f.state("shop-apps", v1alpha1.StateDeployed)
	f.eventually("clients have connected all the time", func() error {
		if times := connected.Load(); times < 5 {
			return fmt.Errorf("it has connected %d times", times)
		}
		return nil
	})
	stop()
	if who := stays.Ask("SELECT current_user"); who != "app0" {
		t.Errorf("the client that stayed is %q", who)
	}
	if who, err := server.Query(second, "SELECT current_user"); err != nil || who != "app1" {
		t.Errorf("the next password gets %q in: %v", who, err)
	}
	if who, err := server.Query(first, "SELECT current_user"); err == nil {
		t.Errorf("the password of before gets %q in", who)
	}
	for _, uri := range []string{first, second} {
		_, rest, _ := strings.Cut(uri, ":")
		_, rest, _ = strings.Cut(rest, ":")
		password, _, _ := strings.Cut(rest, "@")
		f.keepsToItself(password)
	}
}

// claimOf reads a claim.
func (f *fixture) claimOf(name string) *v1alpha1.CapabilityClaim {
	f.Helper()
	claim := &v1alpha1.CapabilityClaim{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, claim))
	return claim
}

// released returns the address that a release has given its application.
func (f *fixture) released(name string) string {
	f.Helper()
	given := &corev1.ConfigMap{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, given))
	return given.Data["uri"]
}

// reconnects connects with what a release gives its application, again and again, until the
// function that it returns is called. None may fail. It counts how often that was.
func (f *fixture) reconnects(server *postgres.Server, release string) (connected *atomic.Int64, end func()) {
	f.Helper()
	connected = &atomic.Int64{}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for ; ; connected.Add(1) {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			given := &corev1.ConfigMap{}
			if err := stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: release}, given); err != nil {
				f.Errorf("cannot read what the release gives: %v", err)
				return
			}
			if _, err := server.Query(given.Data["uri"], "SELECT 1"); err != nil {
				f.Errorf("a client does not get in: %v", err)
				return
			}
		}
	}()
	end = sync.OnceFunc(func() {
		close(stop)
		<-ended
	})
	f.Cleanup(end)
	return connected, end
}
