// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/reserved"
)

func newKey(t *testing.T, text string) digests.Key {
	t.Helper()
	key, err := digests.NewKey([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The MAC of a record is that of no other one: not of another claim, number or purpose, of other
// data, or by another key.
func TestSignedRecords(t *testing.T) {
	key, other := newKey(t, "0123456789abcdefghijklmnopqrstuv"), newKey(t, "vutsrqponmlkjihgfedcba9876543210")
	record := capabilities.Record{Of: capabilities.RecordOfClaim, UID: "one", Number: 2, Data: []byte(`{"provider":"a","spec":{"n":10000000000000000001}}`)}
	mac := record.MAC(key)
	for _, c := range []struct {
		reason string
		change func(*capabilities.Record)
		key    digests.Key
		want   bool
	}{
		{"as it was written", func(*capabilities.Record) {}, key, true},
		{"in another order, and with blanks", func(r *capabilities.Record) {
			r.Data = []byte(`{ "spec": {"n": 10000000000000000001}, "provider": "a" }`)
		}, key, true},
		{"another claim", func(r *capabilities.Record) { r.UID = "two" }, key, false},
		{"a higher number", func(r *capabilities.Record) { r.Number = 9 }, key, false},
		{"a provider", func(r *capabilities.Record) { r.Of = capabilities.RecordOfProvider }, key, false},
		{"other data", func(r *capabilities.Record) { r.Data = []byte(`{"provider":"b"}`) }, key, false},
		{"a number that is nearly the same", func(r *capabilities.Record) { r.Data = []byte(`{"provider":"a","spec":{"n":10000000000000000002}}`) }, key, false},
		{"no JSON", func(r *capabilities.Record) { r.Data = []byte(`{`) }, key, false},
		{"another key", func(*capabilities.Record) {}, other, false},
		{"no key", func(*capabilities.Record) {}, digests.Key{}, false},
	} {
		changed := record
		c.change(&changed)
		if got := changed.IsSigned(c.key, mac); got != c.want {
			t.Errorf("%s: it counts: %v", c.reason, got)
		}
	}
	if record.IsSigned(key, "") || record.IsSigned(digests.Key{}, record.MAC(digests.Key{})) {
		t.Error("a record without a MAC counts")
	}
}

// What is asked to be signed again is a record as it was seen, and no other one of its name.
func TestAskedToSign(t *testing.T) {
	record := capabilities.Record{Of: capabilities.RecordOfClaim, UID: "one", Number: 2, Data: []byte(`{"provider":"a"}`)}
	asked := capabilities.ParseAsked(capabilities.Asked{record.Name(): record.Digest(), "claim.three.1": "x"}.String() + " rest")
	if !asked.Allows(record) || !asked.Names("one") || !asked.Names("three") || asked.Names("on") {
		t.Errorf("%v", asked)
	}
	changed, other := record, record
	changed.Data, other.UID = []byte(`{"provider":"b"}`), "two"
	if asked.Allows(changed) || asked.Allows(other) || capabilities.ParseAsked(record.Name()+"=").Allows(capabilities.Record{Of: record.Of, UID: record.UID, Number: 2}) {
		t.Error("another record is signed")
	}
}

// What the status of a claim lists counts where the controller has written it, for that claim.
func TestObjectsOf(t *testing.T) {
	key := newKey(t, "0123456789abcdefghijklmnopqrstuv")
	claim := &v1alpha1.CapabilityClaim{}
	claim.UID = types.UID("one")
	claim.Status.Objects = []v1alpha1.Dependent{{ID: "users", Of: "a", Kind: "Secret", Namespace: "shop", Name: "db-users"}}
	claim.Status.ObjectsMAC = capabilities.SignObjects(key, "one", claim.Status.Objects)
	if got, is := capabilities.ObjectsOf(key, claim); !is || !cmp.Equal(got, claim.Status.Objects) {
		t.Errorf("%v, %v", got, is)
	}
	for reason, change := range map[string]func(*v1alpha1.CapabilityClaim){
		"nothing is listed":      func(c *v1alpha1.CapabilityClaim) { c.Status.Objects = nil },
		"nothing, and no MAC":    func(c *v1alpha1.CapabilityClaim) { c.Status.Objects, c.Status.ObjectsMAC = nil, "" },
		"another ID":             func(c *v1alpha1.CapabilityClaim) { c.Status.Objects[0].ID = "other" },
		"another digest":         func(c *v1alpha1.CapabilityClaim) { c.Status.Objects[0].Digest = "x" },
		"it is of another claim": func(c *v1alpha1.CapabilityClaim) { c.UID = "two" },
		"without a MAC":          func(c *v1alpha1.CapabilityClaim) { c.Status.ObjectsMAC = "" },
	} {
		forged := claim.DeepCopy()
		change(forged)
		if got, is := capabilities.ObjectsOf(key, forged); is || got != nil {
			t.Errorf("%s: %v counts", reason, got)
		}
	}
	if capabilities.SignObjects(key, "one", nil) != "" {
		t.Error("an empty list has a MAC that somebody could put into any status of the claim")
	}
}

// Before the present plug-in is the one that was recorded, as it ran; a status says nothing of it.
func TestServedBefore(t *testing.T) {
	now := v1alpha1.CapabilityProviderSpec{Capability: "database/x", Plugin: &v1alpha1.CapabilityPlugin{Digest: "sha256:new", Memory: nil}}
	var none *capabilities.Served
	served := &capabilities.Served{Provider: "a", Plugin: v1alpha1.CapabilityPluginStatus{Image: "oci://here/x", Digest: "sha256:old"}, Run: v1alpha1.PluginDeployment}
	if none.Before(now) != nil || served.Before(v1alpha1.CapabilityProviderSpec{}) != nil {
		t.Error("there is one that nobody has recorded, or needs")
	}
	same := now.DeepCopy()
	same.Plugin.Digest = "sha256:old"
	if served.Before(*same) != nil {
		t.Error("the present plug-in was before itself")
	}
	if before := served.Before(now); before == nil || before.Plugin.Digest != "sha256:old" || before.Plugin.Run != v1alpha1.PluginDeployment || !strings.HasPrefix(before.Plugin.Image, "oci://here") {
		t.Errorf("%+v", before)
	}
}

// The names of records are those that no layer may list.
func TestNamesOfRecordsAreReserved(t *testing.T) {
	for _, of := range []capabilities.RecordOf{capabilities.RecordOfClaim, capabilities.RecordOfProvider} {
		id := objects.ID{Group: "apps", Kind: "ControllerRevision", Namespace: "strata-system", Name: capabilities.Record{Of: of, UID: "4f3c", Number: 9}.Name()}
		if got := reserved.Name(id, "strata-system"); got != reserved.KeptRecord {
			t.Errorf("%s is %q", id, got)
		}
	}
}
