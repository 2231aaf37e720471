// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// envPrebuilt has the demo download programs when it is 1.
const envPrebuilt = "STRATA_PREBUILT"

//go:embed prebuilt.txt
var prebuiltArchives string

// What an archive may have and take: those of envtest have 60 MiB.
const (
	maxArchive     = 512 << 20
	downloadWithin = 5 * time.Minute
)

// prebuilt returns the folder with the programs of the archive that a list has for this
// platform. The archive is downloaded once, and nothing of it is used before its digest
// was compared. Without a line for this platform the folder is empty.
func prebuilt(ctx context.Context, list, cache string, wanted []string) (string, error) {
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == runtime.GOOS+"/"+runtime.GOARCH {
			folder := filepath.Join(cache, "prebuilt", fields[2][:min(16, len(fields[2]))])
			return folder, fetch(ctx, fields[1], fields[2], folder, wanted)
		}
	}
	return "", nil
}

// fetch makes a folder of the wanted programs of an archive, unless it is there.
func fetch(ctx context.Context, address, digest, folder string, wanted []string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(folder), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	ctx, cancel := context.WithTimeout(ctx, downloadWithin)
	defer cancel()
	archive := filepath.Join(temp, "archive")
	if err := download(ctx, address, digest, archive); err != nil {
		return fmt.Errorf("cannot download %s: %w", address, err)
	}
	if err := unpack(archive, temp, wanted); err != nil {
		return fmt.Errorf("cannot unpack %s: %w", address, err)
	}
	if err := os.Remove(archive); err != nil {
		return err
	}
	return os.Rename(temp, folder)
}

// download writes what an address has to a file, which must have a SHA-512.
func download(ctx context.Context, address, digest, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	sum := sha512.New()
	_, err = io.Copy(io.MultiWriter(out, sum), io.LimitReader(response.Body, maxArchive))
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("its SHA-512 is %s, want %s", got, digest)
	}
	return nil
}

// unpack writes the wanted programs of an archive into a folder, whatever their folders are
// in it.
func unpack(archive, folder string, wanted []string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	compressed, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	for files := tar.NewReader(compressed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Base(header.Name)
		if header.Typeflag != tar.TypeReg || !slices.Contains(wanted, name) {
			continue
		}
		out, err := os.OpenFile(filepath.Join(folder, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
		if err != nil {
			return err
		}
		_, err = io.CopyN(out, files, header.Size)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
}
