// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/machines"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/probes"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/ssh"
)

const (
	// clientPort is where a member of etcd is asked.
	clientPort = "2379"
	// memberTime is how long a member may take to say that it is healthy.
	memberTime = 5 * time.Second
	// answerTime is how long an answer may take whose question has no other limit.
	answerTime = time.Minute
	// maxHeader is how long the headers of an answer may be.
	maxHeader = 64 << 10
	// maxMembers is how many members are read.
	maxMembers = 50
	// maxMessage is how long a message of a member may be: a snapshot comes in parts.
	maxMessage = 16 << 20
)

// etcd asks the members of a cluster's etcd, by its gateway for JSON.
type etcd struct {
	leader  string
	control []v1alpha1.ClusterHost
	client  *http.Client
	tls     *tls.Config
	dial    dialer
}

func newEtcd(all *machines.Machines, leader string, control []v1alpha1.ClusterHost, credentials *probes.Credentials) *etcd {
	dial := through(all, leader)
	return &etcd{
		leader: leader, control: control, tls: credentials.Etcd, dial: dial,
		client: reach.Client(&http.Transport{TLSClientConfig: credentials.Etcd, DialContext: dial, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader},
			reach.Bounds{Server: "etcd through " + leader, Of: reach.Always(maxAnswer, answerTime)}),
	}
}

// member as etcd says it. Numbers are texts, since JSON has none that large.
type member struct {
	ID        string   `json:"ID"`
	Name      string   `json:"name"`
	PeerURLs  []string `json:"peerURLs"`
	IsLearner bool     `json:"isLearner"`
}

// memberID is what etcd's ID looks like in JSON.
var memberID = regexp.MustCompile(`^[0-9]{1,20}$`)

// post asks one question of the member of the leader.
func (e *etcd) post(ctx context.Context, path string, question, answer any) error {
	address, err := e.addressOf(e.leader)
	if err != nil {
		return err
	}
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+net.JoinHostPort(address, clientPort)+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	said, err := do(e.client, request)
	if err != nil {
		return fmt.Errorf("the member of etcd on %s: %w", e.leader, err)
	}
	if err := json.Unmarshal(said, answer); err != nil {
		return fmt.Errorf("the member of etcd on %s does not answer as one does", e.leader)
	}
	return nil
}

func (e *etcd) addressOf(host string) (string, error) {
	i := slices.IndexFunc(e.control, func(h v1alpha1.ClusterHost) bool { return h.Name == host })
	if i < 0 {
		return "", errors.New(host + " is not in the manifest")
	}
	return e.control[i].Address, nil
}

// members returns all members, as a majority knows them, with their health.
func (e *etcd) members(ctx context.Context) ([]hosts.Member, error) {
	var list struct {
		Members []member `json:"members"`
	}
	if err := e.post(ctx, "/v3/cluster/member/list", map[string]bool{"linearizable": true}, &list); err != nil {
		return nil, err
	}
	if len(list.Members) > maxMembers {
		return nil, fmt.Errorf("etcd lists more than %d members", maxMembers)
	}
	found := make([]hosts.Member, len(list.Members))
	var group sync.WaitGroup
	for i, each := range list.Members {
		if !memberID.MatchString(each.ID) {
			return nil, errors.New("etcd lists a member without an ID")
		}
		address := peerAddress(each.PeerURLs)
		found[i] = hosts.Member{Name: e.nameOf(each, address), ID: each.ID, Learner: each.IsLearner}
		if address == "" {
			continue
		}
		group.Go(func() { found[i].Healthy = e.isHealthy(ctx, address) })
	}
	group.Wait()
	// Etcd lists them by their IDs, which say nothing: a plan has the same order each time.
	slices.SortFunc(found, func(a, b hosts.Member) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return found, nil
}

// peerAddress returns the address at which peers reach a member; empty where it has none.
func peerAddress(urls []string) string {
	for _, text := range urls {
		if parsed, err := url.Parse(text); err == nil && parsed.Hostname() != "" {
			return parsed.Hostname()
		}
	}
	return ""
}

// nameOf names a member for its host, by its address: a learner that has not started has
// no name of its own.
func (e *etcd) nameOf(each member, address string) string {
	for _, host := range e.control {
		if host.Address == address && address != "" {
			return host.Name
		}
	}
	for _, name := range []string{each.Name, address} {
		if said := printable.Line(name, 253); said != "" && !e.isListed(said) {
			return said
		}
	}
	return "member-" + each.ID
}

// isListed tells whether a host of the manifest has a name: a member of another address
// must not be taken for that host's.
func (e *etcd) isListed(name string) bool {
	return slices.ContainsFunc(e.control, func(h v1alpha1.ClusterHost) bool { return h.Name == name })
}

// isHealthy asks a member whether it is healthy: whether it can read what a majority has
// agreed on.
func (e *etcd) isHealthy(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, memberTime)
	defer cancel()
	said, err := get(ctx, e.client, "https://"+net.JoinHostPort(address, clientPort)+"/health")
	var health struct {
		Health string `json:"health"`
	}
	return err == nil && json.Unmarshal(said, &health) == nil && strings.EqualFold(health.Health, "true")
}

// Etcd returns a client of the member on the host through which the cluster is asked. It is
// closed by its user.
func (c *Cluster) Etcd(ctx context.Context) (*clientv3.Client, error) {
	address, err := c.etcd.addressOf(c.Leader)
	if err != nil {
		return nil, err
	}
	return clientOf(ctx, c.etcd.tls, c.etcd.dial, address)
}

// MemberOn returns a client of the member of etcd on a host, also where the cluster does not
// answer. It is closed by its user.
func MemberOn(ctx context.Context, o Options, host v1alpha1.ClusterHost) (*clientv3.Client, error) {
	result, err := o.Machines.Run(ctx, host.Name, ssh.Command{Input: probes.CredentialsScript, MaxOutput: probes.MaxAnswer})
	if err != nil {
		return nil, err
	}
	credentials, err := probes.ReadCredentials(result.Output)
	if err != nil {
		return nil, err
	}
	return clientOf(ctx, credentials.Etcd, through(o.Machines, host.Name), host.Address)
}

func clientOf(ctx context.Context, access *tls.Config, dial dialer, address string) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{"https://" + net.JoinHostPort(address, clientPort)}, TLS: access, Logger: zap.NewNop(),
		MaxCallRecvMsgSize: maxMessage,
		DialOptions:        []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, at string) (net.Conn, error) { return dial(ctx, "tcp", at) })},
	})
	if err != nil {
		return nil, fmt.Errorf("the member of etcd at %s: %w", address, err)
	}
	return client, nil
}

// dialer makes a connection.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// RemoveMember takes a member out of etcd. One that is no longer there is no error.
func (c *Cluster) RemoveMember(ctx context.Context, id string) error {
	if !memberID.MatchString(id) {
		return errors.New("a member of etcd without an ID cannot be removed")
	}
	var answer struct{}
	err := c.etcd.post(ctx, "/v3/cluster/member/remove", map[string]string{"ID": id}, &answer)
	if errors.Is(err, errNotFound) {
		return nil
	}
	return err
}
