// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/provision"
	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/internal/ssh/sshtest"
	"github.com/strata-project/strata/internal/sshsig"
)

// Whose snapshots are restored is said by a fingerprint, by a file with public keys, or by
// nobody; then they are those of the keys with which somebody logs in.
func TestWhoseSnapshotsAreTaken(t *testing.T) {
	dir := t.TempDir()
	one, two := sshtest.NewKey(t).PublicKey(), sshtest.NewKey(t).PublicKey()
	for name, content := range map[string][]byte{
		"keys.pub": append(append([]byte("# whose they are\n"), cryptossh.MarshalAuthorizedKey(one)...), cryptossh.MarshalAuthorizedKey(two)...),
		"signers":  append([]byte("a@b "), cryptossh.MarshalAuthorizedKey(one)...), "empty": nil, "garbage": []byte("-----BEGIN"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		asked restoring
		keys  []string
		want  string
	}{
		"a fingerprint":        {restoring{signedBy: []string{"SHA256:a"}}, []string{"SHA256:a"}, ""},
		"a file":               {restoring{signedBy: []string{filepath.Join(dir, "keys.pub")}}, []string{sshsig.Fingerprint(one), sshsig.Fingerprint(two)}, ""},
		"a file of signers":    {restoring{signedBy: []string{filepath.Join(dir, "signers")}}, []string{sshsig.Fingerprint(one)}, ""},
		"an empty file":        {restoring{signedBy: []string{filepath.Join(dir, "empty")}}, nil, "has no public keys of SSH"},
		"a file of no keys":    {restoring{signedBy: []string{filepath.Join(dir, "garbage")}}, nil, "has no public keys of SSH"},
		"no file":              {restoring{signedBy: []string{filepath.Join(dir, "none")}}, nil, "no such file"},
		"unsigned ones at all": {restoring{unsigned: true}, nil, "--accept-unsigned is for a snapshot that you name with --from"},
	} {
		trust, err := (&work{}).trust(tc.asked)
		if tc.want != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || strings.Join(trust.Keys, " ") != strings.Join(tc.keys, " ") || trust.Unsigned {
			t.Errorf("%s: %+v, %v", name, trust, err)
		}
	}
}

// The newest snapshot is the newest one that is taken; those before it are named, and where none
// is left it is said what to do.
func TestNewestSnapshotIsOneThatIsTaken(t *testing.T) {
	dir, key := t.TempDir(), sshtest.NewKey(t)
	for i, signs := range []bool{true, false} {
		base := []string{"fleet-edge-20260301T120000Z-1", "fleet-edge-20260302T120000Z-2"}[i]
		facts, err := json.Marshal(snapshots.Snapshot{
			File: base + ".db", Cluster: "fleet/edge", ClusterID: "1", Digest: "sha256:0", Time: time.Date(2026, 3, 1+i, 12, 0, 0, 0, time.UTC),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, base+".json"), facts, 0o600); err != nil {
			t.Fatal(err)
		}
		if !signs {
			continue
		}
		signature, err := sshsig.Sign(key, snapshots.SignatureNamespace, facts)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, base+".json.sig"), signature, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := &bytes.Buffer{}
	w := &work{Console: &console.Console{Out: said, ErrOut: said}, snapshotDir: dir, cluster: &v1alpha1.HostCluster{}}
	w.cluster.Namespace, w.cluster.Name = "fleet", "edge"
	trust := snapshots.Trust{Keys: []string{sshsig.Fingerprint(key.PublicKey())}}
	taken, err := w.newestSnapshot(t.Context(), trust)
	if err != nil || filepath.Base(taken.File) != "fleet-edge-20260301T120000Z-1.db" {
		t.Errorf("%v: %+v", err, taken)
	}
	if words := strings.Join(strings.Fields(said.String()), " "); !strings.Contains(words, "Passed over:") || !strings.Contains(words, "fleet-edge-20260302T120000Z-2.db is not signed") {
		t.Errorf("it says %q", words)
	}
	if shown := describe(taken, provision.Back{Restoration: hosts.Restoration{Host: "cp-0"}}, time.Now()); !strings.Contains(shown, "signed with the SSH key "+trust.Keys[0]) {
		t.Errorf("it is shown as %q", shown)
	}
	if _, err := w.newestSnapshot(t.Context(), snapshots.Trust{Keys: []string{"SHA256:another"}}); err == nil || !strings.Contains(err.Error(), "none of the 2 snapshots in "+dir+" is taken") {
		t.Errorf("where none is taken: %v", err)
	}
}
