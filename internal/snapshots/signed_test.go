// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/internal/ssh/sshtest"
	"github.com/strata-project/strata/internal/sshsig"
	"github.com/strata-project/strata/test/hostile/root"
)

// taker saves one etcd again and again.
type taker struct {
	t    *testing.T
	dir  string
	now  func() time.Time
	etcd func(*snapshots.Options)
}

func newTaker(t *testing.T) *taker {
	t.Helper()
	const keys = 5
	db, revision := root.Database(t, keys)
	client := (&member{root.Member{Keys: keys, Revision: revision, Stream: root.Hands(db)}}).serve(t)
	return &taker{t: t, dir: t.TempDir(), now: clock(), etcd: func(o *snapshots.Options) { o.Etcd = client }}
}

// take takes a snapshot, signed with a key where one is given.
func (k *taker) take(keep int, signer cryptossh.Signer) snapshots.Snapshot {
	k.t.Helper()
	options := snapshots.Options{Member: "cp-1", Dir: k.dir, Cluster: "fleet/edge", ClusterID: "1", Version: "v1.36.3", Keep: keep, Signer: signer, Now: k.now}
	k.etcd(&options)
	taken, err := snapshots.Take(k.t.Context(), options)
	if err != nil {
		k.t.Fatal(err)
	}
	return taken
}

// files returns the files of a snapshot by their endings.
func files(t *testing.T, taken snapshots.Snapshot) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, ending := range []string{".db", ".json", ".json.sig"} {
		data, err := os.ReadFile(strings.TrimSuffix(taken.File, ".db") + ending)
		if err == nil {
			found[ending] = data
		}
	}
	return found
}

// later is the name of a snapshot that would be the newest one.
const later = "fleet-edge-20360301T120000Z-9999"

// laterFacts are facts of a snapshot, for one that would be the newest one.
func laterFacts(facts []byte) []byte {
	changed := strings.Replace(string(facts), `"time": "2026`, `"time": "2036`, 1)
	at := strings.Index(changed, `"file": "`) + len(`"file": "`)
	return []byte(changed[:at] + later + ".db" + changed[at+strings.Index(changed[at:], `"`):])
}

// forgeries are what somebody can make who can write where a snapshot lies, by name.
func forgeries(t *testing.T, honest map[string][]byte) map[string]map[string][]byte {
	t.Helper()
	facts := laterFacts(honest[".json"])
	signature, err := sshsig.Sign(sshtest.NewKey(t), snapshots.SignatureNamespace, facts)
	if err != nil {
		t.Fatal(err)
	}
	claims := bytes.Replace(facts, []byte("{"), []byte(`{"signedBy": "SHA256:theirs", `), 1)
	return map[string]map[string][]byte{
		"nobody has signed it":           {".db": honest[".db"], ".json": facts},
		"it says itself who has":         {".db": honest[".db"], ".json": claims},
		"somebody else has signed it":    {".db": honest[".db"], ".json": facts, ".json.sig": signature},
		"the signature of an earlier":    {".db": honest[".db"], ".json": facts, ".json.sig": honest[".json.sig"]},
		"an earlier one by another name": {".db": honest[".db"], ".json": honest[".json"], ".json.sig": honest[".json.sig"]},
		"a signature that is none":       {".db": honest[".db"], ".json": facts, ".json.sig": []byte("yes")},
	}
}

func trusting(key cryptossh.Signer) snapshots.Trust {
	return snapshots.Trust{Keys: []string{sshsig.Fingerprint(key.PublicKey())}}
}

// Whoever can write into the folder or the bucket makes no snapshot that is taken: it is passed
// over where the newest one is wanted, and refused where it is named, in each way that there is.
func TestForgedSnapshotsAreNotTaken(t *testing.T) {
	key, saver := sshtest.NewKey(t), newTaker(t)
	honest := saver.take(0, key)
	if honest.SignedBy != sshsig.Fingerprint(key.PublicKey()) {
		t.Fatalf("it is signed with %q", honest.SignedBy)
	}
	for name, forged := range forgeries(t, files(t, honest)) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, each := range []struct {
				base  string
				files map[string][]byte
			}{{strings.TrimSuffix(filepath.Base(honest.File), ".db"), files(t, honest)}, {later, forged}} {
				for ending, content := range each.files {
					if err := os.WriteFile(filepath.Join(dir, each.base+ending), content, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			found, err := snapshots.List(dir, "fleet/edge")
			if err != nil || len(found) != 2 {
				t.Fatalf("%v: %+v", err, found)
			}
			taken, passed := trusting(key).Newest(found)
			switch {
			case name == "an earlier one by another name":
				// It is as old as the honest one, which may come first.
			case taken == nil || filepath.Base(taken.File) != filepath.Base(honest.File) || len(passed) != 1 || !strings.Contains(passed[0].Error(), later):
				t.Errorf("the newest one is %+v, after %v", taken, passed)
			}
			named, err := snapshots.Find(filepath.Join(dir, later+".db"))
			if err == nil {
				err = trusting(key).Check(named)
			}
			if err == nil {
				t.Errorf("it is taken: %+v", named)
			}
			// What is forged is not taken for one of before either.
			accepting := trusting(key)
			accepting.Unsigned = true
			if err := accepting.Check(named); (err == nil) != (forged[".json.sig"] == nil) {
				t.Errorf("where unsigned ones are accepted: %v", err)
			}
			bucket, server := newBucket(t)
			objects := map[string]string{}
			for ending, content := range files(t, honest) {
				objects["north/etcd/"+strings.TrimSuffix(filepath.Base(honest.File), ".db")+ending] = string(content)
			}
			for ending, content := range forged {
				objects["north/etcd/"+later+ending] = string(content)
			}
			if err := server.Put("saved", objects); err != nil {
				t.Fatal(err)
			}
			if found, err = bucket.List(t.Context(), "fleet/edge"); err != nil || len(found) != 2 {
				t.Fatalf("%v: %+v", err, found)
			}
			for _, each := range found {
				_, err := bucket.Fetch(t.Context(), each, t.TempDir(), trusting(key))
				if isHonest := filepath.Base(each.File) == filepath.Base(honest.File); isHonest != (err == nil) {
					t.Errorf("%s of the bucket: %v", each.File, err)
				}
			}
		})
	}
}

// What was changed between two looks at a bucket is not taken either.
func TestSnapshotIsCheckedAsItIsFetched(t *testing.T) {
	key, saver := sshtest.NewKey(t), newTaker(t)
	honest := saver.take(0, key)
	bucket, server := newBucket(t)
	kept, err := bucket.Keep(t.Context(), honest, 0)
	if err != nil {
		t.Fatal(err)
	}
	found, err := bucket.List(t.Context(), "fleet/edge")
	if err != nil || len(found) != 1 || found[0].SignedBy != kept.SignedBy {
		t.Fatalf("%v: %+v", err, found)
	}
	base := "north/etcd/" + strings.TrimSuffix(filepath.Base(honest.File), ".db")
	facts := strings.Replace(string(files(t, honest)[".json"]), `"keys": 5`, `"keys": 6`, 1)
	if err := server.Put("saved", map[string]string{base + ".json": facts}); err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Fetch(t.Context(), found[0], t.TempDir(), trusting(key)); err == nil || !strings.Contains(err.Error(), found[0].File) {
		t.Errorf("it is taken: %v", err)
	}
}

// A snapshot of before is refused, unless somebody names it and accepts that; one of another
// key names that key.
func TestUnsignedSnapshots(t *testing.T) {
	saver := newTaker(t)
	unsigned := saver.take(0, nil)
	found, err := snapshots.Find(unsigned.File)
	if err != nil {
		t.Fatal(err)
	}
	key, other := sshtest.NewKey(t), sshtest.NewKey(t)
	if err := trusting(key).Check(found); err == nil || !strings.Contains(err.Error(), "--accept-unsigned") {
		t.Errorf("unsigned: %v", err)
	}
	if err := (snapshots.Trust{Unsigned: true}).Check(found); err != nil {
		t.Errorf("accepted: %v", err)
	}
	theirs, err := snapshots.Find(saver.take(0, other).File)
	if err != nil {
		t.Fatal(err)
	}
	if err := trusting(key).Check(theirs); err == nil || !strings.Contains(err.Error(), "--signed-by "+theirs.SignedBy) {
		t.Errorf("of another key: %v", err)
	}
	if err := trusting(other).Check(theirs); err != nil {
		t.Errorf("of that key: %v", err)
	}
}

// Snapshots that somebody else has put there have none of one's own deleted, however new they
// say they are.
func TestForgedSnapshotsMakeNoneGo(t *testing.T) {
	key, saver := sshtest.NewKey(t), newTaker(t)
	honest := saver.take(0, key)
	for ending, content := range forgeries(t, files(t, honest))["nobody has signed it"] {
		for _, each := range []string{later, strings.Replace(later, "9999", "9998", 1)} {
			if err := os.WriteFile(filepath.Join(saver.dir, each+ending), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	last := saver.take(2, key)
	found, err := snapshots.List(saver.dir, "fleet/edge")
	if err != nil || len(found) != 2 || found[0].File != last.File || found[1].File != honest.File {
		t.Errorf("%v: %+v", err, found)
	}
	if left, _ := filepath.Glob(filepath.Join(saver.dir, "*")); len(left) != 6 {
		t.Errorf("there are %v", left)
	}
}

// OpenSSH says the same of who has made a snapshot.
func TestSnapshotIsVerifiedByOpenSSH(t *testing.T) {
	program, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skipf("ssh-keygen is not installed: %v", err)
	}
	key, saver := sshtest.NewKey(t), newTaker(t)
	taken := saver.take(0, key)
	facts := strings.TrimSuffix(taken.File, ".db") + ".json"
	signers := filepath.Join(t.TempDir(), "signers")
	if err := os.WriteFile(signers, append([]byte("saver "), cryptossh.MarshalAuthorizedKey(key.PublicKey())...), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := func(content []byte) error {
		command := exec.CommandContext(t.Context(), program, "-Y", "verify", "-f", signers, "-I", "saver", "-n", snapshots.SignatureNamespace, "-s", facts+".sig")
		command.Stdin = bytes.NewReader(content)
		said, err := command.CombinedOutput()
		t.Logf("%s", said)
		return err
	}
	content, err := os.ReadFile(facts)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(content); err != nil {
		t.Error(err)
	}
	if err := verify(append(content, ' ')); err == nil {
		t.Error("other facts are taken")
	}
}
