// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// calm is how long everything must stay right.
const calm = 5 * time.Second

// judge waits until everything is right, and then goes through what has
// happened.
func (s *storm) judge(ctx context.Context, o settings, r *recorder) error {
	for _, name := range s.ended() {
		s.say("%s has ended by itself", name)
		if err := s.revive(ctx, name); err != nil {
			return err
		}
	}
	began := time.Now()
	last := began
	if len(s.faults) > 0 {
		last = slices.MaxFunc(s.faults, func(a, b fault) int { return a.End.Compare(b.End) }).End
	}
	if err := s.untilRight(ctx, o.patience); err != nil {
		return fmt.Errorf("not as the last commit says: %w", err)
	}
	s.say("everything is as commit %d says, %s after the last fault and %s after the end of the storm", s.world.Commits,
		time.Since(last).Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	if !pause(ctx, calm) {
		return ctx.Err()
	}
	f, err := look(ctx, s.client)
	if err != nil {
		return err
	}
	problems := s.world.wrong(f, s.revision)
	lived, excused := s.world.lived(history{facts: f, seen: r.all(), faults: s.faults})
	problems = append(append(problems, lived...), s.crashes()...)
	s.summary(f, excused)
	if len(problems) > 0 {
		return fmt.Errorf("%d things went wrong:\n  %s", len(problems), strings.Join(problems, "\n  "))
	}
	return nil
}

// crashes says what Strata's log tells of panics and data races.
func (s *storm) crashes() []string {
	text, err := os.ReadFile(s.log(strataProgram))
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, word := range []string{"WARNING: DATA RACE", "panic:", "Observed a panic"} {
		if at := bytes.Index(text, []byte(word)); at >= 0 {
			found = append(found, fmt.Sprintf("Strata's log has %q:\n%s", word, text[at:min(len(text), at+2000)]))
		}
	}
	for _, f := range s.faults {
		if f.Spontaneous && f.Victim == strataProgram {
			found = append(found, "Strata has ended by itself at "+clock(f.Begin))
		}
	}
	return found
}

// summary prints what has happened.
func (s *storm) summary(f facts, excused []string) {
	var killed, own []string
	for _, one := range s.faults {
		if one.Spontaneous {
			own = append(own, one.Victim)
		} else {
			killed = append(killed, one.Victim)
		}
	}
	s.say("summary: %d kills (%s), %d ended by themselves (%s)", len(killed), counts(killed), len(own), counts(own))
	contents, moves, removed, revisions := 0, 0, 0, 0
	for name, life := range s.world.Lives {
		moves += life.Moves
		if s.world.home(name) == nil {
			removed++
			continue
		}
		contents += len(life.Contents)
		revisions += len(f.Helm[name])
	}
	s.say("summary: %d commits; %d releases in the end, %d removed, %d moves between layers", s.world.Commits, len(f.Releases), removed, moves)
	s.say("summary: %d contents committed of those releases, %d revisions of Helm, %d of them excused", contents, revisions, len(excused))
	for _, line := range excused {
		s.say("excused: %s", line)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Helm)) {
		if life := s.world.Lives[name]; life != nil {
			s.say("release %-14s %d contents, generation %d, %d revisions of Helm", name, len(life.Contents), f.Releases[name].Generation, len(f.Helm[name]))
		}
	}
}
