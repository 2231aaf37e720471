// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/strata-project/strata/hack/controlplane/cache"
)

// together makes what the demo runs: the programs of the tests where these are
// current; otherwise those that the machine has already, and the rest of them by one
// go build of one module, which compiles once what they have in common.
type together struct {
	builder
	programs []target
	// crds are the modules of Flux whose CRDs are wanted, too.
	crds []pinned
	// places are folders in which programs are looked for, the first one first.
	places []string
	// prebuilt lists archives with programs, which are downloaded; empty is none.
	prebuilt string
}

// demoModule is the folder of the module that requires all programs of the demo.
const demoModule = "demo"

// forDemo returns what makes the programs of the demo, or of those the ones that are
// named. The demo runs no notification-controller.
func forDemo(b builder, only string) (together, error) {
	names := []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "source-controller", "helm-controller",
	}
	if only != "" {
		for name := range strings.SplitSeq(only, ",") {
			if !slices.Contains(names, name) {
				return together{}, fmt.Errorf("unknown program %q: the demo runs %s", name, strings.Join(names, ", "))
			}
		}
		names = strings.Split(only, ",")
	}
	g := together{
		builder:  b,
		programs: slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return !slices.Contains(names, t.name) }),
		places:   demoPlaces(b.dir),
	}
	if os.Getenv(envPrebuilt) == "1" {
		g.prebuilt = prebuiltArchives
	}
	if slices.Contains(names, "source-controller") {
		g.crds = []pinned{{demoModule, sourceController}, {demoModule, helmController}}
	}
	return g, nil
}

// demoPlaces are the folders in which the machine may have programs: that of envtest,
// and those of PATH. Of the folder that make fills only what is current counts, which
// has been looked at before.
func demoPlaces(filled string) []string {
	places := filepath.SplitList(os.Getenv("PATH"))
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" && filepath.Clean(assets) != filled {
		places = append([]string{assets}, places...)
	}
	return places
}

// ensure returns the folder with the programs. What it does on the way it tells.
func (g together) ensure(ctx context.Context) (string, error) {
	wanted := slices.Clone(g.programs)
	if len(g.crds) > 0 {
		wanted = append(wanted, targets[slices.Index(targetNames(targets), cache.CRDs)])
	}
	if stale, err := g.stale(wanted); err != nil || len(stale) == 0 {
		return g.dir, err
	}
	own := builder{modules: g.modules, dir: filepath.Join(filepath.Dir(g.dir), "demo"), out: g.out}
	if err := os.MkdirAll(own.dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(own.dir, ".lock"), func() {
		fmt.Fprintf(g.out, "waiting for another run that builds into %s\n", own.dir)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if g.prebuilt != "" {
		folder, err := prebuilt(ctx, g.prebuilt, filepath.Dir(g.dir), targetNames(g.programs))
		if err != nil {
			fmt.Fprintf(g.out, "what could be downloaded is built: %v\n", err)
		} else if folder != "" {
			g.places = append(slices.Clone(g.places), folder)
		}
	}
	found, err := g.found(ctx)
	if err != nil {
		return "", err
	}
	key, err := g.keyOf(found)
	if err != nil {
		return "", err
	}
	var names []string
	for _, t := range g.programs {
		names = append(names, t.name)
	}
	all := staleTarget{target: target{name: strings.Join(names, "+")}, key: key}
	if stamp, err := os.ReadFile(own.stampFile(all.target)); err == nil && string(stamp) == key && complete(own.dir, wanted) {
		return own.dir, nil
	}
	if err := g.make(ctx, own, found); err != nil {
		return "", err
	}
	if len(g.crds) > 0 {
		if err := copyCRDs(g.crds...)(ctx, own, target{name: cache.CRDs}); err != nil {
			return "", err
		}
	}
	return own.dir, own.stamp(all)
}

func complete(dir string, wanted []target) bool {
	for _, t := range wanted {
		if _, err := os.Stat(filepath.Join(dir, t.name)); err != nil {
			return false
		}
	}
	return true
}

// keyOf is a digest of all that decides what the folder holds.
func (g together) keyOf(found map[string]string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, t := range g.programs {
		fmt.Fprintln(h, t.name, t.pkg, found[t.name])
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(g.modules, demoModule, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, name, len(content))
		h.Write(content)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// kubernetes returns the version of Kubernetes that the module pins.
func (g together) kubernetes() (string, error) {
	return g.version(target{modules: []string{demoModule}, require: kubernetes})
}

// found returns where the machine has programs. Of the servers of Kubernetes those
// count that are of the minor version that the module pins: those of two versions
// need not work together.
func (g together) found(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	for _, t := range g.programs {
		for _, place := range g.places {
			if file, err := exec.LookPath(filepath.Join(place, t.name)); err == nil && filepath.IsAbs(file) {
				found[t.name] = file
				break
			}
		}
	}
	version, err := g.kubernetes()
	if err != nil {
		return nil, err
	}
	minor := func(version string) string { return strings.Join(strings.SplitN(version, ".", 3)[:2], ".") }
	of := func(name string) string {
		out, err := exec.CommandContext(ctx, found[name], "--version").Output()
		if err != nil {
			return ""
		}
		return strings.TrimPrefix(strings.TrimSpace(string(out)), "Kubernetes ")
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if found[name] != "" && !strings.HasPrefix(of(name), minor(version)+".") {
			fmt.Fprintf(g.out, "%s is not used: it is not of Kubernetes %s\n", found[name], minor(version))
			delete(found, name)
		}
	}
	return found, ctx.Err()
}

// make puts the programs into the folder: links to those that are found, and the
// others as they are built.
func (g together) make(ctx context.Context, own builder, found map[string]string) error {
	var missing []target
	for _, t := range g.programs {
		if found[t.name] == "" {
			missing = append(missing, t)
			continue
		}
		fmt.Fprintf(g.out, "using %s\n", found[t.name])
		link := filepath.Join(own.dir, t.name)
		if err := os.RemoveAll(link); err != nil {
			return err
		}
		if err := os.Symlink(found[t.name], link); err != nil {
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	built, err := os.MkdirTemp(own.dir, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(built)
	if err := g.compile(ctx, missing, built); err != nil {
		return err
	}
	for _, t := range missing {
		if err := os.Rename(filepath.Join(built, executable(t.pkg)), filepath.Join(own.dir, t.name)); err != nil {
			return err
		}
	}
	return nil
}

// executable is the name that go build gives a program by itself: the last element of
// its package's path that is no version.
func executable(pkg string) string {
	name := path.Base(pkg)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		return path.Base(path.Dir(pkg))
	}
	return name
}

// compile builds the programs by one go build, and says how far it is.
func (g together) compile(ctx context.Context, programs []target, into string) error {
	var names, packages []string
	for _, t := range programs {
		names, packages = append(names, t.name), append(packages, t.pkg)
	}
	version, err := g.kubernetes()
	if err != nil {
		return err
	}
	// The flags that tell Kubernetes its version mean nothing to the others. Without
	// inlining, which a demo does not need, compiling takes an eighth less time.
	flags := []string{"-mod=readonly", "-trimpath", "-gcflags=all=-l", "-ldflags", linkerFlags(kubernetesProgram("kubernetes", "kube-apiserver"), version)}
	fmt.Fprintf(g.out, "building %s, once; this takes some minutes\n", strings.Join(names, ", "))
	begin := time.Now()
	list := append(append([]string{"list", "-deps"}, flags...), "-f", "{{if .Stale}}{{.ImportPath}}{{end}}")
	stale, err := goCommand(ctx, filepath.Join(g.modules, demoModule), append(list, packages...)...)
	if err != nil {
		return err
	}
	p := &progress{out: g.out, begin: time.Now(), total: len(strings.Fields(string(stale)))}
	build := append(append([]string{"build", "-v", "-buildvcs=false"}, flags...), "-o", into+string(filepath.Separator))
	cmd := exec.CommandContext(ctx, "go", append(build, packages...)...)
	cmd.Dir = filepath.Join(g.modules, demoModule)
	cmd.Env = goEnvironment()
	isolate(cmd)
	cmd.Cancel = func() error { return interruptGroup(cmd) }
	cmd.WaitDelay = 10 * time.Second
	lines, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.follow(lines)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return fmt.Errorf("cannot build %s: %w\n%s", strings.Join(names, ", "), err, strings.Join(p.last, "\n"))
	}
	fmt.Fprintf(g.out, "built %d programs in %s\n", len(programs), time.Since(begin).Round(time.Second))
	return nil
}

// progress counts the packages that go build -v names, and says now and then how many
// there are, and how long the rest will take at this pace.
type progress struct {
	out   io.Writer
	begin time.Time
	total int // packages to compile

	done int
	said time.Time
	last []string // the last lines that are no names of packages: they say what failed
}

// sayEvery is how often progress is told.
const sayEvery = 20 * time.Second

func (p *progress) follow(lines io.Reader) {
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 1<<20)
	p.said = p.begin
	for scanner.Scan() {
		line := scanner.Text()
		// The name of a package stands alone; go on after a mistake it names more of them.
		if !strings.Contains(line, " ") {
			p.done++
		} else if p.last = append(p.last, line); len(p.last) > 30 {
			p.last = p.last[1:]
		}
		if now := time.Now(); now.Sub(p.said) >= sayEvery {
			p.said = now
			fmt.Fprintln(p.out, p.line(now))
		}
	}
}

// line says how far the build is.
func (p *progress) line(now time.Time) string {
	took := now.Sub(p.begin)
	if p.done >= p.total {
		return fmt.Sprintf("  linking, after %s", took.Round(time.Second))
	}
	if p.done == 0 {
		return fmt.Sprintf("  0 of %d packages after %s", p.total, took.Round(time.Second))
	}
	rest := took * time.Duration(p.total-p.done) / time.Duration(p.done)
	return fmt.Sprintf("  %d of %d packages after %s, about %s more", p.done, p.total, took.Round(time.Second), max(rest, time.Minute).Round(time.Minute))
}
