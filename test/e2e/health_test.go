// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// healthy waits until a layer says of what its releases have made that it is as wanted.
func (f *fixture) healthy(layer string, status metav1.ConditionStatus, words string) *v1alpha1.AddonsLayer {
	f.Helper()
	var found *v1alpha1.AddonsLayer
	f.eventually(fmt.Sprintf("the health of layer %s is %s: %s", layer, status, words), func() error {
		found = f.get(layer)
		health := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.HealthyCondition)
		if health == nil || health.Status != status || !strings.Contains(health.Message, words) {
			return fmt.Errorf("it says %+v", health)
		}
		return nil
	})
	return found
}

// dyingRelease is a release of the chart deployment, which Flux looks at each 10s.
func (f *fixture) dyingRelease(name string) string {
	release := strings.Replace(f.configMapRelease(name, "one"), "chart: configmap,", "chart: deployment,", 1)
	release = strings.Replace(release, "values: {data: {value: \"one\"}}", "values: {replicas: 1}\n  driftDetection: {mode: enabled}", 1)
	return strings.Replace(release, "interval: 1h", "interval: 10s", 1)
}

// A layer whose Deployment dies after the roll-out says so, as its account sees it; it
// stays deployed, and is well again when Flux has put the Deployment back.
func TestLayerSeesWhatDies(t *testing.T) {
	f := newFixture(t)
	f.account(deployer)
	account := f.accountKey(deployer)
	f.bind("deploys", f.prefix, account, mayDeploy)
	f.push(map[string]string{"base/release.yaml": f.dyingRelease("web")})
	f.layer("base", as(deployer), func(l *v1alpha1.AddonsLayer) {
		l.Spec.WatchHealth = &v1alpha1.HealthWatch{After: &metav1.Duration{Duration: time.Second}}
		l.Spec.Interval = &metav1.Duration{Duration: 2 * time.Second}
	})
	f.healthy("base", metav1.ConditionUnknown,
		"ServiceAccount "+account.String()+" may not get, list and watch it: a Role and RoleBinding for deployments named web let it")
	f.bind("reads", f.prefix, account, mayOn("apps", "deployments", "get", "list", "watch"))
	f.healthy("base", metav1.ConditionTrue, "Deployment "+f.prefix+"/web is well")

	f.must(stack.client.Delete(f.ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "web"}}))
	found := f.healthy("base", metav1.ConditionFalse, "Deployment "+f.prefix+"/web does not exist")
	if ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ReadyCondition); found.Status.State != v1alpha1.StateDeployed || ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonUnhealthy {
		t.Errorf("it is %s and says %+v", found.Status.State, ready)
	}
	f.healthy("base", metav1.ConditionTrue, "is well")
	f.told("base", "Deployed", "does not exist")
}

// Without an account it takes a right that the chart gives, and says which.
func TestHealthNeedsARight(t *testing.T) {
	f := newFixture(t)
	f.push(map[string]string{"base/release.yaml": f.dyingRelease("web")})
	f.layer("base", func(l *v1alpha1.AddonsLayer) { l.Spec.WatchHealth = &v1alpha1.HealthWatch{} })
	f.healthy("base", metav1.ConditionUnknown, "healthWatch.enabled of the chart gives it that right")
	found := f.state("base", v1alpha1.StateDeployed, "")
	if !meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ReadyCondition) {
		t.Errorf("what is not known makes it %+v", found.Status.Conditions)
	}
}

// What dies on another cluster shows in the layer, in the Platform, which moves nothing
// more, and in why.
func TestPlatformSeesWhatDies(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	f.must(far.CreateNamespace(f.ctx, f.prefix))
	f.joined("edge", far)
	f.application("web", "deployment", "1.0.0")
	f.bundle("1.0.0", "  layers:\n  - name: apps\n    watchHealth: {after: 1s}\n    applications: [{name: web, application: PREFIX-web, version: 1.0.0, ready: Applied}]\n")
	f.platform("fleet", "  bundle: {family: PREFIX, version: 1.0.0}\n  clusters: [{name: edge, namespace: PREFIX}]\n")
	// Nobody runs Deployments on that cluster: the test says what its controllers would.
	available := func(count int32) {
		t.Helper()
		f.eventually("the Deployment has a status", func() error {
			live := &appsv1.Deployment{}
			if err := far.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "web"}, live); err != nil {
				return err
			}
			status := corev1.ConditionTrue
			if count == 0 {
				status = corev1.ConditionFalse
			}
			live.Status = appsv1.DeploymentStatus{
				ObservedGeneration: live.Generation, Replicas: *live.Spec.Replicas, UpdatedReplicas: *live.Spec.Replicas,
				ReadyReplicas: count * *live.Spec.Replicas, AvailableReplicas: count * *live.Spec.Replicas,
				Conditions: []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentAvailable, Status: status}, {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
				},
			}
			return far.client.Status().Update(f.ctx, live)
		})
	}
	available(1)
	f.platformReady("fleet", "1.0.0")
	available(0)
	platform := f.platformSays("fleet", v1alpha1.ReadyCondition, metav1.ConditionFalse, "is not well", "Deployment "+f.prefix+"/web")
	if got := platform.Status.Clusters; got.Failed != 1 {
		t.Errorf("it counts clusters %+v", got)
	}
	layers := &v1alpha1.AddonsLayerList{}
	f.must(stack.client.List(f.ctx, layers, client.MatchingLabels{v1alpha1.PlatformLabel: f.name("fleet")}))
	path, err := builtPlugin()
	f.must(err)
	plugin{fixture: f, path: path}.of("admin", "cluster-admin").expect(2, []string{"<- Deployment " + f.prefix + "/web"}, "why", layers.Items[0].Name)
	available(1)
	f.platformReady("fleet", "1.0.0")
}

// On another cluster it is the kubeconfig that lacks the right, and the message says so.
func TestHealthThereNeedsARight(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	f.must(far.CreateNamespace(f.ctx, f.prefix))
	f.accountOn(far, "blind", "ClusterRole",
		mayOn("*", "*", "get", "create", "patch", "update", "delete"), mayOn("", "*", "list", "watch"), mayOn("apiextensions.k8s.io", "*", "list", "watch"))
	f.kubeconfigSecret(stack.client, f.prefix, "edge", f.kubeconfigAs(far, "blind"))
	cluster := f.remoteCluster("edge")
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	release := strings.Replace(f.dyingRelease("web"), "interval: 10s", "interval: 10s\n  install: {disableWait: true}", 1)
	f.push(map[string]string{"base/release.yaml": release})
	f.layer("base", on(cluster), func(l *v1alpha1.AddonsLayer) { l.Spec.WatchHealth = &v1alpha1.HealthWatch{} })
	f.healthy("base", metav1.ConditionUnknown, "the kubeconfig of RemoteCluster "+cluster.String()+" may not get, list and watch it")
}
