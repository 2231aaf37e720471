// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/versions"
)

var testNow = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// tester is a test, of either kind.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a small API server with a layer engine: what a decision says is carried
// out, and layers become deployed in the order of their dependencies.
type world struct {
	Observation
	versions int
	// breaks are names of layers, with their versions, that never become deployed.
	breaks map[string]bool
	// seen are the decisions so far.
	seen []Decision
}

func newWorld(platform *v1alpha1.Platform, bundles ...*v1alpha1.ApplicationBundle) *world {
	platform.UID, platform.Generation = types.UID(platform.Name), 1
	return &world{
		Observation: Observation{
			Now: testNow, Namespace: "strata-system", Platform: platform, Bundles: bundles, Version: "v1.31.2",
			Clusters: map[types.NamespacedName]*v1alpha1.RemoteCluster{}, Catalogue: map[string]*v1alpha1.HelmApplication{"app": application("app", "1.0.0")},
			ConfigMaps: map[types.NamespacedName]map[string]string{},
		},
		breaks: map[string]bool{},
	}
}

// platform returns one of family base.
func platform(name, version string, changes ...func(*v1alpha1.Platform)) *v1alpha1.Platform {
	p := &v1alpha1.Platform{Spec: v1alpha1.PlatformSpec{Bundle: &v1alpha1.PlatformBundle{Family: "base", Version: version}}}
	p.Name = name
	for _, change := range changes {
		change(p)
	}
	return p
}

// application returns a catalogue entry whose versions are written as
// "version dependency@range".
func application(name string, written ...string) *v1alpha1.HelmApplication {
	app := &v1alpha1.HelmApplication{}
	app.Name = name
	for _, text := range written {
		words := strings.Split(text, " ")
		version := v1alpha1.HelmApplicationVersion{
			Version: words[0], ApplicationContent: v1alpha1.ApplicationContent{
				Chart: v1alpha1.ChartSource{Repository: &v1alpha1.ChartRepository{URL: "https://charts.example.com", Chart: name}},
			},
		}
		for _, word := range words[1:] {
			needed, within, _ := strings.Cut(word, "@")
			version.DependsOn = append(version.DependsOn, v1alpha1.ApplicationRequirement{Name: needed, Range: within})
		}
		app.Spec.Versions = append(app.Spec.Versions, version)
	}
	return app
}

func inputs(raw string) func(*v1alpha1.Platform) {
	return func(p *v1alpha1.Platform) { p.Spec.Inputs = &apiextensionsv1.JSON{Raw: []byte(raw)} }
}

// on installs on clusters of namespace fleet.
func on(names ...string) func(*v1alpha1.Platform) {
	return func(p *v1alpha1.Platform) {
		for _, name := range names {
			p.Spec.Clusters = append(p.Spec.Clusters, v1alpha1.ClusterReference{Namespace: "fleet", Name: name})
		}
	}
}

// bundle returns a version of family base whose layers are written as
// "name dependency,dependency when:expression after:layer,layer".
func bundle(version, from string, written ...string) *v1alpha1.ApplicationBundle {
	b := &v1alpha1.ApplicationBundle{Spec: v1alpha1.ApplicationBundleSpec{Family: "base", Version: version}}
	b.Name = "base-" + strings.ReplaceAll(version, ".", "-")
	if from != "" {
		b.Spec.UpgradesFrom = []string{from}
	}
	for _, text := range written {
		words := strings.Split(text, " ")
		layer := v1alpha1.BundleLayer{Name: words[0], Applications: []v1alpha1.BundleApplication{{Name: words[0], Application: "app", Version: "1.0.0"}}}
		for _, word := range words[1:] {
			switch key, value, _ := strings.Cut(word, ":"); key {
			case "when":
				layer.When = value
			case "after":
				layer.TeardownAfter = strings.Split(value, ",")
			default:
				layer.DependsOn = strings.Split(word, ",")
			}
		}
		b.Spec.Layers = append(b.Spec.Layers, layer)
	}
	return b
}

func withInputs(b *v1alpha1.ApplicationBundle, inputs ...v1alpha1.BundleInput) *v1alpha1.ApplicationBundle {
	b.Spec.Inputs = inputs
	return b
}

// cluster adds a RemoteCluster of namespace fleet that answers.
func (w *world) cluster(name string, labels map[string]string) *v1alpha1.RemoteCluster {
	remote := &v1alpha1.RemoteCluster{}
	remote.Namespace, remote.Name, remote.Labels = "fleet", name, labels
	remote.Status.Version = "v1.31.2"
	w.Clusters[types.NamespacedName{Namespace: "fleet", Name: name}] = remote
	w.answers(name, true)
	return remote
}

// answers says whether a cluster does.
func (w *world) answers(name string, does bool) {
	status := metav1.ConditionTrue
	if !does {
		status = metav1.ConditionFalse
	}
	w.Clusters[types.NamespacedName{Namespace: "fleet", Name: name}].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReachableCondition, Status: status, Message: "said so"}}
}

func (w *world) find(name string) *v1alpha1.AddonsLayer {
	i := slices.IndexFunc(w.Layers, func(l *v1alpha1.AddonsLayer) bool { return l.Name == name })
	if i < 0 {
		return nil
	}
	return w.Layers[i]
}

// names returns the names of the layers with their versions, sorted; of those that
// are being deleted behind a minus.
func (w *world) names() string {
	var names []string
	for _, layer := range w.Layers {
		name := layer.Name + "@" + layer.Spec.Version
		if layer.DeletionTimestamp != nil {
			name = "-" + name
		}
		names = append(names, name)
	}
	return strings.Join(sorted(names), " ")
}

// apply decides and carries the decision out.
func (w *world) apply(t tester) Decision {
	t.Helper()
	d := Decide(w.Observation)
	w.check(t, d)
	w.seen = append(w.seen, d)
	w.Platform = w.Platform.DeepCopy()
	w.Platform.Status = *d.Status.DeepCopy()
	for _, b := range d.Bundles {
		w.Bundles = append(slices.Clone(w.Bundles), b.DeepCopy())
	}
	for _, name := range d.GiveUp {
		metav1.SetMetaDataAnnotation(&w.Clusters[name].ObjectMeta, v1alpha1.AbandonAnnotation, "true")
	}
	for _, layer := range d.Write {
		w.put(t, layer)
	}
	for _, layer := range d.Delete {
		w.delete(t, layer.Name)
	}
	for _, name := range d.DeleteBundles {
		w.Bundles = slices.DeleteFunc(slices.Clone(w.Bundles), func(b *v1alpha1.ApplicationBundle) bool { return b.Name == name })
	}
	return d
}

// check looks for what holds of every decision.
func (w *world) check(t tester, d Decision) {
	t.Helper()
	if len(d.Status.Worst) > mostWorst {
		t.Fatalf("%d clusters are named", len(d.Status.Worst))
	}
	written, dropped := map[string]bool{}, map[string]bool{}
	for _, layer := range d.Write {
		if len(layer.Name) > maxLabel || layer.Name == "" {
			t.Fatalf("%q is no name of a layer", layer.Name)
		}
		if written[layer.Name] {
			t.Fatalf("%s is written twice", layer.Name)
		}
		written[layer.Name], dropped[layer.Name] = true, isDropped(layer)
		for _, dependency := range dependencies.Names(layer.Spec.Prereqs.DependsOn) {
			if w.find(dependency) == nil && slices.ContainsFunc(d.Write, func(l *v1alpha1.AddonsLayer) bool { return l.Name == dependency }) && !written[dependency] {
				t.Fatalf("%s is written before %s, which it depends on", layer.Name, dependency)
			}
		}
	}
	for _, layer := range d.Delete {
		// Only what goes with its cluster is told how before it is deleted, and what others
		// come after that it is.
		if written[layer.Name] && w.Platform.DeletionTimestamp == nil && layer.Spec.Cluster == nil && !dropped[layer.Name] {
			t.Fatalf("%s is written and deleted", layer.Name)
		}
	}
}

func (w *world) put(t tester, layer *v1alpha1.AddonsLayer) {
	t.Helper()
	w.versions++
	stored := layer.DeepCopy()
	stored.ResourceVersion = strconv.Itoa(w.versions)
	i := slices.IndexFunc(w.Layers, func(l *v1alpha1.AddonsLayer) bool { return l.Name == layer.Name })
	if (i < 0) != (layer.ResourceVersion == "") {
		t.Fatalf("%s is written with resourceVersion %q, and it is there: %v", layer.Name, layer.ResourceVersion, i >= 0)
	}
	if i < 0 {
		stored.Generation, stored.Status.ObservedGeneration = 1, -1
		w.Layers = append(slices.Clone(w.Layers), stored)
		return
	}
	stored.Generation++
	w.Layers = slices.Clone(w.Layers)
	w.Layers[i] = stored
}

func (w *world) delete(t tester, name string) {
	t.Helper()
	i := slices.IndexFunc(w.Layers, func(l *v1alpha1.AddonsLayer) bool { return l.Name == name })
	if i < 0 || w.Layers[i].DeletionTimestamp != nil {
		t.Fatalf("%s is deleted, which is not there or is being deleted", name)
	}
	w.Layers = slices.Clone(w.Layers)
	w.Layers[i] = w.Layers[i].DeepCopy()
	w.Layers[i].DeletionTimestamp = &metav1.Time{Time: w.Now}
	w.Layers[i].Generation++
}

// engine lets every layer take one step: one whose dependencies are deployed becomes
// so, one that is being deleted and that nothing depends on goes.
func (w *world) engine() (moved bool) {
	var kept []*v1alpha1.AddonsLayer
	deployed := map[string]bool{}
	for _, layer := range slices.Concat(w.Layers, w.Others) {
		if isDeployed(layer) && layer.DeletionTimestamp == nil {
			deployed[layer.Name], deployed[layer.Name+"@"+layer.Spec.Version] = true, true
		}
	}
	for _, layer := range w.Layers {
		needed := slices.ContainsFunc(slices.Concat(w.Layers, w.Others), func(other *v1alpha1.AddonsLayer) bool {
			return slices.Contains(dependencies.Names(other.Spec.Prereqs.DependsOn), layer.Name)
		})
		remote := w.Clusters[placement.Of(layer, w.Namespace)]
		isForsaken := layer.DeletionTimestamp != nil &&
			(layer.Spec.DeletionPolicy == v1alpha1.DeletionPolicyAbandon || layer.Annotations[v1alpha1.AbandonAnnotation] == "true")
		away := remote != nil && awayMessage(remote) != "" && !isForsaken
		switch {
		case layer.DeletionTimestamp != nil && !needed && !away:
			moved = true
			continue
		case layer.DeletionTimestamp != nil || isDeployed(layer) || away:
		case !w.runs(layer):
			layer = w.state(layer, v1alpha1.StateK8sVersion, "waits for another Kubernetes")
		case w.breaks[layer.Name+"@"+layer.Spec.Version]:
			layer = w.state(layer, v1alpha1.StateFailed, "it broke")
		case !slices.ContainsFunc(layer.Spec.Prereqs.DependsOn, func(on string) bool { return !deployed[on] }):
			layer = w.state(layer, v1alpha1.StateDeployed, "all is well")
			layer.Status.Version = layer.Spec.Version
			moved = true
		default:
			layer = w.state(layer, v1alpha1.StateApplyPending, "waits for another")
		}
		kept = append(kept, layer)
	}
	w.Layers = kept
	return moved
}

// runs tells whether the Kubernetes of its cluster is what a layer asks for.
func (w *world) runs(layer *v1alpha1.AddonsLayer) bool {
	version := w.Version
	if layer.Spec.Cluster != nil {
		if remote := w.Clusters[placement.Of(layer, w.Namespace)]; remote != nil {
			version = remote.Status.Version
		}
	}
	satisfied, err := versions.KubernetesSatisfied(layer.Spec.Prereqs.K8sVersion, version)
	return err == nil && satisfied
}

func (w *world) state(layer *v1alpha1.AddonsLayer, state v1alpha1.State, message string) *v1alpha1.AddonsLayer {
	layer = layer.DeepCopy()
	if layer.Status.State != state {
		layer.Status.StateSince = metav1.NewTime(w.Now)
	}
	layer.Status.State, layer.Status.ObservedGeneration = state, layer.Generation
	layer.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Message: message}}
	return layer
}

// settle decides and lets time go by until nothing happens any more.
func (w *world) settle(t tester) Decision {
	t.Helper()
	quiet := 0
	for range 3000 {
		d := w.apply(t)
		moved := w.engine()
		quiet++
		switch {
		case len(d.Write)+len(d.Delete)+len(d.Bundles)+len(d.DeleteBundles) > 0 || moved:
			quiet = 0
			w.Now = w.Now.Add(time.Second)
		case quiet < 2:
		case d.Until.IsZero() || quiet > 20:
			return d
		default:
			if !d.Until.After(w.Now) {
				t.Fatalf("it is %s, and something is to happen at %s", w.Now, d.Until)
			}
			w.Now = d.Until
		}
	}
	t.Fatalf("it does not settle: %s", w.names())
	return Decision{}
}

// conditionsOf writes conditions as Type=Status/Reason.
func conditionsOf(status v1alpha1.PlatformStatus) string {
	var found []string
	for _, condition := range status.Conditions {
		found = append(found, fmt.Sprintf("%s=%s/%s", condition.Type, condition.Status, condition.Reason))
	}
	return strings.Join(found, " ")
}

// said returns what the Ready condition says.
func said(status v1alpha1.PlatformStatus) string { return status.Conditions[0].Message }

func jsonOf(raw string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(raw)} }

// layerName returns the name of a layer that nothing else has.
func layerName(platform string, cluster types.NamespacedName, layer string) string {
	return layerNames(platform, cluster, layer)[0]
}
