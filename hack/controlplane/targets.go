// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/strata-project/strata/hack/controlplane/cache"
)

// target is one thing in the cache folder: a program, or the Flux CRDs.
type target struct {
	name    string
	modules []string // folders of the tool modules it is made from
	pkg     string   // package of a program
	require string   // module whose version is the target's
	ldflags func(version string) string
	make    func(context.Context, builder, target) error
}

const (
	kubernetes             = "k8s.io/kubernetes"
	sourceController       = "github.com/fluxcd/source-controller"
	helmController         = "github.com/fluxcd/helm-controller"
	notificationController = "github.com/fluxcd/notification-controller"
	kustomizeController    = "github.com/fluxcd/kustomize-controller"
	clusterAPI             = "sigs.k8s.io/cluster-api"
	cloudNativePG          = "github.com/cloudnative-pg/cloudnative-pg"
	containerd             = "github.com/containerd/containerd/v2"
)

var targets = []target{
	program("etcd", "etcd", "go.etcd.io/etcd/server/v3", ""),
	kubernetesProgram("kubernetes", "kube-apiserver"),
	kubernetesProgram("kubernetes", "kube-controller-manager"),
	kubernetesProgram("kubernetes", "kube-scheduler"),
	kubernetesProgram("kubernetes", "kubectl"),
	kubernetesProgram("kubernetes", "kubeadm"),
	program("kwok", "kwok", "sigs.k8s.io/kwok", "/cmd/kwok"),
	program("source-controller", "source-controller", sourceController, ""),
	program("helm-controller", "helm-controller", helmController, ""),
	program("notification-controller", "notification-controller", notificationController, ""),
	{
		name:    cache.CRDs,
		modules: []string{"source-controller", "helm-controller", "notification-controller"},
		require: sourceController,
		ldflags: noFlags,
		make: copyCRDs(
			pinned{"source-controller", sourceController}, pinned{"helm-controller", helmController},
			pinned{"notification-controller", notificationController},
		),
	},
	program("kustomize-controller", "kustomize-controller", kustomizeController, ""),
	{
		name:    cache.KustomizeCRDs,
		modules: []string{"kustomize-controller"},
		require: kustomizeController,
		ldflags: noFlags,
		make:    copyCRDs(pinned{"kustomize-controller", kustomizeController}),
	},
	{
		name:    cache.ClusterAPICRDs,
		modules: []string{"cluster-api"},
		require: clusterAPI,
		ldflags: noFlags,
		make:    copyCRDs(pinned{"cluster-api", clusterAPI}),
	},
	{
		name:    cache.CloudNativePGCRDs,
		modules: []string{"cloudnative-pg"},
		require: cloudNativePG,
		ldflags: noFlags,
		make:    copyCRDs(pinned{"cloudnative-pg", cloudNativePG}),
	},
}

// olderTargets are what there is of the earlier versions that are supported, too.
var olderTargets = []target{
	kubernetesProgram("kubernetes", "kube-apiserver"),
	kubernetesProgram("kubernetes", "kube-controller-manager"),
	kubernetesProgram("kubernetes", "kube-scheduler"),
	kubernetesProgram("kubernetes", "kubeadm"),
	program("source-controller", "source-controller", sourceController, ""),
	program("helm-controller", "helm-controller", helmController, ""),
	{
		name:    cache.CRDs,
		modules: []string{"source-controller", "helm-controller"},
		require: sourceController,
		ldflags: noFlags,
		make:    copyCRDs(pinned{"source-controller", sourceController}, pinned{"helm-controller", helmController}),
	},
}

// hostTargets are what a host has that is as real as can be, besides the programs of the
// control plane. They are made for few tests.
var hostTargets = []target{
	kubernetesProgram("kubelet", "kubelet"),
	kubernetesProgram("kubelet", "kube-proxy"),
	containerdProgram("containerd"),
	containerdProgram("containerd-shim-runc-v2"),
	program("coredns", "coredns", "github.com/coredns/coredns", ""),
}

func program(name, folder, module, pkg string) target {
	return target{
		name:    name,
		modules: []string{folder},
		require: module,
		pkg:     module + pkg,
		ldflags: noFlags,
		make:    compile,
	}
}

// kubernetesProgram is a program that tells its version, which decides what
// clients believe the server can do, by linker flags only.
func kubernetesProgram(folder, name string) target {
	t := program(name, folder, kubernetes, "/cmd/"+name)
	t.ldflags = func(version string) string {
		const pkg = "k8s.io/component-base/version"
		parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
		return fmt.Sprintf("-X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
			pkg, version, parts[0], parts[1])
	}
	return t
}

// containerdProgram says its version as a released one does.
func containerdProgram(name string) target {
	t := program(name, "containerd", containerd, "/cmd/"+name)
	t.ldflags = func(version string) string { return "-X " + containerd + "/version.Version=" + version }
	return t
}

func noFlags(string) string { return "" }

func targetNames(of []target) []string {
	names := make([]string, 0, len(of))
	for _, t := range of {
		names = append(names, t.name)
	}
	return names
}

// staleTarget is a target together with the stamp it gets once it is built.
type staleTarget struct {
	target target
	key    string
}

// stale returns the targets whose stamp is not that of their present pins.
func (b builder) stale(wanted []target) ([]staleTarget, error) {
	var stale []staleTarget
	for _, t := range wanted {
		key, err := b.key(t)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(b.dir, t.name)); err == nil {
			if stamp, err := os.ReadFile(b.stampFile(t)); err == nil && string(stamp) == key {
				continue
			}
		}
		stale = append(stale, staleTarget{target: t, key: key})
	}
	return stale, nil
}

// key is a digest of all that decides what the target is built into.
func (b builder) key(t target) (string, error) {
	version, err := b.version(t)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, t.pkg, linkerFlags(t, version))
	for _, module := range t.modules {
		for _, name := range []string{"go.mod", "go.sum"} {
			content, err := os.ReadFile(filepath.Join(b.modules, module, name))
			if err != nil {
				return "", err
			}
			fmt.Fprintln(h, module, name, len(content))
			h.Write(content)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// version returns the version of the target that its module requires.
func (b builder) version(t target) (string, error) {
	path := filepath.Join(b.modules, t.modules[0], "go.mod")
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	line := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(t.require) + `\s+(v\S+)`)
	match := line.FindSubmatch(content)
	if match == nil {
		return "", fmt.Errorf("%s does not require %s", path, t.require)
	}
	return string(match[1]), nil
}

func (b builder) stampFile(t target) string {
	return filepath.Join(b.dir, ".stamps", t.name)
}

func (b builder) stamp(s staleTarget) error {
	path := b.stampFile(s.target)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, []byte(s.key), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

func linkerFlags(t target, version string) string {
	return strings.TrimSpace("-s -w " + t.ldflags(version))
}

// compile builds a program beside its place and renames it, so that whoever
// runs the old one meanwhile is not disturbed.
func compile(ctx context.Context, b builder, t target) error {
	version, err := b.version(t)
	if err != nil {
		return err
	}
	temp := filepath.Join(b.dir, ".new-"+t.name)
	defer os.Remove(temp)
	_, err = goCommand(ctx, filepath.Join(b.modules, t.modules[0]),
		"build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", linkerFlags(t, version), "-o", temp, t.pkg)
	if err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(b.dir, t.name))
}

// pinned is a module of Flux, and the folder whose go.mod pins it.
type pinned struct{ folder, module string }

// copyCRDs takes the CRDs out of modules of Flux.
func copyCRDs(modules ...pinned) func(context.Context, builder, target) error {
	return func(ctx context.Context, b builder, t target) error {
		temp := filepath.Join(b.dir, ".new-"+t.name)
		if err := os.RemoveAll(temp); err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		if err := os.MkdirAll(temp, 0o755); err != nil {
			return err
		}
		for _, m := range modules {
			dir, err := moduleDir(ctx, filepath.Join(b.modules, m.folder), m.module)
			if err != nil {
				return err
			}
			if err := copyCRDsOf(m.module, dir, temp); err != nil {
				return err
			}
		}
		place := filepath.Join(b.dir, t.name)
		if err := os.RemoveAll(place); err != nil {
			return err
		}
		return os.Rename(temp, place)
	}
}

// copyCRDsOf copies the CRDs of a module, which is in dir, into another folder.
func copyCRDsOf(module, dir, into string) error {
	crds := os.DirFS(dir)
	var names []string
	// Cluster API has its own in core.
	for _, pattern := range []string{"config/crd/bases/*.yaml", "core/config/crd/bases/*.yaml"} {
		some, err := fs.Glob(crds, pattern)
		if err != nil {
			return err
		}
		names = append(names, some...)
	}
	if len(names) == 0 {
		return fmt.Errorf("module %s has no CRDs in config/crd/bases", module)
	}
	for _, name := range names {
		content, err := fs.ReadFile(crds, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(into, filepath.Base(name)), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// moduleDir returns the folder of a module in the module cache, downloading
// it when it is not there.
func moduleDir(ctx context.Context, dir, module string) (string, error) {
	out, err := goCommand(ctx, dir, "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var info struct{ Dir string }
	if err := json.Unmarshal(out, &info); err != nil {
		return "", fmt.Errorf("cannot read what go mod download says of %s: %w", module, err)
	}
	return info.Dir, nil
}

// goEnvironment is that of the go command: nothing of the caller's changes what is
// built. The compilers collect garbage seldom, unless the caller says how often: it takes a
// fifth less time, and some hundred MiB more for the largest packages.
func goEnvironment() []string {
	env := append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=400")
	}
	return env
}

// goCommand runs the go command and returns its standard output. Cancelling
// ctx interrupts it with all its children.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	var stdout, both bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = goEnvironment()
	cmd.Stdout = &stdout
	cmd.Stderr = &both
	isolate(cmd)
	cmd.Cancel = func() error { return interruptGroup(cmd) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return nil, fmt.Errorf("cannot run go: %w", err)
		}
		both.Write(stdout.Bytes())
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, lastLines(both.String(), 20))
	}
	return stdout.Bytes(), nil
}

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
