// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/mod/modfile"
)

// Whoever has the public key can check images and chart, in both forms of signatures, and
// of what and how they are made.
func TestReleaseIsSigned(t *testing.T) {
	ctx := t.Context()
	check := []string{"--key", stack.key + ".pub", "--insecure-ignore-tlog"}
	for _, address := range []string{stack.made.Image, stack.made.HostsImage, stack.made.Chart} {
		for _, form := range []string{"--new-bundle-format=true", "--new-bundle-format=false"} {
			if _, err := command(ctx, cosign(), append(append([]string{"verify", form}, check...), address)...); err != nil {
				t.Errorf("%s: %v", form, err)
			}
		}
		text, err := command(ctx, cosign(), append(append([]string{"verify-attestation", "--type", "slsaprovenance1"}, check...), address)...)
		must(t, err)
		if !strings.Contains(payload(t, text), stack.made.Commit) {
			t.Errorf("the provenance of %s does not name the commit %s: %s", address, stack.made.Commit, payload(t, text))
		}
	}
	dist := filepath.Join(stack.dir, "dist")
	_, err := command(ctx, cosign(), append(append([]string{"verify-blob"}, check...), "--bundle",
		filepath.Join(dist, "checksums.txt.sigstore.json"), filepath.Join(dist, "checksums.txt"))...)
	must(t, err)

	// The bill of each image names what its program has, in the version of go.mod, and nothing
	// of the other program.
	data, err := os.ReadFile(filepath.Join(stack.root, "go.mod"))
	must(t, err)
	pins, err := modfile.ParseLax("go.mod", data, nil)
	must(t, err)
	versions := map[string]string{}
	for _, require := range pins.Require {
		versions[require.Mod.Path] = require.Mod.Version
	}
	for address, has := range map[string]map[string]bool{
		stack.made.Image:      {"k8s.io/client-go": true, "github.com/getsops/sops/v3": true, "go.etcd.io/etcd/etcdutl/v3": false},
		stack.made.HostsImage: {"k8s.io/client-go": true, "github.com/getsops/sops/v3": false, "go.etcd.io/etcd/etcdutl/v3": true},
	} {
		text, err := command(ctx, cosign(), append(append([]string{"verify-attestation", "--type", "spdxjson"}, check...), address)...)
		must(t, err)
		for module, want := range has {
			if versions[module] == "" {
				t.Errorf("go.mod does not have %s", module)
			}
			if got := strings.Contains(payload(t, text), "pkg:golang/"+module+"@"+versions[module]); got != want {
				t.Errorf("the bill of materials of %s has %s: %v, want %v", address, module, got, want)
			}
		}
	}
}

// payload is the statement in what cosign prints of an attestation.
func payload(t *testing.T, printed string) string {
	t.Helper()
	var all strings.Builder
	for line := range strings.Lines(printed) {
		var envelope struct {
			Payload string `json:"payload"`
		}
		must(t, json.Unmarshal([]byte(line), &envelope))
		text, err := base64.StdEncoding.DecodeString(envelope.Payload)
		must(t, err)
		all.Write(text)
	}
	return all.String()
}

// Another key does not fit, and neither does the signature of one image another image.
func TestForeignSignaturesAreRefused(t *testing.T) {
	ctx := t.Context()
	other := filepath.Join(stack.dir, "other")
	must(t, newKey(ctx, other))
	if _, err := command(ctx, cosign(), "verify", "--key", other+".pub", "--insecure-ignore-tlog", stack.made.Image); err == nil {
		t.Error("another key fits")
	}
	signed, err := name.NewDigest(stack.made.Image)
	must(t, err)
	index, err := remote.Index(signed)
	must(t, err)
	forged := mutate.Annotations(index, map[string]string{"org.opencontainers.image.version": "0.0.1"}).(v1.ImageIndex)
	target, err := name.NewTag(repository("strata") + ":forged")
	must(t, err)
	must(t, remote.WriteIndex(target, forged))
	digest, err := forged.Digest()
	must(t, err)
	if _, err := command(ctx, cosign(), "verify", "--key", stack.key+".pub", "--insecure-ignore-tlog", target.Context().Digest(digest.String()).String()); err == nil {
		t.Error("what was not signed counts as signed")
	}
}
