// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// patience is how long things may take that take seconds.
const patience = 2 * time.Minute

// account is the ServiceAccount of each team as which its layers are applied.
const account = "layers"

// team is a namespace with a repository, an account that may write releases,
// sources and ConfigMaps there, and a layer for each directory that a test names.
type team struct {
	*testing.T
	ctx       context.Context
	namespace string
	repo      *controlplane.Repo
	as        client.Client // as a member of the team, with the rights of edit
}

// join makes what a team has, under a name of the test's own in the namespace.
func join(t *testing.T, namespace, name string) *team {
	t.Helper()
	m := &team{T: t, ctx: t.Context(), namespace: namespace}
	var err error
	m.repo, err = stack.git.NewRepo(namespace + "-" + name)
	m.must(err)
	_, err = m.repo.Commit("begin", map[string]string{"README.md": "layers\n"})
	m.must(err)
	rights := []rbacv1.PolicyRule{
		{APIGroups: []string{"helm.toolkit.fluxcd.io", "source.toolkit.fluxcd.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
	}
	at := metav1.ObjectMeta{Namespace: namespace, Name: account}
	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: at},
		&rbacv1.Role{ObjectMeta: at, Rules: rights},
		&rbacv1.RoleBinding{
			ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account}},
		},
		// Flux's own manifests aggregate their kinds, statuses included, to edit.
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "flux-edit"}, Rules: rights[:1]},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "flux-edit"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "flux-edit"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: namespace}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edit"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: namespace}},
		},
		&sourcev1.HelmRepository{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "charts"},
			Spec:       sourcev1.HelmRepositorySpec{URL: stack.charts.URL(), Interval: metav1.Duration{Duration: time.Hour}},
		},
	} {
		if err := stack.client.Create(m.ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	m.must(stack.client.Create(m.ctx, m.source(name)))
	member, err := stack.plane.User(namespace+"-member", namespace)
	m.must(err)
	m.as, err = client.New(member.Config, client.Options{Scheme: stack.client.Scheme()})
	m.must(err)
	return m
}

// within is the team in a part of its test.
func (m *team) within(t *testing.T) *team {
	part := *m
	part.T = t
	return &part
}

func (m *team) source(name string) *sourcev1.GitRepository {
	return &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name},
		Spec: sourcev1.GitRepositorySpec{
			URL: m.repo.URL(), Interval: metav1.Duration{Duration: time.Second},
			Reference: &sourcev1.GitRepositoryRef{Branch: controlplane.Branch},
		},
	}
}

// layer makes one of a directory of the team's source; a platform team does that,
// and tenants may not.
func (m *team) layer(source, directory string, change ...func(*v1alpha1.AddonsLayer)) string {
	m.Helper()
	layer := &v1alpha1.AddonsLayer{
		ObjectMeta: metav1.ObjectMeta{Name: m.namespace + "-" + source + "-" + directory},
		Spec: v1alpha1.AddonsLayerSpec{
			Version: "1.0.0", Source: v1alpha1.SourceSpec{Namespace: m.namespace, Name: source, Path: "./" + directory},
			ServiceAccountName: account,
		},
	}
	for _, f := range change {
		f(layer)
	}
	m.must(stack.client.Create(m.ctx, layer))
	return layer.Name
}

// cluster makes a RemoteCluster of a kubeconfig that the team has written; a platform
// team does that, too. It goes with the test, and leaves nothing to wait for.
func (m *team) cluster(name string, kubeconfig []byte) {
	m.Helper()
	at := metav1.ObjectMeta{Namespace: m.namespace, Name: name}
	m.must(m.as.Create(m.ctx, &corev1.Secret{ObjectMeta: at, Data: map[string][]byte{"value": kubeconfig}}))
	m.must(stack.client.Create(m.ctx, &v1alpha1.RemoteCluster{ObjectMeta: at, Spec: v1alpha1.RemoteClusterSpec{
		KubeConfig:     v1alpha1.KubeConfigSource{SecretRef: v1alpha1.SecretKeyReference{Name: name}},
		Interval:       &metav1.Duration{Duration: time.Second},
		DeletionPolicy: v1alpha1.ClusterDeletionAbandon,
	}}))
}

func (m *team) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// release is the manifest of one that is quick to install.
func (m *team) release(name, value string) string {
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s, namespace: %s}
spec:
  interval: 1h
  chart: {spec: {chart: configmap, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}
  values: {data: {value: %q}}
`, name, m.namespace, value)
}

func (m *team) get(layer string) *v1alpha1.AddonsLayer {
	m.Helper()
	found := &v1alpha1.AddonsLayer{}
	m.must(stack.client.Get(m.ctx, types.NamespacedName{Name: layer}, found))
	return found
}

func ready(layer *v1alpha1.AddonsLayer) metav1.Condition {
	if found := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition); found != nil {
		return *found
	}
	return metav1.Condition{}
}

func (m *team) eventually(what string, check func() error) {
	m.Helper()
	if err := controlplane.WaitFor(m.ctx, patience, func(context.Context) error { return check() }); err != nil {
		m.Fatalf("%s: %v", what, err)
	}
}

// deploys waits until a layer has deployed the newest commit.
func (m *team) deploys(layer, commit string) {
	m.Helper()
	m.eventually("layer "+layer+" deploys "+commit, func() error {
		found := m.get(layer)
		if found.Status.State != v1alpha1.StateDeployed || !strings.HasSuffix(found.Status.Revision, commit) {
			return fmt.Errorf("it is %s at %s: %s", found.Status.State, found.Status.Revision, ready(found).Message)
		}
		return nil
	})
}

// checkMemory fails the test where the controller has had more memory than enough.
func checkMemory(t *testing.T) {
	t.Helper()
	used := peakOf(t, stack.controller.PID())
	t.Logf("the controller has had %d MiB at most", used)
	if used > enough {
		t.Errorf("that is more than %d MiB", enough)
	}
}

// peakOf is the most memory that a process has had, in MiB.
func peakOf(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib / 1024
		}
	}
	t.Fatal("the process does not say how much memory it has had")
	return 0
}
