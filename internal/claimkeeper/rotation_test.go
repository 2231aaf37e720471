// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// rotating is a provider whose server takes passwords once somebody has seen to it: the
// object altered says so.
const rotating = `
  versions: ["1.2"]
  passwords: [{name: app}]
  objects:
  - id: users
    template: {apiVersion: v1, kind: Secret, metadata: {name: "${claim.name}-users"}, stringData: {now: "${passwords.app}", before: "${previous.app}"}}
  - id: altered
    onRename: Delete
    dependsOn: [users]
    ready: object.metadata.annotations.altered == "yes"
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-${string(claim.rotation)}${claim.rotating ? 'a' : 'b'}"}}
  publishes:
  - {key: host, value: "${claim.name}.local"}
  - {key: password, value: "${passwords.app}"}
`

// alters says, as the server would, that it has taken the passwords.
func (f *fixture) alters(name string) {
	f.Helper()
	f.eventually(name+" is there", func() error {
		altered := &corev1.ConfigMap{}
		if err := f.client.Get(f.ctx, f.key(name), altered); err != nil {
			return err
		}
		f.patch(altered, `{"metadata":{"annotations":{"altered":"yes"}}}`)
		return nil
	})
}

// installs says, as Flux would, with which values a release is installed.
func (f *fixture) installs(release *unstructured.Unstructured, digest, ready string) {
	f.Helper()
	f.must(f.client.Status().Patch(f.ctx, release, client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(
		`{"status":{"observedGeneration":%d,"lastAttemptedConfigDigest":%q,"conditions":[{"type":"Ready","status":%q,"reason":"x","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
		release.GetGeneration(), digest, ready)))))
}

// The next passwords reach the binding once the server takes them, and the server takes those
// of before until each release that read them has the next ones.
func TestPasswordsRotate(t *testing.T) {
	f := newFixture(t)
	f.provider("a", rotating)
	f.claims("db", "")
	f.start(0)
	f.alters("db-0b")
	f.says("db", v1alpha1.ReasonBound)
	first := string(f.secret("db-binding").Data["password"])
	app, other := f.release("app", "db-binding", "password"), f.release("other", "db-binding", "host")
	f.installs(app, "sha256:one", "True")
	f.installs(other, "sha256:same", "True")

	t.Log("the server is told")
	f.patch(f.get("db"), `{"spec":{"rotation":{"number":1,"keepPrevious":"0s"}}}`)
	f.says("db", v1alpha1.ReasonProgressing, "ConfigMap "+f.shop+"/db-1a")
	f.condition("db", v1alpha1.RotatingCondition, v1alpha1.ReasonPreviousValid, "waits until the binding has them")
	users := f.secret("db-users")
	second := string(users.Data["now"])
	if second == first || string(users.Data["before"]) != first || string(f.secret("db-binding").Data["password"]) != first {
		t.Error("the binding does not have the password that the server has")
	}

	t.Log("the binding has them")
	f.alters("db-1a")
	f.condition("db", v1alpha1.RotatingCondition, v1alpha1.ReasonPreviousValid, "waits for HelmRelease app, which has yet to take them")
	f.says("db", v1alpha1.ReasonBound)
	if users := f.secret("db-users"); string(f.secret("db-binding").Data["password"]) != second || string(users.Data["before"]) != first {
		t.Error("the server does not take the password of before any more")
	}
	if number := f.get("db").Status.Rotation; number != 1 {
		t.Errorf("the status has the number %d", number)
	}
	f.gone(&corev1.ConfigMap{}, "db-0b")

	t.Log("another number waits, and so do a release that fails and a controller that is started anew")
	f.patch(f.get("db"), `{"spec":{"rotation":{"number":2}}}`)
	f.installs(app, "sha256:two", "False")
	f.condition("db", v1alpha1.RotatingCondition, v1alpha1.ReasonPreviousValid, "waits for HelmRelease app, which is not ready with them yet")
	f.end()
	f.start(0)
	f.settled()
	if users := f.secret("db-users"); string(users.Data["now"]) != second || string(users.Data["before"]) != first {
		t.Error("the passwords are others")
	}
	f.patch(f.get("db"), `{"spec":{"rotation":{"number":1}}}`)

	t.Log("the release has them")
	f.installs(app, "sha256:two", "True")
	f.alters("db-1b")
	f.eventually("the password of before goes", func() error {
		claim := f.get("db")
		if meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.RotatingCondition) != nil || !meta.IsStatusConditionTrue(claim.Status.Conditions, v1alpha1.ReadyCondition) {
			return fmt.Errorf("it says %+v", claim.Status.Conditions)
		}
		if users := f.secret("db-users"); string(users.Data["now"]) != second || len(users.Data["before"]) > 0 {
			return fmt.Errorf("the server has %d characters", len(users.Data["before"]))
		}
		return nil
	})
	f.gone(&corev1.ConfigMap{}, "db-1a")
	f.settled()
	if asked := f.settled(); len(asked) > 0 {
		t.Errorf("at rest it has asked for %v", asked)
	}
}

// A password that somebody has written is used for nothing until it is mended, which the message
// has the command for.
func TestWrittenPasswordsAreNotUsed(t *testing.T) {
	f := newFixture(t)
	f.provider("a", `
  passwords: [{name: app}]
  objects: [{id: users, template: {apiVersion: v1, kind: Secret, metadata: {name: "${claim.name}-users"}, stringData: {now: "${passwords.app}"}}}]
  publishes: [{key: password, value: "${passwords.app}"}]
`)
	f.claims("db", "")
	f.start(0)
	f.says("db", v1alpha1.ReasonBound)
	first := f.secret("db-binding").Data["password"]
	forged := base64.StdEncoding.EncodeToString([]byte("'; DROP ROLE app; --\nabcdefghijk"))
	f.patch(f.secret("db-passwords"), fmt.Sprintf(`{"data":{"app":%q}}`, forged))
	said := f.says("db", v1alpha1.ReasonInvalidPasswords, "kubectl patch secret -n "+f.shop+" db-passwords --type json -p ")
	f.settled()
	if users, binding := f.secret("db-users").Data["now"], f.secret("db-binding").Data["password"]; !bytes.Equal(users, first) || !bytes.Equal(binding, first) {
		t.Errorf("the password that was written is used: %q, %q", users, binding)
	}
	t.Log("what the message says mends it")
	message := meta.FindStatusCondition(said.Status.Conditions, v1alpha1.ReadyCondition).Message
	_, patch, _ := strings.Cut(message, "--type json -p '")
	patch, _, _ = strings.Cut(patch, "'")
	f.must(f.client.Patch(f.ctx, f.secret("db-passwords"), client.RawPatch(types.JSONPatchType, []byte(patch))))
	f.says("db", v1alpha1.ReasonBound)
	f.eventually("all have the next one", func() error {
		now := f.secret("db-passwords").Data["app"]
		if len(now) != len(first) || bytes.Equal(now, first) || !bytes.Equal(f.secret("db-binding").Data["password"], now) || !bytes.Equal(f.secret("db-users").Data["now"], now) {
			return fmt.Errorf("it is %q", now)
		}
		return nil
	})
}

// A controller that dies of any write in the middle of a rotation makes one password, and
// locks nobody out.
func TestKilledAtEveryWriteOfARotation(t *testing.T) {
	f := newFixture(t)
	f.provider("a", `
  passwords: [{name: app}]
  objects: [{id: users, template: {apiVersion: v1, kind: Secret, metadata: {name: "${claim.name}-users"}, stringData: {now: "${passwords.app}", before: "${previous.app}"}}}]
  publishes: [{key: password, value: "${passwords.app}"}]
`)
	f.claims("db", "")
	f.start(0)
	f.says("db", v1alpha1.ReasonBound)
	f.end()
	for at := 1; ; at++ {
		was := string(f.secret("db-binding").Data["password"])
		f.patch(f.get("db"), fmt.Sprintf(`{"spec":{"rotation":{"number":%d,"keepPrevious":"0s"}}}`, at))
		next := ""
		died := f.dies(at, func() {
			users, binding := f.secret("db-users").Data, string(f.secret("db-binding").Data["password"])
			if binding != string(users["now"]) && binding != string(users["before"]) {
				t.Errorf("write %d: the password of the binding gets nobody in", at)
			}
			if now := string(f.secret("db-passwords").Data["app"]); now != was {
				next = now
			}
		}, fmt.Sprintf("rotation %d is over", at), func() error {
			claim, users := f.get("db"), f.secret("db-users").Data
			if claim.Status.Rotation != int64(at) || meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.RotatingCondition) != nil || len(users["before"]) > 0 {
				return fmt.Errorf("it says %+v", claim.Status)
			}
			return f.isReady("db")
		})
		binding, users := string(f.secret("db-binding").Data["password"]), f.secret("db-users").Data
		if binding == was || binding != string(users["now"]) || next != "" && next != binding {
			t.Errorf("write %d: the password is not the next one", at)
		}
		if !died {
			if at < 5 {
				t.Errorf("it has made %d writes", at)
			}
			return
		}
	}
}
