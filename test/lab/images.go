// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// packetFilters are the packages of Debian that kube-proxy needs in its image.
var packetFilters = []string{
	"iptables", "nftables", "libc6", "libip4tc2", "libip6tc2", "libxtables12", "libnftnl11", "libmnl0", "libnetfilter-conntrack3", "libnfnetlink0",
	"libnftables1", "libjansson4", "libgmp10", "libedit2", "libtinfo6", "libbsd0", "libmd0",
}

// packetPrograms are links that Debian makes when it installs the packages.
var packetPrograms = []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"}

// Images serves to the hosts, as a registry, the images that kubeadm of a version wants,
// made of the programs that were built here, and one called example. It returns the
// address of the registry.
func (l *Lab) Images(version string) string {
	l.t.Helper()
	listener, err := net.Listen("tcp", l.IP()+":0")
	if err != nil {
		l.t.Fatal(err)
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(l.t.TempDir()))),
	}
	go func() { _ = server.Serve(listener) }()
	l.t.Cleanup(func() { _ = server.Close() })
	if err := l.pushImages(l.t.Context(), listener.Addr().String(), version); err != nil {
		l.t.Fatal(err)
	}
	return "http://" + listener.Addr().String()
}

// pushImages makes the images, and pushes them to a registry.
func (l *Lab) pushImages(ctx context.Context, host, version string) error {
	kubeadm, err := Program(ctx, "kubeadm")
	if err != nil {
		return err
	}
	list, err := exec.CommandContext(ctx, kubeadm, "config", "images", "list", "--kubernetes-version", version).Output()
	if err != nil {
		return fmt.Errorf("kubeadm does not say which images it wants: %w", err)
	}
	pod, err := buildPod(ctx, l.t.TempDir())
	if err != nil {
		return err
	}
	filters, err := Debian(ctx, "packet-filters", packetFilters...)
	if err != nil {
		return err
	}
	for _, image := range append(strings.Fields(string(list)), "registry.example.com/example:v1") {
		_, repository, _ := strings.Cut(image, "/")
		base, _, _ := strings.Cut(path.Base(repository), ":")
		var program, tree string
		switch base {
		case "pause", "example":
			program = pod
		case "kube-proxy":
			tree = filters
			program, err = RealProgram(base)
		case "coredns":
			program, err = RealProgram(base)
		default:
			program, err = Program(ctx, base)
		}
		if err != nil {
			return err
		}
		if err := push(ctx, host+"/"+repository, program, tree); err != nil {
			return fmt.Errorf("cannot make the image %s: %w", image, err)
		}
	}
	return nil
}

// push makes an image of a program, which is also its entry point, and of the files of a
// folder, where one is named.
func push(ctx context.Context, reference, program, tree string) error {
	ref, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		return err
	}
	archive, err := layerOf(program, tree)
	if err != nil {
		return err
	}
	image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{
		OS: "linux", Architecture: "amd64",
		Config: v1.Config{
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Entrypoint: []string{"/usr/local/bin/" + filepath.Base(program)},
		},
	})
	if err == nil {
		image, err = mutate.AppendLayers(image, static.NewLayer(archive, types.OCIUncompressedLayer))
	}
	if err != nil {
		return err
	}
	return remote.Write(ref, image, remote.WithContext(ctx))
}

// layerOf is an archive with a program in /usr/local/bin, and the files of a folder.
func layerOf(program, tree string) ([]byte, error) {
	archive := &bytes.Buffer{}
	w := tar.NewWriter(archive)
	if tree != "" {
		if err := addTree(w, tree); err != nil {
			return nil, err
		}
		for _, name := range packetPrograms {
			if err := w.WriteHeader(&tar.Header{Name: "usr/sbin/" + name, Linkname: "xtables-nft-multi", Typeflag: tar.TypeSymlink}); err != nil {
				return nil, err
			}
		}
	}
	data, err := os.ReadFile(program)
	if err == nil {
		err = w.WriteHeader(&tar.Header{Name: "usr/local/bin/" + filepath.Base(program), Mode: 0o755, Size: int64(len(data)), Typeflag: tar.TypeReg})
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	return archive.Bytes(), err
}

// addTree adds what is in a folder, but for its documentation.
func addTree(w *tar.Writer, tree string) error {
	return filepath.WalkDir(tree, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == tree {
			return err
		}
		relative, err := filepath.Rel(tree, file)
		if err != nil {
			return err
		}
		if relative == filepath.Join("usr", "share") {
			return filepath.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(file); err != nil {
				return err
			}
		}
		header, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		header.Name = relative
		if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
			return err
		}
		data, err := os.ReadFile(file)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
}
