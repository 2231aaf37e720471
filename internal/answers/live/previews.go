// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/drift"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/platforms"
)

const (
	// mostPreviews bounds how many previews are kept at a time, made or not.
	mostPreviews = 8
	// mostRevisions is how many branches and tags are offered, the newest.
	mostRevisions = 50
	// mostNoted is how many sources are named that cannot be fetched.
	mostNoted = 5
	// mostPlanned is how many layers of a Platform are planned object by object, in the order
	// in which they are written.
	mostPlanned = 20
)

// Of says what a preview is of.
type Of string

// What previews are of.
const (
	// OfSources is what the sources of layers hold now.
	OfSources Of = "sources"
	// OfGit is a revision of the git repository of the options, and OfFolder are its files as
	// they are.
	OfGit    Of = "git"
	OfFolder Of = "folder"
	// OfPlatform is a Platform with another version of its bundle.
	OfPlatform Of = "platform"
	// OfRollback is a layer that goes back to a deployment.
	OfRollback Of = "rollback"
	// OfResume is a layer that is no longer held.
	OfResume Of = "resume"
	// OfDrift is what now differs from what is wanted.
	OfDrift Of = "drift"
)

// Request asks for a preview. Two that are equal have one answer.
type Request struct {
	Of Of
	// Revision of OfGit; Platform and Version of OfPlatform; Layer and To, the ID of a
	// deployment, of OfRollback; Layer of OfResume.
	Revision, Platform, Version, Layer, To string
	// Only is the layer that is asked about; empty for all.
	Only string
	// Again tells a request from an earlier one of the same, so that it is made anew.
	Again string
}

// Preview is what a request comes to.
type Preview struct {
	// Done is false while it is made, and Says how that gets on.
	Done bool
	Says string
	// At is when it was made.
	At time.Time
	// Plan, or Drift, or the error that says why there is none.
	Plan  *preview.Plan
	Drift []drift.Layer
	Err   error
}

// job makes a preview.
type job struct {
	Preview
	used   time.Time
	cancel context.CancelFunc
}

// Preview returns what a request comes to. It is made from now on, one at a time, for as
// long as somebody looks, and stays as it was made.
func (c *Cluster) Preview(r Request) Preview {
	now := c.o.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.previews[r]
	if found == nil {
		if len(c.previews) >= mostPreviews && !c.forget() {
			return Preview{Done: true, At: now, Err: errors.New("too many previews are made at a time: look again in a minute")}
		}
		ctx, cancel := context.WithCancel(c.ctx)
		found = &job{cancel: cancel, Preview: Preview{Says: "waits for its turn"}}
		c.previews[r] = found
		if c.ctx.Err() == nil { // Otherwise Close waits for those that there are.
			c.making.Go(func() { c.make(ctx, r, found) })
		}
	}
	found.used = now
	return found.Preview
}

// forget drops the preview that was looked at last of those that are made.
func (c *Cluster) forget() bool {
	var oldest *Request
	for r, each := range c.previews {
		if each.Done && (oldest == nil || each.used.Before(c.previews[*oldest].used)) {
			oldest = new(r)
		}
	}
	if oldest == nil {
		return false
	}
	delete(c.previews, *oldest)
	return true
}

// make makes a preview once it is its turn.
func (c *Cluster) make(ctx context.Context, r Request, into *job) {
	defer into.cancel()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return
	}
	say := func(format string, args ...any) {
		c.mu.Lock()
		into.Says = fmt.Sprintf(format, args...)
		c.mu.Unlock()
		c.change()
	}
	say("reads the cluster")
	made := Preview{Done: true}
	made.Plan, made.Drift, made.Err = c.previewOf(ctx, r, say)
	made.At = c.o.Now()
	c.mu.Lock()
	into.Preview = made
	c.mu.Unlock()
	c.change()
}

func (c *Cluster) previewOf(ctx context.Context, r Request, say func(string, ...any)) (*preview.Plan, []drift.Layer, error) {
	var lacking []string
	// One source that cannot be fetched is no reason to say nothing of the others.
	o := gather.PlanOptions{
		Lenient: true, Stay: c.o.Why.Stay, Allowed: c.o.Why.Allowed, OnRead: func(s *snapshot.Snapshot) { lacking = gather.Lacking(s) },
	}
	if r.Of == OfGit || r.Of == OfFolder {
		if c.o.Repository == "" {
			return nil, nil, errors.New("no repository is known: give one with --git when the page is opened")
		}
		o.Source, o.LayersIn = c.o.Source, c.o.LayersIn
	}
	switch r.Of {
	case OfGit:
		o.Repository, o.FromGit = c.o.Repository, r.Revision
	case OfFolder:
		o.FromDir = c.o.Repository
	}
	gathered, err := c.o.Cluster.Plan(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	defer gathered.Close()
	names, more, err := c.replaced(gathered, r)
	if err != nil {
		return nil, nil, err
	}
	if names == nil {
		names = c.chosen(gathered, r.Only)
	}
	wanted := gather.PreviewOptions{Names: names, Say: say}
	if r.Of == OfDrift {
		found, err := gathered.Drift(ctx, wanted)
		return nil, found, err
	}
	made, err := gathered.Preview(ctx, wanted)
	if err != nil {
		return nil, nil, err
	}
	others, own := gathered.Unfetched(cmp.Or(r.Layer, r.Only))
	if own != nil {
		return nil, nil, own
	}
	if from := r.from(); from != "" {
		made.From = from
	}
	made.Notes = append(made.Notes, others[:min(len(others), mostNoted)]...)
	if more := len(others) - mostNoted; more > 0 {
		made.Notes = append(made.Notes, fmt.Sprintf("%d more sources cannot be fetched", more))
	}
	if len(lacking) > 0 {
		made.Notes = append(made.Notes, fmt.Sprintf("you may not list %s: the plan does without them", strings.Join(lacking, ", ")))
	}
	if more > 0 {
		made.Notes = append(made.Notes, fmt.Sprintf("%d more layers are written or deleted, and are not shown", more))
	}
	return made, nil, nil
}

// from says what a plan is made from; empty where that is a source or what stands for it.
func (r Request) from() string {
	switch r.Of {
	case OfPlatform:
		return fmt.Sprintf("platform %s with version %s", r.Platform, r.Version)
	case OfRollback:
		return fmt.Sprintf("going back to deployment %s of layer %s", r.To, r.Layer)
	case OfResume:
		return fmt.Sprintf("resuming layer %s", r.Layer)
	default:
		return ""
	}
}

// replaced has layers be as the request says, and returns those that are shown for it; nil
// for those that are chosen otherwise.
func (c *Cluster) replaced(gathered *gather.Plan, r Request) (names []string, more int, err error) {
	switch r.Of {
	case OfRollback:
		return []string{r.Layer}, 0, gathered.Annotate(r.Layer, map[string]any{v1alpha1.RollbackToAnnotation: r.To})
	case OfResume:
		return []string{r.Layer}, 0, gathered.Annotate(r.Layer, acts.Unhold())
	case OfPlatform:
	default:
		return nil, 0, nil
	}
	s := c.Snapshot()
	for _, platform := range s.Platforms {
		if platform.Name != r.Platform {
			continue
		}
		platform = platform.DeepCopy()
		switch {
		case r.Version == "":
		case platform.Spec.Bundle == nil:
			return nil, 0, fmt.Errorf("platform %s has no bundle that could have a version", r.Platform)
		default:
			platform.Spec.Bundle.Version = r.Version
		}
		observed, _ := c.Observe(s, platform, s.Now)
		look := platforms.Look(observed)
		gathered.Replace(look.Write, look.Delete)
		for _, layer := range slices.Concat(look.Write, look.Delete) {
			names = append(names, layer.Name)
		}
		more = max(0, len(names)-mostPlanned)
		// Without any name, all would be shown.
		return append([]string{""}, names[:len(names)-more]...), more, nil
	}
	return nil, 0, fmt.Errorf("there is no platform %s", r.Platform)
}

// chosen returns the names of the layers that are shown; none for all of them.
func (c *Cluster) chosen(gathered *gather.Plan, only string) []string {
	if only != "" {
		return []string{only}
	}
	if c.o.Why.Wanted == nil {
		return nil
	}
	names := []string{""}
	for _, layer := range gathered.Planned {
		if c.o.Why.Wanted.Matches(labels.Set(layer.Labels)) {
			names = append(names, layer.Name)
		}
	}
	return names
}

// Repository says what may be planned of the git repository of the options.
type Repository struct {
	// Folder of it; empty where there is none.
	Folder    string
	Revisions []repository.Revision
	// Err says why its revisions are not known.
	Err error

	read time.Time
}

// Repository returns the newest revisions of the git repository of the options, as they
// were read last. They are read again while somebody looks.
func (c *Cluster) Repository() Repository {
	now := c.o.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.o.Repository != "" && now.Sub(c.repository.read) > refreshed {
		c.repository.read = now
		go c.readRepository()
	}
	known := c.repository
	known.Folder = c.o.Repository
	return known
}

// refreshed is how long revisions count as known.
const refreshed = 30 * time.Second

func (c *Cluster) readRepository() {
	revisions, err := repository.Revisions(c.ctx, c.o.Repository, mostRevisions)
	c.mu.Lock()
	last := c.repository
	c.repository.Revisions, c.repository.Err = revisions, err
	differs := !slices.Equal(last.Revisions, revisions) || cmp.Or(last.Err, errNone).Error() != cmp.Or(err, errNone).Error()
	c.mu.Unlock()
	if differs {
		c.change()
	}
}

var errNone = errors.New("")
