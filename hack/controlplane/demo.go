// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/strata-project/strata/hack/controlplane/cache"
)

// demoPrograms makes what the demo runs: the programs of the tests where these are
// current; otherwise those that the machine has already, and the rest as the tests have
// them, in a folder of their own.
type demoPrograms struct {
	builder
	programs []target
	// crds are the modules of Flux whose CRDs are wanted, too.
	crds []pinned
	// places are folders in which programs are looked for, the first one first.
	places []string
}

// forDemo returns what makes the programs of the demo, or of those the ones that are
// named. The demo runs no notification-controller.
func forDemo(b builder, only string) (demoPrograms, error) {
	names := []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "source-controller", "helm-controller",
	}
	if only != "" {
		for name := range strings.SplitSeq(only, ",") {
			if !slices.Contains(names, name) {
				return demoPrograms{}, fmt.Errorf("unknown program %q: the demo runs %s", name, strings.Join(names, ", "))
			}
		}
		names = strings.Split(only, ",")
	}
	g := demoPrograms{
		builder:  b,
		programs: slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return !slices.Contains(names, t.name) }),
		places:   demoPlaces(b.dir),
	}
	if slices.Contains(names, "source-controller") {
		g.crds = []pinned{{"source-controller", sourceController}, {"helm-controller", helmController}}
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
func (g demoPrograms) ensure(ctx context.Context) (string, error) {
	wanted := slices.Clone(g.programs)
	if len(g.crds) > 0 {
		wanted = append(wanted, targets[slices.Index(targetNames(), cache.CRDs)])
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
func (g demoPrograms) keyOf(found map[string]string) (string, error) {
	h := sha256.New()
	for _, t := range g.programs {
		key, err := g.key(t)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, t.name, key, found[t.name])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// kubernetes returns the version of Kubernetes that the tests pin.
func (g demoPrograms) kubernetes() (string, error) {
	return g.version(target{modules: []string{"kubernetes"}, require: kubernetes})
}

// found returns where the machine has programs. Of the servers of Kubernetes those
// count that are of the minor version that the module pins: those of two versions
// need not work together.
func (g demoPrograms) found(ctx context.Context) (map[string]string, error) {
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
// others as they are built. What is there already, as it should be, is not built again.
func (g demoPrograms) make(ctx context.Context, own builder, found map[string]string) error {
	var missing []target
	for _, t := range g.programs {
		if found[t.name] == "" {
			stale, err := own.stale([]target{t})
			if err != nil {
				return err
			}
			if len(stale) > 0 {
				missing = append(missing, t)
			}
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
		// Should it not be found one day, it is no program that was built here.
		if err := os.Remove(own.stampFile(t)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for i, t := range missing {
		key, err := g.key(t)
		if err != nil {
			return err
		}
		// A link to what was found before must not be written through, and is not: the
		// program is made beside it and takes its place.
		if err := own.build(ctx, staleTarget{target: t, key: key}, fmt.Sprintf("[%d/%d]", i+1, len(missing))); err != nil {
			return err
		}
	}
	return nil
}
