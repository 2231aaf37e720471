// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/scripts"
	"github.com/strata-project/strata/internal/ssh"
)

// act takes one action. done is false where a host is still at work for an earlier actor.
func (w *worker) act(ctx context.Context, action hosts.Action) (done bool, err error) {
	switch action.Verb {
	case hosts.VerbInit:
		return w.init(ctx, action)
	case hosts.VerbJoin, hosts.VerbJoinWorker:
		return w.join(ctx, action)
	case hosts.VerbReset:
		return w.runScript(ctx, scripts.Job{Cluster: w.Cluster, ID: w.id, Action: action})
	case hosts.VerbRemoveMember:
		return true, w.removeMember(ctx, action)
	case hosts.VerbRemoveNode:
		return true, w.removeNode(ctx, action.Host)
	case hosts.VerbSnapshot:
		return true, w.snapshot(ctx)
	case hosts.VerbRenew:
		done, err := w.runScript(ctx, scripts.Job{Cluster: w.Cluster, ID: w.id, Action: action})
		if done && err == nil {
			w.renewed = append(w.renewed, action.Host)
		}
		return done, err
	case hosts.VerbUpgrade, hosts.VerbUpgradeContainerd:
		return w.upgrade(ctx, action)
	case hosts.VerbUpdate:
		return w.update(ctx)
	}
	return false, fmt.Errorf("nobody knows how to %s a host", action.Verb)
}

// init makes the cluster.
func (w *worker) init(ctx context.Context, action hosts.Action) (bool, error) {
	if w.id == "" {
		w.id = newID(w.Cluster.Namespace, w.Cluster.Name)
	}
	job := scripts.Job{Cluster: w.Cluster, ID: w.id, Action: action, Secrets: scripts.Secrets{Token: newToken()}}
	var err error
	if job.Encryption, err = w.firstEncryption(ctx, action); err != nil {
		return false, err
	}
	return w.runScript(ctx, job)
}

// join brings a host into the cluster: with a token of its own, and a host of the control
// plane with the authorities, which the leader encrypts for it.
func (w *worker) join(ctx context.Context, action hosts.Action) (bool, error) {
	if err := w.awaitEndpoint(ctx); err != nil {
		return false, err
	}
	cluster := w.sight.Cluster
	if cluster == nil {
		return false, errors.New("the cluster does not answer: " + w.sight.NotQueried)
	}
	if err := w.dropStaleNode(ctx, action); err != nil {
		return false, err
	}
	job := scripts.Job{Cluster: w.Cluster, ID: w.id, Action: action, Secrets: scripts.Secrets{Token: newToken()}}
	var err error
	if job.Secrets.AuthorityHash, err = authorityHash(cluster.Config.CAData); err != nil {
		return false, err
	}
	if action.Verb == hosts.VerbJoin {
		if job.Encryption, err = w.sharedEncryption(ctx); err != nil {
			return false, err
		}
		job.Secrets.CertificateKey = newCertificateKey()
		leader, _, err := hostclusters.ByName(w.Cluster, cluster.Leader)
		if err != nil {
			return false, err
		}
		done, err := w.run(ctx, leader.Name, scripts.Certificates(job, leader))
		if err != nil || !done {
			return done, err
		}
	}
	if err := makeToken(ctx, cluster.Client, job.Secrets.Token, w.Now()); err != nil {
		return false, err
	}
	done, err := w.runScript(ctx, job)
	if !errors.Is(err, errLost) {
		// They end by themselves, but nobody needs them any more. A host that is out of
		// sight may still join with them.
		dropSecrets(ctx, cluster.Client, job.Secrets.Token)
	}
	return done, err
}

// dropStaleNode deletes the Node of a host that has nothing of the cluster any more: kubeadm
// takes it for another host's.
func (w *worker) dropStaleNode(ctx context.Context, action hosts.Action) error {
	if action.Continues || !slices.Contains(w.sight.Observation.Cluster.Nodes, action.Host) {
		return nil
	}
	host, _, err := hostclusters.ByName(w.Cluster, action.Host)
	if err != nil {
		return err
	}
	nodes := w.sight.Cluster.Client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, action.Host, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the Node %s: %w", action.Host, err)
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP && address.Address != host.Address && address.Address != host.SecondAddress {
			return fmt.Errorf("there is a Node %s with the address %s: give the host another name, or delete that Node",
				action.Host, printable.Line(address.Address, 50))
		}
	}
	err = nodes.Delete(ctx, action.Host, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(node.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot delete the Node %s: %w", action.Host, err)
	}
	w.Report(Event{Host: action.Host, Message: "has no Node of before any more"})
	return nil
}

// awaitEndpoint waits until the cluster answers at its endpoint, where hosts join: a load
// balancer takes a while to see that a host is healthy.
func (w *worker) awaitEndpoint(ctx context.Context) error {
	until := w.Now().Add(endpointTime)
	for said := false; w.sight.Cluster != nil && w.sight.Endpoint != ""; said = true {
		if w.Now().After(until) {
			return errors.New("spec.endpoint: " + w.sight.Endpoint + ". Hosts join there")
		}
		if !said {
			w.Report(Event{Message: "waits for the endpoint: " + w.sight.Endpoint, Until: until})
		}
		if err := pause(ctx); err != nil {
			return err
		}
		if _, err := w.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// runScript renders and runs the script of an action.
func (w *worker) runScript(ctx context.Context, job scripts.Job) (bool, error) {
	script, err := scripts.Render(job)
	if err != nil {
		return false, err
	}
	return w.run(ctx, job.Action.Host, script)
}

// errLost says that a script was lost out of sight.
var errLost = errors.New("what has begun there goes on: run it again")

// run runs a script on a host. done is false where another one runs there.
func (w *worker) run(ctx context.Context, host string, script []byte) (done bool, err error) {
	progress := &progress{host: host, report: w.Report}
	result, err := w.Machines.Run(ctx, host, ssh.Command{Input: script, Timeout: actionTime, Follow: progress})
	switch {
	case err != nil:
		w.Machines.Forget(host)
		return false, fmt.Errorf("%w; %w", err, errLost)
	case result.Status == scripts.Busy:
		return false, nil
	case result.Status != 0 && progress.failed != "":
		return false, fmt.Errorf("%s: %s", host, progress.failed)
	case result.Status != 0:
		return false, fmt.Errorf("%s: the script has ended with %d: kubectl strata hosts logs has what its programs said", host, result.Status)
	}
	return true, nil
}

// progress passes on what a script says, in lines of its own.
type progress struct {
	host   string
	report func(Event)
	failed string
	line   []byte
}

// Write takes what the script writes. A line that is no word of ours is dropped.
func (p *progress) Write(data []byte) (int, error) {
	for _, each := range data {
		switch {
		case each != '\n' && len(p.line) < 500:
			p.line = append(p.line, each)
		case each == '\n':
			if said, is := bytes.CutPrefix(p.line, []byte("strata: ")); is {
				p.say(printable.Line(string(said), 400))
			}
			p.line = p.line[:0]
		}
	}
	return len(data), nil
}

func (p *progress) say(text string) {
	if why, failed := strings.CutPrefix(text, "failed: "); failed {
		p.failed = why
		return
	}
	p.report(Event{Host: p.host, Message: text})
}

// removeMember takes a Node out of the cluster, and its member out of etcd. The Node goes
// first: a run that ends in between is gone on with as long as there is a member.
func (w *worker) removeMember(ctx context.Context, action hosts.Action) error {
	cluster := w.sight.Cluster
	if cluster == nil {
		return errors.New("the cluster does not answer: " + w.sight.NotQueried)
	}
	// Nothing ends the Pods of a host that is gone, however long they are waited for.
	answers := slices.ContainsFunc(w.sight.Observation.Cluster.Members, func(m hosts.Member) bool { return m.ID == action.MemberID && m.Healthy })
	if answers {
		if err := w.empty(ctx, action.Host); err != nil {
			return err
		}
	}
	w.Report(Event{Host: action.Host, Message: "leaves etcd and the cluster"})
	if err := w.deleteNode(ctx, action.Host); err != nil {
		return err
	}
	return cluster.RemoveMember(ctx, action.MemberID)
}

// removeNode takes a Node out of the cluster.
func (w *worker) removeNode(ctx context.Context, host string) error {
	if err := w.empty(ctx, host); err != nil {
		return err
	}
	w.Report(Event{Host: host, Message: "leaves the cluster"})
	return w.deleteNode(ctx, host)
}

// empty has the Pods leave a Node that is to go, where its kubelet runs: those of others go
// with it.
func (w *worker) empty(ctx context.Context, host string) error {
	client := w.sight.Cluster.Client
	node, err := client.CoreV1().Nodes().Get(ctx, host, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("cannot read the Node %s: %w", host, err)
	case !hostclusters.Runs(node):
		return nil
	}
	return w.drain(ctx, client, host)
}

func (w *worker) deleteNode(ctx context.Context, host string) error {
	err := w.sight.Cluster.Client.CoreV1().Nodes().Delete(ctx, host, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot delete the Node %s: %w", host, err)
	}
	return nil
}
