// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed" // of the tags
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// allPlatforms are those that a release is for.
var allPlatforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

func parsePlatform(text string) (platform, error) {
	system, arch, _ := strings.Cut(text, "/")
	if !slices.Contains(allPlatforms, text) {
		return platform{}, fmt.Errorf("--platforms has %q: it takes %s", text, strings.Join(allPlatforms, ", "))
	}
	return platform{system, arch}, nil
}

// imagePlatforms are those for which there is an image.
func imagePlatforms(all []platform) []platform {
	return slices.DeleteFunc(slices.Clone(all), func(p platform) bool { return p.os != "linux" })
}

// tags leave out of libraries what no program calls: docs/adr/0072-programs-have-what-they-need.md.
//
//go:embed tags
var tags string

// build compiles a program. Nothing of this machine gets into it: neither paths, nor the
// time, nor what the environment says about Go.
func (r *release) build(ctx context.Context, program, path string, p platform, variables map[string]string) error {
	flags := "-s -w -buildid="
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		flags += " -X main." + name + "=" + variables[name]
	}
	r.say("building %s for %s", program, p)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-tags", strings.TrimSpace(tags), "-ldflags", flags, "-o", path, program)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(),
		"CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s for %s: %w\n%s", program, p, err, output)
	}
	return nil
}
