// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/providers/providerstest"
	"github.com/strata-project/strata/test/forged"
)

// forgedPlugin is a status that names a program.
func forgedPlugin(image, digest string) []byte {
	return fmt.Appendf(nil, `{"status":{"plugin":{"image":%q,"digest":%q}}}`, image, digest)
}

func (f *fixture) forge(obj client.Object, patch []byte) {
	f.Helper()
	f.must(f.client.Status().Patch(f.ctx, obj, client.RawPatch(types.MergePatchType, patch)))
}

// A program that a status names is not started: not while the plug-in that the provider names
// does not serve, not as one of the cluster or as a process, and not by a controller that begins.
func TestStatusOfAProviderStartsNothing(t *testing.T) {
	t.Run("of the cluster", func(t *testing.T) {
		c := newCluster(t)
		provider := c.offered("a", c.plugin(c.push(providerstest.Unhealthy), ""))
		c.start(0)
		c.providerSays("a", "the server is away")
		honest := c.only(1)
		for _, begins := range []bool{false, true} {
			if begins {
				c.end()
			}
			c.forge(provider, forgedPlugin("oci://evil.example/x", "sha256:"+strings.Repeat("b", 64)))
			if begins {
				c.start(0)
			}
			c.annotateProvider("a", "look", fmt.Sprint(begins))
			c.providerSays("a", "the server is away")
			for _, request := range c.settled() {
				if !strings.HasPrefix(request, "GET ") && strings.Contains(request, "/deployments") && !strings.HasSuffix(request, "/"+honest[0]) {
					t.Errorf("a status alone has it ask for %s", request)
				}
			}
			if names := c.deployments(); len(names) != 1 || names[0] != honest[0] {
				t.Errorf("a status alone has %v run, and %v is meant to", names, honest)
			}
			if of := c.providerSays("a").Status.Plugin; of != nil {
				t.Errorf("the status still names %+v", of)
			}
		}
	})
	t.Run("as a process", func(t *testing.T) {
		f := newFixture(t)
		f.plugins = f.TempDir()
		digest := providerstest.Naughty(f, f.plugins)
		provider := f.offered("a", fmt.Sprintf("  plugin: {digest: %q, run: Process, kinds: [{apiVersion: v1, kind: ConfigMap}]}\n", "sha256:"+strings.Repeat("a", 64)))
		f.start(0)
		f.providerSays("a", "there is no file")
		f.forge(provider, forgedPlugin("", digest))
		f.annotateProvider("a", "look", "again")
		f.wants("db", "")
		f.says("db", v1alpha1.ReasonNoProvider)
		f.settled()
		if f.host.Knows(digest) {
			t.Error("the program of the status was asked")
		}
		if said := f.providerSays("a", "there is no file"); strings.Contains(fmt.Sprint(said.Status), "serves new claims") || len(said.Status.Versions) > 0 {
			t.Errorf("the program of the status was asked: %+v", said.Status)
		}
		f.says("db", v1alpha1.ReasonNoProvider)
	})
}

// records returns the records of a claim's binding.
func (f *fixture) records(claim *v1alpha1.CapabilityClaim) []appsv1.ControllerRevision {
	f.Helper()
	list := &appsv1.ControllerRevisionList{}
	f.must(f.client.List(f.ctx, list, client.InNamespace(f.system), client.MatchingLabels{v1alpha1.ClaimLabel: string(claim.UID)}))
	return list.Items
}

// put creates a record of a claim by hand.
func (f *fixture) put(claim *v1alpha1.CapabilityClaim, number int64, data []byte, mac string) *appsv1.ControllerRevision {
	f.Helper()
	made := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.system, Name: fmt.Sprintf("claim.%s.%d", claim.UID, number), Labels: map[string]string{v1alpha1.ClaimLabel: string(claim.UID)},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
	if mac != "" {
		made.Annotations = map[string]string{v1alpha1.RecordMACAnnotation: mac}
	}
	f.must(f.client.Create(f.ctx, made))
	return made
}

// evil is what a record holds, with another value to publish.
func evil(t *testing.T, record appsv1.ControllerRevision) []byte {
	t.Helper()
	changed := strings.ReplaceAll(string(record.Data.Raw), `"good"`, `"evil"`)
	if changed == string(record.Data.Raw) {
		t.Fatalf("it says %s", changed)
	}
	return []byte(changed)
}

const published = "  publishes: [{key: is, value: good}]\n"

// A record that somebody has made by hand is not taken for the binding, whatever its number, and
// neither is one that was copied from another claim, or from another number.
func TestRecordsOfOthersDoNotCount(t *testing.T) {
	f := newFixture(t)
	f.provider("a", published)
	f.claims("db", "")
	f.claims("other", "")
	f.start(0)
	f.says("db", v1alpha1.ReasonBound)
	f.says("other", v1alpha1.ReasonBound)
	claim := f.get("db")
	own, others := f.records(claim)[0], f.records(f.get("other"))[0]
	mac := own.Annotations[v1alpha1.RecordMACAnnotation]
	if mac == "" {
		t.Fatal("the controller's own record has no MAC")
	}
	f.put(claim, 9, evil(t, own), "")
	f.put(claim, 10, evil(t, own), mac)
	f.put(claim, 11, evil(t, others), others.Annotations[v1alpha1.RecordMACAnnotation])
	f.end()
	f.start(0) // which has nothing in memory
	f.annotate(f.get("db"), "look", "again")
	f.settled()
	f.says("db", v1alpha1.ReasonBound)
	if got := f.secret("db-binding").Data["is"]; string(got) != "good" {
		t.Errorf("a record that was made by hand is the binding: %q", got)
	}
	t.Log("a move is recorded after them, and counts")
	f.annotateProvider("a", "is", "another")
	f.patch(f.providerSays("a"), `{"spec":{"publishes":[{"key":"is","value":"good"},{"key":"more","value":"good"}]}}`)
	f.annotate(f.get("db"), v1alpha1.RebindAnnotation, f.shop+"-a")
	f.eventually("the binding is the new one", func() error {
		if data := f.secret("db-binding").Data; string(data["is"]) != "good" || string(data["more"]) != "good" {
			return fmt.Errorf("it is %s", data)
		}
		return nil
	})
	if all := f.records(claim); all[len(all)-1].Revision < 9 || len(all) != 5 {
		t.Errorf("there are %d records", len(all))
	}
}

// unsign has the only record of a claim be one that an earlier controller has written.
func (f *fixture) unsign(name string) {
	f.Helper()
	claim := f.get(name)
	all := f.records(claim)
	for i := range all {
		f.must(f.client.Delete(f.ctx, &all[i]))
	}
	f.put(claim, 1, all[len(all)-1].Data.Raw, "")
}

// sign asks for records to be signed again, as whoever may write the controller's Secrets does.
func (f *fixture) sign(records ...string) {
	f.Helper()
	f.annotate(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.system, Name: v1alpha1.RecordsName}}, v1alpha1.SignRecordsAnnotation, strings.Join(records, " "))
}

// Records of a controller that knew no MACs are signed once. From then on, and with another key,
// a claim whose record is not signed keeps what it has, and goes no further, until somebody who
// may write the controller's Secrets has it signed as it is.
func TestRecordsOfBefore(t *testing.T) {
	f := newFixture(t)
	f.provider("a", published)
	claim := f.claims("db", "")
	f.claims("lent", "")
	f.start(0)
	f.says("db", v1alpha1.ReasonBound)
	f.says("lent", v1alpha1.ReasonBound)
	f.end()

	t.Log("the first start after the upgrade signs them")
	f.unsign("db")
	f.must(f.client.Delete(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.system, Name: v1alpha1.RecordsName}}))
	before := f.secret("db-binding").ResourceVersion
	f.start(0)
	f.settled()
	f.says("db", v1alpha1.ReasonBound)
	signed := f.records(f.get("db"))
	if last := signed[len(signed)-1]; last.Annotations[v1alpha1.RecordMACAnnotation] == "" || f.secret("db-binding").ResourceVersion != before {
		t.Errorf("the record has %v", last.Annotations)
	}
	f.end()

	t.Log("the next one does not")
	f.unsign("db")
	f.start(0)
	f.says("db", v1alpha1.ReasonRecordUnsigned, "kubectl strata capability sign "+f.shop+"/db")
	f.annotate(f.get("db"), v1alpha1.ConfirmDeletionAnnotation, "true")
	f.patch(f.get("db"), `{"spec":{"provider":"nobody"}}`)
	f.says("db", v1alpha1.ReasonRecordUnsigned)
	f.settled()
	if f.secret("db-binding").ResourceVersion != before || len(f.get("db").Status.Objects) == 0 {
		t.Error("what the claim has was changed")
	}

	t.Log("what is asked to be signed is what was seen")
	unsigned := f.records(f.get("db"))[0]
	f.sign(unsigned.Name+"="+strings.Repeat("0", 64), "claim.other.1=x")
	f.settled()
	f.says("db", v1alpha1.ReasonRecordUnsigned)
	f.sign(unsigned.Name + "=" + digestOf(t, unsigned.Data.Raw))
	f.says("db", v1alpha1.ReasonBound)
	f.sign()
	f.end()

	t.Log("another key")
	f.digestKey = "vutsrqponmlkjihgfedcba9876543210"
	f.start(0)
	for _, name := range []string{"db", "lent"} {
		f.says(name, v1alpha1.ReasonRecordUnsigned, "as after a loss of the key")
	}
	f.must(f.client.Delete(f.ctx, claim))
	f.says("db", v1alpha1.ReasonRecordUnsigned)
	f.settled()
	if f.secret("db-binding").ResourceVersion != before || f.secret("db-binding").DeletionTimestamp != nil {
		t.Error("what a claim has went with the key")
	}
	all := f.records(f.get("db"))
	last := all[len(all)-1]
	f.sign(last.Name + "=" + digestOf(t, last.Data.Raw))
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	f.gone(&corev1.Secret{}, "db-binding")
	f.says("lent", v1alpha1.ReasonRecordUnsigned)
}

// digestOf is the digest of a record's data.
func digestOf(t *testing.T, data []byte) string {
	t.Helper()
	return capabilities.Record{Data: data}.Digest()
}

// What the status of a claim lists lets nothing go: neither the claim whose objects are there, nor
// data without a word, nor an object in the place of another one.
func TestForgedStatusLetsNothingGo(t *testing.T) {
	f := newFixture(t)
	f.provider("a", `
  objects:
  - {id: first, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-first", annotations: {which: first}}}}
  - {id: second, holdsData: true, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-second", annotations: {which: second}}}}
  - {id: reads, dependsOn: [first, second], template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-reads"}, data: {first: "${objects.first.metadata.annotations.which}"}}}
  publishes: [{key: is, value: good}]
`)
	forgeries := map[string]func(*v1alpha1.CapabilityClaimStatus){
		"no objects":       func(s *v1alpha1.CapabilityClaimStatus) { s.Objects = nil },
		"nothing at all":   func(s *v1alpha1.CapabilityClaimStatus) { *s = v1alpha1.CapabilityClaimStatus{} },
		"no MAC":           func(s *v1alpha1.CapabilityClaimStatus) { s.ObjectsMAC = "" },
		"another provider": func(s *v1alpha1.CapabilityClaimStatus) { s.Provider, s.Version = "other", "9" },
		"one in the place of the other": func(s *v1alpha1.CapabilityClaimStatus) {
			for i := range s.Objects {
				switch s.Objects[i].ID {
				case "first":
					s.Objects[i].ID = "second"
				case "second":
					s.Objects[i].ID = "first"
				}
			}
		},
		"what nobody made": func(s *v1alpha1.CapabilityClaimStatus) {
			for i := range s.Objects {
				s.Objects[i].Name += "x"
			}
		},
	}
	names := map[string]string{}
	for what := range forgeries {
		names[what] = fmt.Sprintf("c%d", len(names))
		f.claims(names[what], "")
	}
	f.start(0)
	for what, change := range forgeries {
		name := names[what]
		f.says(name, v1alpha1.ReasonBound)
		changed := f.get(name)
		change(&changed.Status)
		f.must(f.client.Status().Update(f.ctx, changed))
	}
	f.end()
	f.start(0)
	for what, name := range names {
		f.annotate(f.get(name), "look", "again")
		f.eventually(what+": its status is true again", func() error {
			claim := f.get(name)
			if len(claim.Status.Objects) != 4 || claim.Status.Provider != f.shop+"-a" || claim.Status.ObjectsMAC == "" {
				return fmt.Errorf("it is %+v", claim.Status)
			}
			for _, object := range claim.Status.Objects {
				if object.ID == "first" && object.Name != name+"-first" || object.ID == "second" && object.Name != name+"-second" {
					return fmt.Errorf("%s is %s", object.ID, object.Name)
				}
			}
			reads := &corev1.ConfigMap{}
			f.must(f.client.Get(f.ctx, f.key(name+"-reads"), reads))
			if reads.Data["first"] != "first" {
				t.Errorf("%s: a template has read another object: %v", what, reads.Data)
			}
			return nil
		})
	}
	f.settled()
	if asked := f.settled(); len(asked) > 0 {
		t.Errorf("at rest it has asked for %v", asked)
	}
	f.end()

	t.Log("claims that go")
	for what, change := range forgeries {
		changed := f.get(names[what])
		change(&changed.Status)
		f.must(f.client.Status().Update(f.ctx, changed))
		f.must(f.client.Delete(f.ctx, changed))
	}
	f.start(0)
	for what, name := range names {
		if what == "no objects" || what == "nothing at all" || what == "one in the place of the other" {
			f.says(name, v1alpha1.ReasonDeletionBlocked, "data would go with", f.shop+"/"+name+"-second")
		}
		f.annotate(f.get(name), v1alpha1.ConfirmDeletionAnnotation, "true")
		f.gone(&v1alpha1.CapabilityClaim{}, name)
		for _, left := range []string{"-first", "-second", "-reads"} {
			if err := f.client.Get(f.ctx, f.key(name+left), &corev1.ConfigMap{}); err == nil {
				t.Errorf("%s: the claim was let go, and has left %s", what, name+left)
			}
		}
	}
}

// forgeAll puts a forged status in the place of an object's. It returns false where the API server
// refuses that.
func (f *fixture) forgeAll(obj client.Object, status any) bool {
	f.Helper()
	data, err := json.Marshal(status)
	f.must(err)
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/status","value":%s}]`, data)
	err = f.client.Status().Patch(f.ctx, obj, client.RawPatch(types.JSONPatchType, patch))
	if apierrors.IsInvalid(err) {
		return false
	}
	f.must(err)
	return true
}

func copied(status v1alpha1.CapabilityClaimStatus) v1alpha1.CapabilityClaimStatus {
	return *status.DeepCopy()
}

// writesBeside returns what was asked for that is neither read nor a status.
func writesBeside(asked []string) []string {
	return slices.DeleteFunc(asked, func(request string) bool {
		return strings.HasPrefix(request, "GET ") || strings.HasSuffix(request, "/status")
	})
}

// Whatever somebody has written into a field of a claim's status, the claim asks for the same as
// one whose status nobody has touched: at rest for nothing, and for what was made for it to go
// once it goes.
func TestForgedFieldsOfAClaim(t *testing.T) {
	f := newFixture(t)
	f.provider("a", instance)
	f.provider("other", instance)
	f.claims("honest", "  provider: SHOP-a\n")
	f.start(0)
	f.says("honest", v1alpha1.ReasonBound)
	all := forged.Each(t, v1alpha1.CapabilityClaimKind, f.get("honest").Status, copied)
	for i := range all {
		f.claims(fmt.Sprintf("c%d", i), "  provider: SHOP-a\n")
	}
	for i := range all {
		name := fmt.Sprintf("c%d", i)
		f.says(name, v1alpha1.ReasonBound)
		f.serves(name)
	}
	f.settled()
	forge := func(i int) bool {
		claim := f.get(fmt.Sprintf("c%d", i))
		again := forged.Each(t, v1alpha1.CapabilityClaimKind, claim.Status, copied)
		return f.forgeAll(claim, again[i].Status)
	}
	refused := 0
	for i := range all {
		if !forge(i) {
			refused++
		}
		f.annotate(f.get(fmt.Sprintf("c%d", i)), "look", "again")
	}
	if refused > 3 { // a reference without a name
		t.Errorf("%d of %d forgeries are refused", refused, len(all))
	}
	f.annotate(f.get("honest"), "look", "again")
	if asked := writesBeside(f.settled()); len(asked) > 0 {
		t.Errorf("forged statuses have it ask for %v", asked)
	}
	for i, forgery := range all {
		if claim := f.get(fmt.Sprintf("c%d", i)); claim.Status.Provider != f.shop+"-a" || len(claim.Status.Objects) == 0 || claim.Status.ObjectsMAC == "" {
			t.Errorf("%s: it says %+v", forgery.Name, claim.Status)
		}
	}

	t.Log("they go")
	f.settled()
	goes := func(name string) []string {
		f.annotate(f.get(name), v1alpha1.ConfirmDeletionAnnotation, "true")
		f.must(f.client.Delete(f.ctx, f.get(name)))
		f.gone(&v1alpha1.CapabilityClaim{}, name)
		var asked []string
		for _, request := range writesBeside(f.settled()) {
			if strings.HasPrefix(request, "DELETE ") && !strings.Contains(request, "controllerrevisions") {
				asked = append(asked, strings.ReplaceAll(request, "/"+name, "/NAME"))
			}
		}
		slices.Sort(asked)
		return slices.Compact(asked)
	}
	honest := goes("honest")
	if len(honest) < 3 {
		t.Errorf("the honest one has had %v deleted", honest)
	}
	for i, forgery := range all[:4] {
		forge(i)
		if diff := cmp.Diff(honest, goes(fmt.Sprintf("c%d", i))); diff != "" {
			t.Errorf("%s: %s", forgery.Name, diff)
		}
	}
}

// A controller that is killed at any write of the signing at an upgrade leaves nothing behind that
// the next one does not end: each record of before is signed once, as it was, what it says stays
// with its claim, and it is noted that it was done.
func TestKilledAtEveryWriteOfTheSigning(t *testing.T) {
	f := newFixture(t)
	f.provider("a", published)
	names := []string{"db", "lent", "spare"}
	for _, name := range names {
		f.claims(name, "")
	}
	f.start(0)
	before, data := map[string]string{}, map[string]string{}
	for _, name := range names {
		f.says(name, v1alpha1.ReasonBound)
		before[name] = f.secret(name + "-binding").ResourceVersion
		data[name] = string(f.records(f.get(name))[0].Data.Raw)
	}
	f.end()
	note := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.system, Name: v1alpha1.RecordsName}}
	deaths := 0
	for at := 1; ; at++ {
		for _, name := range names {
			f.unsign(name)
		}
		f.must(f.client.Delete(f.ctx, note.DeepCopy()))
		died := f.dies(at, func() {}, fmt.Sprintf("write %d: all are signed", at), func() error {
			return f.client.Get(f.ctx, client.ObjectKeyFromObject(note), &corev1.Secret{})
		})
		for _, name := range names {
			signed := 0
			for _, record := range f.records(f.get(name)) {
				if record.Annotations[v1alpha1.RecordMACAnnotation] != "" {
					signed++
				}
				if string(record.Data.Raw) != data[name] {
					t.Errorf("write %d: the record %s says %s", at, record.Name, record.Data.Raw)
				}
			}
			if signed != 1 {
				t.Errorf("write %d: %s has %d signed records", at, name, signed)
			}
			if f.secret(name+"-binding").ResourceVersion != before[name] {
				t.Errorf("write %d: the binding of %s was written", at, name)
			}
		}
		if !died {
			break
		}
		deaths++
	}
	if deaths <= len(names) {
		t.Errorf("it was killed %d times, and each record and the note are writes", deaths)
	}
	f.start(0)
	for _, name := range names {
		f.annotate(f.get(name), "look", "again")
		f.says(name, v1alpha1.ReasonBound)
	}
}
