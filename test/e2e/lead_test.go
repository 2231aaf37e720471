// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/strata-project/strata/test/strata"
)

// quickLead are flags by which the lead changes hands within seconds.
var quickLead = []string{
	"--enable-leader-election", "--leader-election-lease-duration=5s",
	"--leader-election-renew-deadline=2s", "--leader-election-retry-period=500ms",
}

// madeOnce checks that each release was made once, and none deleted.
func (w *witness) madeOnce(releases ...string) {
	w.Helper()
	made := map[string]map[string]bool{}
	for _, s := range w.all() {
		release, ok := s.object.(*helmv2.HelmRelease)
		if !ok {
			continue
		}
		if made[release.Name] == nil {
			made[release.Name] = map[string]bool{}
		}
		made[release.Name][string(release.UID)] = true
		if s.event == watch.Deleted || !release.DeletionTimestamp.IsZero() {
			w.Errorf("release %s was deleted", release.Name)
		}
	}
	for _, name := range releases {
		if len(made[name]) != 1 {
			w.Errorf("release %s was made %d times", name, len(made[name]))
		}
	}
}

// The leader is lost in the middle of a roll-out: killed, or stopped for longer
// than its lease, so that it wakes up with a plan that is not its to carry out.
// The other one goes on, nothing is done twice, and the roll-out ends.
func TestTheLeadIsLostInTheMiddleOfARollOut(t *testing.T) {
	for _, test := range []struct {
		name    string
		stopped bool
	}{{"killed", false}, {"stopped and woken", true}} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			first, second := f.controller(testedBinary, quickLead...), f.controller(testedBinary, quickLead...)
			f.must(first.Start(f.ctx))
			f.must(second.Start(f.ctx))
			w := f.witness()
			files := f.chainFiles("one")
			revision := f.push(files)
			f.chain(f.own)
			f.begun("base-0", "one")
			f.lose(first, test.stopped)
			f.begun("mesh-0", "one")
			before := f.helmRevisions("base-0")
			if test.stopped {
				f.wake(first)
			}
			f.chainDeployed(revision)
			f.toldOnce(revision, chainOfRestarts...)
			var releases []string
			for _, layer := range chainOfRestarts {
				for i := range 3 {
					releases = append(releases, fmt.Sprintf("%s-%d", layer, i))
				}
			}
			w.madeOnce(releases...)
			if after := f.helmRevisions("base-0"); after != before {
				t.Errorf("Helm has %d revisions of a release that was installed before, then %d", before, after)
			}
		})
	}
}

// lose takes the lead from a controller for good, or for longer than its lease.
func (f *fixture) lose(controller *strata.Controller, stop bool) {
	f.Helper()
	if !stop {
		f.must(controller.Kill())
		return
	}
	pid := controller.PID()
	if pid == 0 {
		f.Fatal("the controller does not run")
	}
	f.must(syscall.Kill(pid, syscall.SIGSTOP))
	f.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
}

// wake lets a controller go on that has lost the lead meanwhile: it ends.
func (f *fixture) wake(controller *strata.Controller) {
	f.Helper()
	pid, ended := controller.PID(), controller.Ended()
	f.must(syscall.Kill(pid, syscall.SIGCONT))
	f.eventually("who has lost the lead ends", func() error {
		select {
		case <-ended:
			return nil
		default:
			return errors.New("it runs")
		}
	})
	if code := controller.ExitCode(); code == 0 {
		f.Error("it ends as if nothing were wrong")
	}
}

// The real thing, with Flux: a controller is killed at moments that are spread
// over a roll-out, which ends as if nothing had been.
func TestKilledAtMomentsOfARollOut(t *testing.T) {
	f := newFixture(t)
	controller := f.controller(testedBinary)
	f.must(controller.Start(f.ctx))
	files := f.chainFiles("one")
	revision := f.push(files)
	f.chain(f.own)
	f.chainDeployed(revision)
	before := f.uids()
	const moments = 6
	for i := range moments {
		value := fmt.Sprintf("value %d", i)
		revision = f.push(f.chainFiles(value))
		<-time.After(time.Duration(i) * 150 * time.Millisecond) // the moment, counted from the revision on
		f.crash(controller)
		f.chainDeployed(revision)
		for _, layer := range chainOfRestarts {
			f.begun(layer+"-2", value)
		}
	}
	f.stillThere(before)
	for name := range before {
		history := f.helmHistory(name)
		if last := history[len(history)-1]; last.version != moments+1 || last.status != "deployed" {
			t.Errorf("Helm's history of %s after %d changes is %v", name, moments, history)
		}
	}
}
