// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/placement"
)

// probeRetry is how soon a cluster that has not answered is asked again.
const probeRetry = 5 * time.Second

// connection is a process's connection to another cluster.
type connection struct {
	to         *remote
	store      *cluster
	kubeconfig string
	// cache holds what was seen there, once synced.
	cache  *cache
	synced bool
	// err is why the cluster has not answered last.
	err error
	// identity is what was seen of which cluster it is, and open that it may be
	// written to.
	identity clusters.Identity
	open     bool
}

// usable returns the connection to a cluster that may be written to, or nil.
func (p *process) usable(name string) *connection {
	if c := p.connections[name]; c != nil && c.open {
		return c
	}
	return nil
}

// probe asks one cluster over one connection, again and again.
type probe struct {
	connection *connection
	interval   time.Duration
	answer     clusters.Answer
}

func kubeconfigIn(secret *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(secret.Object, "data", placement.KubeConfigKey)
	data, _ := base64.StdEncoding.DecodeString(text)
	return string(data)
}

func setKubeconfig(secret *unstructured.Unstructured, kubeconfig string) {
	_ = unstructured.SetNestedField(secret.Object, base64.StdEncoding.EncodeToString([]byte(kubeconfig)), "data", placement.KubeConfigKey)
}

// reach tells why a connection reaches nothing; nil where it does.
func (p *process) reach(c *connection) error {
	if c.store != c.to.cluster {
		return errUnauthorized // it is another cluster by now
	}
	return p.ask(c.to, c.kubeconfig)
}

// connect sees to it that a cluster is connected by a kubeconfig.
func (p *process) connect(name, kubeconfig string) *connection {
	if known := p.connections[name]; known != nil && known.kubeconfig == kubeconfig {
		return known
	}
	to := p.leadsTo(kubeconfig)
	c := &connection{to: to, store: to.cluster, kubeconfig: kubeconfig}
	c.cache = &cache{kind: kindPlain, of: to.cluster, cluster: name, reaches: func() bool { return c.synced && p.reach(c) == nil }}
	p.connections[name] = c
	return c
}

// watched sees to it that what is on a cluster is watched, which takes an answer
// for the first time. What has been seen stays.
func (p *process) watched(c *connection) error {
	switch {
	case c.synced:
		return nil
	case c.err != nil:
		return fmt.Errorf("the cluster does not answer: %w", c.err)
	}
	if err := p.reach(c); err != nil {
		return err
	}
	c.cache.sync()
	c.synced = true
	return nil
}

// writesTo returns a cluster to write to, or why that cannot be.
func (p *process) writesTo(name string) (*cluster, error) {
	if name == "" {
		return p.cluster, nil
	}
	c := p.usable(name)
	if c == nil {
		return nil, fmt.Errorf("RemoteCluster %s: %w", name, errNotConnected)
	}
	if c.err != nil {
		return nil, fmt.Errorf("RemoteCluster %s: the cluster does not answer: %w", name, c.err)
	}
	return c.store, p.reach(c)
}

// answerOf returns what a cluster has answered last, and has it be asked again and
// again.
func (p *process) answerOf(name string, over *connection, interval time.Duration, last v1alpha1.RemoteClusterStatus) clusters.Answer {
	known := p.probes[name]
	if known != nil && known.connection == over && known.interval == interval {
		return known.answer
	}
	next := &probe{connection: over, interval: interval}
	switch {
	case known != nil && known.connection == over:
		next.answer = known.answer
	case known != nil:
		next.answer.LastSeen = known.answer.LastSeen
	case last.LastSeen != nil && !meta.IsStatusConditionTrue(last.Conditions, v1alpha1.ReachableCondition):
		next.answer.LastSeen = last.LastSeen.Time
	}
	p.probes[name] = next
	p.after(p.between(0, 50*time.Millisecond), func() { p.probe(name, next) })
	return next.answer
}

// probe asks a cluster once, and wakes its RemoteCluster where the answer is news.
func (p *process) probe(name string, of *probe) {
	if p != p.process || p.probes[name] != of {
		return
	}
	last, was := of.answer, of.connection.identity
	next := clusters.Answer{At: p.now.time(), LastSeen: last.LastSeen}
	pause := of.interval
	if next.Err = p.reach(of.connection); next.Err == nil {
		next.Version, next.LastSeen = of.connection.store.kubernetes, next.At
		is := clusters.Identity{UID: of.connection.store.identity, Hub: of.connection.store.hub}
		if of.connection.identity = is; was.Known() && !was.Same(is) {
			of.connection.open = false
		}
	} else {
		next.Refused = errors.Is(next.Err, errUnauthorized)
		pause = min(pause, probeRetry)
	}
	of.answer = next
	if !was.Same(of.connection.identity) || last.At.IsZero() || last.Version != next.Version || !errors.Is(next.Err, last.Err) || !errors.Is(last.Err, next.Err) {
		p.enqueue(name)
	}
	p.after(p.between(pause, pause+pause/10), func() { p.probe(name, of) })
}

// allCaches returns the caches of a process, in an order that is always the same.
func (p *process) allCaches() []*cache {
	all := p.caches[:]
	for _, name := range sortedKeys(p.connections) {
		all = append(all[:len(all):len(all)], p.connections[name].cache)
	}
	return all
}
