// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

const (
	defaultInterval = 30 * time.Second
	defaultGrace    = 10 * time.Second
	defaultTimeout  = 90 * time.Second
)

// people commit, edit and meddle, and things break.
type people struct {
	names []string
	// folders of layers that have the folder of another one.
	folders map[string]string
	// used counts names of releases.
	used int
	// lose and repeat are how many of the next events are lost, or come again.
	lose, repeat int
	// covered counts events by the state that a layer was in.
	covered coverage
	// happened counts the events of this run, and crashes those of them.
	happened, crashes int
}

// loses tells whether an event is lost on its way, or has it come again later.
// That there is a new layer is never lost: a watch begins with all there are.
func (p *people) loses(s *simulation, of *cache, c change) bool {
	if (of.kind == kindLayer || of.kind == kindRemote) && c.was == nil {
		return false
	}
	if p.lose > 0 {
		p.lose--
		s.note("an event is lost: %s", c.name)
		return true
	}
	if p.repeat > 0 {
		p.repeat--
		process := s.process
		s.after(s.between(0, 20*time.Second), func() {
			if process == s.process {
				process.wake(of, c)
			}
		})
	}
	return false
}

// states are the columns of the coverage: a layer that is not there, one that
// was never looked at, one that is being deleted, and what a layer's status says.
var states = []string{
	"absent", "new", "Pending", "K8sVersion", "Hold", "ApplyPending", "Applying", "Pruning", "Deployed", "Failed", "Unknown", "Deleting",
}

func (s *simulation) stateOf(name string) string {
	switch layer := s.cluster.layer(name); {
	case layer == nil:
		return "absent"
	case layer.DeletionTimestamp != nil:
		return "Deleting"
	case layer.Status.State == "":
		return "new"
	default:
		return string(layer.Status.State)
	}
}

// settle the world into which events come: layers that depend on each other,
// and their folders.
func (s *simulation) create() {
	p := &s.people
	for _, name := range []string{"main", "extra"} {
		s.repositories[name] = newRepository(name)
		s.cluster.put(kindSource, name, &source{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: s.cluster.newUID(), ResourceVersion: s.cluster.next(), Generation: 1},
		})
		s.changeSource(name, func(is *source) { is.seen.Generation = 1 })
	}
	count := 5 + s.random.IntN(2)
	for i := range count {
		name := fmt.Sprintf("l%d", i)
		p.names = append(p.names, name)
		if i == 3 && s.chance(50) {
			// One directory is on two clusters.
			p.folders[name] = pick(s, p.names[:3])
			continue
		}
		f := folder{}
		releases := 1 + s.random.IntN(2)
		if i == 0 && s.chance(60) {
			releases = 6
		}
		for range releases {
			f.files = append(f.files, s.newFile(f))
		}
		if s.chance(30) {
			s.people.used++
			f.files = append(f.files, file{name: fmt.Sprintf("c%d", s.people.used), plain: true, value: s.value()})
		}
		s.repositoryOf(name).folders[name] = f
	}
	for _, name := range sortedKeys(s.repositories) {
		s.commit(name)
	}
	for _, name := range remoteNames {
		s.register(s.remotes[name])
		if r := s.remotes[name]; s.chance(70) {
			s.giveCredentials(r)
		} else {
			s.after(s.between(0, 20*time.Second), func() { s.giveCredentials(r) })
		}
	}
	for _, name := range p.names {
		s.createLayer(name)
	}
	s.begin()
}

// repositoryOf returns the repository that a layer comes from: all but the last
// one from the same.
func (s *simulation) repositoryOf(layer string) *repository {
	if s.folderOf(layer) == "l4" {
		return s.repositories["extra"]
	}
	return s.repositories["main"]
}

// folderOf returns the folder of a layer, which may be that of another one.
func (s *simulation) folderOf(layer string) string {
	if other, has := s.people.folders[layer]; has {
		return other
	}
	return layer
}

// folder returns what is in the folder of a layer by now.
func (s *simulation) folder(layer string) folder {
	return s.repositoryOf(layer).folders[s.folderOf(layer)]
}

func (s *simulation) newFile(f folder) file {
	s.people.used++
	if len(f.files) > 0 && s.chance(20) {
		return file{name: fmt.Sprintf("c%d", s.people.used), plain: true, value: s.value()}
	}
	if len(f.files) > 0 && s.chance(15) {
		return s.newSpace()
	}
	name := fmt.Sprintf("r%d", s.people.used)
	made := file{name: name, helm: "h" + name[1:], value: s.value(), tells: s.chance(30)}
	for _, other := range f.files {
		switch {
		case other.plain && !other.space && made.reads == "" && s.chance(50):
			made.reads = other.name
		case !other.plain && made.after == "" && s.chance(25):
			made.after = other.name
		}
	}
	return made
}

// value returns one that no release had before.
func (s *simulation) value() int64 {
	s.people.used++
	return int64(s.people.used)
}

func (s *simulation) createLayer(name string) {
	layer := &v1alpha1.AddonsLayer{}
	layer.Name, layer.UID, layer.Generation = name, s.cluster.newUID(), 1
	layer.Annotations = map[string]string{}
	layer.Status.ObservedGeneration = -1
	layer.Spec = v1alpha1.AddonsLayerSpec{
		Version: "1.0.0", Source: v1alpha1.SourceSpec{Name: s.repositoryOf(name).name, Path: pathOf(s.folderOf(name))},
		Interval: &metav1.Duration{Duration: defaultInterval}, OrphanGrace: &metav1.Duration{Duration: defaultGrace},
		Timeout: &metav1.Duration{Duration: defaultTimeout}, Rollback: s.chance(25),
	}
	layer.Spec.Cluster = reference(s.drawPlace(name))
	layer.Spec.Prereqs.DependsOn = s.dependencies(name)
	if s.chance(15) {
		layer.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
	}
	s.cluster.putLayer(layer)
}

// dependencies draws what a layer depends on: layers before it, mostly as they
// are.
func (s *simulation) dependencies(name string) []string {
	var dependsOn []string
	for _, other := range s.people.names {
		if other >= name || !s.chance(35) {
			continue
		}
		version := "1.0.0"
		if layer := s.cluster.layer(other); layer != nil {
			version = layer.Spec.Version
		}
		dependsOn = append(dependsOn, pick(s, []string{other + "@" + version, other, other + "@>=1.0.0", other + "@>=1.2.0 <2.0.0", other + "@>=1.0.0 <2.0.0"}))
	}
	return dependsOn
}

// commit makes the head of a repository a revision, which is fetched in time.
func (s *simulation) commit(repository string) {
	r := s.repositories[repository]
	r.commit()
	s.note("commit %s", r.revision())
	s.push(repository)
}

// edit changes the folder of a layer, and commits that.
func (s *simulation) edit(layer string, do func(*folder)) {
	r := s.repositoryOf(layer)
	f := s.folder(layer).clone()
	do(&f)
	r.folders[s.folderOf(layer)] = f
	s.commit(r.name)
}

// meddle has one event come about, in any state that the layers are in.
func (s *simulation) meddle() {
	for range 50 {
		e := s.drawEvent()
		targets := []string{s.drawLayer()}
		if e.global {
			targets = s.people.names
		}
		before := make([]string, len(targets))
		for i, name := range targets {
			before[i] = s.stateOf(name)
		}
		s.note("-- %s, %v %v", e.name, targets, before)
		if !e.do(s, targets[0]) {
			s.log = s.log[:len(s.log)-1]
			continue
		}
		s.people.happened++
		for _, state := range before {
			s.people.covered.add(e.name, state)
		}
		return
	}
}

// drawLayer returns any layer, rather one that is in a state of a moment.
func (s *simulation) drawLayer() string {
	moments := slices.DeleteFunc(slices.Clone(s.people.names), func(name string) bool {
		return !slices.Contains([]string{"absent", "new", "Pending", "K8sVersion", "Pruning", "Unknown", "Deleting"}, s.stateOf(name))
	})
	if len(moments) > 0 && s.chance(40) {
		return pick(s, moments)
	}
	return pick(s, s.people.names)
}

func (s *simulation) drawEvent() *event {
	n := s.random.IntN(totalWeight)
	for i := range events {
		if n -= events[i].weight; n < 0 {
			return &events[i]
		}
	}
	panic("the weights do not add up")
}

// owned returns the releases that belong to a layer, in order.
func (s *simulation) owned(layer string) []string {
	return slices.DeleteFunc(s.cluster.releases(), func(name string) bool {
		release := s.cluster.release(name)
		return release.GetLabels()[v1alpha1.LayerLabel] != layer || release.GetDeletionTimestamp() != nil
	})
}
