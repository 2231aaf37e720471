// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive or of a layer. One without data whose name ends in a
// slash is a folder.
type entry struct {
	name string
	mode int64
	data []byte
}

// packed returns entries as a tar archive.
func packed(entries []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", e.name, err)
		}
		if _, err := writer.Write(e.data); err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", e.name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("cannot pack: %w", err)
	}
	return out.Bytes(), nil
}

// tarred returns entries as a .tar.gz.
func tarred(entries []entry, at time.Time) ([]byte, error) {
	data, err := packed(entries, at)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	// The header of gzip has no time here, which is what makes it the same each time.
	writer := gzip.NewWriter(&out)
	_, err = writer.Write(data)
	if err := errors.Join(err, writer.Close()); err != nil {
		return nil, fmt.Errorf("cannot compress: %w", err)
	}
	return out.Bytes(), nil
}

// zipped returns entries as a .zip, which is what Windows unpacks.
func zipped(entries []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	writer := zip.NewWriter(&out)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(e.mode))
		file, err := writer.CreateHeader(header)
		if err == nil {
			_, err = file.Write(e.data)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot pack %s: %w", e.name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("cannot pack: %w", err)
	}
	return out.Bytes(), nil
}

// archiveName is that of the plug-in for a platform.
func (r *release) archiveName(p platform) string {
	ending := ".tar.gz"
	if p.os == "windows" {
		ending = ".zip"
	}
	return fmt.Sprintf("kubectl-strata_%s_%s_%s%s", r.number, p.os, p.arch, ending)
}

// programName is that of the plug-in in its archive.
func programName(p platform) string {
	if p.os == "windows" {
		return "kubectl-strata.exe"
	}
	return "kubectl-strata"
}

// plugins makes the plug-in for every platform. It knows its version, the images, and the
// registry that has the charts of other versions.
func (r *release) plugins(ctx context.Context) error {
	if r.ociOnly {
		return nil
	}
	variables := map[string]string{"version": r.version, "image": r.made.Image, "hostsImage": r.made.HostsImage}
	if r.registry != "" {
		variables["registry"] = "oci://" + r.chartRepository()
	}
	work, err := os.MkdirTemp("", "strata-release-")
	if err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	defer os.RemoveAll(work)
	for _, p := range r.wanted {
		path := filepath.Join(work, programName(p))
		if err := r.build(ctx, "./cmd/kubectl-strata", path, p, variables); err != nil {
			return err
		}
		plugin, err := readProgram(fmt.Sprintf("kubectl-strata_%s_%s_%s", r.number, p.os, p.arch), path)
		if err != nil {
			return err
		}
		if err := r.bill(plugin.name, plugin); err != nil {
			return err
		}
		licences, err := r.licences(ctx, plugin)
		if err != nil {
			return err
		}
		pack := tarred
		if p.os == "windows" {
			pack = zipped
		}
		archive, err := pack(append([]entry{{programName(p), 0o755, plugin.content}}, licences...), r.time)
		if err != nil {
			return err
		}
		if err := r.keep(r.archiveName(p), archive); err != nil {
			return err
		}
	}
	return nil
}

// checksums lists the SHA-256 of every file, as sha256sum -c takes it.
func (r *release) checksums(context.Context) error {
	slices.Sort(r.made.Files)
	var lines bytes.Buffer
	for _, name := range r.made.Files {
		sum, err := r.sum(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, name)
	}
	if err := os.WriteFile(r.path("checksums.txt"), lines.Bytes(), 0o644); err != nil {
		return fmt.Errorf("cannot write the checksums: %w", err)
	}
	return nil
}

// sum is the SHA-256 of a file of the release.
func (r *release) sum(name string) (string, error) {
	data, err := os.ReadFile(r.path(name))
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", name, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
