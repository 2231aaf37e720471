// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// A layer of each kind of source waits while there is none, is deployed when it
// comes, follows it, keeps what it has when it goes, and takes it up again. The
// layers look at nothing by themselves for an hour: watches do all of it.
func TestKindsOfSources(t *testing.T) {
	t.Parallel()
	for _, kind := range sortedKinds() {
		t.Run(kind, func(t *testing.T) {
			f := newFixture(t)
			source := kindsOfSources[kind](f, "platform")
			f.layer("apps", source.from)
			f.reason("apps", v1alpha1.ReasonSourceNotFound, fmt.Sprintf("waits for %s %s/platform, which does not exist", kind, f.prefix))
			f.state("apps", v1alpha1.StatePending)

			source.store(map[string]string{"addons/apps/release.yaml": f.configMapRelease("apps", "first"), "README.md": "beside it"})
			source.create()
			first := source.revision()
			f.deployed("apps", first)

			content := map[string]string{"addons/apps/release.yaml": f.configMapRelease("apps", "second")}
			second := source.publish(content)
			if second == first {
				t.Fatalf("the revision is still %s", first)
			}
			f.within(promptly, "the layer begins with the new revision", func() error {
				if values := string(f.release("apps").Spec.Values.Raw); !strings.Contains(values, "second") {
					return fmt.Errorf("the values are %s", values)
				}
				return nil
			})
			f.deployed("apps", second)
			before := f.footprints()

			source.delete()
			f.reason("apps", v1alpha1.ReasonSourceNotFound, "waits for "+kind)
			f.untouched(before)
			source.create()
			f.deployed("apps", source.revision())
			f.untouched(before)

			// Nothing of what is gone from the source stays.
			source.store(map[string]string{"addons/apps/other.yaml": f.configMapRelease("other", "x")})
			f.deployed("apps", source.fetched())
			f.eventually("the release that left is gone", func() error {
				if !f.absent(&helmv2.HelmRelease{}, "apps") {
					return fmt.Errorf("it is there")
				}
				return nil
			})
		})
	}
}

// A layer of an OCIRepository waits until the one that it depends on has
// deployed what the same revision holds for it, and not for a revision that
// leaves that one alone.
func TestDependencyInOneOCIRepository(t *testing.T) {
	f := newFixture(t)
	source := f.ociOrigin("platform")
	files := map[string]string{
		"addons/base/release.yaml": f.configMapRelease("base", "first"), "addons/apps/release.yaml": f.configMapRelease("apps", "first"),
	}
	source.store(files)
	source.create()
	f.layer("base", source.from)
	f.layer("apps", source.from, f.dependsOn("base@1.0.0"))
	first := source.revision()
	f.deployed("base", first)
	f.deployed("apps", first)
	w := f.witness()

	files["addons/base/release.yaml"], files["addons/apps/release.yaml"] = f.configMapRelease("base", "second"), f.configMapRelease("apps", "second")
	second := source.publish(files)
	f.deployed("apps", second)
	w.after(w.holds("apps", "second"), w.firstDeployed("base", "1.0.0", second), "apps follows base")

	files["addons/apps/release.yaml"] = f.configMapRelease("apps", "third")
	third := source.publish(files)
	f.deployed("apps", third)
	f.deployed("base", third)
	for _, status := range w.statuses("apps") {
		if ready := meta.FindStatusCondition(status.Conditions, "Ready"); ready != nil && strings.Contains(ready.Message, third+" changes") {
			t.Errorf("apps has waited for a base that the revision leaves alone: %s", ready.Message)
		}
	}
}

// Two sources of one name and of different kinds have nothing to do with each
// other: neither waits for what the other one holds.
func TestSourcesOfOneNameAreDifferent(t *testing.T) {
	f := newFixture(t)
	git, oci := f.gitOrigin("platform"), f.ociOrigin("platform")
	git.store(map[string]string{"addons/base/release.yaml": f.configMapRelease("base", "git")})
	oci.store(map[string]string{
		"addons/base/release.yaml": f.configMapRelease("base", "oci"), "addons/apps/release.yaml": f.configMapRelease("apps", "oci"),
	})
	git.create()
	oci.create()
	f.layer("base", git.from)
	f.layer("apps", oci.from, f.dependsOn("base@1.0.0"))
	f.deployed("base", git.revision())
	f.deployed("apps", oci.revision())
	if value := f.configMap("base")["value"]; value != "git" {
		t.Errorf("base is that of %s", value)
	}
	oci.delete()
	f.reason("apps", v1alpha1.ReasonSourceNotFound, "waits for OCIRepository")
	f.deployed("base", git.revision())
}

// externalApps deploys the layer apps from an ExternalArtifact.
func (f *fixture) externalApps() (*origin, map[string]footprint) {
	f.Helper()
	source := f.externalOrigin("platform")
	source.store(map[string]string{"addons/apps/release.yaml": f.configMapRelease("apps", "first")})
	source.create()
	f.layer("apps", source.from)
	f.deployed("apps", source.revision())
	return source, f.footprints()
}

// What is not what an ExternalArtifact says it is is refused, also where it
// comes from a controller inside the cluster.
func TestExternalArtifactThatIsNotWhatItSays(t *testing.T) {
	f := newFixture(t)
	source, before := f.externalApps()

	external := &sourcev1.ExternalArtifact{}
	f.must(stack.client.Get(f.ctx, client.ObjectKey{Namespace: f.prefix, Name: "platform"}, external))
	source.store(map[string]string{"addons/apps/release.yaml": f.configMapRelease("apps", "forged")})
	forged := external.Status.Artifact.DeepCopy()
	forged.Revision, forged.Size, forged.Digest = "rev-forged", nil, digestOf([]byte("something else"))
	f.putArtifact("platform", forged)
	f.stalled("apps", v1alpha1.ReasonArtifactRefused, "its digest is not sha256:")
	f.untouched(before)

	f.deployed("apps", source.publish(map[string]string{"addons/apps/release.yaml": f.configMapRelease("apps", "second")}))
}

// Whoever may write a source's status cannot have the controller ask another server
// than those that artifacts are fetched from, not even for what has the right digest.
func TestArtifactAtAnotherHostIsNotAskedFor(t *testing.T) {
	f := newFixture(t)
	source, before := f.externalApps()

	var listen net.ListenConfig
	listener, err := listen.Listen(f.ctx, "tcp", "127.0.0.2:0")
	f.must(err)
	archive, err := controlplane.Archive(map[string]string{"addons/apps/release.yaml": f.configMapRelease("apps", "forged")})
	f.must(err)
	var asked atomic.Int32
	server := &httptest.Server{Listener: listener, Config: &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write(archive)
	})}}
	server.Start()
	f.Cleanup(server.Close)

	external := &sourcev1.ExternalArtifact{}
	f.must(stack.client.Get(f.ctx, client.ObjectKey{Namespace: f.prefix, Name: "platform"}, external))
	forged := external.Status.Artifact.DeepCopy()
	forged.URL, forged.Revision, forged.Size, forged.Digest = server.URL+"/a.tar.gz", "rev-forged", nil, digestOf(archive)
	f.putArtifact("platform", forged)
	f.stalled("apps", v1alpha1.ReasonArtifactRefused, listener.Addr().String(), "--artifact-hosts")
	f.untouched(before)
	if n := asked.Load(); n != 0 {
		t.Errorf("the other host was asked %d times", n)
	}
	f.deployed("apps", source.publish(map[string]string{"addons/apps/release.yaml": f.configMapRelease("apps", "second")}))
}

// What has no artifact yet is waited for.
func TestExternalArtifactWithoutArtifactIsWaitedFor(t *testing.T) {
	f := newFixture(t)
	source := f.externalOrigin("platform")
	f.must(stack.client.Create(f.ctx, &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "platform"}}))
	f.layer("apps", source.from)
	f.reason("apps", v1alpha1.ReasonSourceNotReady, "waits for ExternalArtifact "+f.prefix+"/platform, which has no artifact yet")
	f.deployed("apps", source.publish(map[string]string{"addons/apps/release.yaml": f.configMapRelease("apps", "first")}))
}

func TestAPIRefusesOtherKindsOfSources(t *testing.T) {
	f := newFixture(t)
	for _, kind := range []string{"HelmRepository", "HelmChart", "gitrepository", "ocirepositories.source.toolkit.fluxcd.io"} {
		err := stack.client.Create(f.ctx, &v1alpha1.AddonsLayer{
			ObjectMeta: metav1.ObjectMeta{Name: f.name("apps")},
			Spec:       v1alpha1.AddonsLayerSpec{Version: "1.0.0", Source: v1alpha1.SourceSpec{Kind: kind, Name: "addons", Path: "./apps"}},
		})
		if err == nil || !strings.Contains(err.Error(), "source.kind must be GitRepository, OCIRepository, Bucket, ExternalArtifact or ApplicationBundle") {
			t.Errorf("kind %s: %v", kind, err)
		}
	}
}

// source-controller counts the generation of a suspended source as seen without
// fetching anything. A layer that moves to a new version together with the
// source's reference waits until the source is resumed; until then everything
// stays as it is, also what only the suspension has changed.
func TestSuspendedSourceWhoseReferenceChanges(t *testing.T) {
	f := newFixture(t)
	first := f.push(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "first")})
	f.layer("apps")
	f.deployed("apps", first)
	before := f.footprints()
	commit := f.commit(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "second")})
	f.must(f.repo.Tag("v2"))
	w := f.witness()

	source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "addons"}}
	f.patch(source, `{"spec":{"suspend":true}}`)
	f.eventually("the layer says that its source is suspended", func() error {
		return sourceReady(f.get("apps"), metav1.ConditionFalse)
	})
	f.deployed("apps", first)
	f.patch(source, `{"spec":{"ref":{"branch":null,"tag":"v2"}}}`)
	f.edit("apps", `{"spec":{"version":"2.0.0"}}`)
	f.reason("apps", v1alpha1.ReasonSourceNotReady, "which is suspended, was fetched at generation 1 and is at generation 3")
	f.untouched(before)

	f.patch(source, `{"spec":{"suspend":false}}`)
	second := "v2@sha1:" + commit
	f.deployed("apps", second)
	f.must(sourceReady(f.get("apps"), ""))
	for _, status := range w.statuses("apps") {
		if (status.Version == "2.0.0") != (status.Revision == second) {
			t.Errorf("version %s of revision %s is reported", status.Version, status.Revision)
		}
	}
}

// Every manifest of the page about sources is one that the API server takes.
func TestManifestsOfTheSourcesPage(t *testing.T) {
	f := newFixture(t)
	kinds := map[string]int{}
	for _, manifest := range f.page("sources.md") {
		obj := f.manifest(strings.ReplaceAll(manifest, "flux-system", f.prefix))
		kinds[obj.GetKind()]++
		if err := stack.client.Create(f.ctx, obj, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%v in\n%s", err, manifest)
		}
	}
	if kinds["AddonsLayer"] != 3 || kinds["OCIRepository"] != 1 || kinds["Bucket"] != 1 || kinds["GitRepository"] != 1 {
		t.Errorf("the page has %v", kinds)
	}
}

// page returns the manifests of a page of the documentation.
func (f *fixture) page(name string) []string {
	f.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	f.must(err)
	var manifests []string
	var block strings.Builder
	for line := range strings.Lines(string(page) + "\nend\n") {
		if text, indented := strings.CutPrefix(line, "    "); indented {
			block.WriteString(text)
			continue
		}
		if text := block.String(); strings.HasPrefix(text, "apiVersion:") {
			manifests = append(manifests, strings.Split(text, "---\n")...)
		}
		block.Reset()
	}
	return manifests
}
