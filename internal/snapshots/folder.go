// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/sshsig"
)

// Snapshot is one that counts. It is written beside its file, under the same name with
// .json, when the file is complete.
type Snapshot struct {
	// File that it is in.
	File string `json:"file"`
	// Cluster is namespace/name of its manifest, and ClusterID its ID.
	Cluster   string `json:"cluster"`
	ClusterID string `json:"clusterID"`
	// Version of Kubernetes, and Etcd that of the member.
	Version string `json:"version"`
	Etcd    string `json:"etcd,omitempty"`
	// Time at which it was taken.
	Time time.Time `json:"time"`
	// Revision of etcd at least, and Keys of Kubernetes at that revision.
	Revision int64 `json:"revision"`
	Keys     int64 `json:"keys"`
	// Size in bytes, and Digest of the file: sha256:HEX.
	Size   int64  `json:"size"`
	Digest string `json:"digest"`
	// Providers are with what its Secrets are written: keys by their names, or identity for
	// what is in clear.
	Providers []string `json:"providers,omitempty"`
	// Encrypted is true where the file is encrypted with age.
	Encrypted bool `json:"encrypted,omitempty"`
	// SignedBy is the fingerprint of the SSH key with which all of that was signed, as
	// SHA256:...; empty where it was not. It is not among what was signed.
	SignedBy string `json:"signedBy,omitempty"`
	// Forged says why a signature does not count; empty where it does, and where there is none.
	Forged string `json:"forged,omitempty"`

	// kept is the file as it was named when it was kept.
	kept string
}

// The endings of files.
const (
	plainEnding     = ".db"
	encryptedEnding = ".db.age"
	factsEnding     = ".json"
)

// maxFacts is how long the facts about a snapshot may be, and maxFiles how many a folder
// may have.
const (
	maxFacts = 64 << 10
	maxFiles = 10_000
)

// named is how files of snapshots are called: cluster, time and revision.
var named = regexp.MustCompile(`^[a-z0-9.-]+-[0-9]{8}T[0-9]{6}Z-[0-9]{1,20}\.json$`)

// moment is what follows the name of the cluster there.
var moment = regexp.MustCompile(`^-[0-9]{8}T[0-9]{6}Z-[0-9]{1,20}$`)

// nameOf returns the name of a snapshot's files, without their endings.
func nameOf(cluster string, at time.Time, revision int64) string {
	return fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(cluster, "/", "-"), at.UTC().Format("20060102T150405Z"), revision)
}

// List returns the snapshots of clusters with a name in a folder, the newest first. A folder
// that is not there has none.
func List(dir, cluster string) ([]Snapshot, error) {
	opened, err := os.Open(dir) //nolint:gosec // a manifest names it
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the snapshots: %w", err)
	}
	defer func() { _ = opened.Close() }()
	names, err := opened.Readdirnames(maxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot list the snapshots: %w", err)
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("%s has more than %d files: give snapshots a folder of their own", dir, maxFiles)
	}
	var found []Snapshot
	for _, name := range names {
		if !named.MatchString(name) {
			continue
		}
		snapshot, err := readFacts(filepath.Join(dir, name))
		if err == nil && snapshot.Cluster == cluster {
			found = append(found, snapshot)
		}
	}
	newestFirst(found)
	return found, nil
}

func newestFirst(list []Snapshot) {
	slices.SortFunc(list, func(a, b Snapshot) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Revision, a.Revision)) })
}

// factsOf is the file with what is known of a snapshot's file.
func factsOf(file string) string {
	return strings.TrimSuffix(strings.TrimSuffix(file, ".age"), plainEnding) + factsEnding
}

// filesOf are the files of a snapshot, in the order in which they go: the facts first.
func filesOf(file string) []string {
	return []string{factsOf(file), factsOf(file) + signatureEnding, file}
}

// Find returns what is known of a snapshot's file. The error says that it does not count.
func Find(file string) (Snapshot, error) {
	base := strings.TrimSuffix(strings.TrimSuffix(file, ".age"), plainEnding)
	if base == file {
		return Snapshot{}, fmt.Errorf("%s is no snapshot: its name must end with %s or %s", file, plainEnding, encryptedEnding)
	}
	snapshot, err := readFacts(base + factsEnding)
	if err != nil {
		return Snapshot{}, err
	}
	if snapshot.File = file; snapshot.Encrypted != strings.HasSuffix(file, encryptedEnding) {
		return Snapshot{}, fmt.Errorf("%s%s is about another file", base, factsEnding)
	}
	return snapshot, nil
}

// readFacts reads what is known of a snapshot.
func readFacts(path string) (Snapshot, error) {
	data, err := readBounded(path, maxFacts)
	if err != nil {
		return Snapshot{}, fmt.Errorf("nothing is known of the snapshot: %w", err)
	}
	return readSigned(path, data, func() ([]byte, error) { return readBounded(path+signatureEnding, sshsig.MaxSize) })
}

// parseFacts reads what is known of a snapshot, which stands at a path.
func parseFacts(path string, data []byte) (Snapshot, error) {
	var found Snapshot
	if err := json.Unmarshal(data, &found); err != nil || found.ClusterID == "" || found.Digest == "" || found.Time.IsZero() {
		return Snapshot{}, fmt.Errorf("%s does not say what a snapshot is", path)
	}
	for _, text := range []*string{&found.Cluster, &found.ClusterID, &found.Version, &found.Etcd, &found.Digest} {
		*text = printable.Line(*text, 300)
	}
	found.Providers = slices.DeleteFunc(found.Providers, func(name string) bool { return !encryption.IsProvider(name) })
	ending := plainEnding
	if found.Encrypted {
		ending = encryptedEnding
	}
	found.kept, found.File = found.File, strings.TrimSuffix(path, factsEnding)+ending
	found.SignedBy, found.Forged = "", "" // which only a signature says
	return found, nil
}

// readBounded reads a file that has a limit.
func readBounded(path string, limit int64) ([]byte, error) {
	opened, err := os.Open(path) //nolint:gosec // somebody names their own file
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	data, err := io.ReadAll(io.LimitReader(opened, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is longer than %d bytes", path, limit)
	}
	return data, err
}

// room returns how many bytes another snapshot of a cluster may have, beside those that are
// there and stay.
func room(o Options) (int64, error) {
	quota := cmp.Or(o.Quota, maxSize)
	goes := map[string]bool{}
	if o.Keep > 0 {
		all, err := List(o.Dir, o.Cluster)
		if err != nil {
			return 0, err
		}
		for _, each := range oldOnes(all, o.ClusterID, o.Keep-1, o.signedBy()) {
			goes[filepath.Base(each.File)] = true
		}
	}
	files, err := os.ReadDir(o.Dir)
	if err != nil {
		return 0, fmt.Errorf("cannot list the snapshots: %w", err)
	}
	left := quota
	for _, file := range files {
		// Also those of which nothing is known any more.
		if goes[file.Name()] || !isFileOf(file.Name(), o.Cluster) {
			continue
		}
		if info, err := file.Info(); err == nil {
			left -= info.Size()
		}
	}
	if left <= 0 {
		return 0, fmt.Errorf("the snapshots of %s in %s have %d MiB, and spec.snapshots.quota is %d MiB: raise it, or delete some",
			o.Cluster, o.Dir, (quota-left)>>20, quota>>20)
	}
	return min(left, maxSize), nil
}

// isFileOf tells whether a file has a snapshot of clusters with a name.
func isFileOf(file, cluster string) bool {
	base := strings.TrimSuffix(strings.TrimSuffix(file, ".age"), plainEnding)
	rest, is := strings.CutPrefix(base, strings.ReplaceAll(cluster, "/", "-"))
	return is && base != file && moment.MatchString(rest)
}

// keep deletes all snapshots of a cluster but the newest ones, and returns those that went.
func keep(dir, cluster, clusterID string, newest int, by string) ([]Snapshot, error) {
	all, err := List(dir, cluster)
	if err != nil {
		return nil, err
	}
	gone := oldOnes(all, clusterID, newest, by)
	for _, each := range gone {
		// The facts first: what is left without them is no snapshot.
		for _, file := range filesOf(each.File) {
			if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("cannot delete an old snapshot: %w", err)
			}
		}
	}
	return gone, nil
}
