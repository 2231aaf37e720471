// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

// deployment is one of a release, with how many of its one replica are available.
func deployment(name string, available int64) *unstructured.Unstructured {
	status := "True"
	if available == 0 {
		status = "False"
	}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
			"namespace": "default", "name": name, "generation": int64(1),
			"labels": map[string]any{"helm.toolkit.fluxcd.io/name": "a", "helm.toolkit.fluxcd.io/namespace": "default"},
		},
		"spec": map[string]any{"replicas": int64(1)},
		"status": map[string]any{
			"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": available, "availableReplicas": available,
			"conditions": []any{
				map[string]any{"type": "Available", "status": status, "reason": "x"},
				map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
			},
		},
	}}
	return obj
}

// stuck is a Deployment whose roll-out has failed.
func stuck(name string) *unstructured.Unstructured {
	obj := deployment(name, 0)
	obj.Object["status"].(map[string]any)["conditions"] = []any{
		map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow"},
	}
	return obj
}

// watching is a layer that is deployed and watches the health of some objects.
func watching(t *testing.T, seen ...Workload) Observation {
	t.Helper()
	dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
	o := observation(layer(isDeployed(dir)), dir)
	a := live("a")
	o.Live[objects.IDOf(a)] = a
	o.Layer.Spec.WatchHealth = &v1alpha1.HealthWatch{}
	o.Workloads = seen
	return o
}

func seenAs(obj *unstructured.Unstructured) Workload {
	return Workload{ID: objects.IDOf(obj), APIVersion: "v1", Live: obj, releases: map[string]bool{"default/a": true}}
}

// What is not ready has its time, and is then Unhealthy until it is well again; what has
// failed is at once. The layer stays deployed meanwhile.
func TestHealthGoesByTime(t *testing.T) {
	o := watching(t, seenAs(deployment("web", 1)), seenAs(deployment("worker", 1)))
	look := func(what, healthy, reason, ready string) v1alpha1.AddonsLayerStatus {
		t.Helper()
		d := Decide(o)
		status, d := Report(o, d, nil)
		if d.State != v1alpha1.StateDeployed {
			t.Fatalf("%s: the layer is %s: %s", what, d.State, d.Message)
		}
		health := meta.FindStatusCondition(status.Conditions, v1alpha1.HealthyCondition)
		is := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
		if health == nil || string(health.Status) != healthy || health.Reason != reason || string(is.Status) != ready {
			t.Fatalf("%s: it says %+v and %+v", what, health, is)
		}
		if deployed := meta.FindStatusCondition(status.Conditions, v1alpha1.DeployedCondition); deployed.Status != metav1.ConditionTrue {
			t.Errorf("%s: Deployed is %s", what, deployed.Status)
		}
		if (len(status.BlockedBy) > 0) != (ready == "False") {
			t.Errorf("%s: causes %+v", what, status.BlockedBy)
		}
		o.Layer = o.Layer.DeepCopy()
		o.Layer.Status = status
		return status
	}
	look("all is well", "True", v1alpha1.ReasonHealthy, "True")

	o.Workloads[1] = seenAs(deployment("worker", 0))
	look("something is not ready", "Unknown", v1alpha1.ReasonRecovering, "True")
	if until := Decide(o).Until; o.Now.Add(5*time.Minute).Sub(until) >= time.Second || until.After(o.Now.Add(5*time.Minute)) {
		t.Errorf("it is looked at again at %s", until)
	}
	o.Now = o.Now.Add(4 * time.Minute)
	look("it is so for a while", "Unknown", v1alpha1.ReasonRecovering, "True")
	o.Now = o.Now.Add(time.Minute)
	status := look("it is so for too long", "False", v1alpha1.ReasonUnhealthy, "False")
	if cause := status.BlockedBy[0]; cause.Kind != "Deployment" || cause.Name != "worker" || !strings.Contains(cause.Message, "Available: 0/1") {
		t.Errorf("the cause is %+v", cause)
	}
	o.Workloads[1].Live = nil
	look("it is gone", "False", v1alpha1.ReasonUnhealthy, "False")
	o.Workloads[1] = seenAs(deployment("worker", 1))
	look("it is well again", "True", v1alpha1.ReasonHealthy, "True")
	o.Workloads[0] = seenAs(stuck("web"))
	look("something has failed", "False", v1alpha1.ReasonUnhealthy, "False")
	o.Workloads[0] = Workload{ID: o.Workloads[0].ID, Err: errors.New("the right is missing")}
	status = look("something cannot be read", "Unknown", v1alpha1.ReasonHealthUnread, "True")
	if health := meta.FindStatusCondition(status.Conditions, v1alpha1.HealthyCondition); !strings.Contains(health.Message, "Deployment default/web: the right is missing") {
		t.Errorf("it says %s", health.Message)
	}
	o.Layer.Spec.WatchHealth = nil
	status, _ = Report(o, Decide(o), nil)
	if health := meta.FindStatusCondition(status.Conditions, v1alpha1.HealthyCondition); health != nil {
		t.Errorf("nobody asks, and it says %+v", health)
	}
}

func TestHealthAfter(t *testing.T) {
	o := watching(t, seenAs(deployment("web", 0)))
	o.Layer.Spec.WatchHealth.After = &metav1.Duration{}
	if d := Decide(o); d.Reason != v1alpha1.ReasonUnhealthy {
		t.Errorf("without time to recover it is %s: %s", d.Reason, d.Message)
	}
	// Somebody has written into the status that this lasts from a time to come.
	o.Layer.Spec.WatchHealth.After = &metav1.Duration{Duration: time.Minute}
	o.Layer.Status.Conditions = append(o.Layer.Status.Conditions, metav1.Condition{
		Type: v1alpha1.HealthyCondition, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonRecovering, LastTransitionTime: metav1.NewTime(o.Now.Add(time.Hour)),
	})
	if d := Decide(o); !d.Health.Until.Equal(o.Now.Add(time.Minute)) {
		t.Errorf("it has time until %s, and it is %s", d.Health.Until, o.Now)
	}
}

// Watched are the workloads of the layer's own releases, further kinds that it names, never
// a Secret, and never more than some.
func TestWorkloadsOfReleases(t *testing.T) {
	release := func(name, layer string, entries ...string) *unstructured.Unstructured {
		var inventory []any
		for _, entry := range entries {
			inventory = append(inventory, map[string]any{"id": entry, "v": "v1"})
		}
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "spec": map[string]any{},
			"status": map[string]any{"inventory": map[string]any{"entries": inventory}},
		}}
		obj.SetNamespace("default")
		obj.SetName(name)
		obj.SetLabels(map[string]string{v1alpha1.LayerLabel: layer})
		return obj
	}
	o := watching(t)
	o.Layer.Spec.WatchHealth.Kinds = []string{"Certificate.cert-manager.io", "Secret"}
	add := func(obj *unstructured.Unstructured) { o.Live[objects.IDOf(obj)] = obj }
	add(release("one", o.Layer.Name, "ns_web_apps_Deployment", "ns_web__Service", "ns_tls_cert-manager.io_Certificate", "ns_s__Secret", "_a__b_rbac.authorization.k8s.io_ClusterRole", "broken"))
	add(release("other", "somebody", "ns_db_apps_StatefulSet"))
	far := release("far", o.Layer.Name, "ns_agent_apps_DaemonSet")
	far.Object["spec"] = map[string]any{"kubeConfig": map[string]any{"secretRef": map[string]any{"name": "strata-kubeconfig-edge"}}}
	add(far)
	var got []string
	found, total := o.WatchedWorkloads()
	for _, workload := range found {
		got = append(got, workload.ID.String())
	}
	if want := "DaemonSet ns/agent,Deployment ns/web,Certificate ns/tls"; total != 3 || !sameWords(strings.Join(got, ","), want) {
		t.Errorf("%d are watched: %q", total, got)
	}
	if TargetOf(far) != "" {
		if cluster := found[0].ID.Cluster + found[1].ID.Cluster + found[2].ID.Cluster; cluster != TargetOf(far) {
			t.Errorf("their clusters are %q", cluster)
		}
	}
	var many []string
	for i := range maxWorkloads + 5 {
		many = append(many, fmt.Sprintf("ns_w%02d_apps_Deployment", i))
	}
	o.Live = map[objects.ID]*unstructured.Unstructured{}
	add(release("many", o.Layer.Name, many...))
	if found, total := o.WatchedWorkloads(); len(found) != maxWorkloads || total != maxWorkloads+5 {
		t.Errorf("%d of %d are watched", len(found), total)
	}
}

func sameWords(got, want string) bool {
	for _, word := range strings.Split(want, ",") {
		if !strings.Contains(got, word) {
			return false
		}
	}
	return len(got) >= len(want)
}

// The status of a release, which others may write, can list what is not the release's. It is
// not looked at, and nothing of how it fares is told.
func TestHealthOfWhatIsSomebodyElses(t *testing.T) {
	secret := stuck("private")
	secret.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["message"] = "hunter2"
	for name, labels := range map[string]map[string]string{
		"no release's": nil,
		"another's":    {"helm.toolkit.fluxcd.io/name": "b", "helm.toolkit.fluxcd.io/namespace": "default"},
		"a namesake's": {"helm.toolkit.fluxcd.io/name": "a", "helm.toolkit.fluxcd.io/namespace": "other"},
	} {
		secret.SetLabels(labels)
		o := watching(t, seenAs(deployment("web", 1)), seenAs(secret))
		d := Decide(o)
		status, _ := Report(o, d, nil)
		said := fmt.Sprint(status.Conditions, d.Causes, d.Message)
		if d.Health.Status != metav1.ConditionUnknown || d.Health.Reason != v1alpha1.ReasonHealthUnread || strings.Contains(said, "hunter2") || strings.Contains(said, "too slow") {
			t.Errorf("%s: %s %s; %s", name, d.Health.Status, d.Health.Reason, said)
		}
		if want := "Deployment default/private: does not say that a release of the layer has made it"; !strings.HasPrefix(d.Health.Message, want) {
			t.Errorf("%s: it says %s", name, d.Health.Message)
		}
	}
}
