// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"
	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/provision"
	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/internal/sshsig"
	"github.com/strata-project/strata/internal/terminal"
)

const etcdLong = `Save etcd of the cluster, and have the cluster begin again with what was saved.

A snapshot has all objects of the cluster, with every Secret. It is kept in the folder of
spec.snapshots.directory or the bucket of spec.snapshots.s3, encrypted with age for
spec.snapshots.encryption. It counts only after an etcd was started from it on this machine
that has all keys that were there. What is known of it is signed with the SSH key that hosts
have let in, and restore takes what it can say of whom it is. For a bucket, credentials are found as AWS's own programs
find them.`

func newEtcd(c *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use:   "etcd",
		Short: "Save etcd of the cluster, and restore it",
		Long:  etcdLong,
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newSnapshot(c), newSnapshots(c), newRestore(c))
	return command
}

const snapshotExamples = `  kubectl strata hosts etcd snapshot

  # Elsewhere than the manifest says
  kubectl strata hosts etcd snapshot --to /mnt/backups/edge`

func newSnapshot(c *console.Console) *cobra.Command {
	w := &work{Console: c}
	to, output := "", ""
	command := &cobra.Command{
		Use:     "snapshot [FILE]",
		Short:   "Save etcd, and start an etcd from it to see that all is there",
		Example: snapshotExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return w.snapshot(command.Context(), fileOf(args), to, output)
		},
	}
	w.addFlags(command)
	command.Flags().StringVar(&to, "to", "", "the folder; the place of spec.snapshots where it is not given")
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (w *work) snapshot(ctx context.Context, file, to, output string) error {
	defer w.end()
	if err := w.open(ctx, file); err != nil {
		return err
	}
	options := w.options()
	if to != "" {
		options.SnapshotDir, options.Bucket = to, nil
	}
	if options.SnapshotDir == "" && options.Bucket == nil {
		return errors.New("nothing says where: name a folder in spec.snapshots.directory, or give --to")
	}
	taken, err := provision.Snapshot(ctx, options)
	if err != nil {
		return err
	}
	if output != "" {
		return w.PrintAs(output, taken)
	}
	fmt.Fprintf(w.Out, "%s: %d keys at revision %d, %d bytes\n", taken.File, taken.Keys, taken.Revision, taken.Size)
	return nil
}

func newSnapshots(c *console.Console) *cobra.Command {
	w := &work{Console: c}
	output := ""
	command := &cobra.Command{
		Use:     "list [FILE]",
		Short:   "List the snapshots of the cluster that count",
		Example: "  kubectl strata hosts etcd list",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return w.snapshots(command.Context(), fileOf(args), output)
		},
	}
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (w *work) snapshots(ctx context.Context, file, output string) error {
	if err := w.read(ctx, file); err != nil {
		return err
	}
	if w.snapshotDir == "" && w.bucket == nil {
		return errors.New("nothing says where they are: name a folder in spec.snapshots.directory")
	}
	found, err := w.listSnapshots(ctx)
	if err != nil {
		return err
	}
	if output != "" {
		return w.PrintAs(output, found)
	}
	columns := []terminal.Column{
		{Name: "TAKEN"}, {Name: "KUBERNETES"}, {Name: "KEYS"}, {Name: "REVISION"}, {Name: "ENCRYPTED"}, {Name: "SIGNED BY"}, {Name: "FILE"},
	}
	var rows [][]string
	for _, each := range found {
		encrypted := "no"
		if each.Encrypted {
			encrypted = "yes"
		}
		rows = append(rows, []string{
			each.Time.UTC().Format(time.RFC3339), each.Version, fmt.Sprint(each.Keys), fmt.Sprint(each.Revision), encrypted, signedBy(each), each.File,
		})
	}
	return w.Table(columns, rows, fmt.Sprintf("There is no snapshot of %s/%s in %s.", w.cluster.Namespace, w.cluster.Name, w.place()))
}

// signedBy says with which key a snapshot is signed.
func signedBy(taken snapshots.Snapshot) string {
	switch {
	case taken.Forged != "":
		return "forged"
	case taken.SignedBy == "":
		return "nobody"
	}
	return taken.SignedBy
}

// place is where the snapshots of the manifest are, in words.
func (w *work) place() string {
	if w.bucket != nil {
		return w.bucket.String()
	}
	return w.snapshotDir
}

// listSnapshots lists those of the manifest's cluster, the newest first.
func (w *work) listSnapshots(ctx context.Context) ([]snapshots.Snapshot, error) {
	name := w.cluster.Namespace + "/" + w.cluster.Name
	if w.bucket != nil {
		return w.bucket.List(ctx, name)
	}
	return snapshots.List(w.snapshotDir, name)
}

const restoreLong = `Have the cluster begin again with what was saved: on one host of the control plane, which the
others then join anew.

This is for a cluster whose etcd has lost its majority. What has changed after the snapshot
is lost. It is shown beforehand, where a member of etcd is left that says it. Whatever runs
on workers goes on meanwhile.

What etcd has had stays on the hosts in /var/lib/strata. Revisions grow by a thousand
million, so that nobody takes an old one for a new one. A host of the control plane that
cannot be reached must be named with --without, and must not come back as it was.

The snapshot has to be signed with an SSH key that you log in with, or with one that --signed-by
names: whoever can write where snapshots are can make one. Others are named, and the next
one is taken. Find out whose a key is before you give --signed-by.

When it is killed, run it again. The name of the cluster has to be typed, or given by
--confirm.`

const restoreExamples = `  # From the newest snapshot
  kubectl strata hosts etcd restore --identity ~/keys/edge.agekey

  # From one that is named, with a host that has burnt down
  kubectl strata hosts etcd restore --from snapshots/fleet-edge-20260301T120000Z-4711.db --without cp-2

  # From what the controller of a management cluster has saved, whose public key you have
  kubectl strata hosts etcd restore --signed-by controller.pub`

// restoring is what somebody asks for.
type restoring struct {
	from, identity, confirmed, output string
	// signedBy are fingerprints of keys, and files with public keys, and unsigned takes one that
	// nobody has signed.
	signedBy []string
	unsigned bool
	wish     hosts.Wish
}

func newRestore(c *console.Console) *cobra.Command {
	w, asked := &work{Console: c}, restoring{}
	command := &cobra.Command{
		Use:     "restore [FILE]",
		Short:   "Have the cluster begin again with what was saved",
		Long:    restoreLong,
		Example: restoreExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return w.restore(command.Context(), fileOf(args), asked)
		},
	}
	w.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&asked.from, "from", "", "the file of the snapshot, or its s3:// address; the newest of spec.snapshots where it is not given")
	flags.StringVar(&asked.identity, "identity", "", "the file with a private key of age that decrypts it")
	flags.StringSliceVar(&asked.signedBy, "signed-by", nil,
		"fingerprints (SHA256:...) of the SSH keys, or files with public keys, whose snapshots are taken; the keys that you log in with where it is not given")
	flags.BoolVar(&asked.unsigned, "accept-unsigned", false, "with --from, take a snapshot that nobody has signed, as those of earlier versions")
	flags.StringVar(&asked.wish.Host, "host", "", "the host on which it begins; the first that can where it is not given")
	flags.StringSliceVar(&asked.wish.Without, "without", nil, "hosts of the control plane that cannot be reached, and do not come back as they were")
	flags.BoolVar(&asked.wish.AlthoughItAnswers, "although-it-answers", false, "have a cluster go back that has its majority")
	flags.StringVar(&asked.confirmed, "confirm", "", "the namespace and name of the cluster, for where nobody can be asked")
	console.OutputFlag(command, &asked.output, "json", "yaml")
	return command
}

func (w *work) restore(ctx context.Context, file string, asked restoring) error {
	defer w.end()
	if err := w.open(ctx, file); err != nil {
		return err
	}
	trust, err := w.trust(asked)
	if err != nil {
		return err
	}
	taken, err := w.snapshotOf(ctx, asked.from, trust)
	if err != nil {
		return err
	}
	identities, err := readIdentities(asked.identity)
	if err != nil {
		return err
	}
	begin := w.Now()
	plan, err := provision.Restore(ctx, w.options(), provision.Return{
		Snapshot: taken, Identities: identities, Wish: asked.wish,
		Confirm: func(back provision.Back) error { return w.confirmRestore(taken, back, asked.confirmed) },
	})
	if err != nil {
		return err
	}
	return w.finish(plan, asked.output, w.Now().Sub(begin))
}

// trust says whose snapshots are taken.
func (w *work) trust(asked restoring) (snapshots.Trust, error) {
	if asked.unsigned && asked.from == "" {
		return snapshots.Trust{}, errors.New("--accept-unsigned is for a snapshot that you name with --from")
	}
	trust := snapshots.Trust{Unsigned: asked.unsigned}
	for _, each := range asked.signedBy {
		if strings.HasPrefix(each, "SHA256:") {
			trust.Keys = append(trust.Keys, each)
			continue
		}
		found, err := fingerprints(each)
		if err != nil {
			return trust, err
		}
		trust.Keys = append(trust.Keys, found...)
	}
	if len(asked.signedBy) == 0 {
		for _, key := range w.keys.Public() {
			trust.Keys = append(trust.Keys, sshsig.Fingerprint(key))
		}
	}
	return trust, nil
}

// fingerprints reads the public keys of a file.
func fingerprints(file string) ([]string, error) {
	rest, err := readBounded(file)
	if err != nil {
		return nil, fmt.Errorf("--signed-by: %w", err)
	}
	var found []string
	for len(bytes.TrimSpace(rest)) > 0 {
		var key cryptossh.PublicKey
		if key, _, _, rest, err = cryptossh.ParseAuthorizedKey(rest); err != nil {
			break
		}
		found = append(found, sshsig.Fingerprint(key))
	}
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("--signed-by: %s has no public keys of SSH: one of them is ssh-ed25519 AAAA... in a line", file)
	}
	return found, nil
}

// snapshotOf returns a snapshot that is named, or the newest one that is taken. One of a bucket
// is fetched into a folder that goes at the end.
func (w *work) snapshotOf(ctx context.Context, file string, trust snapshots.Trust) (snapshots.Snapshot, error) {
	if file != "" && !snapshots.IsInBucket(file) {
		found, err := snapshots.Find(file)
		if err == nil {
			err = trust.Check(found)
		}
		return found, err
	}
	if file != "" && w.bucket == nil {
		return snapshots.Snapshot{}, errors.New("--from is in a bucket, and spec.snapshots.s3 names none")
	}
	taken := snapshots.Snapshot{File: file}
	if file == "" {
		var err error
		if taken, err = w.newestSnapshot(ctx, trust); err != nil {
			return taken, err
		}
	}
	if w.bucket == nil {
		return taken, nil
	}
	dir, err := os.MkdirTemp("", "strata-restore-")
	if err != nil {
		return taken, fmt.Errorf("cannot fetch the snapshot: %w", err)
	}
	w.close = append(w.close, func() { _ = os.RemoveAll(dir) })
	return w.bucket.Fetch(ctx, taken, dir, trust)
}

// newestSnapshot returns the newest snapshot that is taken, and names those that are not.
func (w *work) newestSnapshot(ctx context.Context, trust snapshots.Trust) (snapshots.Snapshot, error) {
	if w.snapshotDir == "" && w.bucket == nil {
		return snapshots.Snapshot{}, errors.New("nothing says which snapshot: give --from, or name a folder in spec.snapshots.directory")
	}
	found, err := w.listSnapshots(ctx)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("there is no snapshot of %s/%s in %s: give --from", w.cluster.Namespace, w.cluster.Name, w.place())
	}
	if err != nil {
		return snapshots.Snapshot{}, err
	}
	taken, passed := trust.Newest(found)
	if taken == nil {
		return snapshots.Snapshot{}, fmt.Errorf("none of the %d snapshots in %s is taken: %w", len(found), w.place(), passed[0])
	}
	for _, each := range passed[:min(len(passed), maxPassed)] {
		w.Paragraph(w.ErrOut, "Passed over: %s", each)
	}
	if more := len(passed) - maxPassed; more > 0 {
		w.Paragraph(w.ErrOut, "%d more are passed over: kubectl strata hosts etcd list shows them", more)
	}
	return *taken, nil
}

// maxPassed is how many snapshots are named that are passed over.
const maxPassed = 10

// readIdentities reads private keys of age; none where no file is given. An error repeats
// nothing of the file.
func readIdentities(file string) ([]age.Identity, error) {
	if file == "" {
		return nil, nil
	}
	data, err := readBounded(file)
	if err != nil {
		return nil, err
	}
	found, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s has no private keys of age: one of them is AGE-SECRET-KEY-1... in a line", file)
	}
	return found, nil
}

// confirmRestore says what is lost, and has somebody type the name of the cluster.
func (w *work) confirmRestore(taken snapshots.Snapshot, back provision.Back, confirmed string) error {
	w.Paragraph(w.ErrOut, "%s", describe(taken, back, w.Now()))
	return w.confirmName(w.cluster.Namespace+"/"+w.cluster.Name, confirmed)
}

// describe says what a cluster goes back to, and what is lost.
func describe(taken snapshots.Snapshot, back provision.Back, now time.Time) string {
	said := []string{fmt.Sprintf("The cluster goes back to %s, %s ago (%s, revision %d, %d keys), and begins on %s.",
		taken.Time.UTC().Format(time.RFC3339), now.Sub(taken.Time).Round(time.Second), filepath.Base(taken.File), taken.Revision, taken.Keys, back.Host)}
	if taken.SignedBy == "" {
		said = append(said, "Nobody has signed it.")
	} else {
		said = append(said, "It is signed with the SSH key "+taken.SignedBy+".")
	}
	switch {
	case back.From == "":
		said = append(said, "No etcd answers: what is newer cannot be said.")
	case len(back.Newer) == 0:
		said = append(said, fmt.Sprintf("Etcd on %s has nothing that is newer.", back.From))
	default:
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(back.Newer)) {
			kinds = append(kinds, fmt.Sprintf("%d %s", back.Newer[kind], kind))
		}
		said = append(said, fmt.Sprintf("Etcd on %s is at revision %d. Newer there, and lost: %s; and what was deleted comes back.",
			back.From, back.Revision, strings.Join(kinds, ", ")))
	}
	if len(back.Reset) > 0 {
		said = append(said, fmt.Sprintf("%s: reset, and joined again.", strings.Join(back.Reset, ", ")))
	}
	if len(back.Gone) > 0 {
		said = append(said, fmt.Sprintf("%s: must not come back as it was.", strings.Join(back.Gone, ", ")))
	}
	return strings.Join(said, " ")
}
