// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/test/authority"

	"github.com/strata-project/strata/api/v1alpha1"
)

// overheard notes what the other cluster is asked that tells of Secrets, and can have
// it answer no question about rights.
type overheard struct {
	mu    sync.Mutex
	deaf  bool
	asked []string
}

func (o *overheard) taken() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.asked
	o.asked = nil
	return asked
}

func (o *overheard) answersNoReviews(deaf bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deaf = deaf
}

// newOverheardFleet is newFleet with ears between the controller and the RemoteCluster.
// Rights count for a second.
func newOverheardFleet(t *testing.T) (*fleet, *overheard) {
	t.Helper()
	f, ears := newIdleFleet(t), &overheard{}
	mgr, reconciler := f.assemble(f.asController(rulesOfRemoteClusters), managerOptions(), time.Second)
	reconciler.reviewed = time.Second
	f.startWithClusters(mgr, reconciler)
	proxy, signs := f.proxyTo(f.other.Config()), authority.New(t)
	f.join("prod", signs.KubeConfigFor(signs.Serve("127.0.0.1:0", nil, func(w http.ResponseWriter, r *http.Request) {
		// Without an account it is the controller, which asks what kinds it may watch.
		review := strings.HasSuffix(r.URL.Path, "accessreviews") && r.Header.Get("Impersonate-User") != ""
		ears.mu.Lock()
		if review || strings.Contains(r.URL.Path, "/secrets") {
			ears.asked = append(ears.asked, r.Header.Get("Impersonate-User")+" "+r.Method+" "+r.URL.RequestURI())
		}
		deaf := ears.deaf && review
		ears.mu.Unlock()
		if deaf {
			http.Error(w, "out of order", http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	}, net.IPv4(127, 0, 0, 1))))
	return f, ears
}

// accountThere makes an account of the other cluster with the rights that a layer
// needs there to have its releases installed, and none to read Secrets.
func (f *fleet) accountThere(name string) {
	f.Helper()
	for _, namespace := range []string{f.namespace, f.victim} {
		f.must(client.IgnoreAlreadyExists(f.far.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	}
	f.must(f.far.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}))
}

// mayGetThere lets an account of the other cluster get one Secret of the victim's
// there, and returns how that ends.
func (f *fleet) mayGetThere(account, secret string) (revoke func()) {
	f.Helper()
	named := metav1.ObjectMeta{Namespace: f.victim, Name: account + "-" + secret}
	f.must(f.far.Create(f.ctx, &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get"}}}}))
	binding := &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: account}},
	}
	f.must(f.far.Create(f.ctx, binding))
	return func() { f.must(f.far.Delete(f.ctx, binding)) }
}

// Whoever writes the directory of a layer with an account gets nothing of the layer's
// own cluster that the account may not get there. It is not even read, and whether it
// exists is not told.
func TestAccountBoundsWhatIsReadThere(t *testing.T) {
	f, ears := newOverheardFleet(t)
	f.accountThere("deployer")
	f.secret(f.far, f.victim, "kept", "stolen")
	f.publish("main@sha1:1", map[string]string{
		"base/honest.yaml": strings.Replace(f.release("honest"), "namespace: "+f.namespace, "namespace: "+f.victim, 1),
		"base/kept.yaml":   f.valuesFrom("thief", "kept"), "base/absent.yaml": f.valuesFrom("thief-two", "absent"),
	})
	f.onFleet("base", "deployer")
	why := "is not given from RemoteCluster " + f.namespace + "/prod, where ServiceAccount " + f.namespace + "/deployer may not get it, and those of the namespaces " + f.namespace + " and " + f.victim + " are not given without leave"
	f.says("base", why)
	f.eventually("the release that asks for nothing is written all the same", func() error {
		if f.released("honest") == "" {
			return fmt.Errorf("the layer is %+v", f.get("base").Status)
		}
		return nil
	})
	f.settle()
	told := map[string]string{}
	for _, resource := range f.get("base").Status.Resources {
		told[resource.Name] = resource.Status
	}
	if told["kept"] != told["absent"] {
		t.Errorf("what exists is told from what does not: %v", told)
	}
	if got := f.copies(); len(got) > 0 || f.released("thief") != "" {
		t.Errorf("copied are %v", got)
	}
	self := "system:serviceaccount:" + f.namespace + ":deployer POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	asked := ears.taken()
	if !slices.Contains(asked, self) {
		t.Errorf("the account did not ask about itself: %q", asked)
	}
	for _, request := range asked {
		if request != self {
			t.Errorf("without leave there was the request %q", request)
		}
	}

	// What is beside the RemoteCluster, and shared with it, is given all the same.
	f.secret(f.client, f.namespace, "kept", "of the fleet", v1alpha1.ShareWithAnnotation, v1alpha1.ShareWithClusters)
	f.copied("what is here is given", map[string]string{"kept": "of the fleet"})
}

// A right on the layer's own cluster is noticed, and so is its end, although no watch
// tells of either. While nobody can ask, the last answer counts.
func TestGivenThereUntilTheRightEnds(t *testing.T) {
	f, ears := newOverheardFleet(t)
	f.accountThere("deployer")
	f.secret(f.far, f.victim, "allowed", "one")
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.valuesFrom("a", "allowed")})
	f.onFleet("base", "deployer")
	f.says("base", "where ServiceAccount "+f.namespace+"/deployer may not get it")
	revoke := f.mayGetThere("deployer", "allowed")
	f.copied("what the account may get is copied", map[string]string{"allowed": "one"})
	f.ready(f.appears("base", "a"))
	f.deployed("base", "main@sha1:1")
	f.secret(f.far, f.victim, "allowed", "two")
	f.copied("a change is followed", map[string]string{"allowed": "two"})

	ears.answersNoReviews(true)
	ears.taken()
	f.eventually("nobody can ask", func() error {
		if n := len(ears.taken()); n == 0 {
			return fmt.Errorf("nobody has tried")
		}
		return nil
	})
	f.secret(f.far, f.victim, "allowed", "three")
	f.copied("a change is followed while nobody can ask", map[string]string{"allowed": "three"})
	ears.answersNoReviews(false)

	revoke()
	f.says("base", "where ServiceAccount "+f.namespace+"/deployer may not get it")
	f.secret(f.far, f.victim, "allowed", "four")
	f.copied("the copy goes with the right", map[string]string{})
	f.settle()
	if got := f.copies(); len(got) > 0 {
		t.Errorf("copied are %v", got)
	}
}

// A layer without an account reads its cluster as the kubeconfig may, and nobody asks
// about rights.
func TestKubeconfigReadsWithoutAnAccount(t *testing.T) {
	f, ears := newOverheardFleet(t)
	f.must(f.far.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.victim}}))
	f.secret(f.far, f.victim, "any", "one")
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.valuesFrom("a", "any")})
	f.onFleet("base", "")
	f.copied("what the kubeconfig may read is copied", map[string]string{"any": "one"})
	for _, request := range ears.taken() {
		if !strings.HasPrefix(request, " ") {
			t.Errorf("there was the request %q", request)
		}
	}
}
