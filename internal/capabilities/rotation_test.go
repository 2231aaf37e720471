// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/primaries"
)

// content returns what a Secret that is to be made holds.
func content(t *testing.T, object primaries.Object) map[string][]byte {
	t.Helper()
	data, _, err := unstructured.NestedStringMap(object.Object.Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	held := map[string][]byte{}
	for key, value := range data {
		if held[key], err = base64.StdEncoding.DecodeString(value); err != nil {
			t.Fatal(err)
		}
	}
	return held
}

// counted makes passwords that tell which one they are.
func counted() func(length int) string {
	made := 0
	return func(int) string { made++; return fmt.Sprintf("p%d", made) }
}

// Passwords are made once. A higher number makes the next, beside which those of before stay
// until all have the next ones; and nothing else changes them.
func TestPasswordsRotate(t *testing.T) {
	i := instanceOf(t, withPasswords, `{}`)
	fresh := counted()
	var have map[string][]byte
	for n, step := range []struct {
		number int64
		taken  bool
		want   map[string]string
	}{
		{0, false, map[string]string{"app": "p1"}},
		{0, false, map[string]string{"app": "p1"}},
		{0, true, map[string]string{"app": "p1"}},
		{2, true, map[string]string{"app": "p2", "app.previous": "p1", "rotation.number": "2"}},
		{2, false, map[string]string{"app": "p2", "app.previous": "p1", "rotation.number": "2"}},
		{3, false, map[string]string{"app": "p2", "app.previous": "p1", "rotation.number": "2"}},
		{3, true, map[string]string{"app": "p2", "rotation.number": "2"}},
		{3, false, map[string]string{"app": "p3", "app.previous": "p2", "rotation.number": "3"}},
		{1, true, map[string]string{"app": "p3", "rotation.number": "3"}},
		{1, true, map[string]string{"app": "p3", "rotation.number": "3"}},
	} {
		i.Claim.Spec.Rotation = &v1alpha1.CapabilityRotation{Number: step.number}
		made, has := i.PasswordsObject(have, step.taken, fresh)
		if !has || (have == nil) != (made.Mode == "CreateOnce") {
			t.Fatalf("step %d: it is %+v", n, made)
		}
		have = content(t, made)
		got := map[string]string{}
		for key, value := range have {
			got[key] = string(value)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("step %d: %s", n, diff)
		}
		with := i.WithPasswords(have)
		if with.Passwords["app"] != got["app"] || with.Previous["app"] != got["app.previous"] {
			t.Errorf("step %d: templates read %v and %v", n, with.Passwords, with.Previous)
		}
	}
	if lacks := i.WithPasswords(map[string][]byte{"app": nil}); lacks.Passwords != nil || lacks.Previous != nil {
		t.Error("passwords that are not there are some")
	}
}

// Whatever happens in which order: the password that somebody was given last is valid.
func TestWhoHasAPasswordGetsIn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		i := instanceOf(t, withPasswords, `{}`)
		fresh := counted()
		first, _ := i.PasswordsObject(nil, false, fresh)
		have := content(t, first)
		reader := string(have["app"])
		for range 30 {
			i.Claim.Spec.Rotation = &v1alpha1.CapabilityRotation{Number: rapid.Int64Range(0, 5).Draw(r, "number")}
			if rapid.Bool().Draw(r, "the reader looks") {
				reader = string(have["app"])
			}
			made, _ := i.PasswordsObject(have, reader == string(have["app"]), fresh)
			have = content(t, made)
			if reader != string(have["app"]) && reader != string(have["app.previous"]) {
				r.Fatalf("%s gets nobody in: %v", reader, have)
			}
		}
	})
}

// Passwords that the controller would not have made are not used: templates and plug-ins are
// promised that nothing of one has to be escaped.
func TestUnmadePasswords(t *testing.T) {
	i := instanceOf(t, withPasswords, `{}`)
	made := strings.Repeat("aZ09", 5)
	for _, test := range []struct {
		reason string
		have   map[string]string
		moved  bool
		want   []string
	}{
		{"there is none yet", nil, false, nil},
		{"one was removed, and is made anew", map[string]string{"app": ""}, false, nil},
		{"as they are made", map[string]string{"app": made, "app.previous": made, "rotation.number": "7"}, false, nil},
		{"what is no password of the provider is not read", map[string]string{"app": made, "other": "'"}, false, nil},
		{"a quote", map[string]string{"app": made[:19] + "'"}, false, []string{"app"}},
		{"a quote in the middle", map[string]string{"app": made[:9] + `"` + made[:10]}, false, []string{"app"}},
		{"a newline", map[string]string{"app": made[:19] + "\n"}, false, []string{"app"}},
		{"a NUL", map[string]string{"app": "\x00" + made[:19]}, false, []string{"app"}},
		{"no ASCII", map[string]string{"app": made[:18] + "é"}, false, []string{"app"}},
		{"what is no text", map[string]string{"app": made[:19] + "\xff"}, false, []string{"app"}},
		{"shorter", map[string]string{"app": made[:19]}, false, []string{"app"}},
		{"longer", map[string]string{"app": made + "a"}, false, []string{"app"}},
		{"the one of before counts, too", map[string]string{"app": made, "app.previous": "' OR 1"}, false, []string{"app.previous"}},
		{"both", map[string]string{"app": "$(x)", "app.previous": "a b"}, false, []string{"app", "app.previous"}},
		{"the provider of before had a longer one", map[string]string{"app": strings.Repeat("a", 64)}, true, nil},
		{"no provider has one so short", map[string]string{"app": "a"}, true, []string{"app"}},
		{"no provider has one so long", map[string]string{"app": strings.Repeat("a", 257)}, true, []string{"app"}},
		{"nor such a one", map[string]string{"app": made[:19] + "$"}, true, []string{"app"}},
	} {
		have := map[string][]byte{}
		for key, value := range test.have {
			have[key] = []byte(value)
		}
		problem := i.Unmade(have, test.moved)
		if (problem != nil) != (len(test.want) > 0) {
			t.Errorf("%s: %+v", test.reason, problem)
			continue
		}
		if problem == nil {
			continue
		}
		for _, key := range test.want {
			if !strings.Contains(problem.Message, `{"op":"remove","path":"/data/`+key+`"}`) {
				t.Errorf("%s: nothing mends %s: %s", test.reason, key, problem.Message)
			}
		}
		if !strings.Contains(problem.Message, "kubectl patch secret -n shop db-passwords") || strings.Contains(problem.Message, test.have["app"]) && len(test.have["app"]) > 1 {
			t.Errorf("%s: it says %s", test.reason, problem.Message)
		}
	}
}

const rotates = `
passwords: [{name: app}]
objects:
- {id: users, template: {apiVersion: v1, kind: Secret, metadata: {name: users}, stringData: {sql: "${passwords.app}/${previous.app}"}}}
- {id: alter, onRename: Delete, dependsOn: [users], template: {apiVersion: batch/v1, kind: Job, metadata: {name: "alter-${string(claim.rotation)}${claim.rotating ? 'a' : 'b'}"}}}
publishes: [{key: user, value: "app${string(claim.rotation % 2)}"}]
`

// Templates know which passwords there are, and whether those of before are valid; only
// Secrets know them.
func TestTemplatesOfRotation(t *testing.T) {
	i := instanceOf(t, rotates, `{}`)
	for _, test := range []struct {
		have           map[string][]byte
		sql, job, user string
	}{
		{map[string][]byte{"app": []byte("one")}, "one/", "alter-0b", "app0"},
		{map[string][]byte{"app": []byte("two"), "app.previous": []byte("one"), "rotation.number": []byte("1")}, "two/one", "alter-1a", "app1"},
		{map[string][]byte{"app": []byte("two"), "rotation.number": []byte("1")}, "two/", "alter-1b", "app1"},
	} {
		with := i.WithPasswords(test.have)
		with.Live["users"] = &unstructured.Unstructured{Object: map[string]any{}}
		with.Live["alter"] = with.Live["users"]
		made, err := with.Objects()
		if err != nil {
			t.Fatal(err)
		}
		sql, _, _ := unstructured.NestedString(made[0].Object.Object, "stringData", "sql")
		binding, err := with.Binding(nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if user := string(content(t, binding)["user"]); sql != test.sql || made[1].Object.GetName() != test.job || user != test.user || !made[1].Replaces {
			t.Errorf("of %v it makes %s, %s and %s", test.have, sql, made[1].Object.GetName(), user)
		}
	}
	for name, spec := range map[string]string{
		"a ConfigMap": "passwords: [{name: app}]\nobjects: [{id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: \"${previous.app}\"}}}]",
		"a condition": "passwords: [{name: app}]\nready: previous.app == ''",
		"a name":      "passwords: [{name: app}]\npublishes: [{key: a, secretKeyRef: {name: \"${previous.app}\", key: b}}]",
		"no password": "objects: [{id: a, template: {apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {x: \"${previous.app}\"}}}]",
	} {
		if _, wrong := capabilities.Understand(specOf(t, spec)); len(wrong) != 1 {
			t.Errorf("%s: it says %q", name, wrong)
		}
	}
}

// release is one that reads keys of the binding of the claim db.
func release(name, digest, ready string, keys ...string) *unstructured.Unstructured {
	var from []any
	for _, key := range keys {
		from = append(from, map[string]any{"kind": "Secret", "name": "db-binding", "valuesKey": key})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": map[string]any{"name": name, "namespace": "shop", "generation": int64(1)},
		"spec": map[string]any{"valuesFrom": from},
		"status": map[string]any{
			"observedGeneration": int64(1), "lastAttemptedConfigDigest": digest,
			"conditions": []any{map[string]any{"type": "Ready", "status": ready}},
		},
	}}
}

// Passwords of before are valid until each release that had them is ready with others, and
// until each claim that is bound to this one says the same; and for a while in any case.
func TestWhoHasTakenThePasswords(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	claim := &v1alpha1.CapabilityClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	binding := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "db-binding", "namespace": "shop"},
			"data": map[string]any{"password": "dHdv", "host": "aG9zdA=="},
		}}
	}
	before := map[string][]byte{"password": []byte("one"), "host": []byte("host")}
	reads, other := release("shop", "one", "True", "password"), release("other", "one", "True", "host")
	marked := binding()
	capabilities.Mark(marked, binding(), before, 1, []*unstructured.Unstructured{reads, other}, now)
	rotation := capabilities.RotationOf(marked)
	if diff := cmp.Diff(capabilities.Rotation{Number: 1, Since: now, Readers: map[string]string{"shop": "one"}}, rotation); diff != "" {
		t.Fatal(diff)
	}
	again := binding()
	capabilities.Mark(again, marked, nil, 1, []*unstructured.Unstructured{other}, now.Add(time.Hour))
	if diff := cmp.Diff(rotation, capabilities.RotationOf(again)); diff != "" {
		t.Error("what was noted changes: " + diff)
	}
	borrower := func(number int64, reader *unstructured.Unstructured) *capabilities.Taking {
		// What its status says, whoever has written it, is not asked.
		of := &v1alpha1.CapabilityClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "reports", Name: "db"}, Status: v1alpha1.CapabilityClaimStatus{Rotation: 99}}
		taking := &capabilities.Taking{Claim: of, Number: 1, Binding: capabilities.Rotation{Number: number, Since: now}}
		if reader != nil {
			taking.Binding.Readers = map[string]string{"shop": "one"}
			taking.Releases = []*unstructured.Unstructured{reader}
		}
		return taking
	}
	suspended := release("shop", "two", "True")
	suspended.Object["spec"] = map[string]any{"suspend": true}
	for name, test := range map[string]struct {
		release  *unstructured.Unstructured
		after    time.Duration
		borrower *capabilities.Taking
		keep     time.Duration
		want     string
	}{
		"not yet":         {reads, time.Hour, nil, 0, "waits for HelmRelease shop, which has yet to take them"},
		"in the making":   {release("shop", "two", "Unknown"), time.Hour, nil, 0, "waits for HelmRelease shop, which is not ready with them yet"},
		"suspended":       {suspended, time.Hour, nil, 0, "waits for HelmRelease shop, which is suspended"},
		"taken":           {release("shop", "two", "True"), time.Minute, nil, 0, ""},
		"a moment ago":    {release("shop", "two", "True"), time.Second, nil, 0, "stay until 2026-01-02T03:05:05Z"},
		"gone":            {nil, time.Minute, nil, 0, ""},
		"kept for longer": {release("shop", "two", "True"), time.Minute, nil, 2 * time.Minute, "stay until 2026-01-02T03:06:05Z"},
		"shared":          {release("shop", "two", "True"), time.Hour, borrower(0, nil), 0, "waits for CapabilityClaim reports/db, which is bound to this one"},
		"passed on":       {release("shop", "two", "True"), time.Hour, borrower(1, reads), 0, "waits for CapabilityClaim reports/db, which is bound to this one"},
		"taken there":     {release("shop", "two", "True"), time.Hour, borrower(1, release("shop", "two", "True")), 0, ""},
	} {
		taking := capabilities.Taking{Claim: claim.DeepCopy(), Number: 1, Binding: rotation, Now: now.Add(test.after)}
		if test.release != nil {
			taking.Releases = append(taking.Releases, test.release)
		}
		if test.borrower != nil {
			test.borrower.Now = taking.Now
			taking.Sharing = append(taking.Sharing, *test.borrower)
		}
		if test.keep > 0 {
			taking.Claim.Spec.Rotation = &v1alpha1.CapabilityRotation{Number: 1, KeepPrevious: &metav1.Duration{Duration: test.keep}}
		}
		if got, _ := taking.Waits(); got != test.want {
			t.Errorf("%s: it says %q", name, got)
		}
	}
	nobody := capabilities.Taking{Claim: claim, Number: 1, Binding: capabilities.Rotation{Number: 1, Since: now}, Now: now.Add(59 * time.Minute)}
	if got, until := nobody.Waits(); got != "stay until 2026-01-02T04:04:05Z" || !until.Equal(now.Add(time.Hour)) {
		t.Errorf("of those whom nobody is known to read it says %q", got)
	}
	afar := claim.DeepCopy()
	afar.Spec.Cluster, afar.Spec.ClusterBinding = "edge", "db"
	workloads := capabilities.Taking{Claim: afar, Number: 1, Binding: rotation, Releases: []*unstructured.Unstructured{release("shop", "two", "True")}, Now: now.Add(59 * time.Minute)}
	if got, _ := workloads.Waits(); got != "stay until 2026-01-02T04:04:05Z" {
		t.Errorf("of those that workloads of another cluster read it says %q", got)
	}
	late := capabilities.Taking{Claim: claim, Number: 2, Binding: rotation, Now: now.Add(time.Hour)}
	if got, _ := late.Waits(); got != "waits until the binding has them" {
		t.Errorf("before the binding has them it says %q", got)
	}
	if hostile := (&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.RotationAnnotation: `{"number": "x`}}}}); capabilities.RotationOf(hostile).Number != 0 {
		t.Error("what cannot be read is something")
	}
	if strings.Contains(fmt.Sprint(marked.GetAnnotations()), "dHdv") {
		t.Error("the annotation tells a value")
	}
}
