// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/builds"
)

func TestHostileArchives(t *testing.T) {
	entry := func(name string, kind byte, link string) tar.Header {
		return tar.Header{Name: name, Typeflag: kind, Linkname: link, Mode: 0o644}
	}
	file := func(name, content string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(content))}
	}
	whole := archive(t, "a/r.yaml", release("a"))
	cases := map[string]struct {
		reason string
		data   []byte
		want   string // empty: it is fine
	}{
		"climbs":           {"nothing leaves the folder", pack(t, []tar.Header{file("../x", "a")}, []string{"a"}), "../x: its name leaves the artifact"},
		"climbs inside":    {"also where it would come back", pack(t, []tar.Header{file("a/../../x", "a")}, []string{"a"}), "a/../../x: its name leaves the artifact"},
		"ends in dots":     {"a name of the folder above", pack(t, []tar.Header{entry("a/..", tar.TypeDir, "")}, nil), "a/..: its name leaves the artifact"},
		"absolute":         {"nothing leaves the folder", pack(t, []tar.Header{file("/etc/x", "a")}, []string{"a"}), "/etc/x: its name is absolute"},
		"symlink out":      {"links lead anywhere", pack(t, []tar.Header{entry("a/l", tar.TypeSymlink, "/etc/passwd")}, nil), "a/l: is a symbolic link"},
		"symlink inside":   {"dropping it would drop a manifest", pack(t, []tar.Header{entry("a/l", tar.TypeSymlink, "r.yaml")}, nil), "a/l: is a symbolic link"},
		"hard link":        {"it would be an empty file", pack(t, []tar.Header{entry("a/l", tar.TypeLink, "a/r.yaml")}, nil), "a/l: is a hard link"},
		"device":           {"it is no file", pack(t, []tar.Header{entry("a/d", tar.TypeChar, "")}, nil), "a/d: is a device"},
		"pipe":             {"reading it would hang", pack(t, []tar.Header{entry("a/p", tar.TypeFifo, "")}, nil), "a/p: is a pipe"},
		"long part":        {"no file system holds it", pack(t, []tar.Header{file("a/"+strings.Repeat("x", 300), "")}, nil), "a part of its name has 300 bytes: 255 are allowed"},
		"long name":        {"nobody writes it", pack(t, []tar.Header{file(strings.Repeat("x/", 3000)+"y", "")}, nil), "its name has 6001 bytes: 1024 are allowed"},
		"twice":            {"one of the two would win", pack(t, []tar.Header{file("a/x", "a"), file("a/x", "b")}, []string{"a", "b"}), "a/x: is in the artifact twice"},
		"file and folder":  {"a name is one thing", pack(t, []tar.Header{file("a", "a"), file("a/x", "b")}, []string{"a", "b"}), "a: is in the artifact twice, or as a file and a directory"},
		"folder and file":  {"a name is one thing", pack(t, []tar.Header{file("a/x", "b"), file("a", "a")}, []string{"b", "a"}), "a: is in the artifact twice, or as a file and a directory"},
		"file and entry":   {"a name is one thing", pack(t, []tar.Header{file("a", "a"), entry("a", tar.TypeDir, "")}, []string{"a", ""}), "a: is in the artifact twice, or as a file and a directory"},
		"the top":          {"it is a folder", pack(t, []tar.Header{file(".", "a")}, []string{"a"}), ".: is in the artifact twice, or as a file and a directory"},
		"long names":       {"memory is bounded: names count", names40(t), "unpacks to more than the 1048576 bytes"},
		"no gzip":          {"the format is fixed", []byte("hello"), "not a tar archive compressed with gzip"},
		"no tar":           {"the format is fixed", zip(t, bytes.Repeat([]byte("x"), 2000)), "not a tar archive that can be read"},
		"cut off":          {"half an artifact would prune the rest", whole[:len(whole)/2], "unexpected EOF"},
		"bomb in one file": {"disk is bounded", bomb(t, 10<<30), "unpacks to more than the 1048576 bytes"},
		"many headers":     {"inodes are bounded, and time", headers(t, maxEntries+1), "more than the 100000 files"},
		"nothing":          {"an empty source has an empty artifact", pack(t, nil, nil), ""},
		"unreadable modes": {"the mode is of no use to us", pack(t, []tar.Header{{Name: "a", Typeflag: tar.TypeDir}, {Name: "a/r.yaml", Typeflag: tar.TypeReg, Size: 1, Mode: 0}}, []string{"", "#"}), ""},
		"root folder":      {"tar writes it", pack(t, []tar.Header{entry("./", tar.TypeDir, ""), file("./a/x", "a")}, []string{"", "a"}), ""},
		"global header":    {"git archive writes it", pack(t, []tar.Header{{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "c"}}}, nil), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			store := newStore(t, Options{Dir: filepath.Join(parent, "cache"), MaxArtifact: 1 << 20})
			_, err := store.Directory(context.Background(), newOrigin(t).serve("x", limited(t, c.data)), "./a", builds.Build{})
			reason, text := mistake(err)
			if c.want == "" {
				if err != nil {
					t.Errorf("%s: %v", c.reason, err)
				}
				return
			}
			if reason != "ArtifactRefused" || !strings.Contains(text, c.want) || len(text) > 400 {
				t.Errorf("%s: got %s: %s", c.reason, reason, text)
			}
			if left := append(names(t, store.options.Dir), names(t, parent)[1:]...); len(left) > 0 {
				t.Errorf("%s: left behind: %v", c.reason, left)
			}
		})
	}
}

// limited lets archives through that are larger packed than a test's limit.
func limited(t *testing.T, data []byte) []byte {
	t.Helper()
	if len(data) <= 1<<20 {
		return data
	}
	t.Fatalf("the archive has %d bytes", len(data))
	return nil
}

func zip(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write(data)
	_ = writer.Close()
	return out.Bytes()
}

// bomb claims a file of a size in its header; what follows is cut off.
func bomb(t testing.TB, size int64) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	writer := tar.NewWriter(zipped)
	if err := writer.WriteHeader(&tar.Header{Name: "a/zeros", Typeflag: tar.TypeReg, Size: size}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.CopyN(writer, zeros{}, 4<<20)
	_ = zipped.Close()
	return out.Bytes()
}

// names40 holds 40 000 names of 40 bytes, and nothing else.
func names40(t testing.TB) []byte {
	t.Helper()
	all := make([]tar.Header, 40_000)
	for i := range all {
		all[i] = tar.Header{Name: fmt.Sprintf("%040d", i), Typeflag: tar.TypeReg}
	}
	return pack(t, all, nil)
}

func headers(t testing.TB, count int) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	writer := tar.NewWriter(zipped)
	for range count {
		if err := writer.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeDir}); err != nil {
			t.Fatal(err)
		}
	}
	_ = writer.Close()
	_ = zipped.Close()
	return out.Bytes()
}

// TestBombMemory unpacks ten gigabytes of zeros, in one file, in one header of
// a name, and in headers without end, in a process of its own whose memory is
// then known. What that has before it begins, which is the test's program, does not count.
func TestBombMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	if testing.Short() {
		t.Skip("compresses gigabytes")
	}
	kind := os.Getenv("STRATA_TEST_BOMB")
	if kind != "" {
		unpackBomb(t, kind)
		return
	}
	for _, kind := range []string{"file", "entries", "header"} {
		t.Run(kind, func(t *testing.T) {
			command := exec.Command(os.Args[0], "-test.run=^TestBombMemory$", "-test.v")
			command.Env = append(os.Environ(), "STRATA_TEST_BOMB="+kind)
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			_, after, _ := strings.Cut(string(out), "peak ")
			peak, err := strconv.Atoi(strings.Fields(after + " ?")[0])
			if err != nil || peak > 128<<10 {
				t.Errorf("took %d KiB of memory:\n%s", peak, out)
			}
			t.Logf("peak memory %d KiB", peak)
		})
	}
}

func unpackBomb(t *testing.T, kind string) {
	t.Helper()
	before := memoryOf(t, "VmRSS:")
	in, out := io.Pipe()
	go func() {
		zipped, _ := gzip.NewWriterLevel(out, gzip.BestSpeed)
		writer := tar.NewWriter(zipped)
		switch kind {
		case "file":
			_ = writer.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 60 << 20})
			_, _ = io.CopyN(writer, zeros{}, 60<<20)
			_ = writer.WriteHeader(&tar.Header{Name: "b", Typeflag: tar.TypeReg, Size: 10 << 30})
			_, _ = io.CopyN(writer, zeros{}, 10<<30)
		case "entries":
			for i := range 1 << 20 {
				if writer.WriteHeader(&tar.Header{Name: fmt.Sprint("d", i%9), Typeflag: tar.TypeDir, PAXRecords: map[string]string{"x.y": strings.Repeat("z", 9<<10)}}) != nil {
					break
				}
			}
		case "header":
			// A name of ten gigabytes, as GNU tar writes long names.
			header := make([]byte, 512)
			copy(header, "././@LongLink")
			copy(header[124:136], "\x80\x00\x00\x00\x00\x00\x00\x02\x80\x00\x00\x00")
			header[156] = 'L'
			copy(header[257:], "ustar  \x00")
			checksum(header)
			_, _ = zipped.Write(header)
			_, _ = io.CopyN(zipped, zeros{}, 10<<30)
		}
		_ = zipped.Close()
		_ = out.Close()
	}()
	_, err := untar(in, io.Discard, DefaultMaxArtifact)
	_ = in.Close()
	want := map[string]string{"file": "unpacks to more than", "entries": "unpacks to more than", "header": "header field too long"}[kind]
	if reason, text := mistake(err); want == "" || reason != "ArtifactRefused" || !strings.Contains(text, want) {
		t.Errorf("got %s: %s", reason, text)
	}
	fmt.Println("peak", memoryOf(t, "VmHWM:")-before)
}

// memoryOf returns a figure of this process's status in KiB.
func memoryOf(t *testing.T, name string) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), name)
	size, err := strconv.Atoi(strings.Fields(after + " ?")[0])
	if err != nil {
		t.Fatal(err)
	}
	return size
}

func checksum(header []byte) {
	copy(header[148:156], "        ")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
}
