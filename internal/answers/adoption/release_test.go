// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"pgregory.net/rapid"
)

// secrets keeps the Secret that Helm's library creates.
type secrets struct {
	corev1client.SecretInterface
	made *corev1.Secret
}

func (s *secrets) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	s.made = secret
	return secret, nil
}

// storedByHelm returns the Secret that Helm's own library stores a release in.
func storedByHelm(t testing.TB, r *helmrelease.Release) *corev1.Secret {
	t.Helper()
	storage := &secrets{}
	if err := driver.NewSecrets(storage).Create(fmt.Sprintf("sh.helm.release.v1.%s.v%d", r.Name, r.Version), r); err != nil {
		t.Fatal(err)
	}
	return storage.made
}

func helmRelease(changes ...func(*helmrelease.Release)) *helmrelease.Release {
	r := &helmrelease.Release{
		Name: "web", Namespace: "shop", Version: 3, Info: &helmrelease.Info{Status: common.StatusDeployed},
		Config: map[string]any{"replicas": int64(9007199254740993), "ratio": 0.5, "yes": "no"},
		Chart: &chart.Chart{
			Metadata:  &chart.Metadata{Name: "podinfo", Version: "1.2.3"},
			Templates: []*chartcommon.File{{Name: "templates/a.yaml", Data: []byte("a: b\n")}},
			Values:    map[string]any{"replicas": 1},
		},
		Manifest: "kind: ConfigMap\n",
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func TestWhatHelmStoresIsRead(t *testing.T) {
	secret := storedByHelm(t, helmRelease())
	got, err := Decode(secret.Data["release"])
	if err != nil {
		t.Fatal(err)
	}
	want := Release{
		Namespace: "shop", Name: "web", Revision: 3, Status: "deployed",
		Values: map[string]any{"replicas": int64(9007199254740993), "ratio": 0.5, "yes": "no"},
		Chart: Chart{
			Name: "podinfo", Version: "1.2.3", Templates: map[string]string{"templates/a.yaml": digestOf([]byte("a: b\n"))},
			Defaults: digestOf([]byte(`{"replicas":1}`)),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	stored, err := StoredOf("shop", secret.Name, secret.Labels)
	if err != nil || stored.Check(got) != "" || stored.String() != "shop/sh.helm.release.v1.web.v3" {
		t.Errorf("%v, %v: %s", stored, err, stored.Check(got))
	}
	if secret.Type != StoredType {
		t.Errorf("its type is %s", secret.Type)
	}
}

func packed(text string) []byte {
	var data bytes.Buffer
	writer := gzip.NewWriter(&data)
	_, _ = writer.Write([]byte(text))
	_ = writer.Close()
	return []byte(base64.StdEncoding.EncodeToString(data.Bytes()))
}

func releaseText(name, namespace, config string) string {
	return fmt.Sprintf(`{"name":%q,"namespace":%q,"version":1,"info":{"status":"deployed"},"chart":{"metadata":{"name":"c","version":"1.0.0"}},"config":%s}`, name, namespace, config)
}

func TestWhatIsNoReleaseIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "no Helm release"},
		{"no base64", []byte("%%%"), "base64"},
		{"cut short", packed(releaseText("a", "b", "{}"))[:40], "cannot be unpacked"},
		{"no JSON", packed("kind: x"), "no Helm release"},
		{"null", packed("null"), "lacks a chart"},
		{"a bomb", packed(strings.Repeat(" ", maxStored+1)), "larger than 32 MiB"},
		{"a path as a name", packed(releaseText("../../etc", "shop", "{}")), `"../../etc"`},
		{"a path as a namespace", packed(releaseText("a", "../shop", "{}")), `"../shop"`},
		{"a name that is too long", packed(releaseText(strings.Repeat("a", 54), "shop", "{}")), "does not allow"},
		{"values that are a list", packed(releaseText("a", "shop", "[1]")), "no mapping"},
		{"a number that nobody keeps", packed(releaseText("a", "shop", `{"a":{"b":[1,123456789012345678901]}}`)), "a.b[1]"},
		{"a number too small", packed(releaseText("a", "shop", `{"a":1e-999999999}`)), "value a,"},
		{"a number too large", packed(releaseText("a", "shop", `{"a":1e999999999}`)), "value a,"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Decode(test.data); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := Decode([]byte(base64.StdEncoding.EncodeToString([]byte(releaseText("a", "shop", "null"))))); err != nil {
		t.Errorf("a release of Helm's first days: %v", err)
	}
}

func TestUnfit(t *testing.T) {
	for status, want := range map[common.Status]string{
		common.StatusDeployed: "", common.StatusFailed: "has failed", common.StatusUninstalling: "being uninstalled",
		common.StatusPendingInstall: "pending-install", common.StatusPendingUpgrade: "pending-upgrade", common.StatusPendingRollback: "pending-rollback",
		common.StatusUnknown: `"unknown"`, common.StatusSuperseded: `"superseded"`,
	} {
		r, err := Decode(storedByHelm(t, helmRelease(func(r *helmrelease.Release) { r.Info.Status = status })).Data["release"])
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Unfit(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", status, got)
		}
	}
	for manifest, want := range map[string]string{
		"metadata:\n  labels:\n    helm.toolkit.fluxcd.io/name: web\n":         "Flux",
		"metadata:\n  annotations:\n    argocd.argoproj.io/tracking-id: web\n": "Argo CD",
		"data:\n  text: see helm.toolkit.fluxcd.io/name: or so\n":              "",
	} {
		r, err := Decode(storedByHelm(t, helmRelease(func(r *helmrelease.Release) { r.Manifest = manifest })).Data["release"])
		if err != nil || r.Manager != want {
			t.Errorf("%s: %q, %v", manifest, r.Manager, err)
		}
	}
}

func TestDelicateNumbers(t *testing.T) {
	r, err := Decode(storedByHelm(t, helmRelease(func(r *helmrelease.Release) {
		r.Config = map[string]any{"a": int64(1000000), "b": []any{map[string]any{"c": int64(-1234567)}}, "d": int64(999999), "e": int64(7654321), "f": "2000000"}
		r.Manifest = "a: 1000000\nc: -1234567\nd: 999999\ne: 7.654321e+06\nf: 2000000\n"
	})).Data["release"])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b[0].c"}, r.Delicate); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNewest(t *testing.T) {
	stored := func(namespace, release string, revision int) Stored {
		return Stored{Namespace: namespace, Secret: fmt.Sprint(release, revision), Release: release, Revision: revision}
	}
	got := Newest([]Stored{stored("b", "web", 1), stored("a", "web", 9), stored("a", "web", 10), stored("a", "db", 2), stored("a", "web", 2)})
	want := []Stored{stored("a", "db", 2), stored("a", "web", 10), stored("b", "web", 1)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, labels := range []map[string]string{{}, {"name": "a"}, {"name": "a", "version": "x"}, {"name": "a", "version": "0"}, {"version": "1"}} {
		if _, err := StoredOf("a", "b", labels); err == nil || !strings.Contains(err.Error(), "no labels that name a release and its revision") {
			t.Errorf("%v is taken: %v", labels, err)
		}
	}
}

// Every number that is taken is, in YAML, the one that Helm has stored.
func TestNumbersSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var number json.Number
		if rapid.Bool().Draw(t, "integer") {
			number = json.Number(fmt.Sprint(rapid.Int64().Draw(t, "n")))
		} else {
			data, err := json.Marshal(rapid.Float64Range(-1e300, 1e300).Draw(t, "n"))
			if err != nil {
				t.Fatal(err)
			}
			number = json.Number(data)
		}
		r, err := Decode(packed(releaseText("a", "shop", `{"n":`+number.String()+`}`)))
		if err != nil {
			t.Fatalf("%s: %v", number, err)
		}
		text, err := Text("", HelmRelease(r, nil))
		if err != nil {
			t.Fatal(err)
		}
		back := parse(t, string(text))
		want, _ := json.Marshal(r.Values)
		got, _ := json.Marshal(back.Object["spec"].(map[string]any)["values"])
		if !bytes.Equal(want, got) {
			t.Fatalf("%s became %s", want, got)
		}
		var exact map[string]json.Number
		if err := json.Unmarshal(got, &exact); err != nil {
			t.Fatal(err)
		}
		if value, err := number.Float64(); err == nil {
			if again, _ := exact["n"].Float64(); again != value {
				t.Fatalf("%s became %s", number, exact["n"])
			}
		}
		if value, err := number.Int64(); err == nil && exact["n"].String() != fmt.Sprint(value) {
			t.Fatalf("%s became %s", number, exact["n"])
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(packed(releaseText("a", "shop", `{"a":1}`)))
	f.Add([]byte("e30="))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err == nil && strings.ContainsAny(r.Name+r.Namespace, "/\\") {
			t.Errorf("%q/%q", r.Namespace, r.Name)
		}
	})
}
