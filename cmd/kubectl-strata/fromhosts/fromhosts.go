// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fromhosts holds the commands that make clusters of hosts, over SSH.
package fromhosts

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/spf13/cobra"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/setup"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/machines"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/provision"
	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/internal/ssh"
)

const hostsLong = `Make a cluster of hosts that have nothing but an SSH server, and keep it so.

The manifest is a HostCluster, in the file hosts.yaml or another one; no cluster is needed. Hosts are
reached as root, or as a user with sudo without a password, with the key that
--ssh-key names, those of the agent, or those in ~/.ssh. Host keys are compared
with those of the manifest, or with the known hosts; one that is seen first is
kept, and one that has changed stops everything.`

// Commands returns the command about hosts.
func Commands(c *console.Console, build setup.Build) *cobra.Command {
	command := &cobra.Command{
		Use:   "hosts",
		Short: "Make a cluster of bare hosts over SSH",
		Long:  hostsLong,
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newInit(c), newPlan(c, build), newApply(c, build), newStatus(c), newKubeconfig(c), newReset(c), newLogs(c),
		newReplace(c), newEtcd(c), newCerts(c))
	return command
}

// defaultFile is the manifest where none is given.
const defaultFile = "hosts.yaml"

// fileOf returns the manifest that is meant.
func fileOf(args []string) string {
	if len(args) == 0 {
		return defaultFile
	}
	return args[0]
}

// work is what somebody asks for about the hosts of one manifest.
type work struct {
	*console.Console
	login, bastionLogin ssh.Login
	// keys are those of login, once it was opened.
	keys            *ssh.Keys
	known           string
	takeOver        bool
	withoutSnapshot bool
	// snapshotDir is where the snapshots of the manifest are; empty for nowhere.
	snapshotDir string
	// bucket has them in place of that.
	bucket *snapshots.Bucket

	fill filling

	cluster  *v1alpha1.HostCluster
	machines *machines.Machines
	close    []func()
}

func (w *work) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&w.login.KeyFile, "ssh-key", "", "the private key for the hosts; keys of the agent and in ~/.ssh where it is not given")
	flags.StringVar(&w.login.CertificateFile, "ssh-certificate", "", "the certificate of that key; the file KEY-cert.pub where there is one")
	flags.StringVar(&w.bastionLogin.KeyFile, "bastion-key", "", "the private key for the bastion; as for the hosts where it is not given")
	flags.StringVar(&w.known, "known-hosts", "", "the file of host keys that are known, and to which new ones are added; ~/.ssh/known_hosts where it is not given")
}

// open reads the manifest and the keys. What it opens is closed by end.
func (w *work) open(ctx context.Context, file string) error {
	if err := w.read(ctx, file); err != nil {
		return err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("cannot find ~/.ssh: %w", err)
	}
	for _, login := range []*ssh.Login{&w.login, &w.bastionLogin} {
		login.Dir = filepath.Join(home, ".ssh")
		if login.KeyFile == "" {
			login.Agent = os.Getenv("SSH_AUTH_SOCK")
		}
	}
	var access machines.Access
	if access.Pins, err = ssh.OpenPins(cmp.Or(w.known, filepath.Join(home, ".ssh", "known_hosts"))); err != nil {
		return err
	}
	if w.keys, err = w.login.Keys(ctx); err != nil {
		return err
	}
	w.close = append(w.close, w.keys.Close)
	access.Auth, access.BastionAuth = w.keys.Recorded(), w.keys.Methods()
	if w.bastionLogin.KeyFile != "" {
		methods, closeAgent, err := w.bastionLogin.Methods(ctx)
		if err != nil {
			return err
		}
		w.close = append(w.close, closeAgent)
		access.BastionAuth = methods
	}
	w.machines = machines.Open(w.cluster, access)
	w.close = append(w.close, w.machines.Close)
	return nil
}

// end closes what was opened, the last first.
func (w *work) end() {
	for i := range w.close {
		w.close[len(w.close)-1-i]()
	}
	w.close = nil
}

// read reads the manifest: of a file, or of the input where that is -.
func (w *work) read(ctx context.Context, file string) error {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(io.LimitReader(os.Stdin, hostclusters.MaxSize+1))
	} else {
		data, err = readBounded(file)
	}
	if err != nil {
		return err
	}
	if w.cluster, err = hostclusters.Read(ctx, file, data); err != nil {
		return err
	}
	if w.snapshotDir = w.cluster.Spec.Snapshots.Directory; w.snapshotDir != "" && !filepath.IsAbs(w.snapshotDir) && file != "-" {
		w.snapshotDir = filepath.Join(filepath.Dir(file), w.snapshotDir)
	}
	if bucket := w.cluster.Spec.Snapshots.S3; bucket != nil {
		w.bucket, err = snapshots.OpenBucket(ctx, snapshots.BucketOptions{
			Endpoint: bucket.Endpoint, Region: bucket.Region, Bucket: bucket.Bucket, Prefix: bucket.Prefix,
			Own: func(ctx context.Context, client aws.HTTPClient) (aws.Config, error) {
				return config.LoadDefaultConfig(ctx, config.WithHTTPClient(client))
			},
		})
	}
	return err
}

// options of what is done to the hosts.
func (w *work) options() provision.Options {
	return provision.Options{
		Cluster: w.cluster, Machines: w.machines, Keys: w.keys, TakeOver: w.takeOver, Actor: whoAmI(), Now: w.Now, Report: w.report,
		SnapshotDir: w.snapshotDir, Bucket: w.bucket, WithoutSnapshot: w.withoutSnapshot,
	}
}

// snapshotFlag adds the flag by which members of etcd change without a snapshot.
func (w *work) snapshotFlag(command *cobra.Command) {
	command.Flags().BoolVar(&w.withoutSnapshot, "without-snapshot", false, "have members of etcd change, and upgrade, without saving etcd first")
}

// look looks at the hosts, and says what would be done.
func (w *work) look(ctx context.Context) (*hostplans.Plan, *observe.Sight, error) {
	options := observe.Options{Cluster: w.cluster, Machines: w.machines, TakeOver: w.takeOver, Now: w.Now}
	if w.withoutSnapshot {
		options.Snapshots = hosts.SnapshotWaived
	}
	sight, err := observe.Look(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	plan := hostplans.New(w.cluster, sight)
	return plan, sight, w.addSteps(ctx, plan, sight)
}

// takeOverFlag adds the flag by which a cluster is taken from another manager.
func (w *work) takeOverFlag(command *cobra.Command) {
	command.Flags().BoolVar(&w.takeOver, "take-over", false,
		"take the cluster from the manager that has applied a manifest before, or one that kubeadm or KubeOne has made, as it is")
}
