// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	spdx "github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const nothingSaid = "NOASSERTION"

// program is one that was built, and of what it is made, as it says itself.
type program struct {
	name    string
	content []byte
	info    *debug.BuildInfo
}

// readProgram reads a program that was built.
func readProgram(name, path string) (program, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return program{}, fmt.Errorf("cannot read %s: %w", name, err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return program{}, fmt.Errorf("cannot read of what %s is made: %w", name, err)
	}
	return program{name, content, info}, nil
}

// bill writes the bill of materials of a program, in SPDX 2.3: the modules that the linker
// has put into it, as it says itself.
func (r *release) bill(name string, of program) error {
	data, err := json.MarshalIndent(r.document(name, of), "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the bill of %s: %w", name, err)
	}
	return r.keep(billOf(name), append(data, '\n'))
}

// billOf is the file of the bill of a program.
func billOf(name string) string { return "sbom/" + name + ".spdx.json" }

func (r *release) document(name string, of program) *v2_3.Document {
	sum := sha256.Sum256(of.content)
	checksum := hex.EncodeToString(sum[:])
	document := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: source + "/sbom/" + name + "/" + checksum,
		CreationInfo: &v2_3.CreationInfo{
			Creators: []spdx.Creator{{CreatorType: "Organization", Creator: "The Strata Authors"}}, Created: r.time.Format("2006-01-02T15:04:05Z"),
		},
	}
	own := spdx.ElementID("Package-program-" + unsafeInID.ReplaceAllString(of.name, "-"))
	document.Packages = append(document.Packages, &v2_3.Package{
		PackageName: of.name, PackageSPDXIdentifier: own, PackageVersion: r.version, PackageDownloadLocation: source,
		PackageChecksums: []spdx.Checksum{{Algorithm: spdx.SHA256, Value: checksum}}, PrimaryPackagePurpose: "APPLICATION",
		PackageLicenseConcluded: "Apache-2.0", PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: "Copyright The Strata Authors.",
		PackageExternalReferences: reference(of.info.Main.Path, r.version),
	})
	document.Relationships = append(document.Relationships, related("DOCUMENT", "DESCRIBES", own))
	parts := append([]*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(of.info.GoVersion, "go")}}, of.info.Deps...)
	for _, part := range parts {
		if part.Replace != nil {
			part = part.Replace
		}
		id := spdx.ElementID("Package-" + unsafeInID.ReplaceAllString(part.Path+"-"+part.Version, "-"))
		document.Packages = append(document.Packages, &v2_3.Package{
			PackageName: part.Path, PackageSPDXIdentifier: id, PackageVersion: part.Version, PackageDownloadLocation: nothingSaid,
			PackageLicenseConcluded: nothingSaid, PackageLicenseDeclared: nothingSaid, PackageCopyrightText: nothingSaid,
			PackageExternalReferences: reference(part.Path, part.Version),
		})
		document.Relationships = append(document.Relationships, related(own, "DEPENDS_ON", id))
	}
	return document
}

// unsafeInID is what identifiers of SPDX cannot have.
var unsafeInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func related(from spdx.ElementID, how string, to spdx.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{RefA: spdx.MakeDocElementID("", string(from)), RefB: spdx.MakeDocElementID("", string(to)), Relationship: how}
}

// reference is the package URL of a Go module, by which scanners know it.
func reference(path, version string) []*v2_3.PackageExternalReference {
	return []*v2_3.PackageExternalReference{{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: "pkg:golang/" + path + "@" + version}}
}

// licences returns Strata's licence and a notice with the licences of all modules in a
// program. A module without one is an error, since it may not be passed on.
func (r *release) licences(ctx context.Context, of program) ([]entry, error) {
	own, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the licence: %w", err)
	}
	modules := map[string]string{} // their versions, by their paths
	for _, module := range of.info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		modules[module.Path] = module.Version
	}
	if r.modules == nil {
		if r.modules, err = r.folders(ctx); err != nil {
			return nil, err
		}
	}
	var notice bytes.Buffer
	fmt.Fprintf(&notice, "Strata contains the following modules. Each one is followed by its licence.\n")
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		texts, err := licencesIn(r.modules[path])
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", path, err)
		}
		fmt.Fprintf(&notice, "\n%s\n%s %s\n", strings.Repeat("=", 80), path, modules[path])
		for _, text := range texts {
			fmt.Fprintf(&notice, "%s\n%s\n", strings.Repeat("-", 80), bytes.TrimSpace(text))
		}
	}
	return []entry{{"LICENSE", 0o644, own}, {"THIRD_PARTY_NOTICES.txt", 0o644, notice.Bytes()}}, nil
}

// folders returns where the modules of the build are on this machine, by their paths.
func (r *release) folders(ctx context.Context) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{with .Replace}}{{.Path}}\t{{.Dir}}{{else}}{{.Path}}\t{{.Dir}}{{end}}", "all")
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the modules: %w", err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(output)) {
		path, folder, _ := strings.Cut(strings.TrimSpace(line), "\t")
		found[path] = folder
	}
	return found, nil
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([.-].*)?$`)

// licencesIn returns the licences and notices in the folder of a module. There is always
// one: Go puts that of the repository into the archive of a module that has none.
func licencesIn(folder string) ([][]byte, error) {
	if folder == "" {
		return nil, fmt.Errorf("it is not on this machine: run go mod download")
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		if !file.IsDir() && licenceName.MatchString(file.Name()) {
			names = append(names, file.Name())
		}
	}
	if !slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(strings.ToLower(name), "notice") }) {
		return nil, fmt.Errorf("there is no licence in its folder %s", folder)
	}
	var texts [][]byte
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}
