// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/heldacts"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// runs is how often Flux applies what it has, between two looks at what people have decided.
const runs = 10

// applied is a Kustomization by which Flux applies Strata's own objects.
type applied struct {
	*handOver
	asked int
}

// run has Flux apply the objects once more, and waits until it has.
func (a *applied) run(times int) {
	a.Helper()
	for range times {
		a.asked++
		asked := fmt.Sprint("run-", a.asked)
		of := a.object(a.name("own"))
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ReconcileRequestAnnotation, asked)
		a.must(stack.client.Patch(a.ctx, of, client.RawPatch(types.MergePatchType, patch)))
		a.within(patience, "Flux has applied the objects", func() error {
			if err := stack.client.Get(a.ctx, client.ObjectKeyFromObject(of), of); err != nil {
				return err
			}
			if handled, _, _ := unstructured.NestedString(of.Object, "status", "lastHandledReconcileAt"); handled != asked {
				return fmt.Errorf("it has handled %s", handled)
			}
			return nil
		})
	}
}

// stored is an object of Strata's, by its name.
func (a *applied) stored(of decidedOn) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(of.kind))
	object.SetNamespace(of.namespace)
	object.SetName(of.name)
	return object
}

// annotationsOf returns the annotations of an object of Strata's.
func (a *applied) annotationsOf(kind, namespace, name string) map[string]string {
	a.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	a.must(stack.client.Get(a.ctx, types.NamespacedName{Namespace: namespace, Name: name}, object))
	return object.GetAnnotations()
}

// owned waits until Strata owns acts of an object, too.
func (a *applied) owned(kind, namespace, name string, want ...string) {
	a.Helper()
	a.within(patience, "Strata owns the acts of "+kind, func() error {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
		if err := stack.client.Get(a.ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
			return err
		}
		for _, entry := range object.GetManagedFields() {
			if entry.Manager == heldacts.Manager && !slices.ContainsFunc(want, func(act string) bool { return !strings.Contains(entry.FieldsV1.GetRawString(), act) }) {
				return nil
			}
		}
		return fmt.Errorf("it does not: %v", object.GetManagedFields())
	})
}

// decidedOn is an object of Strata's that Flux applies, and what is decided on it.
type decidedOn struct {
	kind, resource, namespace, name string
	says                            map[string]string
}

// acted has a value for each act; it must be none that is used up at once.
func acted(annotation string) string {
	switch annotation {
	case v1alpha1.HoldUntilAnnotation:
		return time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	case v1alpha1.AllowEmptyAnnotation, v1alpha1.AllowPruneAnnotation, v1alpha1.AllowReinstallAnnotation, v1alpha1.WithoutSnapshotAnnotation:
		return v1alpha1.AllowNext
	case v1alpha1.ApproveAnnotation:
		return "first@1.0.0"
	case v1alpha1.HoldAnnotation, v1alpha1.RollbackToAnnotation:
		return "99"
	}
	return "true"
}

// everyKind returns an object of each kind that people decide on, with every act that there is
// on it, and their manifests. Each has the suffix in its name.
func (a *applied) everyKind(suffix string) ([]decidedOn, string) {
	a.Helper()
	layer := a.name("base-" + suffix)
	manifests := map[string]struct{ resource, name, spec string }{
		v1alpha1.AddonsLayerKind: {
			"addonslayers", layer,
			fmt.Sprintf("{version: 1.0.0, interval: 1h, source: {name: addons, namespace: %s, path: ./%s}}", a.prefix, suffix),
		},
		v1alpha1.PlatformKind:         {"platforms", a.name("apps-" + suffix), "{bundle: {family: none, version: 1.0.0}}"},
		v1alpha1.RemoteClusterKind:    {"remoteclusters", "edge-" + suffix, "{kubeConfig: {secretRef: {name: none}}}"},
		v1alpha1.ClusterDiscoveryKind: {"clusterdiscoveries", "found-" + suffix, "{kind: HostCluster, selector: {matchLabels: {found: never}}}"},
		v1alpha1.CapabilityClaimKind:  {"capabilityclaims", "db-" + suffix, "{capability: database/none}"},
		v1alpha1.HostClusterKind: {
			"hostclusters", "hosts-" + suffix,
			"{version: v1.36.3, hold: true, ssh: {user: root, secretRef: {name: none}}, controlPlane: [{name: a, address: 192.0.2.1}]}",
		},
	}
	var all []decidedOn
	text := ""
	for kind := range stack.client.Scheme().KnownTypes(v1alpha1.GroupVersion) {
		says := map[string]string{}
		for _, act := range v1alpha1.ActsOn(kind) {
			says[act.Annotation] = acted(act.Annotation)
		}
		if len(says) == 0 {
			continue
		}
		made, known := manifests[kind]
		if !known {
			a.Fatalf("people decide on objects of kind %s, and Flux applies none here", kind)
		}
		each := decidedOn{kind: kind, resource: made.resource, namespace: a.prefix, name: made.name, says: says}
		if kind == v1alpha1.AddonsLayerKind || kind == v1alpha1.PlatformKind {
			each.namespace = ""
		}
		all = append(all, each)
		text += fmt.Sprintf("---\napiVersion: kraan.io/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: %q}\nspec: %s\n", kind, made.name, each.namespace, made.spec)
	}
	return all, text
}

// keepHosts runs the controller of HostClusters, with the rights that the chart gives it.
func (a *applied) keepHosts() {
	a.Helper()
	text, err := os.ReadFile("../../chart/files/rbac/hosts.yaml")
	a.must(err)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: a.prefix + "-hosts"}}
	a.must(yaml.Unmarshal(text, &role.Rules))
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}) // which cluster it is in
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.prefix, Name: "hosts"}}
	for _, object := range []client.Object{role, account, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.prefix, Name: account.Name}},
	}} {
		a.must(stack.client.Create(a.ctx, object))
	}
	identity, err := stack.plane.ServiceAccount(a.ctx, a.prefix, account.Name)
	a.must(err)
	program, err := strata.BuildHosts(a.ctx, a.TempDir())
	a.must(err)
	port, release, err := controlplane.FreePort()
	a.must(err)
	a.Cleanup(release)
	keeper, err := controlplane.NewRunner(controlplane.Program{
		Name: "strata-hosts", Path: program, Dir: a.TempDir(),
		Args: []string{"--kubeconfig", identity.Kubeconfig, "--namespaces", a.prefix, "--metrics-addr", "0", "--health-addr", controlplane.Loopback(port)},
		Healthy: func(ctx context.Context) error {
			return controlplane.Healthy(ctx, "http://"+controlplane.Loopback(port)+"/readyz")
		},
	})
	a.must(err)
	a.must(keeper.Start(a.ctx))
	a.Cleanup(func() { _ = keeper.Kill() })
}

// decide says what is to be said of an object with kubectl; with off it takes that off.
func (a *applied) decide(each decidedOn, off bool, more ...string) {
	a.Helper()
	args := append([]string{"annotate", each.resource, each.name}, more...)
	if each.namespace != "" {
		args = append(args, "--namespace", each.namespace)
	}
	for _, key := range slices.Sorted(maps.Keys(each.says)) {
		if off {
			args = append(args, key+"-")
		} else {
			args = append(args, key+"="+each.says[key])
		}
	}
	if output, err := a.kubectl(args...).CombinedOutput(); err != nil {
		a.Fatalf("%v: %s", err, output)
	}
}

// decideAs says the same as the plug-in and the page do.
func (a *applied) decideAs(page *gather.Cluster, each decidedOn, off bool) {
	a.Helper()
	annotations := map[string]any{}
	for key, value := range each.says {
		if annotations[key] = value; off {
			annotations[key] = nil
		}
	}
	a.must(page.Annotate(a.ctx, acts.Patch{
		Resource: v1alpha1.GroupVersion.WithResource(each.resource), Namespace: each.namespace, Name: each.name, Annotations: annotations,
	}))
}

// What people decide on objects that Flux applies stays for ten runs of kustomize-controller,
// whether they say it with kubectl, the plug-in or the page, and goes when they take it off: each
// act, on each kind.
func TestActsStayWhereFluxAppliesTheLayers(t *testing.T) {
	f := newFixture(t)
	f.must(kustomizeController())
	path, err := builtPlugin()
	f.must(err)
	a := &applied{handOver: &handOver{fixture: f, plugin: plugin{fixture: f, path: path}.of("operator", "cluster-admin")}}
	byKubectl, first := a.everyKind("one")
	byPage, second := a.everyKind("two")
	all := append(slices.Clone(byKubectl), byPage...)
	revision := f.push(map[string]string{
		"one/release.yaml": f.configMapRelease("one", "one"), "two/release.yaml": f.configMapRelease("two", "two"), "own/own.yaml": first + second +
			fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: shared, namespace: %s}\n", f.prefix),
	})
	kustomization := a.object(f.name("own"))
	kustomization.Object["spec"] = map[string]any{
		"interval": "1h", "path": "./own", "prune": false, "sourceRef": map[string]any{"kind": "GitRepository", "name": "addons"},
	}
	f.must(stack.client.Create(f.ctx, kustomization))
	f.Cleanup(func() {
		f.letGo(kustomization)
		for _, each := range all {
			f.letGo(a.stored(each))
		}
	})
	a.keepHosts()
	a.within(patience, "Flux has made the layers", func() error {
		return stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("base-two")}, &v1alpha1.AddonsLayer{})
	})
	f.deployed("base-one", revision)
	const note = "example.com/note"
	for _, each := range byKubectl {
		a.decide(each, false, note+"=x")
		a.owned(each.kind, each.namespace, each.name, slices.Collect(maps.Keys(each.says))...)
	}
	page := gather.New(gather.Options{Config: func() (*rest.Config, error) { return stack.plane.Config(), nil }, Now: time.Now})
	for _, each := range byPage {
		a.decideAs(page, each, false)
	}
	// Leave for a Secret, by the command that messages offer.
	share := v1alpha1.ShareWithAnnotation + "=" + v1alpha1.ShareWithClusters
	if output, err := f.kubectl("--namespace", f.prefix, "annotate", "--field-manager="+heldacts.PeopleManager, "secret", "shared", share).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	a.run(runs)
	secret := &corev1.Secret{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "shared"}, secret))
	if secret.Annotations[v1alpha1.ShareWithAnnotation] != v1alpha1.ShareWithClusters {
		t.Errorf("the leave for the Secret has gone: %v", secret.Annotations)
	}
	for _, each := range all {
		has := a.annotationsOf(each.kind, each.namespace, each.name)
		for key, value := range each.says {
			if has[key] != value {
				t.Errorf("%s of %s %s is %q after %d runs of Flux", key, each.kind, each.name, has[key], runs)
			}
		}
		if has[note] != "" {
			t.Errorf("Flux does not take over what kubectl writes of %s, so that this shows nothing", each.kind)
		}
	}
	f.held("base-one", "99")
	for _, each := range byKubectl {
		a.decide(each, true)
	}
	for _, each := range byPage {
		a.decideAs(page, each, true)
	}
	a.run(2)
	for _, each := range all {
		has := a.annotationsOf(each.kind, each.namespace, each.name)
		for key := range each.says {
			if _, there := has[key]; there {
				t.Errorf("%s of %s %s is back, although somebody has taken it off", key, each.kind, each.name)
			}
		}
	}
}

// The plug-in and the page write as a manager that Flux leaves alone.
func TestActsOfThePluginStay(t *testing.T) {
	f := newFixture(t)
	f.must(kustomizeController())
	path, err := builtPlugin()
	f.must(err)
	a := &applied{handOver: &handOver{fixture: f, plugin: plugin{fixture: f, path: path}.of("operator", "cluster-admin")}}
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"),
		"own/own.yaml": fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: %s}\nspec: {version: 1.0.0, interval: 1h, source: {name: addons, namespace: %s, path: ./base}}\n",
			f.name("base"), f.prefix),
	})
	kustomization := a.object(f.name("own"))
	kustomization.Object["spec"] = map[string]any{
		"interval": "1h", "path": "./own", "prune": false, "sourceRef": map[string]any{"kind": "GitRepository", "name": "addons"},
	}
	f.must(stack.client.Create(f.ctx, kustomization))
	f.Cleanup(func() {
		f.letGo(kustomization)
		f.letGo(f.get("base"))
	})
	a.within(patience, "Flux has made the layer", func() error {
		return stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("base")}, &v1alpha1.AddonsLayer{})
	})
	f.deployed("base", revision)
	page := gather.New(gather.Options{Config: func() (*rest.Config, error) { return stack.plane.Config(), nil }, Now: time.Now})
	annotations, _, err := acts.HoldOf("freeze of the page", "", false, time.Now())
	f.must(err)
	for who, hold := range map[string]func() string{
		"plug-in": func() string {
			if code, output := a.plugin.run("hold", f.name("base"), "--reason", "freeze of the plug-in"); code != 0 {
				t.Fatal(output)
			}
			return "freeze of the plug-in"
		},
		"page": func() string {
			f.must(page.Annotate(f.ctx, acts.Patch{
				Resource: v1alpha1.GroupVersion.WithResource("addonslayers"), Name: f.name("base"), Annotations: annotations,
			}))
			return "freeze of the page"
		},
	} {
		reason := hold()
		a.run(runs)
		if has := f.get("base").Annotations[v1alpha1.HoldAnnotation]; has != reason {
			t.Errorf("the hold of the %s is %q after %d runs of Flux", who, has, runs)
		}
		if code, output := a.plugin.run("resume", f.name("base")); code != 0 {
			t.Fatal(output)
		}
		a.run(1)
		if has, there := f.get("base").Annotations[v1alpha1.HoldAnnotation]; there {
			t.Errorf("the hold of the %s is back: %q", who, has)
		}
	}
}
