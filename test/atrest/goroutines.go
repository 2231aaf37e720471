// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package atrest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

// labelKey is the label by which the goroutines of a manager are known. Goroutines have the labels
// of those that have begun them.
const labelKey = "atrest"

// The runtime writes labels into stacks only where it is told to.
func init() {
	if err := os.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",tracebacklabels=1", ",")); err != nil {
		panic(err)
	}
}

// working are functions of libraries that work although their goroutines wait: a look, a request,
// a source that has yet to have its handler in an informer, and an event on its way.
var working = []string{
	").reconcileHandler(",
	"k8s.io/client-go/rest.(*Request).",
	"(*eventBroadcasterImpl).attemptRecording(",
}

// A source waits for an informer, and then has its handler told of all that the informer knows. It
// is done where it asks for a kind that is not served, every few seconds.
const (
	sourceStarts = "internal/source.(*Kind[...]).Start.func1("
	sourceAsks   = ".GetInformer("
	sourcePolls  = "wait.loopConditionUntilContext("
)

// network are those who begin the goroutines that carry bytes, for all clients of a server. What
// they carry is seen by those who wait for it.
var network = []string{"created by net/http.", "created by golang.org/x/net/http2."}

// waiting are the states of goroutines that go on only when something happens.
var waiting = []string{"chan receive", "chan send", "select", "IO wait", "sync.Cond.Wait", "sync.WaitGroup.Wait", "semacquire", "sleep"}

// parked returns which goroutine is at work.
func (o *Observer) parked() error {
	label, ours := fmt.Sprintf("%q: %q", labelKey, o.label), 0
	for stack := range strings.SplitSeq(stacks.take(), "\n\n") {
		header, frames, _ := strings.Cut(stack, "\n")
		if !strings.Contains(header, label) {
			continue
		}
		ours++
		if why := worksOn(header, frames, o.options.Working); why != "" {
			return fmt.Errorf("a goroutine is at work, %s:\n%s", why, stack)
		}
	}
	if ours == 0 {
		return errors.New("no goroutine is observed: the manager that Over returns has not started, or stacks have no labels")
	}
	return nil
}

// worksOn returns why a goroutine is at work; empty where it waits.
func worksOn(header, frames string, more []string) string {
	for _, by := range network {
		if strings.Contains(frames, by) {
			return ""
		}
	}
	for _, functions := range [][]string{working, more} {
		for _, function := range functions {
			if strings.Contains(frames, function) {
				return "in " + function
			}
		}
	}
	if strings.Contains(frames, sourceStarts) && (!strings.Contains(frames, sourcePolls) || strings.Contains(frames, sourceAsks)) {
		return "in " + sourceStarts
	}
	_, state, _ := strings.Cut(header, "[")
	for _, one := range waiting {
		if strings.HasPrefix(state, one) {
			return ""
		}
	}
	if strings.HasPrefix(state, "syscall") && strings.Contains(frames, "os.(*Process).") {
		return "" // it waits for the end of another process
	}
	return "as its state says"
}

// snapshots are stacks of all goroutines. To take them stops the whole process for some
// milliseconds, so those who ask at the same time share them.
type snapshots struct {
	mu     sync.Mutex
	begun  time.Time
	last   string
	buffer []byte
}

var stacks snapshots

// take returns stacks that were taken after it was called.
func (s *snapshots) take() string {
	called := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun.After(called) {
		return s.last
	}
	s.begun = time.Now()
	if s.buffer == nil {
		s.buffer = make([]byte, 1<<20)
	}
	for {
		n := runtime.Stack(s.buffer, true)
		if n < len(s.buffer) {
			s.last = string(s.buffer[:n])
			return s.last
		}
		s.buffer = make([]byte, 2*len(s.buffer))
	}
}
