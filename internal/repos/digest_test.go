// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestDigestProperty splits the same objects into files at random: neither the
// digest nor the order of the objects may tell.
func TestDigestProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 12).Draw(t, "count")
		var texts []string
		for i := range count {
			texts = append(texts, release(fmt.Sprint("r", i)))
		}
		split := func(label string) (string, []string) {
			fsys := files()
			order := rapid.Permutation(texts).Draw(t, label+" order")
			for _, text := range order {
				name := rapid.SampledFrom([]string{"a.yaml", "b.yml", "sub/c.yaml", "sub/deep/a.yaml"}).Draw(t, label+" file")
				if fsys[name] == nil {
					fsys[name] = files(name, "# head\n")[name]
				}
				fsys[name].Data = append(fsys[name].Data, []byte("---\n"+text)...)
			}
			got, err := Parse(context.Background(), fsys, ".")
			if err != nil {
				t.Fatal(err)
			}
			return got.Digest, objs(got)
		}
		digest, order := split("one")
		digest2, order2 := split("two")
		if digest != digest2 || !cmp.Equal(order, order2) {
			t.Fatalf("the files tell: %s %v, %s %v", digest, order, digest2, order2)
		}
		if (digest == EmptyDigest) != (count == 0) {
			t.Fatalf("%d objects have the digest %s", count, digest)
		}
	})
}

func TestDigestTellsObjectsApart(t *testing.T) {
	digests := map[string]string{}
	for _, text := range []string{
		"", release("a"), release("b"), release("a") + "---\n" + release("b"), strings.Replace(release("a"), "1m", "2m", 1),
		strings.Replace(release("a"), "addons", "other", 1), configMap("a", "{n: 1}"), configMap("a", "{n: '1'}"), configMap("a", "{n: 9007199254740993}"), configMap("a", "{n: 9007199254740992}"),
	} {
		got, err := Parse(context.Background(), files("a.yaml", text), ".")
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := digests[got.Digest]; ok {
			t.Errorf("the same digest for\n%s\nand\n%s", other, text)
		}
		digests[got.Digest] = text
	}
}

func BenchmarkParse(b *testing.B) {
	fsys := files()
	for i := range 500 {
		text := release(fmt.Sprint("r", i)) + "  values:\n"
		for j := range 40 {
			text += fmt.Sprintf("    key%d:\n      enabled: true\n      image: {repository: example.com/app, tag: \"1.%d\"}\n", j, j)
		}
		fsys[fmt.Sprintf("releases/r%d.yaml", i)] = files("x", text)["x"]
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(context.Background(), fsys, "."); err != nil {
			b.Fatal(err)
		}
	}
}
