// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package decisions_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/digests"
)

type ruling struct {
	Stage string `json:"stage,omitempty"`
	Count int    `json:"count,omitempty"`
}

const kind = "Platform"

func keyOf(t interface{ Fatal(...any) }, letter string) digests.Key {
	key, err := digests.NewKey([]byte(letter + "0123456789abcdefghijklmnopqrstu"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func object(name, uid, text string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Name: name, UID: types.UID(uid), Annotations: map[string]string{v1alpha1.DecidedAnnotation: text}}
}

// What is written is read again, and what nobody can have written is nothing at all,
// also where a part of it could be read.
func TestRead(t *testing.T) {
	some := ruling{Stage: "canary", Count: 2}
	seal, other := decisions.Seal{Key: keyOf(t, "a")}, decisions.Seal{Key: keyOf(t, "b")}
	signed := decisions.Text(some, object("base", "1", ""), kind, seal)
	plain := `{"stage":"canary","count":2}`
	for _, tc := range []struct {
		reason, name, uid, text string
		seal                    decisions.Seal
		want                    decisions.Standing
	}{
		{"it is the object's own", "base", "1", signed, seal, decisions.Whole},
		{"how it is written does not matter", "base", "1", strings.ReplaceAll(signed, ",", " , "), seal, decisions.Whole},
		{"the object was restored from a backup", "base", "2", signed, seal, decisions.Restored},
		{"the object is a copy under another name", "copy", "2", signed, seal, decisions.None},
		{"the key is another one", "base", "1", signed, other, decisions.Restored},
		{"the key is another one, and so is the object", "base", "2", signed, other, decisions.None},
		{"somebody has changed it", "base", "1", strings.Replace(signed, "2", "3", 1), seal, decisions.Restored},
		{"somebody has put in the UID of a copy", "copy", "2", strings.Replace(signed, `"uid":"1"`, `"uid":"2"`, 1), seal, decisions.Restored},
		{"it is older than signatures, and these are all done", "base", "1", plain, seal, decisions.None},
		{"it is older than signatures", "base", "1", plain, decisions.Seal{Key: keyOf(t, "a"), Unsigned: true}, decisions.Whole},
		{"a command has no key", "base", "1", signed, decisions.Seal{}, decisions.Whole},
		{"a command knows a copy", "base", "2", signed, decisions.Seal{}, decisions.None},
		{"nothing was decided", "base", "1", "", seal, decisions.None},
		{"nobody can read it", "base", "1", "x", seal, decisions.None},
		{"half of it is there", "base", "1", `{"stage":"canary"`, seal, decisions.None},
		{"a field is of another type", "base", "1", `{"stage":"canary","count":"y"}`, decisions.Seal{}, decisions.None},
	} {
		got, standing := decisions.Read[ruling](object(tc.name, tc.uid, tc.text), kind, tc.seal)
		if standing != tc.want || (standing == decisions.None) != (got == ruling{}) {
			t.Errorf("%s: it counts as %d: %+v", tc.reason, standing, got)
		}
	}
	if _, standing := decisions.Read[ruling](object("base", "1", signed), "AddonsLayer", seal); standing == decisions.Whole {
		t.Error("what is of one kind counts for another one")
	}
	if got := decisions.Text(ruling{}, object("base", "1", ""), kind, seal); got != "" {
		t.Errorf("nothing is written as %q", got)
	}
}

// What is older than signatures is signed once, and nothing else is.
func TestSign(t *testing.T) {
	seal := decisions.Seal{Key: keyOf(t, "a")}
	old := object("base", "1", `{"stage":"canary","later":{"b":1,"a":2}}`)
	signed, done := decisions.Sign(old, kind, seal)
	if got, standing := decisions.Read[ruling](object("base", "1", signed), kind, seal); !done || standing != decisions.Whole || got.Stage != "canary" || !strings.Contains(signed, `"later"`) {
		t.Errorf("%s counts as %d: %+v", signed, standing, got)
	}
	for _, text := range []string{"", "x", "{}", signed} {
		if again, done := decisions.Sign(object("base", "1", text), kind, seal); done {
			t.Errorf("%q is signed: %s", text, again)
		}
	}
}

// Whatever is changed of what was decided, or of whom it is: it counts wholly for nobody but the
// very object, and under another name for nothing unless its UID is changed, too.
func TestNothingCountsForAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names, uids := rapid.SampledFrom([]string{"base", "copy"}), rapid.SampledFrom([]string{"1", "2"})
		of := object(names.Draw(t, "name"), uids.Draw(t, "uid"), "")
		on := object(names.Draw(t, "name there"), uids.Draw(t, "uid there"), "")
		seal := decisions.Seal{Key: keyOf(t, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"))}
		text := decisions.Text(ruling{Stage: "canary", Count: rapid.IntRange(0, 99).Draw(t, "count")}, of, kind, seal)
		if at := rapid.IntRange(-1, len(text)-1).Draw(t, "changed at"); at >= 0 {
			text = text[:at] + rapid.SampledFrom([]string{"", "0", "x", "\""}).Draw(t, "changed to") + text[at+1:]
		}
		on.Annotations[v1alpha1.DecidedAnnotation] = text
		mine := decisions.Seal{Key: keyOf(t, "a")}
		got, standing := decisions.Read[ruling](on, kind, mine)
		isIts := of.Name == on.Name && of.UID == on.UID && seal.Key.Equal(mine.Key)
		if standing == decisions.Whole && (!isIts || decisions.Text(got, on, kind, mine) != decisions.Text(got, of, kind, mine)) {
			t.Fatalf("%s of %s/%s counts for %s/%s", text, of.Name, of.UID, on.Name, on.UID)
		}
		if standing == decisions.Whole {
			if whole, _ := decisions.Read[ruling](object(of.Name, string(of.UID), text), kind, seal); whole != got {
				t.Fatalf("%+v is read as %+v", whole, got)
			}
		}
	})
}
