// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providerstest

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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/pkg/plugin"
)

// Kubelet stands in for the cluster's nodes: it runs the Deployments of plug-ins of a namespace,
// each as a process that sees nothing but the files of its image and of its volumes, as the user
// and with the environment that the Pod has. It has addresses of its own for them, which Dial
// knows.
type Kubelet struct {
	t         testing.TB
	client    client.Client
	namespace string
	dir       string

	mu   sync.Mutex
	pods map[string]*pod
}

// pod is what runs of a Deployment.
type pod struct {
	generation int64
	uid        types.UID
	port       string
	process    *exec.Cmd
	over       chan struct{}
	dir        string
	available  bool
	failure    string
}

// NewKubelet starts one, until the test ends. It needs root, for its processes are as far from
// this one as they can be.
func NewKubelet(t testing.TB, c client.Client, namespace string) *Kubelet {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to run images with their own files and users")
	}
	dir, err := os.MkdirTemp("", "strata-pods-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // their users enter it
		t.Fatal(err)
	}
	k := &Kubelet{t: t, client: c, namespace: namespace, dir: dir, pods: map[string]*pod{}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-tick.C:
				k.sync(ctx)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		for _, p := range k.pods {
			p.end()
		}
		_ = os.RemoveAll(dir)
	})
	return k
}

// Dial connects with the Pods of a Service.
func (k *Kubelet) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	service, _, _ := strings.Cut(host, ".")
	of := k.pods[service]
	k.mu.Unlock()
	if of == nil || host != service+"."+k.namespace+".svc" {
		return nil, fmt.Errorf("there is no %s", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, of.port)
}

// Addresses returns where the Pods listen, as nobody else knows it.
func (k *Kubelet) Addresses() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, of := range k.pods {
		all = append(all, of.port)
	}
	return all
}

// Kill kills all that runs.
func (k *Kubelet) Kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, of := range k.pods {
		if of.process != nil {
			_ = of.process.Process.Kill() // unless it has ended
		}
	}
}

// PID returns the process of a Deployment; 0 where it has none.
func (k *Kubelet) PID(deployment string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if of := k.pods[deployment]; of != nil && of.process != nil {
		return of.process.Process.Pid
	}
	return 0
}

// sync runs what is to run.
func (k *Kubelet) sync(ctx context.Context) {
	list := &appsv1.DeploymentList{}
	if err := k.client.List(ctx, list, client.InNamespace(k.namespace), client.HasLabels{v1alpha1.PluginLabel}); err != nil {
		return
	}
	there := map[string]bool{}
	for i := range list.Items {
		of := &list.Items[i]
		there[of.Name] = true
		k.run(ctx, of)
	}
	for name, p := range k.pods {
		if !there[name] {
			k.set(name, nil)
			p.end()
		}
	}
}

func (k *Kubelet) set(deployment string, to *pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if to == nil {
		delete(k.pods, deployment)
		return
	}
	k.pods[deployment] = to
}

// run runs one Deployment, and says how it fares.
func (k *Kubelet) run(ctx context.Context, of *appsv1.Deployment) {
	is := k.pods[of.Name]
	if is == nil || is.generation != of.Generation || is.uid != of.UID || is.ended() {
		if is != nil {
			is.end()
		}
		is = &pod{generation: of.Generation, uid: of.UID}
		if err := k.start(ctx, of, is); err != nil {
			is.failure = err.Error()
		}
		k.set(of.Name, is)
	}
	if over, err := net.DialTimeout("tcp", is.port, time.Second); is.process != nil && err == nil {
		_ = over.Close()
		is.available = !is.ended()
	}
	patched := of.DeepCopy()
	patched.Status.ObservedGeneration, patched.Status.AvailableReplicas = of.Generation, 0
	if is.available && !is.ended() {
		patched.Status.Replicas, patched.Status.ReadyReplicas, patched.Status.AvailableReplicas = 1, 1, 1
	}
	patched.Status.Conditions = nil
	if is.failure != "" {
		patched.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: is.failure}}
	}
	before, now := of.Status, patched.Status
	if now.AvailableReplicas != before.AvailableReplicas || now.ObservedGeneration != before.ObservedGeneration || len(now.Conditions) != len(before.Conditions) {
		_ = k.client.Status().Patch(ctx, patched, client.MergeFrom(of)) // the next look tries again
	}
}

// start starts the process of a Deployment's Pod.
func (k *Kubelet) start(ctx context.Context, of *appsv1.Deployment, to *pod) error {
	dir, err := os.MkdirTemp(k.dir, of.Name+"-")
	if err != nil {
		return err
	}
	to.dir = dir
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // its user enters it
		return err
	}
	spec := of.Spec.Template.Spec
	container := spec.Containers[0]
	entrypoint, err := unpack(ctx, container.Image, dir)
	if err != nil {
		return err
	}
	for _, mount := range container.VolumeMounts {
		if err := k.mount(ctx, of, mount, dir); err != nil {
			return err
		}
	}
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	to.port = reserved.Addr().String()
	_ = reserved.Close()
	to.process = &exec.Cmd{Path: entrypoint[0], Args: entrypoint, Dir: "/", Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{
		Chroot: dir, Pdeathsig: syscall.SIGKILL,
		//nolint:gosec // they are small numbers
		Credential: &syscall.Credential{Uid: uint32(*spec.SecurityContext.RunAsUser), Gid: uint32(*spec.SecurityContext.RunAsGroup)},
	}}
	for _, variable := range container.Env {
		if variable.Name == plugin.ListenVariable { // a Pod has an address of its own
			variable.Value = to.port
		}
		to.process.Env = append(to.process.Env, variable.Name+"="+variable.Value)
	}
	if err := to.process.Start(); err != nil {
		to.process = nil
		return err
	}
	to.over = make(chan struct{})
	go func() {
		_ = to.process.Wait()
		close(to.over)
	}()
	return nil
}

// mount makes a volume.
func (k *Kubelet) mount(ctx context.Context, of *appsv1.Deployment, mount corev1.VolumeMount, dir string) error {
	at := filepath.Join(dir, mount.MountPath)
	if err := os.MkdirAll(at, 0o755); err != nil { //nolint:gosec // its user enters it
		return err
	}
	group := int(*of.Spec.Template.Spec.SecurityContext.FSGroup)
	for _, volume := range of.Spec.Template.Spec.Volumes {
		switch {
		case volume.Name != mount.Name:
		case volume.EmptyDir != nil:
			return os.Chmod(at, 0o777) //nolint:gosec // as an emptyDir is
		case volume.Secret != nil:
			secret := &corev1.Secret{}
			if err := k.client.Get(ctx, types.NamespacedName{Namespace: k.namespace, Name: volume.Secret.SecretName}, secret); err != nil {
				return err
			}
			items := volume.Secret.Items
			if len(items) == 0 {
				for key := range secret.Data {
					items = append(items, corev1.KeyToPath{Key: key, Path: key})
				}
			}
			for _, item := range items {
				path := filepath.Join(at, item.Path)
				err := os.WriteFile(path, secret.Data[item.Key], os.FileMode(*volume.Secret.DefaultMode)) //nolint:gosec // small
				if err := errors.Join(err, os.Chown(path, 0, group)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return fmt.Errorf("there is no volume %s that is a Secret or an empty folder", mount.Name)
}

func (p *pod) ended() bool {
	if p.over == nil {
		return false
	}
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

func (p *pod) end() {
	if p.process != nil {
		_ = p.process.Process.Kill()
		<-p.over
	}
	_ = os.RemoveAll(p.dir)
}

// unpack writes the files of an image, and returns what it runs.
func unpack(ctx context.Context, image, dir string) ([]string, error) {
	reference, err := name.NewDigest(image, name.Insecure)
	if err != nil {
		return nil, err
	}
	pulled, err := remote.Image(reference, remote.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	config, err := pulled.ConfigFile()
	if err != nil {
		return nil, err
	}
	packed := mutate.Extract(pulled)
	defer func() { _ = packed.Close() }()
	archive := tar.NewReader(packed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return config.Config.Entrypoint, nil
		}
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, filepath.Clean("/"+header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // its user enters it
			return nil, err
		}
		content, err := io.ReadAll(archive)
		if err == nil {
			err = os.WriteFile(path, content, os.FileMode(header.Mode)) //nolint:gosec // a test's image
		}
		if err != nil {
			return nil, err
		}
	}
}
