// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// releases are a kustomization of some HelmReleases.
func releases(n int) *Request {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r%d, namespace: a}\nspec: {interval: 5m, values: {a: b, c: [1, 2, 3]}}\n", i)
	}
	return request("resources: [a.yaml]\nnamePrefix: x-\n", all.String())
}

func request(kustomization, resource string) *Request {
	return &Request{Directory: "base", Files: map[string][]byte{"base/kustomization.yaml": []byte(kustomization), "base/a.yaml": []byte(resource)}}
}

func TestBuild(t *testing.T) {
	got, err := Build(t.Context(), releases(1))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Kind != "HelmRelease" || got[0].Name != "x-r0" || !strings.Contains(got[0].Text, "c: [1, 2, 3]") || !strings.Contains(string(got[0].JSON), `"c":[1,2,3]`) {
		t.Errorf("got %+v", got)
	}
	_, err = Build(t.Context(), request("resources: [b.yaml]\n", ""))
	var refusal *Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, "b.yaml: file does not exist") {
		t.Errorf("a file that is not there: %v", err)
	}
	sorted := request("resources: [a.yaml]\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n")
	sorted.Sorted = true
	if got, err := Build(t.Context(), sorted); err != nil || len(got) != 2 || got[0].Kind != "Namespace" {
		t.Errorf("the Namespace is not first: %+v %v", got, err)
	}
}

// bomb is a patch that doubles what it has with each line.
func bomb(lines int, op string) *Request {
	text := "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |-\n" + strings.Repeat("    - "+op+"\n", lines)
	return request(text, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {l: [v]}\n")
}

// doubling is a tree of kustomizations, each of which has the next one twice.
func doubling(levels int) *Request {
	files := map[string][]byte{}
	for i := range levels {
		files[fmt.Sprintf("k%d/kustomization.yaml", i)] = fmt.Appendf(nil, "resources: [../a%d, ../b%d]\n", i, i)
		for _, side := range []string{"a", "b"} {
			files[fmt.Sprintf("%s%d/kustomization.yaml", side, i)] = fmt.Appendf(nil, "resources: [../k%d]\nnamePrefix: %s-\n", i+1, side)
		}
	}
	files[fmt.Sprintf("k%d/kustomization.yaml", levels)] = []byte("resources: [a.yaml]\n")
	files[fmt.Sprintf("k%d/a.yaml", levels)] = []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n")
	return &Request{Directory: "k0", Files: files}
}

// What an author can make grow ends with the process that it grows in, and says so.
func TestBuildIsBounded(t *testing.T) {
	// The race detector takes ten times as long: what is to end by another limit must
	// not come to that of processor time before.
	small := limits{memory: 96 << 20, cpu: 30 * time.Second, time: 3 * time.Minute, output: 1 << 20}
	replaced := request("resources: [a.yaml]\nreplacements:\n"+strings.Repeat("- source: {kind: ConfigMap, fieldPath: data}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.k, data.m], options: {create: true}}]\n", 40),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {l: [v, v, v, v]}\n")
	circle := request("resources: [a.yaml]\ncrds: [c.json]\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	circle.Files["base/c.json"] = []byte(`{"a.b.v1.C": {"Schema": {"type": "object", "properties": {"metadata": {"$ref": "k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta"}, "kind": {"type": "string"}, "apiVersion": {"type": "string"}, "spec": {"$ref": "a.b.v1.D"}}}}, "a.b.v1.D": {"Schema": {"properties": {"d": {"$ref": "a.b.v1.D"}}}}}`)
	var vars, data strings.Builder
	for i := range 40 {
		fmt.Fprintf(&vars, "- {name: V%d, objref: {apiVersion: v1, kind: ConfigMap, name: a}, fieldref: {fieldPath: data.v%d}}\n", i, i)
		fmt.Fprintf(&data, "  v%d: $(V%d)$(V%d)\n", i, i+1, i+1)
	}
	data.WriteString("  v40: x\n")
	variables := request("resources: [a.yaml]\nconfigurations: [c.yaml]\nvars:\n"+vars.String(), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n"+data.String())
	variables.Files["base/c.yaml"] = []byte("varReference:\n- {kind: ConfigMap, path: data}\n")
	for name, c := range map[string]struct {
		request *Request
		within  limits
		says    string
	}{
		"copies of a patch":      {bomb(40, "{op: copy, from: /data/l, path: /data/l/-}"), standard, "exceeding the limit"},
		"bases in bases":         {doubling(20), limits{memory: 2 << 30, cpu: time.Second, time: 3 * time.Minute, output: 1 << 20}, "takes more than 1s of processor time"},
		"replacements":           {replaced, small, "takes more than"},
		"CRDs in a circle":       {circle, small, "takes more than"},
		"variables in variables": {variables, small, ""},
		"deep YAML":              {request("resources: [a.yaml]\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: "+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+"\n"), small, ""},
		"too many values":        {request("resources: [a.yaml]\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: ["+strings.Repeat("1,", 300_000)+"]\n"), small, "takes more than 96 MiB of memory"},
		"a large answer":         {request("configMapGenerator: [{name: a, files: [a.yaml]}]\n", strings.Repeat("x", 2<<20)), small, "makes more than 1 MiB of objects"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := build(t.Context(), c.request, c.within)
			var refusal *Refusal
			var ended *Ended
			if c.says != "" && (!errors.As(err, &refusal) && !errors.As(err, &ended) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%T: %v, want %q", err, err, c.says)
			}
			t.Logf("%s: %T %.200v", time.Since(began), err, err)
		})
	}
	if _, err := Build(t.Context(), releases(1)); err != nil {
		t.Errorf("the next build: %v", err)
	}
}

// A build that goes on and on holds up no other, and ends with whoever asked for it.
func TestBuildHoldsUpNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := build(ctx, doubling(20), limits{memory: 4 << 30, cpu: time.Hour, time: time.Hour, output: 1 << 20}); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	})
	for range 3 {
		if _, err := Build(t.Context(), releases(1)); err != nil {
			t.Errorf("beside it: %v", err)
		}
	}
	cancel()
	group.Wait()
	// One that can hardly run is worth another try: it is not its author's mistake.
	_, err := build(t.Context(), doubling(20), limits{memory: 4 << 30, cpu: time.Hour, time: time.Millisecond, output: 1 << 20})
	// A busy machine may not even start it in that time.
	if err == nil || !strings.Contains(err.Error(), "a build was given up after 1ms") && !errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, new(*Ended)) || errors.As(err, new(*Refusal)) {
		t.Errorf("with no time at all: %v", err)
	}
}

// Nothing is left in the folder for temporary files.
func TestBuildLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, text := range []string{"resources: [a.yaml]\n", "resources: ['https://example.invalid/a/b']\n", "resources: ['file:///nowhere?ref=x']\n"} {
		_, _ = Build(t.Context(), request(text, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"))
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A process that is started by its name, by somebody else, does nothing.
func TestNobodyElseStartsABuild(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{marker}, "a build is started by the program itself"},
		{[]string{marker, "1"}, "a build is started by the program itself"},
		{[]string{marker, "a", "1"}, `cannot read the limit of memory: strconv.ParseUint: parsing "a"`},
		{[]string{marker, "1", "b"}, `cannot read the limit of processor time: strconv.Atoi: parsing "b"`},
		{[]string{marker, "1", "1", "1"}, "a build is started by the program itself"},
	} {
		if _, err := parseLimits(c.arguments); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.arguments, err, c.want)
		}
	}
}

// BenchmarkBuild measures what a process for each build adds, beside the same build in
// this one: 100 kustomizations of 10 releases.
func BenchmarkBuild(b *testing.B) {
	const many = 100
	b.Run("process", func(b *testing.B) {
		for b.Loop() {
			for range many {
				if _, err := Build(b.Context(), releases(10)); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("here", func(b *testing.B) {
		for b.Loop() {
			for range many {
				of := releases(10)
				if err := Observed(Files(of.Files), of, func(*Object) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
