// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/reach"
)

const (
	// probeTimeout bounds the wait for one answer.
	probeTimeout = 10 * time.Second
	// probeRetry is how soon a cluster that has not answered is asked again,
	// where its interval is longer.
	probeRetry = 5 * time.Second
	// doubtPause is how soon a cluster is asked of which a watch says that it may not answer.
	doubtPause = time.Second
	// MaxProbeMessage bounds what is told of an error.
	MaxProbeMessage = 512
)

// Prober asks clusters whether they answer, each on its own, so that one that
// does not holds nobody up. It is safe for concurrent use.
type Prober struct {
	now  func() time.Time
	wake func(types.NamespacedName)
	// probed is told of each answer, and how long it took.
	probed func(cluster string, answer clusters.Answer, took time.Duration)

	mu     sync.Mutex
	ctx    context.Context //nolint:containedctx // of the process; probes outlive the look that begins them
	probes map[types.NamespacedName]*probe
}

// probe is the probing of one cluster over one connection.
type probe struct {
	connection *Connection
	interval   time.Duration
	stop       context.CancelFunc
	answer     clusters.Answer
}

// NewProber returns one that asks nobody yet. It has wake look again at a RemoteCluster
// that has something else to say, and tells probed of each answer.
func NewProber(
	now func() time.Time, wake func(types.NamespacedName), probed func(cluster string, answer clusters.Answer, took time.Duration),
) *Prober {
	return &Prober{now: now, wake: wake, probed: probed, probes: map[types.NamespacedName]*probe{}}
}

// Start lets probes begin, and ends them with ctx.
func (p *Prober) Start(ctx context.Context) error {
	p.mu.Lock()
	p.ctx = ctx
	var waiting []types.NamespacedName
	for name := range p.probes {
		waiting = append(waiting, name)
	}
	p.mu.Unlock()
	for _, name := range waiting {
		p.wake(name)
	}
	<-ctx.Done()
	return nil
}

// Ask returns what a cluster has answered last over a connection, and sees to it
// that it is asked again and again. last is what its status says.
func (p *Prober) Ask(name types.NamespacedName, over *Connection, interval time.Duration, last v1alpha1.RemoteClusterStatus) clusters.Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.probes[name]
	if known != nil && known.connection == over && known.interval == interval && known.stop != nil {
		return known.answer
	}
	next := &probe{connection: over, interval: interval}
	if known != nil {
		next.answer.LastSeen = known.answer.LastSeen
		if known.stop != nil {
			known.stop()
		}
		if known.connection == over {
			next.answer = known.answer
		}
	} else if last.LastSeen != nil && !meta.IsStatusConditionTrue(last.Conditions, v1alpha1.ReachableCondition) {
		next.answer.LastSeen = last.LastSeen.Time
	}
	p.probes[name] = next
	if p.ctx != nil {
		var ctx context.Context
		ctx, next.stop = context.WithCancel(p.ctx)
		go p.run(ctx, name, next)
	}
	return next.answer
}

// Stop asks a cluster no more.
func (p *Prober) Stop(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.probes[name]; known != nil {
		if known.stop != nil {
			known.stop()
		}
		delete(p.probes, name)
	}
}

// run asks one cluster until ctx ends.
func (p *Prober) run(ctx context.Context, name types.NamespacedName, probe *probe) {
	for {
		began := time.Now()
		answered, located, err := askCluster(ctx, probe.connection)
		if err == nil {
			err = probe.connection.AskIdentity(ctx, p.now())
		}
		if ctx.Err() != nil {
			return
		}
		p.note(name, probe, clusters.Answer{Version: answered, Located: located, Err: err}, time.Since(began))
		probe.connection.SetError(err)
		pause := probe.interval
		if err != nil {
			pause = min(pause, probeRetry)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait.Jitter(pause, 0.1)):
		case <-probe.connection.doubts():
			// Many watches have doubts at once, and one that is wrong has them again.
			select {
			case <-ctx.Done():
				return
			case <-time.After(min(pause, doubtPause)):
			}
		}
	}
}

// note remembers an answer, and wakes the RemoteCluster where it is news.
func (p *Prober) note(name types.NamespacedName, probe *probe, next clusters.Answer, took time.Duration) {
	p.mu.Lock()
	if p.probes[name] != probe {
		p.mu.Unlock()
		return // it has been stopped meanwhile
	}
	last := probe.answer
	next.At, next.LastSeen = p.now(), last.LastSeen
	if err := next.Err; err == nil {
		next.LastSeen = next.At
	} else {
		next.Refused = apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
		next.Err = errors.New(shortly(err))
	}
	probe.answer = next
	p.probed(name.String(), next, took)
	p.mu.Unlock()
	sameErr := (last.Err == nil) == (next.Err == nil) && (next.Err == nil || last.Err.Error() == next.Err.Error())
	if last.At.IsZero() || last.Version != next.Version || last.Located != next.Located || !sameErr {
		p.wake(name)
	}
}

// askCluster asks a cluster for its version, and tells whether its address is known
// to be one that is allowed.
func askCluster(ctx context.Context, over *Connection) (answered string, located bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := over.Locate(ctx); err != nil {
		return "", false, err
	}
	answered, err = askVersion(ctx, over)
	return answered, true, err
}

// askVersion asks a cluster for its version.
func askVersion(ctx context.Context, over *Connection) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(over.Config, over.Web)
	if err != nil {
		return "", fmt.Errorf("cannot make a client: %w", err)
	}
	data, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	return versionIn(data)
}

// AskIdentity asks the cluster which one it is. What is new its gate tells.
func (c *Connection) AskIdentity(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := c.Gate.look(ctx, now); err != nil {
		return fmt.Errorf("cannot find out which cluster it is: %w", err)
	}
	return nil
}

func versionIn(data []byte) (string, error) {
	info := version.Info{}
	if json.Unmarshal(data, &info) != nil {
		info.GitVersion = ""
	}
	if err := clusters.CheckVersion(info.GitVersion); err != nil {
		return "", err
	}
	return info.GitVersion, nil
}

// shortly says what is wrong with a connection, without the URL, which changes
// from one request to the next, and not for ever.
func shortly(err error) string {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	text := err.Error()
	var tooLarge *reach.TooLargeError
	switch {
	case errors.As(err, &tooLarge):
		text = tooLarge.Error()
	case apierrors.IsUnauthorized(err):
		text = "the credentials are not accepted: " + text
	case errors.Is(err, context.DeadlineExceeded):
		text = fmt.Sprintf("it does not answer within %s", probeTimeout)
	}
	return printable.Line(text, MaxProbeMessage)
}
