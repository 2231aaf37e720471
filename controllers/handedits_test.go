// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// workload returns the manifest of a Deployment that says no replicas.
func (f *fixture) workload(name string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %s, name: %s}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "example.invalid/web:1", resources: {requests: {cpu: 1000m}}, env: [{name: KEEP, value: "1"}]}
`, f.namespace, name)
}

func (f *fixture) settings(name, value string) string {
	return fmt.Sprintf("\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: %s}\ndata: {a: %q}\n", f.namespace, name, value)
}

// available plays the controller of Deployments: all replicas that are asked for are there.
func (f *fixture) available(name string) {
	f.Helper()
	f.reports(name, func(n int32) appsv1.DeploymentStatus {
		return appsv1.DeploymentStatus{Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n, Conditions: rolledOut(corev1.ConditionTrue)}
	})
}

// reports plays the controller of Deployments, which says how many of the replicas that are
// asked for there are.
func (f *fixture) reports(name string, status func(replicas int32) appsv1.DeploymentStatus) {
	f.Helper()
	f.eventually("Deployment "+name+" is there", func() error {
		live := &appsv1.Deployment{}
		if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, live); err != nil {
			return err
		}
		live.Status = status(*live.Spec.Replicas)
		live.Status.ObservedGeneration = live.Generation
		return f.client.Status().Update(f.ctx, live, client.FieldOwner("kube-controller-manager"))
	})
}

// rolledOut says that all replicas have the last content, and whether enough are available.
func rolledOut(available corev1.ConditionStatus) []appsv1.DeploymentCondition {
	return []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: available, Reason: "MinimumReplicas", LastTransitionTime: metav1.Now()},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
	}
}

// edited changes an object as kubectl edit does.
func (f *fixture) edited(obj client.Object, name, manager, patch string) {
	f.Helper()
	obj.SetNamespace(f.namespace)
	obj.SetName(name)
	f.must(f.client.Patch(f.ctx, obj, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner(manager)))
}

// What people change of objects by kubectl is undone and told; what other managers add stays
// and is not told.
func TestHandEditsAreUndone(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/web.yaml": f.workload("web"), "base/settings.yaml": f.settings("settings", "1")})
	f.layer("base")
	f.available("web")
	f.deployed("base", "main@sha1:1")

	f.edited(&corev1.ConfigMap{}, "settings", "some-controller", `{"data":{"theirs":"1"}}`)
	f.edited(&appsv1.Deployment{}, "web", "some-controller", `{"spec":{"template":{"spec":{"nodeSelector":{"theirs":"1"}}}}}`)
	f.available("web")
	f.settle()
	f.deployed("base", "main@sha1:1")
	if told := f.told("base"); told[v1alpha1.ReasonDriftCorrected] != 0 {
		t.Errorf("what others added is told: %v", told)
	}

	f.edited(&corev1.ConfigMap{}, "settings", "kubectl-edit", `{"data":{"hack":"1"}}`)
	f.edited(&appsv1.Deployment{}, "web", "kubectl-edit", `{"spec":{"template":{"spec":{"hostNetwork":true,"containers":[{"name":"web","env":[{"name":"HACK","value":"1"}]}]}}}}`)
	f.eventually("what was added by hand is gone", func() error {
		web, settings := &appsv1.Deployment{}, &corev1.ConfigMap{}
		f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "web"}, web))
		f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "settings"}, settings))
		spec := web.Spec.Template.Spec
		if spec.HostNetwork || len(spec.Containers[0].Env) != 1 || settings.Data["hack"] != "" {
			return fmt.Errorf("hostNetwork %t, env %v, data %v", spec.HostNetwork, spec.Containers[0].Env, settings.Data)
		}
		if settings.Data["theirs"] != "1" || spec.NodeSelector["theirs"] != "1" {
			t.Fatalf("what a controller added is gone, too: %v, %v", settings.Data, spec.NodeSelector)
		}
		return nil
	})
	f.available("web")
	f.deployed("base", "main@sha1:1")
	f.eventually("it is told", func() error {
		if told := f.told("base"); told[v1alpha1.ReasonDriftCorrected] == 0 {
			return fmt.Errorf("told is %v", told)
		}
		return nil
	})
}

// A label of git that is taken off by hand comes back, though the generation does not say
// that anything has changed.
func TestLabelsComeBack(t *testing.T) {
	f := newFixture(t, nil)
	labelled := strings.Replace(f.workload("web"), "name: web}\nspec", "name: web, labels: {team: a}}\nspec", 1)
	f.publish("main@sha1:1", map[string]string{"base/web.yaml": labelled})
	f.layer("base")
	f.available("web")
	f.deployed("base", "main@sha1:1")
	f.edited(&appsv1.Deployment{}, "web", "kubectl-label", `{"metadata":{"labels":{"team":null}}}`)
	f.eventually("the label is back", func() error {
		web := &appsv1.Deployment{}
		f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "web"}, web))
		if web.Labels["team"] != "a" {
			return fmt.Errorf("labels are %v", web.Labels)
		}
		return nil
	})
}

// A day of an autoscaler's changes writes nothing and is told to nobody.
func TestScalingIsTheAutoscalers(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/web.yaml": f.workload("web")})
	f.layer("base")
	f.available("web")
	f.deployed("base", "main@sha1:1")
	f.settle()
	f.taken()
	before, told := f.get("base"), f.told("base")
	const scalings = 1000
	for i := range scalings {
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "web"}}
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: int32(2 + i%7)}}
		f.must(f.client.SubResource("scale").Update(f.ctx, web, client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager")))
		if i > 0 {
			f.available("web")
			continue
		}
		// Most Pods of a large step are not there for a while, so that too few are available.
		f.reports("web", func(n int32) appsv1.DeploymentStatus {
			return appsv1.DeploymentStatus{Replicas: n, UpdatedReplicas: n, ReadyReplicas: 1, AvailableReplicas: 1, Conditions: rolledOut(corev1.ConditionFalse)}
		})
		f.settle()
	}
	f.settle()
	if requests, _ := f.taken(); len(requests) != 0 {
		t.Errorf("%d scalings made the controller ask for %d things, such as %v", scalings, len(requests), requests[:min(len(requests), 5)])
	}
	if after := f.get("base"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the layer was written: %+v", after.Status)
	}
	if after := f.told("base"); fmt.Sprint(after) != fmt.Sprint(told) {
		t.Errorf("told is %v, and was %v", after, told)
	}
}

// An aggregated ClusterRole is filled by others, and what git says of its rules is not applied.
func TestAggregatedRulesAreLeft(t *testing.T) {
	f := newFixture(t, nil)
	role := f.namespace + "-monitoring"
	f.publish("main@sha1:1", map[string]string{"base/role.yaml": fmt.Sprintf(
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregates: monitoring}}]}\nrules: []\n", role)})
	f.layer("base")
	f.deployed("base", "main@sha1:1")
	f.Cleanup(func() {
		f.must(client.IgnoreNotFound(f.client.Delete(f.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}})))
	})
	live := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}}
	f.must(f.client.Patch(f.ctx, live, client.RawPatch(types.MergePatchType, []byte(`{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`)),
		client.FieldOwner("clusterrole-aggregation-controller")))
	f.settle()
	f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(live), live))
	if told := f.told("base"); len(live.Rules) != 1 || told[v1alpha1.ReasonDriftCorrected] != 0 {
		t.Errorf("rules are %v, told is %v", live.Rules, told)
	}
}

// Somebody who changes a field each time it is corrected is named, the layer stays Deployed,
// and it is corrected ever more rarely; another commit is applied all the same.
func TestAFightEnds(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/settings.yaml": f.settings("settings", "ours")})
	f.layer("base")
	f.deployed("base", "main@sha1:1")
	fights, stop := context.WithCancel(f.ctx)
	ended := make(chan struct{})
	key := types.NamespacedName{Namespace: f.namespace, Name: "settings"}
	go func() {
		defer close(ended)
		for fights.Err() == nil {
			live := &corev1.ConfigMap{}
			if err := f.client.Get(fights, key, live); err == nil && live.Data["a"] == "ours" {
				_ = f.client.Patch(fights, live, client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"theirs"}}`)), client.FieldOwner("rival"))
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	f.Cleanup(func() { stop(); <-ended })
	f.eventually("the rival is named", func() error {
		status := f.get("base").Status
		contested := meta.FindStatusCondition(status.Conditions, v1alpha1.ContestedCondition)
		if contested == nil || contested.Reason != v1alpha1.ReasonContestedFields {
			return fmt.Errorf("conditions are %+v", status.Conditions)
		}
		for _, words := range []string{"data.a of ConfigMap " + key.String(), "rival", "3 times"} {
			if !strings.Contains(contested.Message, words) {
				t.Fatalf("the message lacks %q: %s", words, contested.Message)
			}
		}
		if status.State != v1alpha1.StateDeployed {
			return errors.New(string(status.State))
		}
		return nil
	})
	f.settle()
	f.taken()
	<-time.After(3 * time.Second)
	if requests, _ := f.taken(); len(requests) > 0 {
		t.Errorf("the fight goes on: %v", requests)
	}
	f.deployed("base", "main@sha1:1")
	stop()
	<-ended
	f.publish("main@sha1:2", map[string]string{"base/settings.yaml": f.settings("settings", "another")})
	f.deployed("base", "main@sha1:2")
	live := &corev1.ConfigMap{}
	f.must(f.client.Get(f.ctx, key, live))
	if live.Data["a"] != "another" {
		t.Errorf("data is %v", live.Data)
	}
}

// A change that the API server refuses because of what an object is now is not blamed on git,
// and the message says what to do.
func TestLiveStateInTheWay(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/web.yaml": f.workload("web")})
	f.layer("base")
	f.available("web")
	f.deployed("base", "main@sha1:1")
	other := strings.ReplaceAll(f.workload("web"), "app: web", "app: other")
	f.publish("main@sha1:2", map[string]string{"base/web.yaml": other})
	f.eventually("the live state is in the way", func() error {
		status := f.get("base").Status
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Reason != v1alpha1.ReasonConflictsWithLiveState {
			return fmt.Errorf("it is %+v", ready)
		}
		if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.StalledCondition) {
			t.Fatal("git is blamed")
		}
		if !strings.Contains(ready.Message, "spec.selector") || !strings.Contains(ready.Message, v1alpha1.FluxForceAnnotation) {
			t.Fatalf("the message is %q", ready.Message)
		}
		return nil
	})
	forced := strings.Replace(other, "name: web}\nspec", "name: web, annotations: {"+v1alpha1.FluxForceAnnotation+": enabled}}\nspec", 1)
	f.publish("main@sha1:3", map[string]string{"base/web.yaml": forced})
	f.eventually("it is made again", func() error {
		live := &appsv1.Deployment{}
		if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "web"}, live); err != nil {
			return err
		}
		if live.Spec.Selector.MatchLabels["app"] != "other" {
			return errors.New("not yet")
		}
		return nil
	})
}

// A field that its kind does not have is refused when it is new, and not by the next commit
// that has nothing to do with it.
func TestTyposAreRefusedAtOnce(t *testing.T) {
	f := newFixture(t, nil)
	typo := strings.Replace(f.release("web"), "spec:", "spec:\n  driftDetecton: {mode: enabled}", 1)
	f.publish("main@sha1:1", map[string]string{"base/web.yaml": typo})
	f.layer("base")
	f.eventually("the typo is refused", func() error {
		stalled := meta.FindStatusCondition(f.get("base").Status.Conditions, v1alpha1.StalledCondition)
		if stalled == nil || stalled.Reason != v1alpha1.ReasonInvalidManifest || !strings.Contains(stalled.Message, "driftDetecton") {
			return fmt.Errorf("it is %+v", f.get("base").Status)
		}
		return nil
	})
	f.publish("main@sha1:2", map[string]string{"base/web.yaml": f.release("web")})
	f.ready("web")
	f.deployed("base", "main@sha1:2")
	twice := strings.Replace(f.workload("job"), `value: "1"}]`, `value: "1"}, {name: KEEP, value: "2"}]`, 1)
	f.publish("main@sha1:3", map[string]string{"base/web.yaml": f.release("web"), "base/job.yaml": twice})
	f.eventually("an entry that is there twice is refused", func() error {
		stalled := meta.FindStatusCondition(f.get("base").Status.Conditions, v1alpha1.StalledCondition)
		if stalled == nil || stalled.Reason != v1alpha1.ReasonInvalidManifest || !strings.Contains(stalled.Message, `two entries with name="KEEP"`) {
			return fmt.Errorf("it is %+v", f.get("base").Status)
		}
		return nil
	})
	made := &appsv1.Deployment{}
	if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "job"}, made); !apierrors.IsNotFound(err) {
		t.Errorf("it was created: %v", err)
	}
}
