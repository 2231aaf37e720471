// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/hostile"
	"github.com/strata-project/strata/test/strata"
)

// enough is the memory, in MiB, that the controller of these tests may take: about three
// times what it needs, a fraction of what the attacks would have it take, and a quarter
// of the chart's limit. What builds kustomizations is another process.
const enough = 256

// bomb is a kustomization that doubles a list with each of its lines.
func bomb(lines int) string {
	return "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |-\n" +
		strings.Repeat("    - {op: copy, from: /data/l, path: /data/l/-}\n", lines)
}

// Each directory wants more than its author may: it is refused by name, nothing
// comes of it, no connection is opened for it, and the other team's layer is
// deployed meanwhile.
func TestDirectoriesGetNoMoreThanTheirAuthors(t *testing.T) {
	t.Parallel()
	evil, good := join(t, tenant, "directories"), join(t, victim, "directories")
	url := stack.outside.URL()
	configMap := func(namespace string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: planted, namespace: %s}\ndata: {a: b}\n", namespace)
	}
	attacks := map[string]struct {
		files map[string]string
		word  string
	}{
		"remote":      {map[string]string{"kustomization.yaml": "resources: [" + url + "/a.yaml]\n"}, "remote bases are not allowed"},
		"longs":       {map[string]string{"kustomization.yaml": "re\u017fources: [" + url + "/a.yaml]\n"}, "remote bases are not allowed"},
		"alias":       {map[string]string{"kustomization.yaml": "namePrefix: &k resources\n*k : [" + url + "/a.yaml]\n"}, "has an alias as a key"},
		"generator":   {map[string]string{"kustomization.yaml": "configMapGenerator: [{name: a, file\u017f: [\"k=" + url + "\"]}]\n"}, "remote bases are not allowed"},
		"transformer": {map[string]string{"kustomization.yaml": "transformers: [v.yaml]\n", "v.yaml": "{apiVersion: builtin, kind: ValueAddTransformer, metadata: {name: a}, value: x, targetFilePath: " + url + "}\n"}, "remote bases are not allowed"},
		"bomb":        {map[string]string{"kustomization.yaml": bomb(24), "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {l: [v]}\n"}, "exceeding the limit"},
		"outside":     {map[string]string{"kustomization.yaml": "resources: [../../../../etc]\n"}, "outside of the artifact"},
		"elsewhere":   {map[string]string{"a.yaml": configMap(victim)}, "it may not create resource \"configmaps\""},
		"token":       {map[string]string{"a.yaml": "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {name: token, namespace: " + strata.Namespace + ", annotations: {kubernetes.io/service-account.name: strata}}\n"}, "Secret"},
		"foreign":     {map[string]string{"a.yaml": strings.ReplaceAll(evil.release("foreign", "x"), "name: charts}", "name: charts, namespace: "+victim+"}")}, "references across namespaces are refused"},
	}
	files := map[string]string{}
	for name, attack := range attacks {
		for file, text := range attack.files {
			files[name+"/"+file] = text
		}
	}
	_, err := evil.repo.Commit("attack", files)
	evil.must(err)
	layers := map[string]string{}
	for name := range attacks {
		layers[name] = evil.layer("directories", name)
	}
	first, err := good.repo.Commit("one", map[string]string{"base/release.yaml": good.release("base", "one")})
	good.must(err)
	base := good.layer("directories", "base")
	good.deploys(base, first)
	second, err := good.repo.Commit("two", map[string]string{"base/release.yaml": good.release("base", "two")})
	good.must(err)
	good.deploys(base, second)

	for name, attack := range attacks {
		evil.eventually(name+" is refused", func() error {
			found := evil.get(layers[name])
			if said := ready(found); found.Status.State != v1alpha1.StateFailed || !strings.Contains(said.Message, attack.word) {
				return fmt.Errorf("it is %s (%s): %s", found.Status.State, said.Reason, said.Message)
			}
			return nil
		})
	}
	if dials := stack.outside.dials.Load(); dials > 0 {
		t.Errorf("%d connections were opened to where the directories lead", dials)
	}
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "planted"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: strata.Namespace, Name: "token"}},
	} {
		if err := stack.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s: %v, want it not to be there", object, object.GetName(), err)
		}
	}
	checkMemory(t)
}

// A tenant with the rights of edit, and with Flux's own, in one namespace stops
// no layer of another team, and gets nothing deployed or fetched by its statuses.
func TestTenantWithTheRightsOfEdit(t *testing.T) {
	t.Parallel()
	evil, good := join(t, tenant, "rights"), join(t, victim, "rights")
	first, err := good.repo.Commit("one", map[string]string{"gateway/release.yaml": good.release("gateway", "one")})
	good.must(err)
	layer := good.layer("rights", "gateway")
	good.deploys(layer, first)

	// The tenant may not write the layer, nor its status.
	for _, err := range []error{
		evil.as.Patch(t.Context(), good.get(layer), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"kraan.io/hold":"x"}}}`))),
		evil.as.Status().Patch(t.Context(), good.get(layer), client.RawPatch(types.MergePatchType, []byte(`{"status":{"state":"Failed"}}`))),
	} {
		if !apierrors.IsForbidden(err) {
			t.Fatalf("a tenant writes to a layer: %v", err)
		}
	}
	for name, change := range map[string]func(*helmv2.HelmRelease){
		"suspended": func(r *helmv2.HelmRelease) { r.Spec.Suspend = true },
		"account":   func(r *helmv2.HelmRelease) { r.Spec.ServiceAccountName = account },
	} {
		rival := &helmv2.HelmRelease{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "rival-" + name},
			Spec: helmv2.HelmReleaseSpec{
				Interval: metav1.Duration{Duration: time.Hour}, ReleaseName: "gateway", StorageNamespace: victim, TargetNamespace: victim,
				Chart: &helmv2.HelmChartTemplate{Spec: helmv2.HelmChartTemplateSpec{
					Chart: "configmap", SourceRef: helmv2.CrossNamespaceObjectReference{Kind: "HelmRepository", Name: "charts"},
				}},
			},
		}
		change(rival)
		evil.must(evil.as.Create(t.Context(), rival))
	}
	second, err := good.repo.Commit("two", map[string]string{"gateway/release.yaml": good.release("gateway", "two"), "after/release.yaml": good.release("after", "one")})
	good.must(err)
	good.deploys(layer, second)
	after := good.layer("rights", "after", func(l *v1alpha1.AddonsLayer) {
		l.Spec.Prereqs.DependsOn = []string{layer}
	})
	good.deploys(after, second)

	// Of its own source the tenant may write what Flux has fetched, where that may be.
	own := evil.layer("rights", "own")
	commit, err := evil.repo.Commit("one", map[string]string{"own/release.yaml": evil.release("own", "one")})
	evil.must(err)
	evil.deploys(own, commit)
	source := &sourcev1.GitRepository{}
	evil.must(evil.as.Get(t.Context(), types.NamespacedName{Namespace: tenant, Name: "rights"}, source))
	source.Spec.Suspend = true
	evil.must(evil.as.Update(t.Context(), source))
	evil.must(evil.as.Status().Patch(t.Context(), source, client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"status":{"observedGeneration":%[1]d,"artifact":{"url":"%[2]s/a.tar.gz","path":"a.tar.gz","revision":"main@sha1:forged","digest":"sha256:%064[3]d","lastUpdateTime":%[4]q},
			"conditions":[{"type":"Ready","status":"True","reason":"Succeeded","message":"stored","observedGeneration":%[1]d,"lastTransitionTime":%[4]q}]}}`,
		source.Generation, stack.outside.URL(), 1, time.Now().UTC().Format(time.RFC3339)))))
	evil.eventually("the layer says where it does not fetch from", func() error {
		if said := ready(evil.get(own)); !strings.Contains(said.Message, "--artifact-hosts") {
			return fmt.Errorf("it says %s: %s", said.Reason, said.Message)
		}
		return nil
	})
	if dials := stack.outside.dials.Load(); dials > 0 {
		t.Errorf("%d connections were opened to where a forged status leads", dials)
	}
}

// Whoever may write the kubeconfig of a RemoteCluster leads the controller and Flux
// nowhere but to the allowed ranges, and whatever the API server there does holds up
// nobody else.
func TestClustersOfATenant(t *testing.T) {
	t.Parallel()
	evil, good := join(t, tenant, "clusters"), join(t, victim, "clusters")
	deployed, err := good.repo.Commit("one", map[string]string{"base/release.yaml": good.release("cluster", "one")})
	good.must(err)
	base := good.layer("clusters", "base")
	good.deploys(base, deployed)

	_, err = evil.repo.Commit("one", map[string]string{"app/release.yaml": evil.release("app", "one")})
	evil.must(err)
	elsewhere := func(c *clientcmdapi.Cluster) { c.Server = "https://" + stack.outside.Addr().String() }
	behind := func(c *clientcmdapi.Cluster) { c.ProxyURL = stack.outside.URL() }
	attacks := map[string]struct {
		change func(*clientcmdapi.Cluster)
		does   map[string]http.HandlerFunc
		says   string
	}{
		"elsewhere":   {change: elsewhere, says: "--allowed-cluster-ranges"},
		"proxy":       {change: behind, says: "--allowed-cluster-ranges"},
		"redirect":    {does: map[string]http.HandlerFunc{"/": hostile.Redirect(http.StatusTemporaryRedirect, stack.outside.URL())}, says: "redirect to another address, which is not followed"},
		"flood":       {does: map[string]http.HandlerFunc{"/version": hostile.Flood(`{"gitVersion":"v1.30.1","x":"`, " ", 1<<30)}, says: "more than 64 KiB, which is not read"},
		"silent":      {does: map[string]http.HandlerFunc{"/": hostile.Silent}, says: "cannot be reached"},
		"slow":        {does: map[string]http.HandlerFunc{"/version": hostile.Slow(time.Second)}, says: "cannot be reached"},
		"junk":        {does: map[string]http.HandlerFunc{"/": hostile.Junk}, says: "no API server of Kubernetes"},
		"longVersion": {does: map[string]http.HandlerFunc{"/version": hostile.Version("v1." + strings.Repeat("3", 40<<10))}, says: "no API server of Kubernetes"},
	}
	for name, attack := range attacks {
		server := hostile.Start()
		t.Cleanup(server.Close)
		for path, answer := range attack.does {
			server.Do(path, answer)
		}
		if attack.change == nil {
			attack.change = func(*clientcmdapi.Cluster) {}
		}
		kubeconfig, err := server.Kubeconfig(attack.change)
		evil.must(err)
		evil.cluster(strings.ToLower(name), kubeconfig)
	}
	for name, attack := range attacks {
		evil.eventually("RemoteCluster "+name+" is refused", func() error {
			found := &v1alpha1.RemoteCluster{}
			evil.must(stack.client.Get(t.Context(), types.NamespacedName{Namespace: tenant, Name: strings.ToLower(name)}, found))
			said := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ReadyCondition)
			if said == nil || said.Status != metav1.ConditionFalse || !strings.Contains(said.Message, attack.says) {
				return fmt.Errorf("it is %+v", said)
			}
			return nil
		})
	}
	// Their owner has layers on all of them, and the other team goes on.
	for name := range attacks {
		evil.layer("clusters", "app", func(l *v1alpha1.AddonsLayer) {
			l.Name += "-" + strings.ToLower(name)
			l.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: tenant, Name: strings.ToLower(name)}
		})
	}
	for _, value := range []string{"two", "three", "four"} {
		commit, err := good.repo.Commit(value, map[string]string{"base/release.yaml": good.release("cluster", value)})
		good.must(err)
		good.deploys(base, commit)
	}
	if dials := stack.outside.dials.Load(); dials > 0 {
		t.Errorf("%d connections were opened to where kubeconfigs and answers lead", dials)
	}
	checkMemory(t)
}
