// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/test/controlplane"
)

const (
	// placeholder is what the example has in place of a chart repository.
	placeholder = "http://charts.example.invalid"
	// fetchInterval is how often Flux looks for commits.
	fetchInterval = 5 * time.Second
	// sourceName is the GitRepository that the example's layers name.
	sourceName = "platform"
)

// serve publishes the example's charts and commits its platform.
func (d *demo) serve(context.Context) error {
	if err := d.serveCharts(); err != nil {
		return err
	}
	server, err := controlplane.NewGitServer()
	if err != nil {
		return err
	}
	d.onStop(server.Close)
	if d.repo, err = server.NewRepo(sourceName); err != nil {
		return err
	}
	if err := d.repo.AllowPush(); err != nil {
		return err
	}
	platform := os.DirFS(filepath.Join(d.root, "examples", "platform"))
	_, err = d.repo.Edit("Add the platform", func(dir string) error {
		return copyWithURL(dir, platform, d.charts.URL())
	})
	return err
}

func (d *demo) serveCharts() error {
	var err error
	if d.charts, err = controlplane.NewChartServer(); err != nil {
		return err
	}
	d.onStop(d.charts.Close)
	charts := filepath.Join(d.root, "examples", "charts")
	entries, err := os.ReadDir(charts)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := d.charts.Add(os.DirFS(filepath.Join(charts, entry.Name())), ""); err != nil {
			return err
		}
	}
	return nil
}

// copyWithURL copies files into a folder, with the address of a chart
// repository in place of the placeholder.
func copyWithURL(dir string, tree fs.FS, url string) error {
	return fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		target := filepath.Join(dir, filepath.FromSlash(path))
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, bytes.ReplaceAll(content, []byte(placeholder), []byte(url)), 0o644)
	})
}

// apply creates the source and the layers that use it.
func (d *demo) apply(ctx context.Context) error {
	source := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.FluxNamespace, Name: sourceName},
		Spec: sourcev1.GitRepositorySpec{
			URL: d.repo.URL(), Interval: metav1.Duration{Duration: fetchInterval},
			Reference: &sourcev1.GitRepositoryRef{Branch: controlplane.Branch},
		},
	}
	if err := d.client.Create(ctx, source); err != nil {
		return fmt.Errorf("cannot create the GitRepository: %w", err)
	}
	return d.applyLayers(ctx, filepath.Join(d.root, "examples", "platform", "layers.yaml"))
}

// applyLayers applies the layers of a file as a user would, so that users can
// apply a changed file afterwards.
func (d *demo) applyLayers(ctx context.Context, file string) error {
	applied, err := d.kubectl(ctx, "apply", "--output=name", "--filename", file)
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(applied) {
		d.layers = append(d.layers, name[strings.IndexByte(name, '/')+1:])
	}
	return nil
}

// kubectl runs kubectl and returns what it prints.
func (d *demo) kubectl(ctx context.Context, args ...string) (string, error) {
	at := []string{"--kubeconfig", d.plane.Kubeconfig(), "--cache-dir", filepath.Join(d.dir, "kubectl")}
	command := exec.CommandContext(ctx, filepath.Join(d.bin, "kubectl"), append(at, args...)...)
	var problems bytes.Buffer
	command.Stderr = &problems
	printed, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, &problems)
	}
	return string(printed), nil
}
