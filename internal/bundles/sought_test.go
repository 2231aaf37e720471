// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

// soughtBundle has a layer that waits for a Gateway, one beside it that reads its address,
// and one on a cluster that the bundle makes which reads it, too.
func soughtBundle(template string) *v1alpha1.ApplicationBundle {
	reads := []v1alpha1.Manifest{{JSON: *rawJSON(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":{"at":"` + template + `"}}`,
	)}}
	b := &v1alpha1.ApplicationBundle{Spec: v1alpha1.ApplicationBundleSpec{Family: "web", Version: "1.0.0", Layers: []v1alpha1.BundleLayer{
		{Name: "edge", WaitFor: []v1alpha1.BundleWaitFor{{
			WaitFor: v1alpha1.WaitFor{
				APIVersion: "gateway.networking.k8s.io/v1", Kind: "Gateway", Namespace: "${instance.name}", Name: "public", ReadyExpr: "has(object.status.address)",
			},
			As: "gateway",
		}}},
		{Name: "tenant", RemoteCluster: &v1alpha1.BundleCluster{
			KubeConfig: v1alpha1.BundleKubeConfig{SecretRef: v1alpha1.TemplatedSecretKey{Name: "tenant", Namespace: "fleet"}},
		}},
		{Name: "beside", Objects: reads},
		{Name: "inside", On: "tenant", Objects: reads},
	}}}
	b.Name = "web"
	return b
}

func gatewayWith(status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
		"metadata": map[string]any{"namespace": "shop", "name": "public", "uid": "u", "resourceVersion": "7"}, "status": status,
	}}
}

func TestTemplatesReadWhatIsWaitedFor(t *testing.T) {
	request := Request{Layer: "shop-beside", Instance: "shop", Bundle: soughtBundle("${objects.gateway.status.address}"), Path: "./beside"}
	sought := request.Sought()
	if len(sought) != 1 || sought[0].Namespace != "shop" || sought[0].Elsewhere || sought[0].Unknown || sought[0].Refusal(false) != "" {
		t.Fatalf("it seeks %+v", sought)
	}
	for want, seen := range map[string]map[string]Seen{
		"waits for Gateway shop/public, which layer edge waits for: it has yet to be looked at":  nil,
		"waits for Gateway shop/public, which layer edge waits for: it does not exist":           {"gateway": sought[0].See(nil, false)},
		"the cluster does not serve gateway.networking.k8s.io/v1 Gateway":                        {"gateway": sought[0].See(nil, true)},
		"waits for Gateway shop/public, which layer edge waits for: is waited for until has(obj": {"gateway": sought[0].See(gatewayWith(map[string]any{}), false)},
	} {
		request.Objects = seen
		var waits *Waiting
		if _, err := Render(request); !errors.As(err, &waits) || !strings.Contains(waits.Reason, want) {
			t.Errorf("want to wait with %q: %v", want, err)
		}
	}
	live := gatewayWith(map[string]any{"address": "192.0.2.7"})
	request.Objects = map[string]Seen{"gateway": sought[0].See(live, false)}
	data, _, _ := unstructured.NestedString(render(t, request)[0].Object.Object, "data", "at")
	if data != "192.0.2.7" {
		t.Errorf("it reads %q", data)
	}
	request.Objects["gateway"].Content["status"].(map[string]any)["address"] = "changed"
	if live.Object["status"].(map[string]any)["address"] != "192.0.2.7" {
		t.Error("what templates read is the object of the cache")
	}
	request.Bundle.Spec.Layers[2].Objects = nil
	if got := request.Sought(); got != nil {
		t.Errorf("a layer that reads none seeks %v", got)
	}
}

// TestObjectsOfAnotherClusterAreReadAsAnAccount shows that a layer without an account is
// given nothing of another cluster, and that a cluster which is not known is not guessed.
func TestObjectsOfAnotherClusterAreReadAsAnAccount(t *testing.T) {
	request := Request{
		Layer: "shop-inside", Instance: "shop", Bundle: soughtBundle("${objects.gateway.status.address}"), Path: "./inside",
		Cluster: Cluster{Name: types.NamespacedName{Namespace: "fleet", Name: "shop-tenant"}, Endpoint: "https://192.0.2.1:6443"},
	}
	refused := func(want string) {
		t.Helper()
		sought := request.Sought()
		if len(sought) != 1 || !strings.Contains(sought[0].Refusal(false), want) {
			t.Fatalf("it seeks %+v", sought)
		}
		request.Objects = map[string]Seen{"gateway": {Refused: sought[0].Refusal(false)}}
		var mistake *directories.ContentError
		if _, err := Render(request); !errors.As(err, &mistake) || !strings.Contains(mistake.Message, want) {
			t.Errorf("want to be refused with %q: %v", want, err)
		}
	}
	refused("which one that is only layers of Platforms know")
	request.Base.Known = true
	refused("on another cluster, the cluster that Strata runs in: that is read only as an account")
	if got := request.Sought()[0].Refusal(true); got != "" {
		t.Errorf("with an account it is refused: %s", got)
	}
	request.Base.Cluster = types.NamespacedName{Namespace: "fleet", Name: "hub"}
	refused("on another cluster, RemoteCluster fleet/hub")
	if id, version, err := request.Sought()[0].ID(); err != nil || id.Cluster != "fleet/hub" || version != "v1" {
		t.Errorf("it is %v at %s, %v", id, version, err)
	}
	// The other way round: an object of the cluster that the bundle makes.
	request.Bundle.Spec.Layers[0].On, request.Path = "tenant", "./beside"
	request.Cluster, request.Base = Cluster{}, Base{Known: true}
	if got := request.Sought()[0]; !got.Elsewhere || got.Cluster != (types.NamespacedName{Namespace: "fleet", Name: "shop-tenant"}) {
		t.Errorf("it seeks %+v", got)
	}
}

func TestBaseOf(t *testing.T) {
	for label, want := range map[string]Base{
		"":                      {Known: true},
		"fleet.north":           {Known: true, Cluster: types.NamespacedName{Namespace: "fleet", Name: "north"}},
		"fleet.a.b":             {Known: true, Cluster: types.NamespacedName{Namespace: "fleet", Name: "a.b"}},
		"sha256-0123456789abcd": {},
	} {
		layer := &v1alpha1.AddonsLayer{}
		layer.Labels = map[string]string{v1alpha1.PlatformClusterLabel: label}
		if got := baseOf(layer); got != want {
			t.Errorf("%q is %+v, want %+v", label, got, want)
		}
	}
	if got := baseOf(&v1alpha1.AddonsLayer{}); got.Known {
		t.Errorf("a layer of nobody knows %+v", got)
	}
}

func TestSecretsKeepTheirData(t *testing.T) {
	sought := Sought{As: "key", WaitFor: v1alpha1.WaitFor{APIVersion: "v1", Kind: "Secret", Name: "key"}}
	seen := sought.See(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{"password": "aHVudGVyMg=="},
		"metadata": map[string]any{"name": "key", "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}},
	}}, false)
	if seen.Content["type"] != "Opaque" || seen.Content["data"] != nil || strings.Contains(fmt.Sprint(seen.Content), "hunter") {
		t.Errorf("templates read %v", seen.Content)
	}
}

func TestCheckObjectsOfTemplates(t *testing.T) {
	b := soughtBundle("${objects.gatway.status.address}")
	b.Spec.Layers[0].WaitFor = append(b.Spec.Layers[0].WaitFor, b.Spec.Layers[0].WaitFor[0])
	problems := Check(b, nil)
	for _, want := range []string{
		"layers[beside].objects[0]: no layer waits for an object as gatway", "layers[edge].waitFor[1].as: another object is read as gateway",
	} {
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, want) }) {
			t.Errorf("want %q in %q", want, problems)
		}
	}
}
