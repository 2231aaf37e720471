// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// Flux installs the chart of the release from the registry, by its digest, when the
// signature is that of the key; the image that the chart names is fetched and unpacked,
// and its program deploys a layer: as the user of the image, on files that cannot be
// written, with the arguments, the variables and the account of the chart. The controller of
// hosts has an image of its own, which holds that program alone.
func TestReleaseIsInstalledByFlux(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	ctx := t.Context()
	must(t, stack.plane.CreateNamespace(ctx, strata.Namespace))
	key, err := os.ReadFile(stack.key + ".pub")
	must(t, err)
	must(t, stack.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: strata.Namespace, Name: "release-key"}, Data: map[string][]byte{"cosign.pub": key},
	}))
	address, digest, _ := strings.Cut(stack.made.Chart, "@")
	must(t, stack.client.Create(ctx, &sourcev1.OCIRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: strata.Namespace, Name: "strata"},
		Spec: sourcev1.OCIRepositorySpec{
			URL: "oci://" + address, Insecure: true, Interval: metav1.Duration{Duration: time.Hour}, Reference: &sourcev1.OCIRepositoryRef{Digest: digest},
			LayerSelector: &sourcev1.OCILayerSelector{MediaType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", Operation: sourcev1.OCILayerCopy},
			Verify:        &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "release-key"}},
		},
	}))
	metrics, health := freePort(t), freePort(t)
	values := fmt.Sprintf(`{"artifacts": {"hosts": ["127.0.0.1"]}, "extraArgs": ["--metrics-addr=%s", "--health-addr=%s"], "hosts": {"enabled": true, "namespaces": [%q]}}`,
		metrics, health, strata.Namespace)
	must(t, stack.client.Create(ctx, &helmv2.HelmRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: strata.Namespace, Name: "strata"},
		Spec: helmv2.HelmReleaseSpec{
			Interval: metav1.Duration{Duration: time.Hour}, ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: "strata"},
			Values: &apiextensionsv1.JSON{Raw: []byte(values)},
		},
	}))
	source := &sourcev1.OCIRepository{}
	eventually(t, "Flux has verified the chart", func(ctx context.Context) error {
		return has(ctx, "strata", source, func() []metav1.Condition { return source.Status.Conditions }, sourcev1.SourceVerifiedCondition)
	})
	release := &helmv2.HelmRelease{}
	uninstalled(t)
	eventually(t, "Flux has installed the chart", func(ctx context.Context) error {
		return has(ctx, "strata", release, func() []metav1.Condition { return release.Status.Conditions }, meta.ReadyCondition)
	})
	deployment := &appsv1.Deployment{}
	must(t, stack.client.Get(ctx, client.ObjectKey{Namespace: strata.Namespace, Name: "strata"}, deployment))
	container := deployment.Spec.Template.Spec.Containers[0]
	if container.Image != stack.made.Image {
		t.Fatalf("the image is %s, want %s", container.Image, stack.made.Image)
	}
	hosts := &appsv1.Deployment{}
	must(t, stack.client.Get(ctx, client.ObjectKey{Namespace: strata.Namespace, Name: "strata-hosts"}, hosts))
	if got := hosts.Spec.Template.Spec.Containers[0].Image; got != stack.made.HostsImage {
		t.Fatalf("the image of the controller of hosts is %s, want %s", got, stack.made.HostsImage)
	}
	holdsOneProgram(t, stack.made.HostsImage, "strata-hosts")
	holdsOneProgram(t, stack.made.Image, "strata")
	runAsPod(t, deployment, health)
	deploysALayer(t)
}

// holdsOneProgram checks what an image runs, as whom, and that it has no other program.
func holdsOneProgram(t *testing.T, address, program string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	config := unpack(t, address, root)
	if config.User != "65532:65532" || strings.Join(config.Entrypoint, " ") != "/"+program {
		t.Errorf("the image %s runs %v as %s", address, config.Entrypoint, config.User)
	}
	files, err := os.ReadDir(root)
	must(t, err)
	for _, file := range files {
		if !file.IsDir() && file.Name() != program {
			t.Errorf("the image %s holds %s", address, file.Name())
		}
	}
	said, err := command(t.Context(), filepath.Join(root, program), "--version")
	if err != nil || !strings.Contains(said, "v"+number) {
		t.Errorf("the program of %s says %q, %v", address, said, err)
	}
}

// has is an error as long as a condition is not True.
func has(ctx context.Context, named string, object client.Object, conditions func() []metav1.Condition, kind string) error {
	if err := stack.client.Get(ctx, client.ObjectKey{Namespace: strata.Namespace, Name: named}, object); err != nil {
		return err
	}
	if condition := apimeta.FindStatusCondition(conditions(), kind); condition == nil || condition.Status != metav1.ConditionTrue {
		return fmt.Errorf("%w: %+v", errNotYet, conditions())
	}
	return nil
}

func freePort(t *testing.T) string {
	t.Helper()
	number, release, err := controlplane.FreePort()
	must(t, err)
	t.Cleanup(release)
	return controlplane.Loopback(number)
}

// runAsPod runs the image of a Deployment on this machine as a kubelet would.
func runAsPod(t *testing.T, deployment *appsv1.Deployment, health string) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("the image is run with a root and mounts of its own, which takes root on Linux")
	}
	root := filepath.Join(t.TempDir(), "root")
	config := unpack(t, deployment.Spec.Template.Spec.Containers[0].Image, root)
	if config.User != "65532:65532" || strings.Join(config.Entrypoint, " ") != "/strata" {
		t.Fatalf("the image runs %v as %s", config.Entrypoint, config.User)
	}
	container, pod := deployment.Spec.Template.Spec.Containers[0], deployment.Spec.Template.Spec
	if !*container.SecurityContext.ReadOnlyRootFilesystem || !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser != 65532 {
		t.Fatalf("the Deployment is less strict than this test: %+v %+v", container.SecurityContext, pod.SecurityContext)
	}
	// What a kubelet mounts: the volumes of the Pod, and its token.
	token := filepath.Join(root, "var", "run", "secrets", "kubernetes.io", "serviceaccount")
	must(t, os.MkdirAll(token, 0o755))
	identity, err := stack.plane.ServiceAccount(t.Context(), strata.Namespace, pod.ServiceAccountName)
	must(t, err)
	for name, data := range map[string]string{"token": identity.Config.BearerToken, "ca.crt": string(ca(t)), "namespace": strata.Namespace} {
		must(t, os.WriteFile(filepath.Join(token, name), []byte(data), 0o644))
	}
	script := "mount --bind " + root + " " + root + "\nmount -o remount,ro,bind " + root + "\n"
	for _, mount := range container.VolumeMounts {
		// An emptyDir is where everybody may write.
		volume := filepath.Join(t.TempDir(), mount.Name)
		must(t, os.MkdirAll(volume, 0o777))
		must(t, os.Chmod(volume, 0o777))
		must(t, os.MkdirAll(filepath.Join(root, mount.MountPath), 0o755))
		script += "mount --bind " + volume + " " + filepath.Join(root, mount.MountPath) + "\n"
	}
	script += `exec setpriv --no-new-privs chroot --userspec=` + config.User + " " + root + ` "$@"`
	args := []string{"--mount", "sh", "-euc", script, "sh"}
	for _, arg := range append(config.Entrypoint, container.Args...) {
		args = append(args, strings.ReplaceAll(arg, "$(RUNTIME_NAMESPACE)", strata.Namespace))
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(stack.plane.Config().Host, "https://"))
	must(t, err)
	log, err := os.Create(filepath.Join(stack.dir, "image.log"))
	must(t, err)
	cmd := exec.Command("unshare", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, "RUNTIME_NAMESPACE=" + strata.Namespace, "GOMEMLIMIT=1GiB"}
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	t.Cleanup(func() {
		must(t, cmd.Process.Signal(os.Interrupt))
		if err := cmd.Wait(); err != nil {
			text, _ := os.ReadFile(log.Name())
			t.Errorf("the controller ends with %v:\n%s", err, tail(string(text)))
		}
		_ = log.Close()
	})
	eventually(t, "the image runs, see "+log.Name(), func(ctx context.Context) error { return controlplane.Healthy(ctx, "http://"+health+"/readyz") })
}

func tail(text string) string { return text[max(0, len(text)-2000):] }

func ca(t *testing.T) []byte {
	t.Helper()
	config := stack.plane.Config()
	if len(config.CAData) > 0 {
		return config.CAData
	}
	data, err := os.ReadFile(config.CAFile)
	must(t, err)
	return data
}

// imageConfig is what an image says about how it is run.
type imageConfig struct {
	User       string
	Entrypoint []string
}

// unpack fetches an image for this machine, and writes its files into a folder.
func unpack(t *testing.T, address, root string) imageConfig {
	t.Helper()
	reference, err := name.NewDigest(address)
	must(t, err)
	index, err := remote.Index(reference)
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	for _, each := range manifest.Manifests {
		if each.Platform == nil || each.Platform.OS != "linux" || each.Platform.Architecture != runtime.GOARCH {
			continue
		}
		image, err := index.Image(each.Digest)
		must(t, err)
		config, err := image.ConfigFile()
		must(t, err)
		files := mutate.Extract(image)
		must(t, errors.Join(unpackTar(files, root), files.Close()))
		return imageConfig{config.Config.User, config.Config.Entrypoint}
	}
	t.Fatalf("%s is not for linux/%s", address, runtime.GOARCH)
	return imageConfig{}
}

func unpackTar(from io.Reader, root string) error {
	reader := tar.NewReader(from)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(root, filepath.Clean("/"+header.Name))
		if header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, os.FileMode(header.Mode))
		if err != nil {
			return err
		}
		_, err = io.Copy(file, reader)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
}

// deploysALayer has the controller that runs deploy one.
func deploysALayer(t *testing.T) {
	t.Helper()
	p := newPlatform(t, "shown")
	p.commit(map[string]string{"one/release.yaml": p.release("one", "1.0.0", "first")})
	p.layer("one")
	p.deployed("one", "1.0.0")
	p.gone()
}

// uninstalled takes the chart away again at the end, with its CRDs, for the tests that
// follow.
func uninstalled(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.Background()
		release := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: strata.Namespace, Name: "strata"}}
		must(t, client.IgnoreNotFound(stack.client.Delete(ctx, release)))
		must(t, controlplane.WaitFor(ctx, patience, func(ctx context.Context) error {
			err := stack.client.Get(ctx, client.ObjectKeyFromObject(release), release)
			if err == nil {
				return fmt.Errorf("%w: the release is there", errNotYet)
			}
			return client.IgnoreNotFound(err)
		}))
		// One that is on its way to its end is in the way of the next chart, and one may come late.
		must(t, controlplane.WaitFor(ctx, patience, func(ctx context.Context) error {
			crds := &apiextensionsv1.CustomResourceDefinitionList{}
			if err := stack.client.List(ctx, crds); err != nil {
				return err
			}
			var left error
			for i := range crds.Items {
				if crds.Items[i].Spec.Group != v1alpha1.GroupVersion.Group {
					continue
				}
				left = fmt.Errorf("%w: %s is there", errNotYet, crds.Items[i].Name)
				if err := client.IgnoreNotFound(stack.client.Delete(ctx, &crds.Items[i])); err != nil {
					return err
				}
			}
			return left
		}))
	})
}
