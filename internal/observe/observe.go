// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe looks at the hosts of a cluster and at the cluster itself, and changes
// nothing. Hosts are asked side by side over SSH; the cluster is asked through one of
// them, by certificate.
package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/machines"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/probes"
	"github.com/strata-project/strata/internal/ssh"
)

// RenewBefore is how long before their end certificates are renewed. Those of kubeadm are
// good for a year.
const RenewBefore = 30 * 24 * time.Hour

// atOnce is how many hosts are asked side by side.
const atOnce = 64

// Options say what to look at.
type Options struct {
	// Cluster with its defaults.
	Cluster *v1alpha1.HostCluster
	// Machines are its hosts.
	Machines *machines.Machines
	// Manager is as whom manifests are applied; Manager where it is empty.
	Manager string
	// TakeOver has a cluster be taken from another manager.
	TakeOver bool
	// Snapshots is SnapshotTaken or SnapshotWaived where that is so; otherwise the manifest
	// says whether one is due.
	Snapshots hosts.Snapshots
	// Renew are hosts whose certificates are renewed whenever they end.
	Renew []string
	// HostTime is how long one question may take; 0 means 20 seconds.
	HostTime time.Duration
	// Now returns the time.
	Now func() time.Time
}

// Sight is what was seen.
type Sight struct {
	// Observation is what is decided upon.
	Observation hosts.Observation
	// Facts of the hosts that have answered, by their names.
	Facts map[string]probes.Facts
	// Cluster that answers; nil where none does.
	Cluster *Cluster
	// Endpoint says why the cluster is not reached at its endpoint; empty where it is, and
	// where no cluster answers.
	Endpoint string
	// Changes are what of the manifest is not yet so in the cluster.
	Changes []hostclusters.Change
	// Others are what somebody else keeps in a cluster that is taken over, in sentences.
	Others []string
	// Refused are requests for certificates that are not approved, in sentences.
	Refused []string
	// NotQueried says why a cluster that may be there was not asked; empty where it was.
	NotQueried string
}

// looker is one Look.
type looker struct {
	Options
	sight *Sight
	ahead map[string]time.Duration
}

// answer is what one host has said.
type answer struct {
	host  hosts.Host
	facts *probes.Facts
	ahead time.Duration
}

// Look looks at all hosts, and at their cluster where they have one. What cannot be seen
// is in the Sight; the error is the context's.
func Look(ctx context.Context, o Options) (*Sight, error) {
	if o.HostTime == 0 {
		o.HostTime = 20 * time.Second
	}
	l := &looker{Options: o, sight: &Sight{Facts: map[string]probes.Facts{}}, ahead: map[string]time.Duration{}}
	l.askHosts(ctx)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	l.refuseUnfit()
	l.askCluster(ctx)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	saved := ""
	if l.sight.Cluster != nil {
		saved = l.sight.Cluster.Saved.ID
	}
	seen := &l.sight.Observation
	seen.ClusterID = hosts.Identify(o.Cluster.Namespace, o.Cluster.Name, saved, seen.Hosts)
	seen.Target = o.Cluster.Spec.Version
	if seen.Snapshots = o.Snapshots; seen.Snapshots == hosts.SnapshotNowhere && hostclusters.KeepsSnapshots(o.Cluster.Spec) {
		seen.Snapshots = hosts.SnapshotDue
	}
	l.compare(ctx)
	return l.sight, nil
}

// askHosts asks all hosts side by side.
func (l *looker) askHosts(ctx context.Context) {
	spec := l.Cluster.Spec
	all := hostclusters.Hosts(spec)
	answers := make([]answer, len(all))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, host := range all {
		group.Go(func() error {
			answers[i] = l.askHost(ctx, host, i >= len(spec.ControlPlane))
			return nil
		})
	}
	_ = group.Wait()
	for i, each := range answers {
		each.host.Replace = all[i].Replace
		l.sight.Observation.Hosts = append(l.sight.Observation.Hosts, each.host)
		if each.facts != nil {
			l.sight.Facts[each.host.Name] = *each.facts
			if !each.facts.Time.IsZero() {
				l.ahead[each.host.Name] = each.ahead
			}
		}
	}
}

// askHost asks one host what it is.
func (l *looker) askHost(ctx context.Context, host v1alpha1.ClusterHost, isWorker bool) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, l.HostTime, fmt.Errorf("it takes longer than %s", l.HostTime))
	defer cancel()
	unknown := hosts.Host{Name: host.Name, Worker: isWorker}
	begin := l.Now()
	result, err := l.Machines.Run(ctx, host.Name, ssh.Command{Input: probes.Script, Timeout: l.HostTime, MaxOutput: probes.MaxAnswer})
	if err == nil && result.Status != 0 {
		err = fmt.Errorf("%w: the script that looks at the host ended with %d", errAnswer, result.Status)
	}
	var facts probes.Facts
	if err == nil {
		if facts, err = probes.Read(result.Output); err != nil {
			err = fmt.Errorf("%w: %w", errAnswer, err)
		}
	}
	var changed *ssh.KeyError
	var login *ssh.AuthError
	switch {
	case errors.As(err, &changed), errors.As(err, &login), errors.Is(err, machines.ErrSudo), errors.Is(err, errAnswer), errors.Is(err, ssh.ErrTooMuch):
		unknown.Refused = plain(host.Name, err)
		return answer{host: unknown}
	case err != nil:
		l.Machines.Forget(host.Name) // the next look makes another connection
		unknown.Unreachable = plain(host.Name, err)
		return answer{host: unknown}
	}
	found := facts.Host(host.Name, isWorker)
	ends := facts.Expires()
	found.Expiring = !isWorker && found.Initialised && !ends.IsZero() && (ends.Before(l.Now().Add(RenewBefore)) || slices.Contains(l.Renew, host.Name))
	found.OldContainerd = found.Initialised && hostclusters.IsOldContainerd(facts.Containerd.Version, l.Cluster.Spec.Version)
	middle := begin.Add(l.Now().Sub(begin) / 2)
	return answer{host: found, facts: &facts, ahead: facts.Time.Sub(middle)}
}

// errAnswer says that a host has answered, and not as one does.
var errAnswer = errors.New("it does not answer as a host does")

// plain drops the name of a host from the beginning of an error: whoever shows it has it.
func plain(name string, err error) string {
	text := strings.TrimPrefix(err.Error(), name)
	return strings.TrimPrefix(strings.TrimPrefix(text, ":"), " ")
}

// refuseUnfit refuses hosts that cannot be what the manifest wants.
func (l *looker) refuseUnfit() {
	skewed := probes.Skewed(l.ahead)
	all := hostclusters.Hosts(l.Cluster.Spec)
	for i := range l.sight.Observation.Hosts {
		host := &l.sight.Observation.Hosts[i]
		facts, known := l.sight.Facts[host.Name]
		if !known || host.Refused != "" {
			continue
		}
		why := facts.Unfit(probes.Wanted{Version: l.Cluster.Spec.Version, Worker: host.Worker, CgroupV1: all[i].Kubelet.CgroupV1})
		if by, is := skewed[host.Name]; is {
			why = append(why, fmt.Sprintf("its clock is %s apart from those of the other hosts: set it", by.Abs().Round(time.Second)))
		}
		host.Refused = strings.Join(why, "; ")
	}
}

// Manager is who has applied a manifest over SSH.
const Manager = "kubectl-strata"

// compare says what differs from what was last applied, and what of that stops everything.
func (l *looker) compare(ctx context.Context) {
	seen, cluster := &l.sight.Observation, l.sight.Cluster
	if cluster == nil {
		return
	}
	saved := cluster.Saved
	switch {
	case seen.ClusterID == "" && saved.Spec == nil && l.TakeOver:
		l.takeOver(ctx)
		return
	case seen.ClusterID == "" && saved.Spec == nil:
		seen.Stops = append(seen.Stops, "Strata has not made the cluster on these hosts: "+l.takingOver("")+" as it is")
		return
	case seen.ClusterID == "":
		seen.Stops = append(seen.Stops, "the cluster on these hosts is "+printable.Line(saved.ID, 200)+", and not that of this namespace and name")
		return
	case saved.Manager != "" && saved.Manager != cmp.Or(l.Manager, Manager) && !l.TakeOver:
		seen.Stops = append(seen.Stops, "the cluster is managed by "+printable.Line(saved.Manager, 200)+": "+l.takingOver(saved.ID)+" from there")
	}
	seen.Stops = append(seen.Stops, hostclusters.Unchangeable(saved.Spec, l.Cluster.Spec)...)
	seen.Stops = append(seen.Stops, hostclusters.Refusing(cluster.layers, seen.Target)...)
	if _, isForeign := hostclusters.EncryptionIn(cluster.Configuration); isForeign && l.Cluster.Spec.APIServer.Encryption != nil {
		seen.Stops = append(seen.Stops, "spec.apiServer.encryption: the API servers encrypt with keys of somebody else: take that away first, or leave it as it is without this field")
	}
	l.sight.Changes = slices.Concat(
		hostclusters.APIServerDrift(cluster.Configuration, l.Cluster.Spec), hostclusters.EncryptionDrift(l.sight.Providers(), cluster.written, l.Cluster.Spec),
		hostclusters.Drift(saved.Spec, l.Cluster.Spec, cluster.nodes),
	)
	serving, refused := hostclusters.Serving(l.Cluster.Spec, l.sight.servingEnds(), cluster.Open, l.Now())
	l.sight.Changes, l.sight.Refused = append(l.sight.Changes, serving...), refused
	for _, change := range l.sight.Changes {
		seen.Drift = append(seen.Drift, printable.Line(change.String(), 500))
	}
}

// takingOver says how somebody takes a cluster over; id is its own, where it has one.
func (l *looker) takingOver(id string) string {
	if l.Manager == "" {
		return "--take-over takes it"
	}
	return fmt.Sprintf("the annotation %s=%s takes it", v1alpha1.TakeOverClusterAnnotation, cmp.Or(printable.Line(id, 200), v1alpha1.AnyCluster))
}

// servingEnds returns when the serving certificates of kubelets end, of hosts that are in the
// cluster; the zero time where one has none that the cluster has signed.
func (s *Sight) servingEnds() map[string]time.Time {
	found := map[string]time.Time{}
	for _, host := range s.Observation.Hosts {
		if facts, known := s.Facts[host.Name]; known && host.Initialised && host.Running {
			found[host.Name] = facts.ServingEnds
		}
	}
	return found
}

// Providers returns with what the API server of each host of the control plane encrypts, as
// far as hosts have said it; none for one that encrypts nothing.
func (s *Sight) Providers() map[string][]string {
	found := map[string][]string{}
	for _, host := range s.Observation.Hosts {
		if facts, known := s.Facts[host.Name]; known && !host.Worker && host.Initialised {
			found[host.Name] = facts.Providers
		}
	}
	return found
}

// Certificates that end within a time, as file on host, in order.
func (s *Sight) Certificates(before time.Time) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(s.Facts)) {
		facts := s.Facts[name]
		for _, file := range slices.Sorted(maps.Keys(facts.Certificates)) {
			if ends := facts.Certificates[file]; ends.Before(before) {
				found = append(found, fmt.Sprintf("%s of %s ends %s", file, name, ends.UTC().Format(time.DateOnly)))
			}
		}
	}
	return found
}
