// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// statement is provenance as SLSA 1.0 has it, in an in-toto statement.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []subject         `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder map[string]string `json:"builder"`
	} `json:"runDetails"`
}

const predicateFile = "provenance.predicate.json"

// provenance says what everything was made of: the commit, and by which Go. There is
// nothing in it that differs when it is made again.
func (r *release) provenance(context.Context) error {
	var p predicate
	p.BuildDefinition.BuildType = source + "/hack/release@v1"
	p.BuildDefinition.ExternalParameters = map[string]string{"version": r.version, "registry": r.registry, "platforms": strings.Join(r.platforms, ",")}
	p.BuildDefinition.InternalParameters = map[string]string{"go": runtime.Version()}
	p.BuildDefinition.ResolvedDependencies = []subject{{"git+" + source, map[string]string{"gitCommit": r.commit}}}
	p.RunDetails.Builder = map[string]string{"id": source + "/hack/release"}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1", Predicate: p}
	for _, file := range r.made.Files {
		sum, err := r.sum(file)
		if err != nil {
			return err
		}
		s.Subject = append(s.Subject, subject{file, map[string]string{"sha256": sum}})
	}
	for _, address := range r.made.addresses() {
		repository, digest, _ := strings.Cut(address, "@sha256:")
		s.Subject = append(s.Subject, subject{repository, map[string]string{"sha256": digest}})
	}
	whole, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the provenance: %w", err)
	}
	part, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the provenance: %w", err)
	}
	if err := r.keep(predicateFile, append(part, '\n')); err != nil {
		return err
	}
	return r.keep("provenance.intoto.json", append(whole, '\n'))
}

// publish pushes images and chart. What a registry has already is not sent again.
func (r *release) publish(ctx context.Context) error {
	if !r.push {
		return nil
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	for _, each := range allImaged {
		if err := r.publishImage(each, options); err != nil {
			return err
		}
	}
	charts, err := layout.ImageIndexFromPath(r.path("chart"))
	if err != nil {
		return fmt.Errorf("cannot read the chart: %w", err)
	}
	digest, err := digestOf(r.made.Chart)
	if err != nil {
		return err
	}
	chart, err := charts.Image(digest)
	if err != nil {
		return fmt.Errorf("cannot read the chart: %w", err)
	}
	tag, err := name.NewTag(r.chartRepository() + ":" + r.number)
	if err != nil {
		return fmt.Errorf("cannot push to %s: %w", r.chartRepository(), err)
	}
	r.say("pushing %s", tag)
	if err := remote.Write(tag, chart, options...); err != nil {
		return fmt.Errorf("cannot push the chart: %w", err)
	}
	r.made.Pushed = true
	return nil
}

func (r *release) publishImage(of imaged, options []remote.Option) error {
	image, err := layout.ImageIndexFromPath(r.path(of.folder))
	if err != nil {
		return fmt.Errorf("cannot read the image of %s: %w", of.name, err)
	}
	digest, err := digestOf(*of.made(&r.made))
	if err != nil {
		return err
	}
	index, err := image.ImageIndex(digest)
	if err != nil {
		return fmt.Errorf("cannot read the image of %s: %w", of.name, err)
	}
	repository := r.repository(of.name)
	tag, err := name.NewTag(repository + ":" + r.number)
	if err != nil {
		return fmt.Errorf("cannot push to %s: %w", repository, err)
	}
	r.say("pushing %s", tag)
	if err := remote.WriteIndex(tag, index, options...); err != nil {
		return fmt.Errorf("cannot push the image of %s: %w", of.name, err)
	}
	return nil
}

func digestOf(address string) (v1.Hash, error) {
	_, digest, _ := strings.Cut(address, "@")
	hash, err := v1.NewHash(digest)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("cannot understand %s: %w", address, err)
	}
	return hash, nil
}

// sign signs the checksums and, where they were pushed, images and chart, with what they
// are made of. Signatures are in the form of today's cosign, and in the earlier one,
// which is what the versions of Flux look for that are in use.
func (r *release) sign(ctx context.Context) error {
	if r.key == "" {
		return nil
	}
	without := []string{"--key", r.key, "--yes", "--use-signing-config=false", "--tlog-upload=false"}
	err := r.signer(ctx, slices.Concat([]string{"sign-blob"}, without, []string{"--bundle", r.path("checksums.txt.sigstore.json"), r.path("checksums.txt")})...)
	if err != nil || !r.made.Pushed {
		return err
	}
	type call struct {
		args []string
		of   string
	}
	provenance := []string{"attest", "--type", "slsaprovenance1", "--predicate", r.path(predicateFile)}
	var calls []call
	for _, address := range r.made.addresses() {
		calls = append(calls, call{provenance, address},
			call{[]string{"sign", "--recursive"}, address}, call{[]string{"sign", "--recursive", "--new-bundle-format=false"}, address})
	}
	// The bill of each platform belongs to its image, and all of them to the index.
	for _, bill := range r.bills {
		attest := []string{"attest", "--type", "spdxjson", "--predicate", r.path(bill.file)}
		calls = append(calls, call{attest, bill.address}, call{attest, *bill.of.made(&r.made)})
	}
	for _, c := range calls {
		if err := r.signer(ctx, slices.Concat(c.args, without, []string{c.of})...); err != nil {
			return err
		}
	}
	return nil
}

// signer runs cosign, which reaches nothing but the registry.
func (r *release) signer(ctx context.Context, args ...string) error {
	r.say("cosign %s %s", args[0], filepath.Base(args[len(args)-1]))
	cmd := exec.CommandContext(ctx, r.cosign, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cosign %s: %w\n%s", args[0], err, output)
	}
	return nil
}

// tell writes release.json, and says where everything is.
func (r *release) tell(context.Context) error {
	data, err := json.MarshalIndent(r.made, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write what was made: %w", err)
	}
	if err := os.WriteFile(r.path("release.json"), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write what was made: %w", err)
	}
	fmt.Printf("version  %s, of commit %s\nfolder   %s\n", r.version, r.commit, r.out)
	for _, each := range allImaged {
		fmt.Printf("image    %s\n", *each.made(&r.made))
	}
	fmt.Printf("chart    %s\n", r.made.Chart)
	return nil
}
