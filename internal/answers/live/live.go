// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live keeps what answers are made from current, by watches that all who look
// share. Beside gather it is the only package of the answers that has a client. It may
// import the other answers, and nothing may import it but pages.
package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/objects"
)

// quiet is how long changes are gathered before they are told, so that many at once are
// one: short enough that nobody sees it.
const quiet = 50 * time.Millisecond

// Watched keeps parts of a cluster current. Its methods may be called at the same time.
type Watched struct {
	now    func() time.Time
	parts  []snapshot.Part
	told   func()
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu sync.Mutex
	// held has the objects of each part by their IDs; they are not changed.
	held map[snapshot.Part]map[objects.ID]entry
	// made is the snapshot of what is held; nil after a change.
	made *snapshot.Snapshot
	// listed has the parts that were read once, and unread those that may not be read or are
	// not served.
	listed map[snapshot.Part]bool
	unread map[snapshot.Part]error
	// broken says of parts since when their watch does not get through, and why.
	broken map[snapshot.Part]Break
	// ready is closed once every part was read or refused.
	ready   chan struct{}
	pending bool
}

// Break says since when what is held of a cluster may be old, and why.
type Break struct {
	Since time.Time
	Err   error
}

// entry is an object at one version of it.
type entry struct {
	version string
	// one holds the object alone, in the field that it belongs in.
	one *snapshot.Snapshot
}

// Scope says which objects are watched; the zero value is all of them.
type Scope struct{ Namespace, Name string }

// Watch begins to watch parts until ctx ends or Stop is called. now returns the time, and
// told is called a little after changes.
func Watch(ctx context.Context, client dynamic.Interface, scope Scope, now func() time.Time, told func(), parts ...snapshot.Part) *Watched {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watched{
		now: now, parts: parts, told: told, cancel: cancel, held: map[snapshot.Part]map[objects.ID]entry{}, listed: map[snapshot.Part]bool{},
		unread: map[snapshot.Part]error{}, broken: map[snapshot.Part]Break{}, ready: make(chan struct{}),
	}
	if len(parts) == 0 {
		close(w.ready)
	}
	for _, part := range parts {
		w.ended.Go(func() {
			w.follow(ctx, client.Resource(part.GroupVersionResource).Namespace(scope.Namespace), scope.Name, part)
		})
	}
	return w
}

// deny adds a part that cannot be watched.
func (w *Watched) deny(part snapshot.Part, err error) {
	w.change(func() bool {
		w.parts = append(w.parts, part)
		w.unread[part] = err
		return true
	})
}

// Stop ends all watches, and returns when they have ended.
func (w *Watched) Stop() {
	w.cancel()
	w.ended.Wait()
}

// Ready waits until every part was read, or cannot be. The error is the first reason why a
// part was not read although it may be, such as a cluster that does not answer.
func (w *Watched) Ready(ctx context.Context) error {
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	if broken, is := w.Broken(); is {
		return fmt.Errorf("the cluster does not answer: %w", broken.Err)
	}
	return fmt.Errorf("the cluster does not answer: %w", context.Cause(ctx))
}

// IsReady tells whether every part was read, or cannot be.
func (w *Watched) IsReady() bool {
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

// Snapshot returns what is held by now. Nobody may change it.
func (w *Watched) Snapshot() *snapshot.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made == nil {
		w.made = w.make()
	}
	s := *w.made
	s.Now = w.now()
	return &s
}

// Broken returns the longest break of those that there are.
func (w *Watched) Broken() (Break, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var first Break
	for _, each := range w.broken {
		if first.Err == nil || each.Since.Before(first.Since) {
			first = each
		}
	}
	return first, first.Err != nil
}

// make writes the snapshot of what is held.
func (w *Watched) make() *snapshot.Snapshot {
	s := &snapshot.Snapshot{Objects: map[objects.ID]*unstructured.Unstructured{}, Unread: maps.Clone(w.unread)}
	for _, part := range w.parts {
		held := w.held[part]
		for _, id := range slices.SortedFunc(maps.Keys(held), byName) {
			one := held[id].one
			s.Layers = append(s.Layers, one.Layers...)
			s.Clusters = append(s.Clusters, one.Clusters...)
			s.Bundles = append(s.Bundles, one.Bundles...)
			s.Applications = append(s.Applications, one.Applications...)
			s.Platforms = append(s.Platforms, one.Platforms...)
			s.Providers = append(s.Providers, one.Providers...)
			s.Claims = append(s.Claims, one.Claims...)
			s.HostClusters = append(s.HostClusters, one.HostClusters...)
			maps.Copy(s.Objects, one.Objects)
		}
	}
	return s
}

func byName(a, b objects.ID) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// change has something be done to what is held, and tells of it a little later.
func (w *Watched) change(do func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !do() {
		return
	}
	w.made = nil
	if len(w.listed)+len(w.unread) >= len(w.parts) {
		select {
		case <-w.ready:
		default:
			close(w.ready)
		}
	}
	if w.pending {
		return
	}
	w.pending = true
	time.AfterFunc(quiet, w.tell)
}

// tell has everybody look again.
func (w *Watched) tell() {
	w.mu.Lock()
	w.pending = false
	w.mu.Unlock()
	w.told()
}

// refused tells of an error that lasts: a part that may not be listed, or is not served.
func refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }
