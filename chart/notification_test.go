// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/strata-project/strata/test/reads"
)

// The chart and the kustomize component offer the same patch.
const (
	patchOfChart  = "files/notification/alert-kinds.yaml"
	patchOfConfig = "../config/notification/alert-kinds.yaml"
)

func TestAlertsOfFluxAcceptOurKinds(t *testing.T) {
	crd := alertCRD(t)
	want, got := decode(t, "the CRD", crd)[0], patched(t, crd)
	enum := kindsOfAlert(t, want)
	if slices.ContainsFunc(enum, isOurs) {
		t.Fatalf("the CRD of Flux accepts %s without the patch", enum)
	}
	setKindsOfAlert(want, append(enum, apiextensionsv1.JSON{Raw: []byte(`"AddonsLayer"`)}, apiextensionsv1.JSON{Raw: []byte(`"RemoteCluster"`)}, apiextensionsv1.JSON{Raw: []byte(`"Platform"`)}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the patched CRD (-want +got):\n%s", diff)
	}
}

func TestPatchOfAlertsFailsWhereItDoesNotFit(t *testing.T) {
	crd := alertCRD(t)
	unlisted := decode(t, "the CRD", crd)[0]
	setKindsOfAlert(unlisted, nil)
	text, err := json.Marshal(unlisted)
	if err != nil {
		t.Fatal(err)
	}
	for reason, c := range map[string]struct{ crd, want string }{
		"another version comes first": {strings.Replace(crd, "name: v1beta3", "name: v1", 1), "testing value /spec/versions/0/name failed"},
		"kinds are not listed":        {string(text), "items/properties/kind/enum/-"},
	} {
		t.Run(reason, func(t *testing.T) {
			if other, err := patch(t, c.crd); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the patch of a CRD that it is not meant for: %v, want %q\n%s", err, c.want, other)
			}
		})
	}
}

func TestChartOffersThePatchOfConfig(t *testing.T) {
	want, err := os.ReadFile(patchOfConfig)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(patchOfChart)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("patch (-config +chart):\n%s", diff)
	}
	files, err := renderChart(t, `{notifications: {address: "http://events/"}}`)
	if err != nil {
		t.Fatal(err)
	}
	if notes := files["strata/templates/NOTES.txt"]; !strings.Contains(notes, patchOfChart) {
		t.Errorf("the notes do not name %s:\n%s", patchOfChart, notes)
	}
}

// alertCRD returns the CRD of the notification-controller that is tested with.
func alertCRD(t *testing.T) string {
	t.Helper()
	reads.Add("../hack/controlplane/notification-controller")
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/fluxcd/notification-controller")
	download.Dir = "../hack/controlplane/notification-controller"
	output, err := download.Output()
	if err != nil {
		t.Fatalf("cannot download notification-controller: %v\n%s", err, output)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output, &module); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "config", "crd", "bases", "notification.toolkit.fluxcd.io_alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func patched(t *testing.T, crd string) object {
	t.Helper()
	text, err := patch(t, crd)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, "the patched CRD", text)[0]
}

// patch builds a kustomization of a CRD and the component, as whoever installs
// Flux does.
func patch(t *testing.T, crd string) (string, error) {
	t.Helper()
	files := filesys.MakeFsInMemory()
	for name, text := range map[string]string{
		"/flux/crd.yaml":           crd,
		"/flux/kustomization.yaml": "resources: [crd.yaml]\ncomponents: [../notification]\n",
	} {
		if err := files.WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"kustomization.yaml", "alert-kinds.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "config", "notification", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := files.WriteFile("/notification/"+name, text); err != nil {
			t.Fatal(err)
		}
	}
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/flux")
	if err != nil {
		return "", err
	}
	text, err := result.AsYaml()
	return string(text), err
}

func kindsOfAlert(t *testing.T, crd object) []apiextensionsv1.JSON {
	t.Helper()
	enum := crd.(*apiextensionsv1.CustomResourceDefinition).Spec.Versions[0].Schema.OpenAPIV3Schema.
		Properties["spec"].Properties["eventSources"].Items.Schema.Properties["kind"].Enum
	if len(enum) == 0 {
		t.Fatal("the CRD of Flux lists no kinds")
	}
	return slices.Clone(enum)
}

func setKindsOfAlert(crd object, kinds []apiextensionsv1.JSON) {
	properties := crd.(*apiextensionsv1.CustomResourceDefinition).Spec.Versions[0].Schema.OpenAPIV3Schema.
		Properties["spec"].Properties["eventSources"].Items.Schema.Properties
	kind := properties["kind"]
	kind.Enum = kinds
	properties["kind"] = kind
}

func isOurs(kind apiextensionsv1.JSON) bool {
	return slices.Contains([]string{`"AddonsLayer"`, `"RemoteCluster"`, `"Platform"`}, string(kind.Raw))
}
