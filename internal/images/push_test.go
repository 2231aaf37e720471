// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"testing"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/strata-project/strata/internal/images"
)

// elfOf is the head of a program for a machine; with an interpreter it needs libraries.
func elfOf(t *testing.T, machine elf.Machine, needsLibraries bool) []byte {
	t.Helper()
	var out bytes.Buffer
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	part := elf.Prog64{Type: uint32(elf.PT_LOAD)}
	if needsLibraries {
		part.Type = uint32(elf.PT_INTERP)
	}
	if err := binary.Write(&out, binary.LittleEndian, header); err != nil {
		t.Fatal(err)
	}
	if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What is pushed is fetched again, each program by its own platform; and the same has the same
// digest.
func TestPushedIsFetched(t *testing.T) {
	f := newFixture(t)
	var programs []images.Built
	for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
		program, err := images.BuiltFrom(elfOf(t, machine, false))
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, program)
	}
	var digests []string
	for _, tag := range []string{":1.0.0", ":again"} {
		digest, err := images.Push(t.Context(), f.address()+tag, programs, auth.StaticCredential("", auth.EmptyCredential))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("the same has the digests %v", digests)
	}
	found, err := f.store.Program(t.Context(), images.Image{Address: f.address(), Digest: digests[0]})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(found.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		if same := bytes.Equal(content, program.Content); same != (program.Architecture == runtime.GOARCH) {
			t.Errorf("on %s the program for %s is run: %v", runtime.GOARCH, program.Architecture, same)
		}
	}
}

// What cannot run in an image of its own is not pushed.
func TestWhatIsNotPushed(t *testing.T) {
	for want, content := range map[string][]byte{
		"it is no program of Linux":           []byte("#!/bin/sh\n"),
		"it needs libraries":                  elfOf(t, elf.EM_X86_64, true),
		"it is for EM_SPARC, which is not":    elfOf(t, elf.EM_SPARC, false),
		"it is no program of Linux: build it": nil,
	} {
		if _, err := images.BuiltFrom(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	f := newFixture(t)
	program, err := images.BuiltFrom(elfOf(t, elf.EM_X86_64, false))
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		f.address(): "has no tag", "https://x/y:1": "is no address of an image", f.address() + "@sha256:" + strings.Repeat("1", 64): "is no address of an image",
	} {
		if _, err := images.Push(t.Context(), address, []images.Built{program}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := images.Push(t.Context(), f.address()+":1", []images.Built{program, program}, nil); err == nil || !strings.Contains(err.Error(), "two programs are for amd64") {
		t.Errorf("the same twice: %v", err)
	}
}
