// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/reserved"
)

// databaseRelease returns the manifest of a release of the chart database for a Helm release of
// a name.
func (f *fixture) databaseRelease(helmName string) string {
	return strings.Replace(f.chartRelease("database"), "  interval: 1h\n", "  interval: 1h\n  releaseName: "+helmName+"\n", 1)
}

// A commit for which Flux would uninstall a release with volumes, and install it anew, waits for
// consent to this revision. One for which nothing is lost does not.
func TestReinstallationWithVolumesWaitsForConsent(t *testing.T) {
	f := newFixture(t)
	f.publishChart("database", map[string]string{"templates/set.yaml": statefulSet("db", "Retain")})
	files := func(helm, value string) map[string]string {
		return map[string]string{
			"base/database.yaml": f.databaseRelease(helm), "base/beside.yaml": f.namedRelease("beside", "beside-"+helm, value),
		}
	}
	first := f.push(files("one", "one"))
	f.layer("base")
	f.deployed("base", first)
	f.eventually("the StatefulSet has its claims", func() error {
		if f.absent(&corev1.PersistentVolumeClaim{}, "data-db-0") || f.absent(&corev1.PersistentVolumeClaim{}, "data-db-1") {
			return errors.New("it has not")
		}
		return nil
	})
	uids := f.uids()
	history := f.helmHistory("one")

	second := f.push(files("two", "two"))
	layer := f.reason("base", v1alpha1.ReasonWouldReinstall,
		"revision "+second+" has Flux uninstall and install anew HelmRelease "+f.prefix+"/beside (release name: beside-one -> beside-two), "+
			"HelmRelease "+f.prefix+"/database (release name: one -> two), ",
		"while 2 persistentvolumeclaims in namespace "+f.prefix+" would be left behind",
		"kubectl annotate al "+f.name("base")+" kraan.io/allow-reinstall=next")
	if stalled := condition(layer, v1alpha1.StalledCondition); stalled.Status != metav1.ConditionTrue {
		t.Errorf("Stalled is %+v", stalled)
	}
	f.stillThere(uids)
	if now := f.helmHistory("one"); len(now) != len(history) || now[0].uid != history[0].uid {
		t.Errorf("Helm release one had the revisions %v and has %v", history, now)
	}
	if value := f.configMapValue("beside-one"); value != "one" {
		t.Errorf("something of the revision was applied: it holds %q", value)
	}

	f.edit("base", `{"metadata":{"annotations":{"kraan.io/allow-reinstall":"next"}}}`)
	f.deployed("base", second)
	f.eventually("Flux has uninstalled one and installed two", func() error {
		if left := f.helmHistory("one"); len(left) > 0 {
			return fmt.Errorf("one has the revisions %v", left)
		}
		if now := f.helmHistory("two"); len(now) != 1 || now[0].status != "deployed" {
			return fmt.Errorf("two has the revisions %v", now)
		}
		return nil
	})
	if _, left := f.get("base").Annotations[v1alpha1.AllowReinstallAnnotation]; left {
		t.Error("the annotation opens more than one revision")
	}
	if f.absent(&corev1.PersistentVolumeClaim{}, "data-db-0") {
		t.Error("a claim has gone that was said to be left behind")
	}

	// What has no volumes changes its name without being asked about.
	third := f.push(map[string]string{"base/beside.yaml": f.namedRelease("beside", "beside-three", "three")})
	f.deployed("base", third)
	f.eventually("Flux has installed it anew", func() error {
		if value := f.configMapValue("beside-three"); value != "three" {
			return fmt.Errorf("it holds %q", value)
		}
		if left := f.helmHistory("beside-two"); len(left) > 0 {
			return fmt.Errorf("the one of before has the revisions %v", left)
		}
		return nil
	})
}

// A plan counts the volumes of what Flux would install anew on the cluster of the release, where
// the reader may read the kubeconfig of that, and says otherwise that they are not known.
func TestPlanCountsVolumesOnTheClusterOfTheRelease(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	far := f.far(0)
	cluster := f.joined("deep", far)
	f.publishChart("database", map[string]string{"templates/set.yaml": statefulSet("db", "Retain")})
	first := f.push(map[string]string{"base/database.yaml": f.databaseRelease("one")})
	f.layer("base", on(cluster))
	f.deployed("base", first)
	// Nobody makes the claims of StatefulSets there.
	f.must(far.client.Create(f.ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "data-db-0"}, Spec: f.claimSpec()}))

	folder := t.TempDir()
	f.write(folder, map[string]string{"base/database.yaml": f.databaseRelease("two")})
	user := plugin{fixture: f, path: path}.planner()
	args := []string{f.name("base"), "--source", f.prefix + "/addons", "--from-dir", folder, "--no-charts", "--allowed-cluster-ranges", "127.0.0.0/8"}
	notes := func(more ...string) string {
		_, found := user.plan(2, append(args, more...)...)
		return strings.Join(found.Notes, "\n")
	}
	if said := notes(); !contains(said, "whether volumes depend on what Flux installs anew is not known: RemoteCluster "+cluster.String()+": you may not read Secret") {
		t.Errorf("without the right to the kubeconfig it notes\n%s", said)
	}
	at := metav1.ObjectMeta{Namespace: f.prefix, Name: "volumes"}
	f.must(stack.client.Create(f.ctx, &rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{reserved.KubeConfigName("deep")}, Verbs: []string{"get"}},
	}}))
	f.must(stack.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: at.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.prefix + "-planner"}},
	}))
	f.eventually("the right counts", func() error {
		if said := notes(); strings.Contains(said, "you may not read") {
			return errors.New(said)
		}
		return nil
	})
	_, found := user.plan(2, args...)
	want := "while 1 persistentvolumeclaims in namespace " + f.prefix + " would be left behind"
	if len(found.Blocked) != 1 || found.Blocked[0].Reason != v1alpha1.ReasonWouldReinstall || !strings.Contains(found.Blocked[0].Message, want) {
		t.Errorf("it says %+v, and notes %q", found.Blocked, found.Notes)
	}
	if said := notes("--remote=false"); !contains(said, "RemoteCluster "+cluster.String()+": other clusters are not asked") {
		t.Errorf("with --remote=false it notes\n%s", said)
	}
	f.push(map[string]string{"base/database.yaml": f.databaseRelease("two")})
	f.reason("base", v1alpha1.ReasonWouldReinstall, want)
}
