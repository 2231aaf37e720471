// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// storm kills and commits at the same time.
type storm struct {
	*stack
	say   func(format string, args ...any)
	world *world
	// revision of the last commit.
	revision string
	applied  map[string]string // specifications of layers, as they were applied last

	mu        sync.Mutex
	faults    []fault
	commits   int
	committed chan struct{} // closed by the next commit, and then another one
}

func newStorm(s *stack, w *world, say func(string, ...any)) *storm {
	return &storm{stack: s, say: say, world: w, applied: map[string]string{}, committed: make(chan struct{})}
}

// pause waits, and says no where the context ends before.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// rage kills and starts again until the context ends. What it has killed is
// started again in any case; life bounds that.
func (s *storm) rage(ctx, life context.Context, random *rand.Rand, only []string) error {
	for {
		b := nextBlow(random)
		if len(only) > 0 {
			b.Victims = slices.DeleteFunc(b.Victims, func(name string) bool { return !slices.Contains(only, name) })
		}
		if b.AfterCommit {
			select {
			case <-s.next():
			case <-ctx.Done():
			}
		}
		if !pause(ctx, b.Wait) {
			return nil
		}
		if len(b.Victims) == 0 {
			continue
		}
		if err := s.strike(ctx, life, b); err != nil {
			return err
		}
	}
}

// strike kills and starts again, and looks after what ended meanwhile by
// itself, as a kubelet would.
func (s *storm) strike(ctx, life context.Context, b blow) error {
	begin := time.Now()
	for _, name := range b.Victims {
		if err := s.kill(name); err != nil {
			return err
		}
	}
	s.say("killed %s for %s", strings.Join(b.Victims, " and "), b.Down.Round(time.Millisecond))
	pause(ctx, b.Down)
	for _, name := range s.ended() {
		own := !slices.Contains(b.Victims, name)
		if own {
			s.say("%s has ended by itself", name)
		}
		if err := s.revive(life, name); err != nil {
			return err
		}
		s.mu.Lock()
		s.faults = append(s.faults, fault{Victim: name, Begin: begin, End: time.Now(), Spontaneous: own})
		s.mu.Unlock()
	}
	s.say("%s back after %s", strings.Join(b.Victims, " and "), time.Since(begin).Round(time.Millisecond))
	return nil
}

// revive starts a component, again where it ends before it is ready: it may
// need another one that is on its way.
func (s *storm) revive(life context.Context, name string) error {
	ctx, cancel := context.WithTimeout(life, 2*time.Minute)
	defer cancel()
	for {
		err := s.start(ctx, name)
		if err == nil {
			return nil
		}
		if !pause(ctx, time.Second) {
			return fmt.Errorf("cannot start %s again: %w", name, err)
		}
	}
}

// next returns what is closed by the next commit.
func (s *storm) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.committed
}

// write commits until the context ends.
func (s *storm) write(ctx, life context.Context, random *rand.Rand) error {
	for pause(ctx, nextCommit(random)) {
		what := s.world.commit(random, time.Now())
		if err := s.publish(life); err != nil {
			return err
		}
		s.say("commit %d: %s", s.world.Commits, what)
		s.mu.Lock()
		s.commits++
		close(s.committed)
		s.committed = make(chan struct{})
		s.mu.Unlock()
		if err := s.applyLayers(life); err != nil {
			return err
		}
		s.fetch(ctx)
	}
	return nil
}

// publish makes the repository what the world says.
func (s *storm) publish(context.Context) error {
	tree := fstest.MapFS{}
	for name, text := range s.world.files() {
		tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	commit, err := s.repo.Replace(fmt.Sprintf("commit %d", s.world.Commits), tree)
	if err != nil {
		return err
	}
	s.revision = controlplane.Branch + "@sha1:" + commit
	return nil
}

// fetch asks source-controller to look, as a webhook would. It need not be
// there: it looks by itself, too.
func (s *storm) fetch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = s.client.Patch(ctx, &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "layers"}}, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, time.Now().Format(time.RFC3339Nano))))
}

// applyLayers gives the layers whose specification has changed the one that
// the world says, however often that has to be tried.
func (s *storm) applyLayers(ctx context.Context) error {
	for _, l := range s.world.Layers {
		spec := v1alpha1.AddonsLayerSpec{
			Version:     l.version(),
			Source:      v1alpha1.SourceSpec{Name: "layers", Namespace: namespace, Path: "./" + l.directory()},
			Interval:    &metav1.Duration{Duration: time.Minute},
			OrphanGrace: &metav1.Duration{Duration: time.Second},
			Prereqs:     v1alpha1.PrereqsSpec{DependsOn: s.world.dependsOn(l)},
		}
		text, err := json.Marshal(map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.AddonsLayerKind, "metadata": map[string]any{"name": l.Name}, "spec": spec,
		})
		if err != nil {
			return err
		}
		if s.applied[l.Name] == string(text) {
			continue
		}
		err = controlplane.WaitFor(ctx, 2*time.Minute, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			return s.client.Patch(ctx, &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: l.Name}},
				client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("chaos"), client.ForceOwnership)
		})
		if err != nil {
			return errors.Join(fmt.Errorf("cannot apply layer %s", l.Name), err)
		}
		s.applied[l.Name] = string(text)
	}
	return nil
}
