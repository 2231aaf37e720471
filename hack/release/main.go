// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes what a release of Strata consists of, from the tree that it is
// started in: the images of both controllers for two architectures and the chart as OCI
// layouts, the plug-in as archives for six platforms with a manifest for krew, bills of
// materials, provenance and checksums. With --push it puts images and chart into a registry,
// and with --key it signs all of it with cosign. No container engine is needed.
//
// The same commit gives the same bytes, whatever the folder, the user and the clock,
// as long as the version of Go is the same; signatures alone differ.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/pflag"
)

// settings are what the flags say.
type settings struct {
	version, out, registry string
	platforms              []string
	push, dirty, ociOnly   bool
	key, cosign            string
}

// release is what is being made.
type release struct {
	settings
	// number is the version without the v, as charts and tags of images have it.
	number string
	// commit is what it is made of, and time is that of the commit, which every file
	// in an archive has.
	commit string
	time   time.Time
	root   string
	wanted []platform
	made   outcome
	bills  []billed
	// modules are the folders of modules on this machine, by their paths; nil until one is
	// asked for.
	modules map[string]string
}

// billed is an image for one platform, with the file of its bill of materials.
type billed struct {
	of            imaged
	address, file string
}

// outcome is what has been made, for people and for other programs.
type outcome struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	// Image is that of the controller, HostsImage that of the controller of hosts. They and
	// Chart are addresses with digests; without a registry they have no host.
	Image      string `json:"image"`
	HostsImage string `json:"hostsImage"`
	Chart      string `json:"chart"`
	// Files are the files that checksums.txt lists.
	Files []string `json:"files"`
	// Pushed tells whether images and chart are in the registry.
	Pushed bool `json:"pushed"`
}

// addresses are those of all that goes into a registry.
func (o *outcome) addresses() []string { return []string{o.Image, o.HostsImage, o.Chart} }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := parse(args)
	if err != nil {
		return err
	}
	r, err := newRelease(ctx, s)
	if err != nil {
		return err
	}
	return r.make(ctx)
}

func parse(args []string) (settings, error) {
	var s settings
	flags := pflag.NewFlagSet("release", pflag.ContinueOnError)
	flags.StringVar(&s.version, "version", "", "the version, such as v0.2.0")
	flags.StringVar(&s.out, "out", "dist", "the folder that is made; what is in it goes first")
	flags.StringVar(&s.registry, "registry", "", "where images and chart belong, as HOST/PATH: HOST/PATH/strata, .../strata-hosts and .../charts/strata")
	flags.StringSliceVar(&s.platforms, "platforms", allPlatforms, "platforms of the plug-in; those of Linux are those of the images")
	flags.BoolVar(&s.ociOnly, "oci-only", false, "make images and chart alone")
	flags.BoolVar(&s.push, "push", false, "push images and chart to the registry")
	flags.BoolVar(&s.dirty, "allow-dirty", false, "take a tree with changes that are not committed; what is made cannot be made again")
	flags.StringVar(&s.key, "key", "", "sign with this private key of cosign; its password is in COSIGN_PASSWORD")
	flags.StringVar(&s.cosign, "cosign", "cosign", "the program that signs")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("there are no arguments, and %q was given", flags.Arg(0))
	}
	if s.push && s.registry == "" {
		return s, errors.New("--push needs --registry")
	}
	return s, nil
}

// newRelease checks what the flags say, and finds the commit.
func newRelease(ctx context.Context, s settings) (*release, error) {
	parsed, err := semver.StrictNewVersion(strings.TrimPrefix(s.version, "v"))
	if err != nil || !strings.HasPrefix(s.version, "v") || parsed.Metadata() != "" {
		return nil, fmt.Errorf("--version is %q: it must be like v0.2.0 or v0.2.0-rc.1, without build metadata, which no tag of an image can have", s.version)
	}
	r := &release{settings: s, number: parsed.String()}
	for _, text := range s.platforms {
		p, err := parsePlatform(text)
		if err != nil {
			return nil, err
		}
		r.wanted = append(r.wanted, p)
	}
	if len(imagePlatforms(r.wanted)) == 0 {
		return nil, errors.New("--platforms has none of Linux, so there would be no image")
	}
	if r.root, err = git(ctx, "rev-parse", "--show-toplevel"); err != nil {
		return nil, err
	}
	if r.commit, err = git(ctx, "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	seconds, err := git(ctx, "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return nil, err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("cannot understand the time of the commit: %w", err)
	}
	r.time = time.Unix(at, 0).UTC()
	changed, err := git(ctx, "--no-optional-locks", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changed != "" && !s.dirty {
		return nil, fmt.Errorf("the tree has changes that are not committed; commit them, or give --allow-dirty:\n%s", changed)
	}
	r.made = outcome{Version: r.version, Commit: r.commit}
	return r, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output)), nil
}

// make makes everything, in the order in which one needs the other: the chart names the
// digests of the images, and the plug-in holds the chart.
func (r *release) make(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("cannot empty the folder: %w", err)
	}
	if err := os.MkdirAll(r.path("sbom"), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder: %w", err)
	}
	steps := []func(context.Context) error{r.images, r.chart, r.plugins, r.krew, r.provenance, r.checksums, r.publish, r.sign, r.tell}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// path is that of a file of the release.
func (r *release) path(elements ...string) string {
	return filepath.Join(append([]string{r.out}, elements...)...)
}

// keep writes a file of the release, which checksums.txt lists.
func (r *release) keep(name string, data []byte) error {
	if err := os.WriteFile(r.path(name), data, 0o644); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	r.made.Files = append(r.made.Files, name)
	return nil
}

// say shows how far it is.
func (r *release) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
