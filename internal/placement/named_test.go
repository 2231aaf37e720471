// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/reserved"
)

// fill makes every pointer below a value, and gives each reference to a Secret a name of
// its own, which it returns.
func fill(value reflect.Value, reference reflect.Type) []string {
	var names []string
	var walk func(reflect.Value)
	walk = func(v reflect.Value) {
		switch {
		case v.Type() == reference:
			names = append(names, fmt.Sprintf("secret-%d", len(names)))
			v.FieldByName("Name").SetString(names[len(names)-1])
		case v.Kind() == reflect.Pointer && v.CanSet():
			v.Set(reflect.New(v.Type().Elem()))
			walk(v.Elem())
		case v.Kind() == reflect.Slice && v.CanSet() && v.Type().Elem().Kind() == reflect.Struct:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			walk(v.Index(0))
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		}
	}
	walk(value)
	return names
}

func secretsOf(namespace string, names []string) []objects.ID {
	ids := make([]objects.ID, 0, len(names))
	for _, name := range names {
		ids = append(ids, objects.ID{Kind: "Secret", Namespace: namespace, Name: name})
	}
	return objects.SortIDs(ids)
}

// Every Secret that a HostCluster or a provider can name is kept for it: a field that
// comes later, and is not known here, is found.
func TestEverySecretThatIsNamedIsKnown(t *testing.T) {
	hosts := &v1alpha1.HostCluster{}
	hosts.Namespace = "fleet"
	names := fill(reflect.ValueOf(&hosts.Spec).Elem(), reflect.TypeFor[v1alpha1.HostSecretReference]())
	if diff := cmp.Diff(secretsOf("fleet", names), objects.SortIDs(LoginSecrets(hosts))); diff != "" || len(names) < 3 {
		t.Errorf("of a HostCluster (-named +known):\n%s", diff)
	}
	provider := &v1alpha1.CapabilityProvider{}
	names = fill(reflect.ValueOf(&provider.Spec).Elem(), reflect.TypeFor[v1alpha1.LocalSecretReference]())
	provider.Spec.Namespace = "databases"
	if diff := cmp.Diff(secretsOf("databases", names), objects.SortIDs(PluginSecrets(provider))); diff != "" || len(names) < 2 {
		t.Errorf("of a provider (-named +known):\n%s", diff)
	}
}

func TestKeptByReference(t *testing.T) {
	cluster := &v1alpha1.RemoteCluster{}
	cluster.Namespace, cluster.Spec.KubeConfig.SecretRef.Name = "fleet", "prod"
	hosts := &v1alpha1.HostCluster{}
	hosts.Namespace, hosts.Spec.SSH.SecretRef = "fleet", &v1alpha1.HostSecretReference{Name: "ssh"}
	provider := &v1alpha1.CapabilityProvider{}
	provider.Spec.Namespace, provider.Spec.CredentialsRef = "fleet", &v1alpha1.LocalSecretReference{Name: "server-admin"}
	layer := &v1alpha1.AddonsLayer{}
	layer.Spec.Decryption = &v1alpha1.Decryption{SecretRef: v1alpha1.SecretName{Name: "age"}}
	referrers := Referrers{
		Clusters: []*v1alpha1.RemoteCluster{cluster}, Hosts: []*v1alpha1.HostCluster{hosts}, Providers: []*v1alpha1.CapabilityProvider{provider},
		Layers: []*v1alpha1.AddonsLayer{layer}, NamespaceOf: func(*v1alpha1.AddonsLayer) string { return "flux-system" },
	}
	for id, want := range map[objects.ID]string{
		{Kind: "Secret", Namespace: "fleet", Name: "prod"}:                            reserved.KeptSource,
		{Kind: "Secret", Namespace: "fleet", Name: "ssh"}:                             KeptForLogin,
		{Kind: "Secret", Namespace: "fleet", Name: "server-admin"}:                    KeptForProvider,
		{Kind: "Secret", Namespace: "flux-system", Name: "age"}:                       KeptForDecryption,
		{Kind: "Secret", Namespace: "fleet", Name: "age"}:                             "",
		{Kind: "Secret", Namespace: "fleet", Name: "db"}:                              "",
		{Kind: "Secret", Namespace: "fleet", Name: "ssh", Cluster: "fleet/somewhere"}: "",
	} {
		if got := referrers.Kept(id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
}

// A copy counts as made before leave was needed only where it is the layer's own, of that
// very Secret, and has no note of leave.
func TestWasGiven(t *testing.T) {
	origin := objects.ID{Kind: "Secret", Namespace: "payments", Name: "db"}
	noted := map[string]string{v1alpha1.CopyOfAnnotation: "Secret/payments/db"}
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		want                bool
	}{
		"before":          {map[string]string{v1alpha1.LayerLabel: prod.Layer}, noted, true},
		"with leave":      {map[string]string{v1alpha1.LayerLabel: prod.Layer}, map[string]string{v1alpha1.CopyOfAnnotation: "Secret/payments/db", v1alpha1.SharedByAnnotation: byAccount}, false},
		"another layer's": {map[string]string{v1alpha1.LayerLabel: "other"}, noted, false},
		"another Secret":  {map[string]string{v1alpha1.LayerLabel: prod.Layer}, map[string]string{v1alpha1.CopyOfAnnotation: "Secret/payments/other"}, false},
		"no copy":         {map[string]string{v1alpha1.LayerLabel: prod.Layer}, nil, false},
	} {
		copied := directoriestest.Secret("fleet", prod.CopyOf(origin).Name)
		copied.SetLabels(tc.labels)
		copied.SetAnnotations(tc.annotations)
		if got := prod.WasGiven(origin, copied); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
	if prod.WasGiven(origin, nil) || prod.WasGiven(objects.ID{Kind: "ConfigMap", Namespace: "payments", Name: "db"}, directoriestest.Secret("fleet", prod.CopyOf(origin).Name)) {
		t.Error("what is not there, or is no Secret, counts")
	}
	if !slices.Contains(prod.Places(origin), objects.ID{Kind: "Secret", Namespace: "fleet", Name: "db"}) {
		t.Error("the case shows nothing")
	}
}
