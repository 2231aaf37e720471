// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/reserved"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// marks puts metadata on an object.
func marks(m directories.Manifest, change func(*unstructured.Unstructured)) directories.Manifest {
	m.Object = m.Object.DeepCopy()
	change(m.Object)
	return m
}

func secretListed(namespace, name string) directories.Manifest {
	return directoriestest.Any("v1", "Secret", namespace, name)
}

// What is kept is known by its name alone, before it exists, and by what it says of
// itself under any name; and nothing else is taken for it.
func TestReserved(t *testing.T) {
	const role = "rbac.authorization.k8s.io/v1"
	for name, tc := range map[string]struct {
		reason   string
		manifest directories.Manifest
		want     string
	}{
		"copy of a kubeconfig":     {"of any namespace, as RemoteClusters are", secretListed("fleet", "strata-kubeconfig-prod"), reserved.KeptKubeConfig},
		"its finalizer":            {"the label may be gone", marks(secretListed("fleet", "a"), func(o *unstructured.Unstructured) { o.SetFinalizers([]string{v1alpha1.KubeConfigFinalizer}) }), reserved.KeptKubeConfig},
		"label of a RemoteCluster": {"what was made for one", marks(secretListed("fleet", "a"), directoriestest.Labelled(v1alpha1.ClusterLabel, "prod")), reserved.KeptForCluster},
		"label without a value":    {"it is the key that counts", marks(secretListed("fleet", "a"), directoriestest.Labelled(v1alpha1.ClusterLabel, "")), reserved.KeptForCluster},
		"joined":                   {"the kubeconfig that it was joined with", marks(secretListed("fleet", "prod-kubeconfig"), directoriestest.Labelled(v1alpha1.JoinedLabel, "strata-fleet-prod")), reserved.KeptCredential},
		"revision by name":         {"before it is kept", secretListed("gotk-system", "strata-revision.base.0123456789abcdef0123"), reserved.KeptRevision},
		"revision by label":        {"of older names", marks(secretListed("gotk-system", "base.0123456789ab"), directoriestest.Labelled(v1alpha1.RevisionOfLabel, "base")), reserved.KeptRevision},
		"revision by type":         {"the type cannot be changed later", marks(secretListed("gotk-system", "a"), directoriestest.OfType(v1alpha1.RevisionType)), reserved.KeptRevision},
		"copy by name":             {"of what a release of another cluster reads", secretListed("fleet", "strata-copy-prod-values-01234567890123456789"), reserved.KeptCopy},
		"copied ConfigMap by name": {"of either kind", directoriestest.Any("v1", "ConfigMap", "fleet", "strata-copy-prod-values-01234567890123456789"), reserved.KeptCopy},
		"copy by annotation":       {"of older names", marks(directoriestest.Any("v1", "ConfigMap", "fleet", "a"), directoriestest.Annotated(v1alpha1.CopyOfAnnotation, "Secret/a/b")), reserved.KeptCopy},
		"Helm's record by name":    {"it says what is installed", secretListed("default", "sh.helm.release.v1.podinfo.v1"), reserved.KeptHelm},
		"Helm's record by type":    {"under another name", marks(secretListed("default", "a"), directoriestest.OfType("helm.sh/release.v1")), reserved.KeptHelm},
		"Helm's record by labels": {"of another driver", marks(directoriestest.Any("v1", "ConfigMap", "default", "a"), func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{"owner": "helm", "name": "a", "version": "1"})
		}), reserved.KeptHelm},
		"token":                       {"the cluster writes a token of any account into it", marks(secretListed("kube-system", "a"), directoriestest.OfType("kubernetes.io/service-account-token")), reserved.KeptToken},
		"token by annotation":         {"where its type is not seen", marks(secretListed("kube-system", "a"), directoriestest.Annotated("kubernetes.io/service-account.name", "admin")), reserved.KeptToken},
		"bootstrap token":             {"a node joins with it", marks(secretListed("default", "a"), directoriestest.OfType("bootstrap.kubernetes.io/token")), reserved.KeptBootstrap},
		"bootstrap token by name":     {"its name is fixed", secretListed("kube-system", "bootstrap-token-abcdef"), reserved.KeptBootstrap},
		"Lease":                       {"whoever has it leads", directoriestest.Any("coordination.k8s.io/v1", "Lease", "gotk-system", "strata.kraan.io"), reserved.KeptLease},
		"Lease of a shard":            {"there is one for each selector", directoriestest.Any("coordination.k8s.io/v1", "Lease", "gotk-system", "1234.strata.kraan.io"), reserved.KeptLease},
		"Lease of Flux":               {"Flux's, too", directoriestest.Any("coordination.k8s.io/v1", "Lease", "flux-system", "helm-controller-leader-election"), reserved.KeptLease},
		"Deployment":                  {"it runs the controller", directoriestest.Any("apps/v1", "Deployment", "gotk-system", "strata"), reserved.KeptOwn},
		"account":                     {"it is the controller's", directoriestest.Any("v1", "ServiceAccount", "gotk-system", "strata"), reserved.KeptOwn},
		"account of another name":     {"as the API server says", directoriestest.Any("v1", "ServiceAccount", "gotk-system", "robot"), reserved.KeptOwn},
		"ClusterRole":                 {"its rights", directoriestest.Any(role, "ClusterRole", "", "strata-remote-clusters"), reserved.KeptOwn},
		"ClusterRoleBinding":          {"who has them", directoriestest.Any(role, "ClusterRoleBinding", "", "strata-cluster-admin"), reserved.KeptOwn},
		"Role elsewhere":              {"as whom it may act there", directoriestest.Any(role, "Role", "team-a", "strata-impersonate"), reserved.KeptOwn},
		"ordinary Secret":             {"of a layer", secretListed("fleet", "prod-kubeconfig-of-ours"), ""},
		"ordinary type":               {"of a layer", marks(secretListed("fleet", "a"), directoriestest.OfType("kubernetes.io/tls")), ""},
		"somebody's Helm":             {"a label alone is not Helm's", marks(secretListed("fleet", "a"), directoriestest.Labelled("owner", "helm")), ""},
		"similar role":                {"the chart makes none of this name", directoriestest.Any(role, "ClusterRole", "", "strata-layers-of-team-a"), ""},
		"Deployment elsewhere":        {"of somebody else", directoriestest.Any("apps/v1", "Deployment", "team-a", "strata"), ""},
		"HelmRelease of the chart":    {"a layer may upgrade the controller", directoriestest.Any("helm.toolkit.fluxcd.io/v2", "HelmRelease", "gotk-system", "strata"), ""},
		"Namespace of the controller": {"layers may list namespaces", directoriestest.Any("v1", "Namespace", "", "strata"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			settings := Settings{Namespace: "gotk-system", Account: types.NamespacedName{Namespace: "gotk-system", Name: "robot"}}
			if got := settings.Reserved(tc.manifest.ID(), tc.manifest.Object); got != tc.want {
				t.Errorf("%s: it is %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// The names are those that the chart gave.
func TestReservedNamesOfTheChart(t *testing.T) {
	settings := Settings{Namespace: "addons", OwnName: "blue-strata"}
	if why := settings.Reserved(directoriestest.Any("apps/v1", "Deployment", "addons", "blue-strata").ID(), nil); why != reserved.KeptOwn {
		t.Errorf("its Deployment is %q", why)
	}
	if why := settings.Reserved(directoriestest.Any("apps/v1", "Deployment", "addons", "strata").ID(), nil); why != "" {
		t.Errorf("another one is %q", why)
	}
}

func kubeConfigCopy() *unstructured.Unstructured {
	obj := secretListed("fleet", "strata-kubeconfig-prod").Object.DeepCopy()
	obj.SetLabels(map[string]string{v1alpha1.ClusterLabel: "prod"})
	obj.SetFinalizers([]string{v1alpha1.KubeConfigFinalizer})
	obj.SetUID("uid-copy")
	obj.SetResourceVersion("9")
	return obj
}

func secretsServed(o *Observation) {
	o.Scopes[objects.ServedKind{GroupKind: schema.GroupKind{Kind: "Secret"}}] = objects.ScopeNamespaced
	o.Resources = map[objects.ServedKind]string{
		{GroupKind: schema.GroupKind{Kind: "Secret"}}: "secrets", {GroupKind: schema.GroupKind{Kind: "ConfigMap"}}: "configmaps",
		{GroupKind: schema.GroupKind{Kind: "Namespace"}}: "namespaces", {GroupKind: kinds.HelmReleaseKind}: "helmreleases",
	}
}

// A layer that lists what is kept is stalled with file and object, keeps and repairs
// what else it has, and does nothing at all to that object: at home and on another
// cluster, whether it exists or not, whatever account it has.
func TestLayerListsWhatIsKept(t *testing.T) {
	kept := secretListed("fleet", "strata-kubeconfig-prod")
	kept.File, kept.Line = "base/evil.yaml", 3
	want := "base/evil.yaml:3: Secret fleet/strata-kubeconfig-prod is Strata's own copy of a kubeconfig, and no layer writes it"
	for name, change := range map[string]func(*Observation){
		"before it exists": func(*Observation) {},
		"live":             lives(kubeConfigCopy()),
		"with an account":  func(o *Observation) { o.Layer.Spec.ServiceAccountName = "deployer" },
	} {
		t.Run(name, func(t *testing.T) {
			was := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
			o := observation(layer(isDeployed(was)), directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b"), kept), secretsServed, lives(live("a", drifted)), change)
			o.Deployed = was
			d := Decide(o)
			if d.State != v1alpha1.StateFailed || d.Reason != v1alpha1.ReasonReservedObject || !d.Stalled || !strings.Contains(d.Message, want) {
				t.Errorf("it is %s (%s), stalled %t: %s", d.State, d.Reason, d.Stalled, d.Message)
			}
			if got := verbs(d.Plan); got != "Write a" {
				t.Errorf("the plan is %q, want nothing but the repair of what is deployed", got)
			}
		})
	}
	t.Run("on another cluster", func(t *testing.T) {
		o := observation(layer(), directoriestest.Of(newRevision, kept), onProd(remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour)))
		d := Decide(o)
		if d.Reason != v1alpha1.ReasonReservedObject || !d.Stalled || d.Plan.Writes() {
			t.Errorf("it is %s with the plan %q: %s", d.Reason, verbs(d.Plan), d.Message)
		}
	})
}

// What a status says takes nothing: an inventory that names what is kept, with the
// layer's own label on it, brings about nothing, neither in a look nor in a deletion.
func TestForgedInventoryTakesNothingThatIsKept(t *testing.T) {
	for name, changes := range map[string][]layerChange{"a look": nil, "a deletion": {deleted}} {
		t.Run(name, func(t *testing.T) {
			taken := kubeConfigCopy()
			labels := taken.GetLabels()
			labels[v1alpha1.LayerLabel] = "base"
			taken.SetLabels(labels)
			dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
			l := layer(append([]layerChange{isDeployed(dir)}, changes...)...)
			l.Status.Resources = append(l.Status.Resources, v1alpha1.Resource{Kind: "Secret", Namespace: "fleet", Name: "strata-kubeconfig-prod", Status: "Deployed"})
			d := Decide(observation(l, dir, secretsServed, lives(live("a"), taken)))
			for _, action := range d.Plan.Actions {
				if action.ID.Kind == "Secret" {
					t.Errorf("%s %s", action.Verb, action.ID)
				}
			}
			if slices.ContainsFunc(d.Plan.Inventory, func(e dependents.Entry) bool { return e.ID.Kind == "Secret" }) {
				t.Error("it stays in the inventory")
			}
		})
	}
}

// The copies that a layer has of its own come and go with it, under the names of
// today and of before; those of another layer it leaves alone.
func TestCopiesGoWithTheirLayerOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		owner string
		want  string
	}{"its own": {"base", "Mark strata-copy-prod-values-x"}, "another's": {"other", ""}} {
		t.Run(name, func(t *testing.T) {
			copied := marks(secretListed("fleet", "strata-copy-prod-values-x"), directoriestest.Annotated(v1alpha1.CopyOfAnnotation, "Secret/default/values")).Object
			copied.SetLabels(map[string]string{v1alpha1.LayerLabel: tc.owner})
			dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
			l := layer(isDeployed(dir))
			l.Status.Resources = append(l.Status.Resources, v1alpha1.Resource{Kind: "Secret", Namespace: "fleet", Name: "strata-copy-prod-values-x", Status: "Deployed"})
			d := Decide(observation(l, dir, secretsServed, lives(live("a"), copied), func(o *Observation) { o.Others.Existing = map[string]bool{"other": true} }))
			if got := verbs(d.Plan); got != tc.want {
				t.Errorf("the plan is %q, want %q", got, tc.want)
			}
		})
	}
}

// Whatever is listed, deployed, live and in the inventory: no plan touches what is
// kept.
func TestNoPlanTouchesWhatIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := drawDirectory(t, oldRevision, "old")
		l := drawLayer(t, was)
		o := observation(l, drawDirectory(t, newRevision, "new"), secretsServed)
		for _, m := range was.Manifests {
			lives(live(m.Object.GetName(), drifted))(&o)
		}
		object := kubeConfigCopy()
		if rapid.Bool().Draw(t, "labelled") {
			directoriestest.Labelled(v1alpha1.LayerLabel, l.Name)(object)
		}
		if rapid.Bool().Draw(t, "live") {
			lives(object)(&o)
		}
		if rapid.Bool().Draw(t, "in the inventory") {
			l.Status.Resources = append(l.Status.Resources, v1alpha1.Resource{Kind: "Secret", Namespace: "fleet", Name: "strata-kubeconfig-prod", Status: "Orphaned", Digest: "x"})
		}
		if o.Directory != nil && rapid.Bool().Draw(t, "listed") {
			o.Directory.Manifests = append(slices.Clone(o.Directory.Manifests), secretListed("fleet", "strata-kubeconfig-prod"))
		}
		for _, action := range Decide(o).Plan.Actions {
			if action.ID.Kind == "Secret" {
				t.Fatalf("%s %s", action.Verb, action.ID)
			}
		}
	})
}

// The Secret that a RemoteCluster has its kubeconfig from is no layer's to take, by
// that reference alone: whoever writes it says where releases go.
func TestLayerTakesNoKubeConfigOfARemoteCluster(t *testing.T) {
	secret := secretListed("fleet", "prod-access")
	secret.File, secret.Line = "base/access.yaml", 1
	cluster := directoriestest.Any(v1alpha1.GroupVersion.String(), v1alpha1.RemoteClusterKind, "fleet", "prod")
	for name, tc := range map[string]struct {
		reason   string
		listed   []directories.Manifest
		change   func(*Observation)
		reserved bool
	}{
		"nobody's":          {"adopting it is taking it", []directories.Manifest{secret}, lives(secret.Object), true},
		"before it exists":  {"nobody is to be first", []directories.Manifest{secret}, func(*Observation) {}, true},
		"another layer's":   {"it is not handed over", []directories.Manifest{secret}, lives(marks(secret, directoriestest.Labelled(v1alpha1.LayerLabel, "other")).Object), true},
		"the layer's own":   {"it has it already", []directories.Manifest{secret}, lives(marks(secret, directoriestest.Labelled(v1alpha1.LayerLabel, "base")).Object), false},
		"with its cluster":  {"who writes the RemoteCluster says where that is", []directories.Manifest{secret, cluster}, func(*Observation) {}, false},
		"of another Secret": {"it is named by none", []directories.Manifest{secret}, func(o *Observation) { o.KubeConfigs = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			named := func(o *Observation) {
				o.KubeConfigs = map[objects.ID][]types.NamespacedName{secret.ID(): {{Namespace: "fleet", Name: "prod"}}}
				o.Scopes[objects.ServedKind{GroupKind: cluster.ID().GroupKind()}] = objects.ScopeNamespaced
			}
			d := Decide(observation(layer(), directoriestest.Of(newRevision, tc.listed...), secretsServed, named, tc.change))
			if got := d.Reason == v1alpha1.ReasonReservedObject; got != tc.reserved {
				t.Fatalf("%s: it is %s: %s", tc.reason, d.Reason, d.Message)
			}
			for _, action := range d.Plan.Actions {
				if action.ID == secret.ID() && tc.reserved {
					t.Errorf("%s %s", action.Verb, action.ID)
				}
			}
		})
	}
}

// Namespaces that much of others lies in go with no layer, also where their
// annotation says so, which the layer's author has written when it was adopted.
func TestNamespacesOfOthersGoWithNoLayer(t *testing.T) {
	for name, goes := range map[string]bool{
		"kube-system": false, "kube-node-lease": false, "default": false, "flux-system": false, "gotk-system": false, "flux-elsewhere": false,
		"fleet": false, "team-a": true,
	} {
		for when, changes := range map[string][]layerChange{"a look": nil, "a deletion": {deleted}} {
			namespace := directoriestest.Any("v1", "Namespace", "", name).Object.DeepCopy()
			namespace.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
			namespace.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: "enabled", v1alpha1.CreatedForAnnotation: "base"})
			dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
			l := layer(append([]layerChange{isDeployed(dir)}, changes...)...)
			l.Status.Resources = append(l.Status.Resources, v1alpha1.Resource{
				Kind: kinds.ResourceKind(schema.GroupKind{Kind: "Namespace"}), Name: name, Status: objects.StatusOrphaned, LastTransitionTime: longAgo,
			})
			d := Decide(observation(l, dir, lives(live("a"), namespace), func(o *Observation) {
				o.ClusterNamespaces = map[string]bool{"fleet": true, "team-a": false}
				o.Settings.FluxNamespaces = FluxNamespacesOf([]string{"files.example:8080", "source-controller.flux-elsewhere.svc:80"})
			}))
			done, why := "", ""
			for _, action := range d.Plan.Actions {
				if action.ID.Kind == "Namespace" {
					done += string(action.Verb)
					why += action.Spared
				}
			}
			if isReleased := done == string(dependents.VerbRelease); isReleased == goes || isReleased != (why == sparedLasting) {
				t.Errorf("in %s Namespace %s: %q because %q", when, name, done, why)
			}
		}
	}
}

// The name of what is made for an owner is kept while that owner exists. A layer that has
// the object already keeps it, so that no layer stops because of an owner that came later.
func TestNameIsKeptForItsOwner(t *testing.T) {
	listed := secretListed("fleet", "edge-kubeconfig")
	listed.File, listed.Line = "base/evil.yaml", 3
	had := listed.Object.DeepCopy()
	had.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
	had.SetUID("uid")
	made := listed.Object.DeepCopy()
	made.SetLabels(map[string]string{v1alpha1.HostClusterLabel: "edge"})
	made.SetUID("uid")
	owned := func(o *Observation) { o.Owned = map[objects.ID]string{listed.ID(): reserved.KeptForHosts} }
	for name, tc := range map[string]struct {
		reason  string
		changes []func(*Observation)
		refused bool
	}{
		"without an owner":   {"it is an ordinary name", nil, false},
		"with its owner":     {"the controller of hosts is about to write it", []func(*Observation){owned}, true},
		"had before":         {"the owner came later, and leaves it alone", []func(*Observation){owned, lives(had)}, false},
		"made for its owner": {"it says itself whose it is", []func(*Observation){lives(made)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := observation(layer(), directoriestest.Of(newRevision, listed), append(tc.changes, secretsServed)...)
			d := Decide(o)
			if refused := d.Reason == v1alpha1.ReasonReservedObject; refused != tc.refused {
				t.Errorf("%s: it is %s (%s): %s", tc.reason, d.State, d.Reason, d.Message)
			}
			if tc.refused && (d.Plan.Writes() || !strings.Contains(d.Message, "base/evil.yaml:3: Secret fleet/edge-kubeconfig is "+reserved.KeptForHosts)) {
				t.Errorf("the plan is %q, the message %q", verbs(d.Plan), d.Message)
			}
		})
	}
}

// A name that is made of a Secret's value is told of by a condition that does not tell the
// name, and refused where the controller was told so.
func TestNamesMadeOfSecrets(t *testing.T) {
	named := secretListed("fleet", "a-t0")
	named.Named, named.File = []string{"token"}, "base/secret.yaml"
	directory := directoriestest.Of(newRevision, named)
	o := observation(layer(), directory, secretsServed)
	status, _ := Report(o, Decide(o), nil)
	condition := meta.FindStatusCondition(status.Conditions, v1alpha1.SecretsInNamesCondition)
	if condition == nil || condition.Status != metav1.ConditionTrue || !strings.Contains(condition.Message, "names of Secret are made of token") || strings.Contains(condition.Message, "a-t0") {
		t.Errorf("the condition is %+v", condition)
	}
	o.Settings.NoSecretsInNames = true
	d := Decide(o)
	if d.Reason != v1alpha1.ReasonAccessDenied || d.Plan.Writes() || !strings.Contains(d.Message, "--no-secrets-in-names") || strings.Contains(d.Message, "a-t0") {
		t.Errorf("it is %s (%s): %s", d.State, d.Reason, d.Message)
	}
}
