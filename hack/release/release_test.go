// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	spdx "github.com/spdx/tools-golang/json"

	"github.com/strata-project/strata/chart"
)

func TestWhatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no version":          {nil, `--version is ""`},
		"a version without v": {[]string{"--version", "0.2.0"}, "it must be like v0.2.0"},
		"build metadata":      {[]string{"--version", "v0.2.0+now"}, "without build metadata"},
		"two parts":           {[]string{"--version", "v0.2"}, "it must be like v0.2.0"},
		"another platform":    {[]string{"--version", "v0.2.0", "--platforms", "plan9/386"}, `--platforms has "plan9/386"`},
		"no image":            {[]string{"--version", "v0.2.0", "--platforms", "darwin/arm64"}, "there would be no image"},
		"nowhere to push":     {[]string{"--version", "v0.2.0", "--push"}, "--push needs --registry"},
		"an argument":         {[]string{"v0.2.0"}, "there are no arguments"},
	} {
		if err := run(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Archives have nothing of the moment in them, and what is in them can be run.
func TestArchives(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	entries := []entry{{"kubectl-strata", 0o755, []byte("program")}, {"LICENSE", 0o644, []byte("text")}}
	for name, pack := range map[string]func([]entry, time.Time) ([]byte, error){"tar.gz": tarred, "zip": zipped} {
		first, err := pack(entries, at)
		if err != nil {
			t.Fatal(err)
		}
		second, err := pack(entries, at.In(time.FixedZone("elsewhere", 5*3600)).UTC())
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
	data, err := packed(entries, at)
	if err != nil {
		t.Fatal(err)
	}
	reader := tar.NewReader(bytes.NewReader(data))
	header, err := reader.Next()
	if err != nil || header.Name != "kubectl-strata" || header.Mode != 0o755 || !header.ModTime.Equal(at) || header.Uname != "" {
		t.Errorf("%v: %+v", err, header)
	}
	if data, err = zipped(entries, at); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil || archive.File[0].Mode() != 0o755 || !archive.File[0].Modified.Equal(at) {
		t.Errorf("%v: %v", err, archive.File[0].FileHeader)
	}
}

// The image trusts authorities that Go can read, and there are many.
func TestCertificates(t *testing.T) {
	for _, e := range base() {
		if e.name != "etc/ssl/certs/ca-certificates.crt" {
			continue
		}
		pool := x509.NewCertPool()
		if count := bytes.Count(e.data, []byte("BEGIN CERTIFICATE")); !pool.AppendCertsFromPEM(e.data) || count < 100 {
			t.Errorf("%d certificates", count)
		}
		return
	}
	t.Error("there are no certificates")
}

// A bill is SPDX that the library of SPDX reads, and says what the program says.
func TestBill(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info.Deps = append(info.Deps, &debug.Module{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/new", Version: "v1.1.0"}})
	r := &release{settings: settings{version: "v1.2.3"}, time: time.Unix(0, 0).UTC()}
	data, err := json.Marshal(r.document("strata", program{"strata", []byte("program"), info}))
	if err != nil {
		t.Fatal(err)
	}
	read, err := spdx.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(read.Packages), len(info.Deps)+2; got != want || len(read.Relationships) != want {
		t.Errorf("%d packages and %d relationships, want %d", got, len(read.Relationships), want)
	}
	for _, want := range []string{"pkg:golang/stdlib@", "pkg:golang/example.com/new@v1.1.0", "pkg:golang/github.com/strata-project/strata@v1.2.3"} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("%s is not in the bill", want)
		}
	}
	if bytes.Contains(data, []byte("example.com/old")) {
		t.Error("a module that was replaced is in the bill")
	}
}

// Nobody may pass on a module without a licence.
func TestLicences(t *testing.T) {
	folder := t.TempDir()
	if _, err := licencesIn(""); err == nil || !strings.Contains(err.Error(), "go mod download") {
		t.Error(err)
	}
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("NOTICE.md")
	write("licensing.go")
	if _, err := licencesIn(folder); err == nil || !strings.Contains(err.Error(), "there is no licence") {
		t.Error(err)
	}
	write("LICENSE-MIT")
	write("COPYING")
	texts, err := licencesIn(folder)
	if err != nil || string(bytes.Join(texts, []byte(" "))) != "COPYING LICENSE-MIT NOTICE.md" {
		t.Errorf("%v: %s", err, texts)
	}
}

// The chart of a release names its images by their digests, keeps its comments, and is the
// chart of the tree otherwise.
func TestReleasedChart(t *testing.T) {
	const image = "registry.example/strata-project/strata@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	const hosts = "registry.example/strata-project/strata-hosts@sha256:abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
	loaded, err := chart.Load(chart.Release{Version: "1.2.3", Image: image, HostsImage: hosts})
	if err != nil {
		t.Fatal(err)
	}
	own, err := chart.Load(chart.Release{})
	if err != nil {
		t.Fatal(err)
	}
	values := loaded.Values["image"].(map[string]any)
	if values["repository"].(string)+"@"+values["digest"].(string) != image || loaded.Metadata.AppVersion != "1.2.3" || loaded.Metadata.Version != "1.2.3" {
		t.Errorf("%v of %s", values, loaded.Metadata.Version)
	}
	of := loaded.Values["hosts"].(map[string]any)["image"].(map[string]any)
	if of["repository"] != "" || "registry.example/strata-project/strata-hosts@"+of["digest"].(string) != hosts {
		t.Errorf("the image of the controller of hosts is %v", of)
	}
	if listed := loaded.Metadata.Annotations["artifacthub.io/images"]; !strings.Contains(listed, "image: "+image+"\n") || !strings.Contains(listed, "image: "+hosts+"\n") {
		t.Errorf("the images are listed as %q", listed)
	}
	for i, file := range own.Raw {
		was, is := string(file.Data), string(loaded.Raw[i].Data)
		if file.Name == "values.yaml" {
			if strings.Count(was, "#") != strings.Count(is, "#") {
				t.Error("comments are lost")
			}
			continue
		}
		if was != is {
			t.Errorf("%s differs", file.Name)
		}
	}
	for reason, c := range map[string]struct {
		release chart.Release
		want    string
	}{
		"a tag":                     {chart.Release{Image: "registry.example/strata:1.2.3", HostsImage: hosts}, "has no digest"},
		"one image of two":          {chart.Release{Image: image}, "is not registry.example/strata-project/strata-hosts with a digest"},
		"images that lie elsewhere": {chart.Release{Image: image, HostsImage: strings.Replace(hosts, "strata-project", "other", 1)}, "is not registry.example/strata-project/strata-hosts with a digest"},
	} {
		if _, err := chart.Load(c.release); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", reason, err, c.want)
		}
	}
}
