// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/answers/events"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/verdict"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/objects"
)

const (
	// unused is how long what lies below a cause is watched after the last look at it.
	unused = time.Minute
	// retried is how long a cluster that could not be reached waits for the next try, and
	// labels that were read count.
	retried = time.Minute
	// mostPlaces bounds how many places are watched at a time.
	mostPlaces = 24
)

// Parts are what is always watched.
var Parts = append([]snapshot.Part{
	snapshot.Platforms, snapshot.Bundles, snapshot.Applications, snapshot.Claims, snapshot.HostClusters,
}, gather.VerdictParts...)

// Options say what a Cluster is made of. All but Why must be set.
type Options struct {
	Cluster *gather.Cluster
	Now     func() time.Time
	// Why says how far causes are followed.
	Why gather.WhyOptions
	// Repository is a folder of the git repository whose revisions may be planned; empty for
	// none. Source and LayersIn say what they stand for, as in gather.PlanOptions.
	Repository string
	Source     string
	LayersIn   []string
}

// Cluster gives the answers of package gather from what it watches. Its methods may be
// called at the same time.
type Cluster struct {
	o      Options
	ctx    context.Context // of the watches
	cancel context.CancelFunc
	main   *Watched
	// about is read once, before anybody looks.
	about     gather.About
	aboutRead chan struct{}

	mu      sync.Mutex
	version uint64
	changed chan struct{}
	places  map[spot]*place
	labels  map[objects.ID]known
	// previews that were asked for, of which one is made at a time: it has the turn. Each that
	// is made may have files.
	previews   map[Request]*job
	turn       chan struct{}
	making     sync.WaitGroup
	repository Repository
	rights     map[string]right
}

// spot is what is watched at a place: what explains a cause there, what happened, a
// ConfigMap, or kinds of objects.
type spot struct {
	why.Place
	happened  bool
	configMap string
	// kinds as group/version/Kind, with a space between two; or opened.
	kinds string
}

// parts returns what is watched at a spot, and what cannot be, and why not.
func (c *Cluster) parts(ctx context.Context, at spot, cluster *gather.Cluster) (watched []snapshot.Part, refused map[snapshot.Part]error, err error) {
	refused = map[snapshot.Part]error{}
	switch {
	case at.configMap != "":
		return []snapshot.Part{snapshot.ConfigMaps}, refused, nil
	case at.happened:
		return append([]snapshot.Part{snapshot.Events}, events.Makers...), refused, nil
	case at.kinds == opened:
		watched, err = cluster.MayList(ctx, at.Namespace, openable...)
		refused = gather.Refused(openable, watched)
	case at.kinds != "":
		var unserved []snapshot.Part
		watched, unserved = cluster.PartsOf(wantedIn(strings.Split(at.kinds, " ")))
		for _, part := range unserved {
			refused[part] = apierrors.NewNotFound(part.GroupResource(), "")
		}
	default:
		return why.Depths, refused, nil
	}
	return watched, refused, err
}

// place is somewhere below a cause, or where something happened.
type place struct {
	// watched is nil until it can be watched, and where err says why it cannot.
	watched *Watched
	err     error
	tried   time.Time
	used    time.Time
	cancel  context.CancelFunc
}

// known is what is known of the labels of an object that values are taken from.
type known struct {
	of   map[string]string
	read bool
	at   time.Time
}

// Open begins to watch a cluster, until ctx ends or Close is called.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	client, err := o.Cluster.Dynamic()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &Cluster{
		o: o, ctx: ctx, cancel: cancel, changed: make(chan struct{}), aboutRead: make(chan struct{}),
		places: map[spot]*place{}, labels: map[objects.ID]known{}, previews: map[Request]*job{}, turn: make(chan struct{}, 1), rights: map[string]right{},
	}
	c.main = Watch(ctx, client, Scope{}, o.Now, c.change, Parts...)
	go func() {
		defer close(c.aboutRead)
		c.about = o.Cluster.About(ctx)
	}()
	go c.sweep(ctx)
	return c, nil
}

// Close ends all watches and previews, and leaves no file of them behind.
func (c *Cluster) Close() {
	c.cancel()
	c.main.Stop()
	c.mu.Lock()
	for _, each := range c.places {
		each.stop()
	}
	c.mu.Unlock()
	c.making.Wait()
}

// Ready waits until everything was read once.
func (c *Cluster) Ready(ctx context.Context) error {
	if err := c.main.Ready(ctx); err != nil {
		return err
	}
	select {
	case <-c.aboutRead:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the cluster does not answer: %w", context.Cause(ctx))
	}
}

// Broken says since when what is shown may be old, and why; false while it is not.
func (c *Cluster) Broken() (Break, bool) { return c.main.Broken() }

// Version returns a number that grows with each change, and what is closed at the next.
func (c *Cluster) Version() (uint64, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version, c.changed
}

// Snapshot returns what is held by now.
func (c *Cluster) Snapshot() *snapshot.Snapshot { return c.main.Snapshot() }

func (c *Cluster) change() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	close(c.changed)
	c.changed = make(chan struct{})
}

// Wanted chooses the layers that are shown; nil for all.
func (c *Cluster) Wanted() labels.Selector { return c.o.Why.Wanted }

// Why says why a layer is not deployed, from what is held by now. What lies below is
// watched from now on, and changes the answer once it is there.
func (c *Cluster) Why(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) why.Answer {
	answer := why.Of(s, layer)
	if at, deeper := answer.Deeper(s); deeper {
		below, note := c.below(spot{Place: at})
		if below != nil {
			answer = answer.Deepen(s, below, at)
		}
		if note != "" {
			answer = answer.Unasked(at, note)
		}
	}
	return answer.Unwatched(s, layer, c.labelsOf(s, layer)).Conclude(s, c.o.Why.Program)
}

// Verdict says how everything stands, from what is held by now.
func (c *Cluster) Verdict(s *snapshot.Snapshot) verdict.Verdict {
	v, _ := verdict.Of(s, c.o.Why.Wanted, gather.Lacking(s)).Follow(s, func(layer *v1alpha1.AddonsLayer) (why.Answer, error) {
		return c.Why(s, layer), nil // What is held can be looked at.
	})
	return v
}

// mostNamespaces is how many namespaces are looked into for what happened to a layer.
const mostNamespaces = 5

// Events returns what happened to objects, the newest last, and notes on what is not among
// it. What is not watched yet changes the answer once it is there. More may be added to
// subjects: what they have made.
func (c *Cluster) Events(subjects *events.Subjects) (found []events.Event, notes []string) {
	namespaces := subjects.Namespaces()
	if more := len(namespaces) - mostNamespaces; more > 0 {
		namespaces = namespaces[:mostNamespaces]
		notes = append(notes, fmt.Sprintf("what happened in %d more namespaces is not shown", more))
	}
	for _, cluster := range subjects.Elsewhere {
		notes = append(notes, "what happened on "+cluster+" is not shown: that cluster is not asked")
	}
	var all []*snapshot.Snapshot
	for _, namespace := range namespaces {
		below, note := c.below(spot{Place: why.Place{Namespace: namespace}, happened: true})
		if below != nil {
			subjects.Adopt(below)
			all = append(all, below)
		}
		if note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	for _, below := range all {
		for _, object := range below.Of(snapshot.Events) {
			if event := events.Of(object); subjects.Has(event) {
				found = append(found, event)
			}
		}
	}
	events.Sort(found)
	return found, notes
}

// below returns what is watched at a place; nil while it is not there. note says why it is
// not, or not all of it.
func (c *Cluster) below(at spot) (below *snapshot.Snapshot, note string) {
	now := c.o.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.places[at]
	if found == nil || found.err != nil && now.Sub(found.tried) > retried {
		if found == nil && len(c.places) >= mostPlaces {
			return nil, "too much is looked into at a time: look again in a minute"
		}
		if found != nil {
			found.stop()
		}
		ctx, cancel := context.WithCancel(c.ctx)
		found = &place{tried: now, cancel: cancel}
		c.places[at] = found
		go c.open(ctx, at, found)
	}
	found.used = now
	switch {
	case found.err != nil:
		return nil, address.Error(found.err).Error()
	case found.watched == nil:
		return nil, ""
	case !found.watched.IsReady():
		if broken, is := found.watched.Broken(); is {
			note = "it does not answer: " + address.Error(broken.Err).Error()
		}
		return nil, note
	}
	below = found.watched.Snapshot()
	if at.configMap != "" || at.kinds != "" {
		return below, "" // Whoever asks for these looks at what was not read.
	}
	if lacking := gather.Lacking(below); len(lacking) > 0 {
		meaning := "the cause may lie deeper than is shown"
		if at.happened {
			meaning = "not all that happened is shown"
		}
		note = fmt.Sprintf("you may not list %s, so %s", strings.Join(lacking, ", "), meaning)
	}
	return below, note
}

// open begins to watch a place.
func (c *Cluster) open(ctx context.Context, at spot, into *place) {
	watched, err := c.watch(ctx, at)
	c.mu.Lock()
	into.watched, into.err = watched, err
	c.mu.Unlock()
	c.change()
}

func (c *Cluster) watch(ctx context.Context, at spot) (*Watched, error) {
	cluster, err := c.o.Cluster.Beneath(ctx, at.Place, c.o.Why)
	if err != nil {
		return nil, err
	}
	client, err := cluster.Dynamic()
	if err != nil {
		return nil, err
	}
	parts, refused, err := c.parts(ctx, at, cluster)
	if err != nil {
		return nil, err
	}
	watched := Watch(ctx, client, Scope{at.Namespace, at.configMap}, c.o.Now, c.change, parts...)
	for part, err := range refused {
		watched.deny(part, err)
	}
	return watched, nil
}

// sweep ends what nobody looks at any more.
func (c *Cluster) sweep(ctx context.Context) {
	ticker := time.NewTicker(unused / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := c.o.Now()
		c.mu.Lock()
		for at, each := range c.places {
			if now.Sub(each.used) > unused {
				each.stop()
				delete(c.places, at)
			}
		}
		for r, each := range c.previews {
			if now.Sub(each.used) > unused {
				each.cancel()
				delete(c.previews, r)
			}
		}
		c.mu.Unlock()
	}
}

func (p *place) stop() { p.cancel() }

// labelsOf returns the labels that were read of what a layer takes values from. What was
// not read yet is, and changes the answer then.
func (c *Cluster) labelsOf(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) map[objects.ID]map[string]string {
	values, _ := why.Values(s, layer)
	if len(values) == 0 {
		return nil
	}
	now := c.o.Now()
	found := map[objects.ID]map[string]string{}
	var lacking []objects.ID
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range values {
		each, had := c.labels[id]
		if each.read {
			found[id] = each.of
		}
		if !had || now.Sub(each.at) > retried {
			c.labels[id] = known{each.of, each.read, now}
			lacking = append(lacking, id)
		}
	}
	if len(lacking) > 0 {
		go c.readLabels(lacking)
	}
	return found
}

func (c *Cluster) readLabels(ids []objects.ID) {
	read, err := c.o.Cluster.Labels(c.ctx, ids)
	if err != nil {
		return
	}
	c.mu.Lock()
	now, differ := c.o.Now(), false
	for _, id := range ids {
		of, is := read[id]
		last := c.labels[id]
		differ = differ || is != last.read || fmt.Sprint(of) != fmt.Sprint(last.of)
		c.labels[id] = known{of, is, now}
	}
	c.mu.Unlock()
	if differ {
		c.change()
	}
}
