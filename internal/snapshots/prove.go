// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/strata-project/strata/internal/confined"
	"github.com/strata-project/strata/internal/printable"
)

const (
	// openTime is how long a snapshot may take to be restored and asked, and startTime how
	// long of that an etcd may take to start from it.
	openTime, startTime = 10 * time.Minute, 5 * time.Minute
	// openCPU is how much processor time that may take.
	openCPU = 10 * time.Minute
	// openMemory is how much memory it may take, beside the file, which is mapped. With one
	// at a time it fits into the chart's limit of 1 GiB.
	openMemory = 512 << 20
	// openBeside is how much longer than the snapshot the files are that an etcd makes of it:
	// its log has 64 MiB from the start.
	openBeside = 128 << 20
	// maxFinding is how long an answer may be.
	maxFinding = 1 << 20
)

// scratchURL is where the scratch etcd would be reached, which listens nowhere: what is in
// it is for nobody else on this machine.
const scratchURL = "http://127.0.0.1:1"

// opening has one snapshot be opened at a time.
var opening = make(chan struct{}, 1)

// prove starts an etcd from a snapshot, counts what it has, and adds with what its Secrets are
// written.
func prove(ctx context.Context, db, dir string, taken *Snapshot) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	found, err := run(ctx, &task{DB: db, Dir: dir, Revision: taken.Revision})
	if err != nil {
		return err
	}
	if found.Keys != taken.Keys {
		return fmt.Errorf("an etcd that was started from it has %d keys at revision %d, and the cluster had %d", found.Keys, taken.Revision, taken.Keys)
	}
	taken.Providers = found.Providers
	return nil
}

// run does a task in a process of its own: etcd ends the process that it runs in where it does
// not like its data, and whoever has handed out a snapshot decides what these are.
func run(ctx context.Context, asked *task) (finding, error) {
	select {
	case opening <- struct{}{}:
		defer func() { <-opening }()
	case <-ctx.Done():
		return finding{}, fmt.Errorf("no other snapshot was opened in time: %w", context.Cause(ctx))
	}
	info, err := os.Stat(asked.DB)
	if err != nil {
		return finding{}, err
	}
	for _, path := range []*string{&asked.DB, &asked.Dir} {
		if *path, err = filepath.Abs(*path); err != nil {
			return finding{}, err
		}
	}
	within := confined.Bounds{Memory: openMemory, CPU: openCPU, FileSize: uint64(info.Size()) + openBeside} //nolint:gosec // no file has less than nothing
	return runWithin(ctx, asked, within, openTime)
}

func runWithin(caller context.Context, asked *task, within confined.Bounds, limit time.Duration) (finding, error) {
	ctx, cancel := context.WithTimeout(caller, limit)
	defer cancel()
	command, complaint, err := confined.Command(ctx, filepath.Dir(asked.DB), argumentsOf(within))
	if err != nil {
		return finding{}, err
	}
	found, err := exchange(command, asked)
	late := ctx.Err() != nil
	switch {
	case err == nil:
	case caller.Err() != nil:
		return finding{}, context.Cause(caller)
	case late:
		return finding{}, fmt.Errorf("what is started from it takes longer than %s", limit)
	default:
		return finding{}, death(command.ProcessState, within, complaint, err)
	}
	if found.Compacted {
		return finding{}, rpctypes.ErrCompacted
	}
	if found.Refusal != "" {
		return finding{}, errors.New(printable.Line(found.Refusal, maxSaid))
	}
	return found, nil
}

// maxSaid is how much is told of why a snapshot cannot be opened.
const maxSaid = 300

// exchange starts a process, asks it, and waits until it has ended.
func exchange(command *exec.Cmd, asked *task) (found finding, err error) {
	in, err := command.StdinPipe()
	if err != nil {
		return finding{}, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return finding{}, err
	}
	if err := command.Start(); err != nil {
		return finding{}, err
	}
	err = json.NewEncoder(in).Encode(asked)
	if err == nil {
		err = json.NewDecoder(io.LimitReader(out, maxFinding)).Decode(&found)
	}
	if err != nil {
		_, _ = io.Copy(io.Discard, out) // what it says goes on until it ends
	}
	return found, errors.Join(err, command.Wait()) // which closes what it was told by
}

// death says why a process has ended before it was done.
func death(state *os.ProcessState, within confined.Bounds, complaint *confined.Complaint, err error) error {
	said := printable.Line(strings.TrimPrefix(complaint.Line(), "panic: "), maxSaid)
	switch code := confined.ExitCode(state); {
	case confined.IsOutOfMemory(code, complaint.String()):
		return fmt.Errorf("what is started from it takes more than %d MiB of memory", within.Memory>>20)
	case confined.Used(state) >= within.CPU:
		return fmt.Errorf("what is started from it takes more than %s of processor time", within.CPU)
	case said == "":
		return fmt.Errorf("it has ended the etcd that was started from it: %w", err)
	}
	return fmt.Errorf("it has ended the etcd that was started from it: %s", said)
}

// start starts an etcd that listens nowhere.
func start(ctx context.Context, dir string, log *zap.Logger) (*embed.Etcd, error) {
	at, err := url.Parse(scratchURL)
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Dir, config.Name, config.InitialCluster, config.InitialClusterToken = dir, "scratch", "scratch="+scratchURL, "scratch"
	config.AdvertisePeerUrls, config.AdvertiseClientUrls = []url.URL{*at}, []url.URL{*at}
	config.ListenPeerUrls, config.ListenClientUrls = nil, nil
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	config.UnsafeNoFsync, config.QuotaBackendBytes = true, maxSize
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("no etcd starts from it: %w", err)
	}
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
	case <-timer.C:
		err = fmt.Errorf("it takes longer than %s", startTime)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	etcd.Close()
	return nil, fmt.Errorf("no etcd starts from it: %w", err)
}
