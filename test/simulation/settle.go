// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
)

const (
	// eventsOfRun is how many events a run has at least.
	eventsOfRun = 40
	// quiet is how long nothing is written in a world that has settled: longer
	// than any interval and grace.
	quiet = 45 * time.Second
	// patience is how long a world may take to settle.
	patience = time.Hour
)

// result is what became of a run.
type result struct {
	seed    uint64
	failure string
	log     []entry
	covered coverage
	// steps is how many steps looks have made.
	steps                   int
	layers, events, crashes int
}

// run carries out one run. The same seed is the same run.
func run(seed uint64) (r result) {
	s := newSimulation(seed)
	r.seed = seed
	defer func() {
		if broken := recover(); broken != nil {
			v, is := broken.(violation)
			if !is {
				v.text = fmt.Sprintf("panic: %v", broken)
				s.note("%s", v.text)
			}
			r.failure = v.text
			s.note("VIOLATED %s", v.text)
		}
		for _, l := range s.process.looks {
			l.stop()
		}
		r.log, r.covered, r.steps = s.log, s.people.covered, s.counted
		r.layers, r.events, r.crashes = len(s.people.names), s.people.happened, s.people.crashes
	}()
	s.create()
	s.trouble()
	s.repair()
	s.settle()
	s.check()
	return r
}

// trouble is the random part of a run: events at any time, the last one of them
// a crash where there was none.
func (s *simulation) trouble() {
	for s.people.happened < eventsOfRun || s.people.crashes == 0 {
		if s.people.happened >= eventsOfRun {
			s.note("-- crash")
			s.crash()
		} else {
			s.meddle()
		}
		s.fluxSees()
		gap := pick(s, []time.Duration{0, 50 * time.Millisecond, time.Second, 5 * time.Second, 15 * time.Second})
		until := s.now + moment(s.between(0, gap+time.Millisecond))
		for s.now < until {
			s.step(until)
		}
	}
}

// repair ends the faults and makes the world one that can be as it is wanted:
// what people alone can mend, they mend.
func (s *simulation) repair() {
	s.note("== repair")
	s.faults, s.people.lose, s.people.repeat, s.outage = false, 0, 0, 0
	s.dieIn = 0
	s.cluster.kubernetes = "v1.32.0"
	s.askVersion()
	for _, c := range s.process.allCaches() {
		c.frozenUntil = 0
	}
	s.mendRemotes()
	healSource(s, "")
	for _, name := range sortedKeys(s.failing) {
		s.heal(name)
	}
	s.mendFolders()
	for _, name := range s.people.names {
		if s.cluster.layer(name) != nil {
			s.mendLayer(name)
		}
	}
	s.mendReleases()
	s.fluxSees()
}

// mendFolders has every release listed once, and well.
func (s *simulation) mendFolders() {
	names, helms := map[string]bool{}, map[string]bool{}
	for _, layer := range s.people.names {
		r := s.repositoryOf(layer)
		if s.folderOf(layer) != layer {
			continue
		}
		f := r.folders[layer].clone()
		f.broken, f.missing = false, false
		for i := 0; i < len(f.files); {
			if file := f.files[i]; names[file.name] || file.helm != "" && helms[file.helm] {
				f.take(i)
				continue
			}
			names[f.files[i].name], helms[f.files[i].helm] = true, true
			f.files[i].quality = good
			i++
		}
		if len(f.files) > 0 {
			f.files[0].value = s.value() // whoever has gone back goes on
		}
		r.folders[layer] = f
	}
	for _, name := range sortedKeys(s.repositories) {
		s.commit(name)
	}
}

// mendLayer has a layer ask for what there is, and nothing hold it.
func (s *simulation) mendLayer(name string) {
	deleting := s.cluster.layer(name).DeletionTimestamp != nil
	s.cluster.changeLayer(name, func(l *v1alpha1.AddonsLayer) {
		l.Spec.Hold = false
		l.Annotations = map[string]string{}
		if deleting {
			l.Annotations[v1alpha1.ForceDeleteAnnotation] = "true"
		}
		l.Spec.OrphanGrace = &metav1.Duration{Duration: defaultGrace}
		l.Spec.Interval = &metav1.Duration{Duration: 40 * time.Second}
		if l.Status.Rollback != nil {
			l.Spec.Interval = &metav1.Duration{Duration: 39 * time.Second}
		}
		l.Spec.Prereqs.DependsOn = slices.DeleteFunc(slices.Clone(l.Spec.Prereqs.DependsOn), func(dependency string) bool {
			on, _, _ := strings.Cut(dependency, "@")
			other := s.cluster.layer(on)
			return on >= name || other == nil || other.DeletionTimestamp != nil || !accepts(dependency, other.Spec.Version)
		})
	})
}

// mendReleases has people resume what they suspended, and remove what is nobody's.
func (s *simulation) mendReleases() {
	for _, name := range s.cluster.releases() {
		release := s.cluster.release(name)
		annotations := release.GetAnnotations()
		switch {
		case s.removeStray(name):
		case isSuspended(release) && annotations[v1alpha1.SuspendedByHoldAnnotation] == "" && annotations[v1alpha1.SupersededByAnnotation] == "" &&
			annotations[v1alpha1.SuspendedByLossAnnotation] == "":
			s.cluster.changeRelease(name, func(r *unstructured.Unstructured) { suspend(r, false) })
		}
	}
	s.tidy()
}

// removeStray has people delete a release that is nobody's. One of a cluster that
// will not answer they suspend, so that Flux lets it go.
func (s *simulation) removeStray(name string) bool {
	release := s.cluster.release(name)
	target := s.remotes[layers.TargetOf(release)]
	dead := target != nil && target.dead && !isSuspended(release)
	if release.GetLabels()[v1alpha1.LayerLabel] != "" || release.GetDeletionTimestamp() != nil && !dead {
		return false
	}
	if dead {
		s.cluster.changeRelease(name, func(r *unstructured.Unstructured) { suspend(r, true) })
	}
	s.cluster.deleteRelease(name, metav1.NewTime(s.now.time()))
	return true
}

// settle goes on until nothing is written for a while. What a guard refuses is
// allowed, as people do.
func (s *simulation) settle() {
	end := s.now + moment(patience)
	written, since := s.cluster.writes, s.now
	for s.now < since+moment(quiet) {
		s.step(s.now + moment(quiet))
		if s.cluster.writes != written {
			written, since = s.cluster.writes, s.now
			continue
		}
		if s.now > since+moment(quiet)/2 && s.assist() {
			written, since = s.cluster.writes, s.now
			s.fluxSees()
		}
		if s.now > end {
			s.violated("settles", "there is still something written after %s", patience)
		}
	}
}

// assist does what only people can do about a world that is stuck.
func (s *simulation) assist() bool {
	helped := false
	for _, name := range s.people.names {
		layer := s.cluster.layer(name)
		if layer == nil {
			continue
		}
		if layer.Status.Rollback != nil {
			// What has failed in the meantime is to be tried again.
			s.note("-- %s goes on", name)
			helped = s.editLayer(name, func(l *v1alpha1.AddonsLayer) { l.Spec.Interval.Duration -= time.Second })
		}
		annotation := map[string]string{
			v1alpha1.ReasonWouldReinstall: v1alpha1.AllowReinstallAnnotation,
			v1alpha1.ReasonMassPrune:      v1alpha1.AllowPruneAnnotation, v1alpha1.ReasonEmptyDirectory: v1alpha1.AllowEmptyAnnotation,
			v1alpha1.ReasonPathNotFound: v1alpha1.AllowEmptyAnnotation, v1alpha1.ReasonWouldBreakDependants: v1alpha1.AllowBreakAnnotation,
		}[condition(layer, v1alpha1.ReadyCondition).Reason]
		if annotation == "" || layer.Annotations[annotation] != "" {
			continue
		}
		value := v1alpha1.AllowNext
		if annotation == v1alpha1.AllowBreakAnnotation {
			value = "true"
		}
		s.note("-- %s gets %s", name, annotation)
		s.evidence.allowed[allowance{layer.UID, annotation}] = true
		helped = s.annotateLayer(name, annotation, value) || helped
	}
	for _, name := range s.cluster.releases() {
		if s.removeStray(name) {
			helped = true
		}
	}
	if registerAgain(s, "") {
		s.note("-- what was given up is registered again")
		helped = true
	}
	return s.tidy() || helped
}
