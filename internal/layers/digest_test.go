// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
)

// testKey is a key of these tests.
func testKey(t *testing.T, first byte) digests.Key {
	t.Helper()
	data := make([]byte, 32)
	for i := range data {
		data[i] = first + byte(i)
	}
	key, err := digests.NewKey(data)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// pinned is a Secret with a PIN of four digits.
func pinned(pin string) directories.Manifest {
	return directories.Manifest{File: "base/pin.yaml", Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "addons", "name": "pin"},
		"data": map[string]any{"pin": base64.StdEncoding.EncodeToString([]byte(pin))},
	}}}
}

// guess tries all PINs against a status, as somebody would who may read that and
// nothing else, and knows everything about the layer but the PIN.
func guess(status v1alpha1.AddonsLayerStatus, dir func(pin string) *directories.Directory) (string, bool) {
	text := fmt.Sprintf("%+v", status)
	for i := range 10000 {
		pin := fmt.Sprintf("%04d", i)
		candidate := dir(pin)
		seen := []string{digests.Key{}.OfDirectory(candidate.Manifests)}
		content, err := Content(candidate, "base", "1.0.0", nil)
		if err != nil {
			return err.Error(), false
		}
		for _, d := range content {
			if digests.IsSecret(d.Manifest()) {
				seen = append(seen, d.Digest)
			}
		}
		for _, digest := range seen {
			if _, hex, _ := strings.Cut(digest, ":"); strings.Contains(text, digest) || hex != "" && strings.Contains(text, hex[:12]) {
				return pin, true
			}
		}
	}
	return "", false
}

// Whoever may read a layer's status cannot tell from it what a Secret of the layer
// holds, however few values it may have.
func TestStatusDoesNotLetASecretBeGuessed(t *testing.T) {
	const pin = "4711"
	for name, tc := range map[string]struct {
		key     digests.Key
		guessed bool
	}{
		"plain digests": {guessed: true}, // the attack works
		"with the key":  {key: testKey(t, 7)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := func(pin string) *directories.Directory {
				return directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), pinned(pin))
			}
			deployed := dir(pin)
			deployed.Digest = tc.key.OfDirectory(deployed.Manifests)
			o := observation(layer(withRollback), deployed, lives(live("a")))
			o.Settings.DigestKey = tc.key
			decision := Decide(o)
			status, _ := Report(o, decision, nil)
			for i := range status.Resources {
				content, err := o.content(deployed, "1.0.0")
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range content {
					if d.ID.Name == status.Resources[i].Name {
						status.Resources[i].Digest = d.Digest // as it is once it was applied
					}
				}
			}
			found, is := guess(status, dir)
			if is != tc.guessed || is && found != pin {
				t.Errorf("the guess is %q (%v), want %v", found, is, tc.guessed)
			}
		})
	}
}

// Only Secrets have digests that need the key, and the same key says the same.
func TestKeyedDigests(t *testing.T) {
	one, other := testKey(t, 7), testKey(t, 9)
	plain, secret := []directories.Manifest{directoriestest.HelmRelease("a")}, []directories.Manifest{directoriestest.HelmRelease("a"), pinned("4711")}
	if one.OfDirectory(plain) != (digests.Key{}).OfDirectory(plain) || digests.IsKeyed(one.OfDirectory(plain)) {
		t.Error("a directory without Secrets has another digest with a key")
	}
	again := one.OfDirectory([]directories.Manifest{directoriestest.HelmRelease("a"), pinned("4711")})
	if !digests.IsKeyed(again) || one.OfDirectory(secret) == other.OfDirectory(secret) || one.OfDirectory(secret) != again {
		t.Errorf("digests of a directory with a Secret are %s and %s", one.OfDirectory(secret), other.OfDirectory(secret))
	}
	if one.OfObject(secret[1].Object, false) == one.OfObject(pinned("4712").Object, false) || one.OfObject(plain[0].Object, false) != other.OfObject(plain[0].Object, false) {
		t.Error("digests of objects do not tell them apart, or need a key where nothing is secret")
	}
	for name, fits := range map[string]struct {
		key    digests.Key
		digest string
		want   bool
	}{
		"its own":                   {one, one.OfDirectory(secret), true},
		"of another key":            {one, other.OfDirectory(secret), false},
		"of before there was a key": {one, digests.Key{}.OfDirectory(secret), true},
		"without a key":             {digests.Key{}, one.OfDirectory(secret), false},
		"of something else":         {one, one.OfDirectory([]directories.Manifest{pinned("4711")}), false},
	} {
		if got := fits.key.Fits(secret, fits.digest); got != fits.want {
			t.Errorf("%s: fits %v, want %v", name, got, fits.want)
		}
	}
}

// A key is not told, and what is no key is refused.
func TestDigestKeyIsNotTold(t *testing.T) {
	key := testKey(t, 'a')
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, Settings{DigestKey: key}); strings.Contains(text, "abcdef") || strings.Contains(text, "97 98 99") {
			t.Errorf("%s tells the key: %s", format, text)
		}
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "a key has 32 bytes, and this has 0"},
		{[]byte("short"), "a key has 32 bytes, and this has 5"},
		{make([]byte, 64), "a key has 32 bytes, and this has 64"},
		{make([]byte, 32), "a key is random, and this has 1 different bytes"},
		{bytes.Repeat([]byte("ab"), 16), "a key is random, and this has 2 different bytes"},
	} {
		if _, err := digests.NewKey(c.data); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %q", c.data, err, c.want)
		}
	}
}

// Another key makes nothing of a layer's past unknown: the content that its source has
// is the one that is deployed, or that it has gone back from.
func TestAnotherKeyIsRecognised(t *testing.T) {
	was, is := testKey(t, 7), testKey(t, 9)
	manifests := []directories.Manifest{directoriestest.HelmRelease("a"), pinned("4711")}
	artifact := &v1alpha1.ArtifactReference{Digest: "sha256:x", Path: "./base"}
	for name, before := range map[string]string{"a lost key": was.OfDirectory(manifests), "no key": digests.Key{}.OfDirectory(manifests)} {
		t.Run(name, func(t *testing.T) {
			l := layer()
			l.Spec.Source.Path = "./base"
			l.Status.Digest = before
			l.Status.Attempt = &v1alpha1.Attempt{Digest: before, Artifact: artifact}
			l.Status.Rollback = &v1alpha1.Rollback{Digest: before, Revision: "main@sha1:1"}
			l.Status.History = []v1alpha1.HistoryEntry{{ID: "2", Digest: before, Kept: true, Artifact: artifact}, {ID: "1", Digest: "sha256:other", Kept: true}}
			dir := &directories.Directory{Manifests: manifests, Digest: is.OfDirectory(manifests), Revision: "main@sha1:1"}
			got := Recognised(l, &Source{Digest: "sha256:x"}, dir).Status
			if got.Digest != dir.Digest || got.Attempt.Digest != dir.Digest || got.Rollback.Digest != dir.Digest || got.History[0].Digest != dir.Digest || got.History[0].Kept {
				t.Errorf("the status is %+v", got)
			}
			if got.History[1].Digest != "sha256:other" || !got.History[1].Kept || l.Status.Digest != before {
				t.Errorf("another content has changed, or the layer itself: %+v", got.History[1])
			}
			if other := Recognised(l, &Source{Digest: "sha256:another"}, dir); other != l {
				t.Error("what another artifact holds is taken for what is deployed")
			}
		})
	}
}

// A user who may write only a status passes no other content off as one that was let through
// a guard, or that the layer has gone back from.
func TestForgedStatusIsNotRecognised(t *testing.T) {
	key := testKey(t, 7)
	manifests := []directories.Manifest{directoriestest.HelmRelease("a"), pinned("4711")}
	l := layer()
	l.Spec.Source.Path = "./base"
	l.Status.Attempt = &v1alpha1.Attempt{
		Digest: "sha256:earlier", Allowed: []string{allowedEmpty}, Artifact: &v1alpha1.ArtifactReference{Digest: "sha256:x", Path: "./base"},
	}
	l.Status.Rollback = &v1alpha1.Rollback{Digest: "sha256:earlier", Revision: "main@sha1:1"}
	dir := &directories.Directory{Manifests: manifests, Digest: key.OfDirectory(manifests), Revision: "main@sha1:2"}
	got := Recognised(l, &Source{Digest: "sha256:x"}, dir).Status
	if got.Attempt.Allowed != nil {
		t.Error("a guard is open for content that was never looked at")
	}
	if got.Rollback.Digest == dir.Digest {
		t.Error("content is held back that the layer has not gone back from")
	}
}

// No layer may put a key there that it knows, or take the one away that is there.
func TestNoLayerWritesTheDigestKey(t *testing.T) {
	secret := func(name, kind string) directories.Manifest {
		made := pinned("4711")
		made.Object.SetName(name)
		made.Object.Object["type"] = kind
		return made
	}
	for name, tc := range map[string]struct {
		manifest directories.Manifest
		refused  bool
	}{
		"by its name":     {secret(v1alpha1.DigestKeyName, "Opaque"), true},
		"by its type":     {secret("mine", v1alpha1.DigestKeyType), true},
		"another Secret":  {secret("mine", "Opaque"), false},
		"another of kind": {directoriestest.HelmRelease(v1alpha1.DigestKeyName), false},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(observation(layer(), directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), tc.manifest)))
			if refused := d.Reason == v1alpha1.ReasonReservedObject; refused != tc.refused || refused && !d.Stalled {
				t.Errorf("the decision is %s: %s", d.Reason, d.Message)
			}
		})
	}
}

// What a layer goes back to has the digests that a status may have, too.
func TestRollbackNeedsTheKey(t *testing.T) {
	key := testKey(t, 7)
	dir := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a", "interval", "1m"), pinned("4711"))
	o := observation(failingLayer(0, goingBack), secondDir, restored(dir))
	o.Settings.DigestKey = key
	written := 0
	for _, action := range Decide(o).Plan.Actions {
		wanted := action.Wanted
		if wanted == nil || !digests.IsSecret(wanted.Manifest()) {
			continue
		}
		written++
		if wanted.Digest != key.OfObject(wanted.Manifest(), false) || wanted.Digest == (digests.Key{}).OfObject(wanted.Manifest(), false) {
			t.Errorf("%s of %s has the digest %s", action.Verb, wanted.ID, wanted.Digest)
		}
	}
	if written == 0 {
		t.Error("the Secret is not written")
	}
}

// A MAC is that of its parts, one by one, for its purpose and with its key; without a
// key there is none.
func TestMAC(t *testing.T) {
	key := testKey(t, 7)
	mac := key.MAC("a", "b", "cd")
	if !key.IsMAC(mac, "a", "b", "cd") {
		t.Error("it is not recognised")
	}
	for reason, same := range map[string]bool{
		"parts go over into each other": key.IsMAC(mac, "a", "bc", "d"),
		"a part more":                   key.IsMAC(mac, "a", "b", "cd", ""),
		"another purpose":               key.IsMAC(mac, "ab", "cd"),
		"another key":                   testKey(t, 9).IsMAC(mac, "a", "b", "cd"),
		"no MAC":                        key.IsMAC("", "a", "b", "cd"),
		"no key":                        digests.Key{}.IsMAC("", "a", "b", "cd") || digests.Key{}.IsMAC(digests.Key{}.MAC("a"), "a"),
	} {
		if same {
			t.Errorf("%s: it is taken for the same", reason)
		}
	}
}
