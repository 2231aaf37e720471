// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/strata-project/strata/internal/confined"
	"github.com/strata-project/strata/internal/encryption"
)

// marker is the name under which a program is started to open a snapshot. Its arguments are
// the limits.
const marker = "strata-etcd-snapshot"

// task is what such a process is asked for.
type task struct {
	// DB is the file of the snapshot, and Dir the folder in which its data are made.
	DB  string `json:"db"`
	Dir string `json:"dir"`
	// Member that the data are for; without one an etcd is started from them, and asked.
	Member *Member `json:"member,omitempty"`
	// Revision at which keys are counted.
	Revision int64 `json:"revision,omitempty"`
}

// finding is what it answers.
type finding struct {
	// Refusal is why it cannot be done; empty where it was.
	Refusal string `json:"refusal,omitempty"`
	// Compacted is true where etcd has forgotten the revision.
	Compacted bool `json:"compacted,omitempty"`
	// Keys and Providers as in Snapshot.
	Keys      int64    `json:"keys,omitempty"`
	Providers []string `json:"providers,omitempty"`
}

// A program that is started to open a snapshot does that and nothing else. It is asked here,
// and not in main, so that no program and no test that links the package can forget it: that
// one would start itself without end.
func init() {
	if len(os.Args) > 0 && os.Args[0] == marker {
		os.Exit(serve(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
}

// argumentsOf returns the limits that a process sets for itself.
func argumentsOf(within confined.Bounds) []string {
	return []string{
		marker, strconv.FormatUint(within.Memory, 10), strconv.Itoa(int(within.CPU / time.Second)), strconv.FormatUint(within.FileSize, 10),
	}
}

func parseArguments(arguments []string) (confined.Bounds, error) {
	if len(arguments) != len(argumentsOf(confined.Bounds{})) {
		return confined.Bounds{}, errors.New("a snapshot is opened by the program itself")
	}
	var numbers [3]uint64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseUint(arguments[i+1], 10, 40); err != nil {
			return confined.Bounds{}, fmt.Errorf("cannot read the limits: %w", err)
		}
	}
	return confined.Bounds{Memory: numbers[0], CPU: time.Duration(numbers[1]) * time.Second, FileSize: numbers[2]}, nil //nolint:gosec // 40 bits
}

// serve does one task.
func serve(arguments []string, in io.Reader, out, errOut io.Writer) int {
	within, err := parseArguments(arguments)
	if err == nil {
		err = within.Enter()
	}
	var asked task
	if err == nil {
		err = json.NewDecoder(in).Decode(&asked)
	}
	if err == nil {
		go func() {
			_, _ = io.Copy(io.Discard, in)
			os.Exit(confined.ExitFailed) // nobody waits any more
		}()
		err = json.NewEncoder(out).Encode(asked.do(zap.New(lastWords{zapcore.DPanicLevel, errOut})))
	}
	if err != nil {
		fmt.Fprintln(errOut, err)
		return confined.ExitFailed
	}
	return confined.ExitFine
}

// lastWords is a log of what etcd says when it ends the process, and with what error: nothing
// else is written.
type lastWords struct {
	zapcore.LevelEnabler
	to io.Writer
}

// With forgets fields: they are about where something was said.
func (l lastWords) With([]zapcore.Field) zapcore.Core { return l }

// Check adds the log where something is to be written.
func (l lastWords) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(entry.Level) {
		return checked.AddCore(entry, l)
	}
	return checked
}

// Write writes one line.
func (l lastWords) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	said := entry.Message
	for _, field := range fields {
		if err, is := field.Interface.(error); is {
			said += ": " + err.Error()
		}
	}
	_, err := fmt.Fprintln(l.to, said)
	return err
}

// Sync has nothing to do.
func (l lastWords) Sync() error { return nil }

// do does what is asked for.
func (t *task) do(log *zap.Logger) finding {
	var found finding
	var err error
	if t.Member != nil {
		err = restoreFor(t, log)
	} else {
		found, err = t.count(context.Background(), log)
	}
	if err != nil {
		return finding{Refusal: err.Error(), Compacted: errors.Is(err, rpctypes.ErrCompacted) || errors.Is(err, mvcc.ErrCompacted)}
	}
	return found
}

// restoreFor makes the data of the first member of a cluster.
func restoreFor(t *task, log *zap.Logger) error {
	return snapshot.NewV3(log).Restore(snapshot.RestoreConfig{
		SnapshotPath: t.DB, Name: t.Member.Name, OutputDataDir: t.Dir, PeerURLs: []string{t.Member.PeerURL},
		InitialCluster: t.Member.Name + "=" + t.Member.PeerURL, InitialClusterToken: t.Member.Token, RevisionBump: RevisionBump, MarkCompacted: true,
	})
}

// count starts an etcd, and counts what it has.
func (t *task) count(ctx context.Context, log *zap.Logger) (finding, error) {
	err := snapshot.NewV3(log).Restore(snapshot.RestoreConfig{
		SnapshotPath: t.DB, Name: "scratch", OutputDataDir: t.Dir, PeerURLs: []string{scratchURL}, InitialCluster: "scratch=" + scratchURL,
		InitialClusterToken: "scratch",
	})
	if err != nil {
		return finding{}, fmt.Errorf("it cannot be restored: %w", err)
	}
	etcd, err := start(ctx, t.Dir, log)
	if err != nil {
		return finding{}, err
	}
	defer etcd.Close()
	answer, err := etcd.Server.Range(ctx, &etcdserverpb.RangeRequest{
		Key: []byte(Prefix), RangeEnd: []byte(Prefix[:len(Prefix)-1] + "0"), Revision: t.Revision, CountOnly: true,
	})
	if err != nil {
		return finding{}, fmt.Errorf("an etcd that was started from it does not answer: %w", err)
	}
	client := v3client.New(etcd.Server)
	defer func() { _ = client.Close() }() // it has no connection, and says that it is cancelled
	found := finding{Keys: answer.Count}
	found.Providers, err = Providers(ctx, client)
	if errors.Is(err, encryption.ErrForeignKey) {
		err = nil // with somebody else's keys, nobody here knows what a host can read
	}
	return found, err
}
