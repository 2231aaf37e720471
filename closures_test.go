// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/test/reads"
)

const module = "github.com/strata-project/strata/"

// closureOf returns all packages that some packages need, in turn, with what each imports.
// Those of the standard library are left out.
func closureOf(t *testing.T, packages ...string) map[string][]string {
	t.Helper()
	reads.AddPrograms(".", packages...)
	tags, err := os.ReadFile("hack/release/tags")
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"list", "-tags", strings.TrimSpace(string(tags)), "-deps", "-f", `{{if not .Standard}}{{.ImportPath}} {{join .Imports " "}}{{end}}`}, packages...)
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatalf("cannot list what %v need: %v", packages, err)
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if names := strings.Fields(line); len(names) > 0 {
			found[names[0]] = names[1:]
		}
	}
	return found
}

// isBelow tells whether a package is one of some, or below one.
func isBelow(name string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return name == parent || strings.HasPrefix(name, parent+"/") })
}

// A program links what it does, and nothing of what others do. The controller has nothing of hosts,
// of the plug-in's answers and of its page. The controller of hosts, which has the SSH keys, neither
// builds directories nor decrypts them, and cannot look for credentials on its own machine. The
// plug-in reconciles nothing. What operators are made with brings no tool of kustomize's along.
func TestProgramsLinkWhatTheyNeed(t *testing.T) {
	sdks := []string{"github.com/aws", "github.com/Azure", "cloud.google.com/go", "github.com/hashicorp/vault"}
	// What talks to service meshes comes with one import of a client for Google's storage.
	mesh := []string{"google.golang.org/grpc/xds", "google.golang.org/grpc/internal/xds/xdsclient", "github.com/envoyproxy", "github.com/cncf/xds", "github.com/spiffe"}
	hosts := []string{
		module + "internal/hosts", module + "internal/hostkeeper", module + "internal/provision", module + "internal/observe", module + "internal/snapshots",
		module + "internal/ssh", "go.etcd.io", "golang.org/x/net/trace",
	}
	reconciles := []string{
		module + "controllers", module + "internal/apply", module + "internal/informers", module + "internal/keeping", module + "internal/claimkeeper",
		module + "internal/hostkeeper", module + "internal/looks", module + "internal/memory", module + "internal/signals", module + "internal/signed",
		module + "pkg/primary",
		"sigs.k8s.io/controller-runtime/pkg/manager", "sigs.k8s.io/controller-runtime/pkg/controller", "sigs.k8s.io/controller-runtime/pkg/cache",
	}
	tests := []string{module + "test", module + "hack", "github.com/chromedp", "github.com/johannesboyne", "pgregory.net/rapid"}
	for _, tc := range []struct {
		program string
		without []string
	}{
		// Of Helm the controller has how it reads parameters, which brings no other package of it.
		{"", slices.Concat(mesh, hosts, tests, []string{
			module + "internal/answers", module + "internal/web", module + "cmd", module + "chart", "github.com/go-git",
			"helm.sh/helm/v4/pkg/action", "helm.sh/helm/v4/pkg/engine", "helm.sh/helm/v4/pkg/chart", "helm.sh/helm/v4/pkg/kube",
		})},
		{"cmd/kubectl-strata", slices.Concat(mesh, reconciles, tests)},
		// Snapshots go to buckets with Amazon's SDK, and hosts are drained as kubectl drains them.
		{"cmd/strata-hosts", slices.Concat(mesh, tests, []string{
			module + "internal/layers", module + "internal/repos", module + "internal/builds", module + "internal/sops", module + "internal/kustomize",
			module + "internal/answers", module + "internal/signals", module + "internal/informers", module + "controllers", "github.com/getsops", "helm.sh",
			module + "internal/images", module + "internal/providers", "github.com/go-git",
			"github.com/aws/aws-sdk-go-v2/config", "github.com/aws/aws-sdk-go-v2/feature/ec2/imds", "github.com/aws/aws-sdk-go-v2/service/sts",
		})},
		{"pkg/primary", append([]string{
			module + "internal/repos", module + "internal/builds", module + "internal/sops", module + "internal/kustomize", module + "internal/answers", module + "controllers",
			"github.com/getsops", "sigs.k8s.io/kustomize", "k8s.io/cli-runtime", "helm.sh",
		}, sdks...)},
		{"pkg/plugin", append([]string{module + "internal/layers", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, sdks...)},
	} {
		closure := closureOf(t, "./"+tc.program)
		if _, is := closure[strings.TrimSuffix(module+tc.program, "/")]; !is {
			t.Fatalf("%s is not in its own closure", cmp.Or(tc.program, "the controller"))
		}
		for name := range closure {
			if isBelow(name, tc.without) {
				t.Errorf("%s links %s", cmp.Or(tc.program, "the controller"), name)
			}
		}
	}
}

// A pure room opens no connection and starts no program, and neither does any package that it needs in
// turn. The linter sees only the first. The few packages that could, and do not, are named.
func TestPureRoomsNeedNothingThatReachesOut(t *testing.T) {
	text, err := os.ReadFile(".golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct{ Files []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	var rooms []string
	for _, glob := range config.Linters.Settings.Depguard.Rules["pure"].Files {
		if room, is := strings.CutPrefix(glob, "**/"); is {
			rooms = append(rooms, "./"+path.Dir(room))
		}
	}
	if len(rooms) < 20 {
		t.Fatalf("no more than %d pure rooms were found", len(rooms))
	}
	// Types that name statuses of HTTP, checks of names, and what the API server validates
	// schemas and expressions with.
	mayHTTP := []string{
		"k8s.io/apimachinery", "golang.org/x/net", "k8s.io/apiserver/pkg/authorization/authorizer", "k8s.io/component-base/metrics",
		"github.com/prometheus", "github.com/go-openapi/swag", "github.com/google/gnostic-models",
	}
	mayExec := []string{"github.com/google/gnostic-models"}
	without := []string{
		"github.com/aws", "github.com/Azure", "cloud.google.com/go", "github.com/hashicorp/vault", "github.com/getsops", "sigs.k8s.io/kustomize",
		"k8s.io/client-go/rest", "k8s.io/cli-runtime", "google.golang.org/grpc/internal/transport",
	}
	for name, imports := range closureOf(t, rooms...) {
		switch {
		case isBelow(name, without):
			t.Errorf("a pure room needs %s", name)
		case slices.Contains(imports, "net/http") && !isBelow(name, mayHTTP):
			t.Errorf("a pure room needs %s, which imports net/http", name)
		case slices.Contains(imports, "os/exec") && !isBelow(name, mayExec):
			t.Errorf("a pure room needs %s, which starts programs", name)
		}
	}
}
