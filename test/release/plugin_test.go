// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// krew installs the plug-in, which installs a version from the registry, by its tag and by its digest, together
// with Flux where that lacks, and says what it would do. It uninstalls the controller, and
// then all of Strata, and what a layer has made stays.
func TestThePluginInstallsAReleaseAndTakesItAway(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	ctx := t.Context()
	plane, err := controlplane.Start(ctx, controlplane.Options{With: []controlplane.Component{controlplane.ControllerManager}})
	must(t, err)
	t.Cleanup(func() { must(t, plane.Stop()) })
	there, err := client.New(plane.Config(), client.Options{Scheme: stack.client.Scheme()})
	must(t, err)
	_, digest, _ := strings.Cut(stack.made.Chart, "@")
	p := plugin{t, byKrew(t), plane.Kubeconfig()}

	p.expect(2, "the cluster does not serve gitrepositories", "install", "--version", number)
	p.expect(1, "has no 98.0.0", "install", "--version", "98.0.0")
	p.expect(1, "the CRD gitrepositories.source.toolkit.fluxcd.io is not in it", "install", "--version", number, "--flux", fluxWithout(t, "gitrepositories"))
	p.expect(1, "is no https address", "install", "--version", number, "--flux", "http://flux.example.invalid/install.yaml")
	if crds := definitions(t, there); len(crds) > 0 {
		t.Fatalf("something was written: %v", crds)
	}
	said := p.expect(0, "Strata "+number+" is installed in the namespace strata-system", "install", "--version", digest, "--flux", fluxWithout(t, "nothing"))
	for _, words := range []string{
		"chart oci://" + stack.made.Chart + " is of version " + number, "bring Flux from", "install Strata " + number + ": ", "9 CustomResourceDefinition", "image " + stack.made.Image,
	} {
		if !strings.Contains(said, words) {
			t.Errorf("it does not say %q: %s", words, said)
		}
	}
	deployment := &appsv1.Deployment{}
	must(t, there.Get(ctx, client.ObjectKey{Namespace: strata.Namespace, Name: "strata"}, deployment))
	if got := deployment.Spec.Template.Spec.Containers[0].Image; got != stack.made.Image {
		t.Errorf("the image is %s, want %s", got, stack.made.Image)
	}
	p.expect(0, "nothing has changed: Strata "+number, "install", "--version", "v"+number)
	// The plug-in of the release holds the very chart.
	p.expect(0, "nothing has changed: Strata "+number, "install")

	// A layer with a release, as the controller leaves them.
	layer := &v1alpha1.AddonsLayer{}
	layer.Name, layer.Finalizers = "base", []string{v1alpha1.Finalizer}
	layer.Spec = v1alpha1.AddonsLayerSpec{Version: "1.0.0", Source: v1alpha1.SourceSpec{Name: "addons", Namespace: strata.Namespace, Path: "./base"}}
	must(t, there.Create(ctx, layer))
	release := &helmv2.HelmRelease{}
	release.Namespace, release.Name = strata.Namespace, "gateway"
	release.Labels = map[string]string{"kraan.io/layer": "base"}
	release.Spec.ChartRef = &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "gateway"}
	must(t, there.Create(ctx, release))

	// Where Helm would delete the CRDs while a controller ends, or another one goes on, it
	// would uninstall what runs.
	p.expect(0, "is changed in the namespace", "install", "--set", "crds.keep=false")
	for _, args := range [][]string{{"uninstall", "--yes"}, {"uninstall", "--crds", "--yes"}} {
		p.expect(1, "nothing was done, for crds.keep is false", args...)
	}
	p.expect(0, "is changed in the namespace", "install", "--set", "crds.keep=true")
	other := deployment.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "strata", Labels: deployment.Labels}
	must(t, there.Create(ctx, other))
	p.expect(1, "nothing was done, for a controller of Strata runs as Deployment default/strata", "uninstall", "--crds", "--yes")
	must(t, there.Delete(ctx, other))
	must(t, there.Get(ctx, client.ObjectKeyFromObject(deployment), deployment))

	p.expect(1, "give --yes", "uninstall")
	p.expect(0, "What there is of Strata stays: 1 AddonsLayer", "uninstall", "--dry-run")
	p.expect(0, "Strata "+number+" is uninstalled", "uninstall", "--yes")
	if err := there.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment is there: %v", err)
	}
	must(t, there.Get(ctx, client.ObjectKeyFromObject(layer), layer))
	p.expect(0, "nothing was done: Strata is not installed", "uninstall", "--yes")

	// What is being deleted would wait for ever.
	must(t, there.Delete(ctx, layer))
	p.expect(2, "these are being deleted, which would never end without the controller: AddonsLayer base", "uninstall", "--crds", "--yes")
	must(t, there.Get(ctx, client.ObjectKeyFromObject(layer), layer))
	layer.Finalizers = nil
	must(t, there.Update(ctx, layer))
	layer.ResourceVersion, layer.Finalizers, layer.UID = "", []string{v1alpha1.Finalizer}, ""
	must(t, there.Create(ctx, layer))
	p.expect(0, "9 CRDs are deleted, and 1 objects with them", "uninstall", "--crds", "--yes")
	if crds := definitions(t, there); len(crds) > 0 {
		t.Errorf("these CRDs are left: %v", crds)
	}
	must(t, there.Get(ctx, client.ObjectKeyFromObject(release), release))
	if release.DeletionTimestamp != nil {
		t.Error("the release is being deleted")
	}
}

// byKrew has krew install the plug-in of the release by its manifest, and returns the
// path of the program. What krew would download is beside the manifest.
func byKrew(t *testing.T) string {
	t.Helper()
	dist, root := filepath.Join(stack.dir, "dist"), t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(stack.tools, "krew"), "install", "--manifest", filepath.Join(dist, "strata.yaml"),
		"--archive", filepath.Join(dist, "kubectl-strata_"+number+"_linux_"+runtime.GOARCH+".tar.gz"))
	cmd.Env = append(os.Environ(), "KREW_ROOT="+root)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("krew: %v\n%s", err, output)
	}
	path := filepath.Join(root, "bin", "kubectl-strata")
	output, err := exec.CommandContext(t.Context(), path, "version", "--client").CombinedOutput()
	if err != nil || !strings.Contains(string(output), "v"+number) {
		t.Fatalf("the plug-in says %s: %v", output, err)
	}
	return path
}

// definitions returns the names of Strata's CRDs in a cluster.
func definitions(t *testing.T, c client.Client) []string {
	t.Helper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	must(t, c.List(t.Context(), list))
	var names []string
	for _, crd := range list.Items {
		if crd.Spec.Group == v1alpha1.GroupVersion.Group {
			names = append(names, crd.Name)
		}
	}
	return names
}

// fluxWithout returns a file of Flux's CRDs, with a namespace, but for one of them.
func fluxWithout(t *testing.T, plural string) string {
	t.Helper()
	folder, err := controlplane.FluxCRDs()
	must(t, err)
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	must(t, err)
	text := "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n"
	for _, file := range files {
		if strings.Contains(file, plural) {
			continue
		}
		data, err := os.ReadFile(file)
		must(t, err)
		text += "---\n" + string(data)
	}
	path := filepath.Join(t.TempDir(), "flux.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// plugin is kubectl strata at work on a cluster.
type plugin struct {
	*testing.T
	path, kubeconfig string
}

// expect runs a command, which ends with a code and says something. It returns all that
// it says.
func (p plugin) expect(code int, words string, args ...string) string {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), p.path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	output, err := cmd.CombinedOutput()
	ended := &exec.ExitError{}
	if err != nil && !errors.As(err, &ended) {
		p.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(output), words) {
		p.Errorf("%s ends with %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, words, output)
	}
	return string(output)
}
