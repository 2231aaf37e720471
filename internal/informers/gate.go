// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/internal/reach"
)

const (
	// claimRetry is how soon it is tried again to claim a cluster where a right was
	// missing.
	claimRetry = 10 * time.Minute
	// identityGrace is how long the layers of a cluster wait in silence until it has
	// been recorded which one it is.
	identityGrace = 5 * time.Second
	// guardTries is how often a write is tried whose connection is new.
	guardTries = 3
	// systemPath is where a cluster says which one it is.
	systemPath = "/api/v1/namespaces/" + clusters.SystemNamespace
	// metadataOnly asks for no more than the metadata of an object.
	metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

// errNotIdentified says that a cluster may not be written to, because it is not
// known to be the right one.
var errNotIdentified = errors.New("it is not known that this is the cluster that may be written to")

// errNewLink says that a request was about to be written to a network connection
// over which the cluster has not said yet which one it is.
var errNewLink = errors.New("the cluster has not said over this connection which one it is")

// identityOf is what a UID may look like. A cluster of somebody else has written it,
// and it is shown to people.
var identityOf = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// Gate lets writes to a cluster through while it is known, for the very network
// connection that they use, that the cluster is the one that may be written to. It is
// safe for concurrent use.
type Gate struct {
	// ask reads which cluster it is.
	ask func(ctx context.Context) (clusters.Identity, error)
	// changed is told where something else is seen than before.
	changed func()

	// looking is held by the one who asks.
	looking sync.Mutex
	mu      sync.Mutex
	// open is true where the cluster may be written to, and judged that this was
	// found out.
	open, judged bool
	seen         clusters.Identity
	// since is when something was seen first, and refused when the claim was.
	since, refused time.Time
	// links are the network connections, by their addresses; what was seen came over
	// those that are true. dialed counts them, and checked says how many there had
	// been when the cluster was asked last.
	links           map[string]*link
	dialed, checked int
	// spoiled is true where another cluster has answered than before: what was read
	// may be of either.
	spoiled bool
}

// link is one network connection.
type link struct {
	net.Conn
	gate *Gate
	name string
	// known is true where the cluster has said over it which one it is.
	known bool
}

func linkName(c net.Conn) string { return c.LocalAddr().String() + ">" + c.RemoteAddr().String() }

// Close closes the connection.
func (l *link) Close() error {
	l.gate.mu.Lock()
	if l.gate.links[l.name] == l {
		delete(l.gate.links, l.name)
	}
	l.gate.mu.Unlock()
	return l.Conn.Close()
}

// dials has a gate know of the network connections that are made.
func (g *Gate) dials(dial reach.Dial) reach.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		made, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l := &link{Conn: made, gate: g, name: linkName(made)}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.links[l.name] = l
		g.dialed++
		return l, nil
	}
}

// Identity returns what has been seen of the cluster.
func (g *Gate) Identity(now time.Time) clusters.Identity {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := g.seen
	seen.Unclaimable = !g.refused.IsZero() && now.Sub(g.refused) < claimRetry
	return seen
}

// Judge opens or closes the gate. It tells whether that is news, also that it was
// found out.
func (g *Gate) Judge(v clusters.Verdict, answer clusters.Answer, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	judged := v.Open || v.Stops || answer.Err != nil || !g.since.IsZero() && now.Sub(g.since) > identityGrace
	news := g.open != v.Open || g.judged != judged
	g.open, g.judged = v.Open, judged
	return news
}

func (g *Gate) isOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

func (g *Gate) isJudged() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.judged
}

func (g *Gate) isSpoiled() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.spoiled
}

// state tells whether the gate is open, and whether the cluster was asked since the
// last network connection was made.
func (g *Gate) state() (open, fresh bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, g.checked == g.dialed
}

// look asks the cluster which one it is, and closes the gate where that is not what
// it was. It tells whether it is open.
func (g *Gate) look(ctx context.Context, now time.Time) (bool, error) {
	g.looking.Lock()
	defer g.looking.Unlock()
	return g.lookNow(ctx, now)
}

// lookAgain is as look, unless somebody else has looked meanwhile.
func (g *Gate) lookAgain(ctx context.Context, now time.Time) (bool, error) {
	g.looking.Lock()
	defer g.looking.Unlock()
	if open, fresh := g.state(); fresh {
		return open, nil
	}
	return g.lookNow(ctx, now)
}

func (g *Gate) lookNow(ctx context.Context, now time.Time) (bool, error) {
	for range guardTries {
		g.mu.Lock()
		before := g.dialed
		g.mu.Unlock()
		var over net.Conn
		seen, err := g.ask(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { over = info.Conn }}))
		if err != nil {
			return false, err
		}
		if steady := g.saw(seen, over, before, now); steady {
			break
		}
	}
	open, _ := g.state()
	return open, nil
}

// saw notes what was seen over a network connection. It returns false where others
// were made meanwhile.
func (g *Gate) saw(seen clusters.Identity, over net.Conn, before int, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !seen.Same(g.seen) {
		if g.seen.Known() {
			g.open = false
			g.spoiled = g.spoiled || g.seen.UID != seen.UID
		}
		for _, l := range g.links {
			l.known = false
		}
		g.since, g.refused = now, time.Time{}
		defer g.changed()
	}
	g.seen = seen
	if over != nil {
		if l := g.links[linkName(over)]; l != nil {
			l.known = true
		}
	}
	g.checked = g.dialed
	return g.dialed == before
}

// Claimed notes what became of a claim.
func (g *Gate) Claimed(seen clusters.Identity, err error, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if apierrors.IsForbidden(err) {
		g.refused = now
	} else if err == nil {
		g.seen, g.refused = seen, time.Time{}
	}
}

// isKnown tells whether the cluster has said over a network connection which one it
// is; one over which it has not is closed, so that nothing can be written to it.
func (g *Gate) isKnown(over net.Conn) bool {
	g.mu.Lock()
	l := g.links[linkName(over)]
	known := l != nil && l.known && g.open
	g.mu.Unlock()
	if !known {
		if l != nil {
			_ = l.Conn.Close()
		}
		_ = over.Close()
	}
	return known
}

// pass tells whether something may be read, or written. Where network connections
// have been made since the cluster was asked, it is asked again. While the gate is
// closed all may be read: nobody goes by it.
func (g *Gate) pass(ctx context.Context, writes bool) error {
	open, fresh := g.state()
	if !open && !writes || open && fresh {
		return nil
	}
	if open {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		var err error
		if open, err = g.lookAgain(ctx, time.Now()); err != nil {
			return fmt.Errorf("cannot find out which cluster answers: %w", err)
		}
	}
	if !open {
		return errNotIdentified
	}
	return nil
}

// guarded is a transport whose writes pass a gate.
type guarded struct {
	next http.RoundTripper
	gate *Gate
}

// WrappedRoundTripper returns the transport without the gate.
func (g *guarded) WrappedRoundTripper() http.RoundTripper { return g.next }

// RoundTrip sends a request that reads, or that may be written where it goes.
func (g *guarded) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		if err := g.gate.pass(request.Context(), false); err != nil {
			return nil, err
		}
		return g.next.RoundTrip(request)
	}
	var last error
	for try := range guardTries {
		if err := g.gate.pass(request.Context(), true); err != nil {
			closeBody(request)
			return nil, err
		}
		next := request
		if try > 0 {
			if next = again(request); next == nil {
				break
			}
		}
		response, refused, err := g.send(next)
		if !refused {
			return response, err
		}
		last = errNewLink
	}
	return nil, last
}

// send sends a request, unless the network connection that it would use is one over
// which the cluster has not said which one it is.
func (g *guarded) send(request *http.Request) (_ *http.Response, refused bool, _ error) {
	var mu sync.Mutex
	traced := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		known := g.gate.isKnown(info.Conn)
		mu.Lock()
		defer mu.Unlock()
		refused = !known
	}})
	response, err := g.next.RoundTrip(request.WithContext(traced))
	mu.Lock()
	defer mu.Unlock()
	return response, refused && err != nil, err
}

// again returns a request that was not sent, to be sent once more; nil where its
// body is used up.
func again(request *http.Request) *http.Request {
	next := request.Clone(request.Context())
	if request.Body == nil || request.Body == http.NoBody {
		return next
	}
	if request.GetBody == nil {
		return nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil
	}
	next.Body = body
	return next
}

func closeBody(request *http.Request) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
}

// guardedConnection makes a connection whose writes pass a gate. changed is told
// where something else is seen of the cluster than before.
func guardedConnection(access *kubeconfig.Access, allowed reach.Allowed, changed func()) (*Connection, error) {
	g := &Gate{links: map[string]*link{}, changed: changed}
	over, err := reach.Connect(access.Config, allowed, g.dials)
	if err != nil {
		return nil, err
	}
	plain := over.Web
	over.Web = &http.Client{Transport: &guarded{next: plain.Transport, gate: g}, CheckRedirect: plain.CheckRedirect, Timeout: plain.Timeout}
	g.ask = asking(over.Config, plain)
	return &Connection{Access: access, Connection: over, plain: plain, Gate: g}, nil
}

// asking returns how a cluster is asked which one it is.
func asking(config *rest.Config, web *http.Client) func(context.Context) (clusters.Identity, error) {
	return func(ctx context.Context) (clusters.Identity, error) {
		client, err := plainClient(config, web)
		if err != nil {
			return clusters.Identity{}, err
		}
		data, err := client.Get().AbsPath(systemPath).SetHeader("Accept", metadataOnly).Do(ctx).Raw()
		switch {
		case apierrors.IsForbidden(err):
			return clusters.Identity{Forbidden: true}, nil
		case apierrors.IsNotFound(err):
			return clusters.Identity{}, fmt.Errorf("it has no namespace %s, by whose UID a cluster is known", clusters.SystemNamespace)
		case err != nil:
			return clusters.Identity{}, err
		}
		return identityIn(data)
	}
}

// Claim writes on the cluster which hub has it; hub is empty for none any more. It is
// refused where the cluster, or what it says, is not as it was seen.
func (c *Connection) Claim(ctx context.Context, seen clusters.Identity, hub string) (clusters.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	client, err := plainClient(c.Config, c.plain)
	if err != nil {
		return clusters.Identity{}, err
	}
	var value any
	if hub != "" {
		value = hub
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": seen.UID, "resourceVersion": seen.Version, "annotations": map[string]any{v1alpha1.HubAnnotation: value},
	}})
	if err != nil {
		return clusters.Identity{}, fmt.Errorf("cannot write the patch: %w", err)
	}
	data, err := client.Patch(types.MergePatchType).AbsPath(systemPath).Param("fieldManager", dependents.FieldManager).
		SetHeader("Accept", metadataOnly).Body(patch).Do(ctx).Raw()
	if err != nil {
		return clusters.Identity{}, err
	}
	return identityIn(data)
}

func plainClient(config *rest.Config, web *http.Client) (rest.Interface, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, &http.Client{Transport: web.Transport, CheckRedirect: web.CheckRedirect})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	return client.RESTClient(), nil
}

// identityIn reads the namespace of the system as a cluster has answered it.
func identityIn(data []byte) (clusters.Identity, error) {
	found := metav1.PartialObjectMetadata{}
	// The cluster has written what cannot be read, too: that is not repeated.
	switch err := json.Unmarshal(data, &found); {
	case err != nil:
		return clusters.Identity{}, fmt.Errorf("its answer is no namespace %s in JSON", clusters.SystemNamespace)
	case found.UID == "":
		return clusters.Identity{}, fmt.Errorf("its namespace %s has no UID", clusters.SystemNamespace)
	case !identityOf.MatchString(string(found.UID)):
		return clusters.Identity{}, fmt.Errorf("its namespace %s has a UID that is not 1 to 64 letters, digits and dashes", clusters.SystemNamespace)
	}
	return clusters.Identity{UID: string(found.UID), Version: found.ResourceVersion, Hub: hubIn(found.Annotations[v1alpha1.HubAnnotation])}, nil
}

// hubIn returns what a claim says, as people can be shown it and repeat it.
func hubIn(text string) string {
	if text == "" || identityOf.MatchString(text) {
		return text
	}
	clean := strings.Map(func(r rune) rune {
		if identityOf.MatchString(string(r)) {
			return r
		}
		return '-'
	}, text)
	return clean[:min(len(clean), 64)]
}
