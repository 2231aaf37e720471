// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/scripts"
	"github.com/strata-project/strata/internal/snapshots"
)

// survivorTime is how long a member of etcd may take to say what is newer.
const survivorTime = 30 * time.Second

// Return says what a cluster goes back to.
type Return struct {
	Snapshot   snapshots.Snapshot
	Identities []age.Identity
	Wish       hosts.Wish
	// Confirm is asked once, before anything is done; its error ends the run.
	Confirm func(Back) error
}

// Back is what somebody is asked to agree to.
type Back struct {
	hosts.Restoration
	// From is the host whose etcd says what is newer; empty where none does.
	From string
	// Revision of that etcd, and Newer how many of its keys have changed after the
	// snapshot, by their kinds.
	Revision int64
	Newer    map[string]int
}

// Restore has a cluster begin again with what was saved, on one host, and brings the others
// in. It returns the plan that is left.
func Restore(ctx context.Context, o Options, back Return) (*hostplans.Plan, error) {
	w := newWorker(o)
	plan, err := w.lookAtRest(ctx)
	if err != nil {
		return nil, err
	}
	back.Wish.ClusterID, back.Wish.Version = back.Snapshot.ClusterID, back.Snapshot.Version
	asked := Back{}
	if asked.Restoration, err = hosts.Restore(w.sight.Observation, back.Wish); err != nil {
		return nil, err
	}
	if err := w.reads(asked.Host, back.Snapshot); err != nil {
		return nil, err
	}
	w.askSurvivors(ctx, back.Snapshot.Revision, &asked)
	if err := back.Confirm(asked); err != nil {
		return nil, err
	}
	ctx, cancel, release, err := w.hold(ctx, plan)
	if err != nil {
		return plan, err
	}
	defer release()
	if err := w.isStill(ctx, asked.Restoration, back.Wish); err != nil {
		return plan, err
	}
	if err := w.sendData(ctx, asked.Host, back); err != nil {
		return plan, err
	}
	// No etcd of before may run beside the one that begins.
	for _, name := range asked.Reset {
		if err := w.runToEnd(ctx, scripts.Job{Keep: true, Action: hosts.Action{Verb: hosts.VerbReset, Host: name}}); err != nil {
			return plan, err
		}
	}
	action := hosts.Action{Verb: hosts.VerbRestore, Host: asked.Host, Version: back.Snapshot.Version}
	if err := w.runToEnd(ctx, scripts.Job{Action: action}); err != nil {
		return plan, err
	}
	// The snapshot is what this run has, and its Lease is one of the past.
	w.saved, w.restored = true, true
	if plan, err = w.settle(ctx, action, true, false); err != nil {
		return plan, err
	}
	for _, each := range plan.Actions {
		if !drains(each) && each.Verb != hosts.VerbUpdate {
			w.agreed = append(w.agreed, each)
		}
	}
	if plan, err = w.work(ctx, cancel, plan); errors.Is(err, ErrChanged) {
		err = nil // what else the manifest wants is for apply
	}
	return plan, err
}

// reads returns an error unless the API server of a host has the keys with which the Secrets
// of a snapshot are encrypted: no others are anywhere.
func (w *worker) reads(host string, snapshot snapshots.Snapshot) error {
	has := w.sight.Facts[host].Providers
	for _, provider := range snapshot.Providers {
		if provider != encryption.InClear && !slices.Contains(has, provider) {
			return fmt.Errorf("secrets of %s are encrypted with %s, and the API server of %s has %s: restore a later snapshot",
				filepath.Base(snapshot.File), provider, host, cmp.Or(strings.Join(has, ", "), "no key"))
		}
	}
	return nil
}

// isStill returns an error unless the same would be done as what was agreed to, about which
// somebody may have thought for long.
func (w *worker) isStill(ctx context.Context, agreed hosts.Restoration, wish hosts.Wish) error {
	if _, err := w.look(ctx); err != nil {
		return err
	}
	again, err := hosts.Restore(w.sight.Observation, wish)
	if err == nil && !reflect.DeepEqual(again, agreed) {
		err = ErrChanged
	}
	return err
}

// runToEnd runs a script, also where another one has to end first.
func (w *worker) runToEnd(ctx context.Context, job scripts.Job) error {
	job.Cluster, job.ID = w.Cluster, cmp.Or(job.ID, w.id)
	for {
		if done, err := w.runScript(ctx, job); err != nil || done {
			return err
		}
		if _, err := w.lookAtRest(ctx); err != nil {
			return err
		}
	}
}

// askSurvivors asks a member of etcd that still runs what is newer than the snapshot. It
// may have no majority, and says what it has.
func (w *worker) askSurvivors(ctx context.Context, revision int64, asked *Back) {
	for _, host := range w.Cluster.Spec.ControlPlane {
		ctx, cancel := context.WithTimeout(ctx, survivorTime)
		etcd, err := observe.MemberOn(ctx, observe.Options{Cluster: w.Cluster, Machines: w.Machines}, host)
		if err == nil {
			asked.Revision, asked.Newer, err = snapshots.Newer(ctx, etcd, revision)
			err = errors.Join(err, etcd.Close())
		}
		cancel()
		if err == nil {
			asked.From = host.Name
			return
		}
	}
	asked.Revision, asked.Newer = 0, nil
}

// sendData makes of the snapshot what etcd begins with on a host, and sends it there.
func (w *worker) sendData(ctx context.Context, name string, back Return) (err error) {
	host, _, err := hostclusters.ByName(w.Cluster, name)
	if err != nil {
		return err
	}
	// What a run has left that was killed has all Secrets in it. Hosts are locked, so that
	// there is one run for a cluster.
	work := filepath.Join(filepath.Dir(back.Snapshot.File), ".restoring-"+w.Cluster.Namespace+"-"+w.Cluster.Name)
	if err = errors.Join(os.RemoveAll(work), os.Mkdir(work, 0o700)); err != nil {
		return fmt.Errorf("cannot restore the snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	w.Report(Event{Host: name, Message: "is sent what was saved " + back.Snapshot.Time.Format(time.RFC3339)})
	data := filepath.Join(work, "data")
	err = snapshots.Restore(ctx, back.Snapshot, back.Identities, snapshots.Member{
		Name: name, PeerURL: "https://" + net.JoinHostPort(host.Address, "2380"), Token: "restored-" + strings.ToLower(rand.Text()),
	}, work, data)
	if err != nil {
		return err
	}
	out, in := io.Pipe()
	sum := sha256.New()
	go func() { in.CloseWithError(pack(io.MultiWriter(in, sum), data)) }()
	result, err := w.Machines.Send(ctx, name, scripts.Receive, out, actionTime)
	_ = out.Close()
	if err != nil {
		w.Machines.Forget(name)
		return fmt.Errorf("%s did not get what was saved: %w", name, err)
	}
	got, _, _ := strings.Cut(string(result.Output), " ")
	if result.Status != 0 || got != hex.EncodeToString(sum.Sum(nil)) {
		return fmt.Errorf("%s did not get what was saved: is there room in /var/lib?", name)
	}
	return nil
}

// pack writes a folder as an archive.
func pack(to io.Writer, dir string) error {
	packed := gzip.NewWriter(to)
	archive := tar.NewWriter(packed)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		if header.Name, err = filepath.Rel(dir, path); err != nil {
			return err
		}
		// They are root's there, whoever has made them here.
		header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "root", "root"
		if err := archive.WriteHeader(header); err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(path) //nolint:gosec // it is in a folder of ours
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		_, err = io.Copy(archive, file)
		return err
	})
	return errors.Join(err, archive.Close(), packed.Close())
}
