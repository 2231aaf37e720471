// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// written creates an object from YAML, in which PREFIX is the fixture's, and CHARTS
// the URL of the chart repository.
func (f *fixture) written(obj client.Object, text string) {
	f.Helper()
	text = strings.NewReplacer("PREFIX", f.prefix, "CHARTS", stack.charts.URL()).Replace(text)
	if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
		f.Fatalf("%v in\n%s", err, text)
	}
	f.must(stack.client.Create(f.ctx, obj))
}

// application creates the HelmApplication PREFIX-name of a builtin chart, which is
// installed into the fixture's namespace.
func (f *fixture) application(name, chart string, versions ...string) {
	f.Helper()
	text := fmt.Sprintf("metadata: {name: PREFIX-%s}\nspec:\n  versions:\n", name)
	for _, version := range versions {
		text += fmt.Sprintf("  - {version: %s, namespace: {name: PREFIX}, chart: {repository: {url: CHARTS, chart: %s}}}\n", version, chart)
	}
	app := &v1alpha1.HelmApplication{}
	f.written(app, text)
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, app))) })
}

// bundle creates the bundle PREFIX-version of the family PREFIX.
func (f *fixture) bundle(version, text string) *v1alpha1.ApplicationBundle {
	f.Helper()
	bundle := &v1alpha1.ApplicationBundle{}
	f.written(bundle, fmt.Sprintf("metadata: {name: PREFIX-%s}\nspec:\n  family: PREFIX\n  version: %s\n%s", version, version, text))
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, bundle))) })
	f.eventually("bundle "+bundle.Name+" can be installed", func() error {
		f.must(stack.client.Get(f.ctx, client.ObjectKeyFromObject(bundle), bundle))
		if ready := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.ReadyCondition); ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("it says %+v", ready)
		}
		return nil
	})
	return bundle
}

// platform creates the Platform PREFIX-name, and deletes it with the test.
func (f *fixture) platform(name, spec string) {
	f.Helper()
	platform := &v1alpha1.Platform{}
	f.written(platform, fmt.Sprintf("metadata: {name: PREFIX-%s}\nspec:\n%s", name, spec))
	f.Cleanup(func() {
		if f.Failed() {
			f.describePlatform(platform.Name)
		}
		// The layers go with those that the fixture takes down.
		f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, platform)))
	})
}

// twoStages creates the Platform PREFIX-name of the bundle 1.0.0, which has twoLayers, on the
// clusters north, its canary, and south, its production, which needs approval.
func (f *fixture) twoStages(name string) {
	f.Helper()
	far := f.far(0)
	f.application("app", "configmap", "1.0.0", "2.0.0")
	f.bundle("1.0.0", fmt.Sprintf(twoLayers, "1.0.0"))
	f.must(far.CreateNamespace(f.ctx, f.prefix))
	for cluster, stage := range map[string]string{"north": "canary", "south": "production"} {
		f.joined(cluster, far, func(c *v1alpha1.RemoteCluster) { c.Labels = map[string]string{"stage": stage} })
	}
	f.platform(name, `  bundle: {family: PREFIX, version: 1.0.0}
  clusterSelector: {namespace: PREFIX}
  rollout:
    stages:
    - {name: canary, selector: {matchLabels: {stage: canary}}}
    - {name: production, selector: {matchLabels: {stage: production}}, approval: true}
`)
}

func (f *fixture) describePlatform(name string) {
	platform := &v1alpha1.Platform{}
	if err := stack.client.Get(f.ctx, types.NamespacedName{Name: name}, platform); err == nil {
		data, _ := yaml.Marshal(platform.Status)
		f.Logf("Platform %s generation %d deleted %v:\n%s", name, platform.Generation, platform.DeletionTimestamp, data)
	}
}

// editPlatform merges JSON into a Platform.
func (f *fixture) editPlatform(name, patch string) {
	f.Helper()
	f.patch(&v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: f.name(name)}}, patch)
}

// approve approves stages of a Platform.
func (f *fixture) approve(platform, stages string) {
	f.Helper()
	f.editPlatform(platform, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ApproveAnnotation, stages))
}

// moveTo asks for a version of a Platform's bundle.
func (f *fixture) moveTo(platform, version string) {
	f.Helper()
	f.editPlatform(platform, fmt.Sprintf(`{"spec":{"bundle":{"version":%q}}}`, version))
}

func (f *fixture) getPlatform(name string) *v1alpha1.Platform {
	f.Helper()
	platform := &v1alpha1.Platform{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name(name)}, platform))
	return platform
}

// readyOf returns what a Platform says of all of it.
func (f *fixture) readyOf(platform *v1alpha1.Platform) metav1.Condition {
	f.Helper()
	ready := meta.FindStatusCondition(platform.Status.Conditions, v1alpha1.ReadyCondition)
	if ready == nil {
		f.Fatalf("Platform %s says nothing", platform.Name)
	}
	return *ready
}

// platformReady waits until a Platform is well at a version.
func (f *fixture) platformReady(name, version string) *v1alpha1.Platform {
	f.Helper()
	platform := &v1alpha1.Platform{}
	f.eventually(fmt.Sprintf("platform %s is well at %s", name, version), func() error {
		f.must(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name(name)}, platform))
		ready := meta.FindStatusCondition(platform.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Status != metav1.ConditionTrue || platform.Status.ObservedGeneration != platform.Generation || platform.Status.Version != version {
			return fmt.Errorf("it is at %q, generation %d of %d, and says %+v", platform.Status.Version, platform.Status.ObservedGeneration, platform.Generation, ready)
		}
		return nil
	})
	return platform
}

// platformSays waits until a condition of a Platform has a status, and a message
// with all of the words.
func (f *fixture) platformSays(name, kind string, status metav1.ConditionStatus, words ...string) *v1alpha1.Platform {
	f.Helper()
	platform := &v1alpha1.Platform{}
	f.eventually(fmt.Sprintf("platform %s is %s=%s %q", name, kind, status, words), func() error {
		f.must(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name(name)}, platform))
		condition := meta.FindStatusCondition(platform.Status.Conditions, kind)
		if condition == nil || condition.Status != status || platform.Status.ObservedGeneration != platform.Generation {
			return fmt.Errorf("it says %+v", condition)
		}
		for _, word := range words {
			if !strings.Contains(condition.Message, word) {
				return fmt.Errorf("its message lacks %q: %s", word, condition.Message)
			}
		}
		return nil
	})
	return platform
}

// platformGone deletes a Platform and waits until it has gone.
func (f *fixture) platformGone(name string) {
	f.Helper()
	platform := &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: f.name(name)}}
	f.must(stack.client.Delete(f.ctx, platform))
	f.eventually("platform "+name+" is gone", func() error {
		return isGone(stack.client.Get(f.ctx, client.ObjectKeyFromObject(platform), platform))
	})
}

// provisions plays who makes clusters: on one of them it waits for the Secret of
// the chart cluster, and after a while puts the kubeconfig of another one there.
func (f *fixture) provisions(on client.Client, cluster string, after time.Duration, kubeconfig []byte) {
	ctx, cancel := context.WithCancel(f.ctx)
	ended := make(chan struct{})
	f.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		var seen time.Time
		for ctx.Err() == nil {
			secret := &corev1.Secret{}
			err := on.Get(ctx, types.NamespacedName{Namespace: f.prefix, Name: cluster + "-kubeconfig"}, secret)
			switch {
			case err != nil:
				seen = time.Time{}
			case seen.IsZero():
				seen = time.Now()
			case time.Since(seen) > after && len(secret.Data["value"]) == 0:
				secret.Data = map[string][]byte{"value": kubeconfig}
				_ = on.Update(ctx, secret) // tried again
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
}

// departures watches AddonsLayers and RemoteClusters from now on, and returns what
// waits until so many of them have gone and tells their order, as the API server has
// it.
func (f *fixture) departures() func(count int) []string {
	f.Helper()
	type departure struct {
		version int
		name    string
	}
	ctx, cancel := context.WithCancel(f.ctx)
	f.Cleanup(cancel)
	events := make(chan departure, 1000)
	for _, list := range []client.ObjectList{&v1alpha1.AddonsLayerList{}, &v1alpha1.RemoteClusterList{}} {
		watch, err := stack.client.Watch(ctx, list)
		f.must(err)
		go func() {
			for event := range watch.ResultChan() {
				obj, ok := event.Object.(client.Object)
				if !ok || event.Type != "DELETED" || !strings.HasPrefix(obj.GetName(), f.prefix+"-") {
					continue
				}
				kind := "layer "
				if obj.GetNamespace() != "" {
					kind = "cluster "
				}
				version, err := strconv.Atoi(obj.GetResourceVersion())
				if err != nil {
					kind = "unordered " + kind
				}
				events <- departure{version, kind + strings.TrimPrefix(obj.GetName(), f.prefix+"-")}
			}
		}()
	}
	return func(count int) []string {
		f.Helper()
		var gone []departure
		f.eventually(fmt.Sprintf("%d objects are gone", count), func() error {
			for len(events) > 0 {
				gone = append(gone, <-events)
			}
			if len(gone) < count {
				return fmt.Errorf("%d are: %v", len(gone), gone)
			}
			return nil
		})
		slices.SortFunc(gone, func(a, b departure) int { return a.version - b.version })
		var names []string
		for _, one := range gone {
			names = append(names, one.name)
		}
		return names
	}
}

// nothingLeft checks that a cluster has nothing of the fixture but its namespace.
func (f *fixture) nothingLeft(on client.Client, where string) {
	f.Helper()
	configMaps, secrets := &corev1.ConfigMapList{}, &corev1.SecretList{}
	f.must(on.List(f.ctx, configMaps, client.InNamespace(f.prefix)))
	for _, found := range configMaps.Items {
		if found.Name != "kube-root-ca.crt" {
			f.Errorf("ConfigMap %s is left on %s", found.Name, where)
		}
	}
	f.must(on.List(f.ctx, secrets, client.InNamespace(f.prefix)))
	for _, found := range secrets.Items {
		f.Errorf("Secret %s is left on %s", found.Name, where)
	}
}

// missing tells whether an object of the fixture's namespace is missing on a
// cluster.
func (f *fixture) missing(on client.Client, obj client.Object, name string) bool {
	f.Helper()
	err := on.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, obj)
	if err != nil && !apierrors.IsNotFound(err) {
		f.Fatal(err)
	}
	return err != nil
}

// endpointOf returns the host and port of a RemoteCluster's API server.
func endpointOf(cluster *v1alpha1.RemoteCluster) string {
	return strings.TrimPrefix(cluster.Status.Endpoint, "https://")
}

// versionsOf watches a layer from now on, and returns what waits until a version is
// deployed, and tells those that were deployed until then.
func (f *fixture) versionsOf(layer string) func(last string) []string {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	f.Cleanup(cancel)
	watch, err := stack.client.Watch(ctx, &v1alpha1.AddonsLayerList{}, client.MatchingFields{"metadata.name": f.name(layer)})
	f.must(err)
	versions := make(chan string, 1000)
	go func() {
		for event := range watch.ResultChan() {
			if found, ok := event.Object.(*v1alpha1.AddonsLayer); ok {
				versions <- found.Status.Version
			}
		}
	}()
	return func(last string) []string {
		f.Helper()
		var all []string
		f.eventually("version "+last+" is deployed", func() error {
			for len(versions) > 0 {
				if version := <-versions; len(all) == 0 || all[len(all)-1] != version {
					all = append(all, version)
				}
			}
			if len(all) == 0 || all[len(all)-1] != last {
				return fmt.Errorf("those that were are %v", all)
			}
			return nil
		})
		return all
	}
}

// platformTold waits for the event by which a Platform says that it is ready.
func (f *fixture) platformTold(name, kind string, conditions []metav1.Condition) {
	f.Helper()
	reason := meta.FindStatusCondition(conditions, v1alpha1.ReadyCondition).Reason
	f.eventually("an event says that platform "+name+" is ready", func() error {
		events := &corev1.EventList{}
		f.must(stack.client.List(f.ctx, events, client.InNamespace(metav1.NamespaceDefault), client.MatchingFields{"involvedObject.name": f.name(name)}))
		for _, event := range events.Items {
			if event.InvolvedObject.Kind == v1alpha1.PlatformKind && event.Reason == reason && event.Type == kind {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(events.Items))
	})
}
