// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/layers"
)

// helmFinalizer keeps a release until it is uninstalled.
const helmFinalizer = "finalizers.fluxcd.io"

// flux is source-controller and helm-controller, and what Helm has installed.
type flux struct {
	// installed holds the value that each Helm release was installed with last.
	installed map[string]int64
	// installedBy holds the UID of the object that installed it last.
	installedBy map[string]types.UID
	// failing holds releases that cannot be installed for now, and whether
	// helm-controller gives up on them.
	failing map[string]bool
	// looked holds the version of a release that helm-controller has a look at.
	looked map[string]string
	// wasReady holds the values with which releases have been Ready, by UID.
	wasReady map[types.UID]map[int64]bool
	// deletedBy names the layer by whose rules an object was deleted.
	deletedBy map[types.UID]string
}

func newFlux() flux {
	return flux{
		installed: map[string]int64{}, installedBy: map[string]types.UID{}, failing: map[string]bool{}, looked: map[string]string{},
		wasReady: map[types.UID]map[int64]bool{}, deletedBy: map[types.UID]string{},
	}
}

// fluxSees has the controllers of Flux react to what has changed, in time.
func (s *simulation) fluxSees() {
	for _, c := range s.cluster.history[kindRelease][s.fluxAt[kindRelease]:] {
		release, _ := c.is.(*unstructured.Unstructured)
		if release == nil {
			continue
		}
		name := c.name
		s.after(s.between(20*time.Millisecond, 2*time.Second), func() { s.helm(name) })
	}
	s.fluxAt[kindRelease] = len(s.cluster.history[kindRelease])
	for _, c := range s.cluster.history[kindPlain][s.fluxAt[kindPlain]:] {
		s.fluxReads(c.name)
	}
	s.fluxAt[kindPlain] = len(s.cluster.history[kindPlain])
}

// fluxReads has helm-controller look again at what reads an object that has
// changed.
func (s *simulation) fluxReads(key string) {
	for _, name := range s.cluster.releases() {
		if target := layers.TargetOf(s.cluster.release(name)); target != "" && copyOfKubeConfig(target) == key {
			delete(s.looked, name)
			s.after(s.between(time.Millisecond, 200*time.Millisecond), func() { s.helm(name) })
		}
	}
}

// target returns why a release cannot be installed, or uninstalled, where it
// belongs; nil where it can. skips is true where Flux does not know where that is.
func (s *simulation) target(release *unstructured.Unstructured) (skips bool, err error) {
	name := layers.TargetOf(release)
	if name == "" {
		return false, nil
	}
	secret := s.cluster.release(copyOfKubeConfig(name))
	if secret == nil {
		return true, errors.New("the Secret of the kubeconfig does not exist")
	}
	return false, s.ask(s.remotes[name], kubeconfigIn(secret))
}

// retry has helm-controller try again what a cluster that is away was in the way of.
func (s *simulation) retry(name string) {
	delete(s.looked, name)
	s.after(s.between(time.Second, 10*time.Second), func() { s.helm(name) })
}

// helm is one look of helm-controller at a release.
func (s *simulation) helm(name string) {
	release := s.cluster.release(name)
	if release == nil || s.looked[name] == release.GetResourceVersion() {
		return
	}
	s.looked[name] = release.GetResourceVersion()
	switch {
	case release.GetDeletionTimestamp() != nil:
		s.uninstall(release)
		return
	case isSuspended(release):
		return
	case !slices.Contains(release.GetFinalizers(), helmFinalizer):
		s.cluster.changeRelease(name, func(r *unstructured.Unstructured) { r.SetFinalizers([]string{helmFinalizer}) })
		return
	}
	observed, _, _ := unstructured.NestedInt64(release.Object, "status", "observedGeneration")
	ready := releaseCondition(release, "Ready")
	if _, err := s.target(release); err != nil {
		if ready != "False" {
			s.note("helm: %s: %v", name, err)
			s.helmSays(name, "False", false)
		}
		s.retry(name)
		return
	}
	givesUp, failing := s.failing[name]
	failing = failing || valueOf(release, "quality") == int64(fails)
	switch {
	case failing && (ready != "False" || observed != release.GetGeneration()):
		s.note("helm: %s fails", name)
		s.helmSays(name, "False", givesUp || valueOf(release, "quality") == int64(fails))
	case failing:
	case ready == "True" && observed == release.GetGeneration():
	case ready != "Unknown" && s.chance(30):
		s.helmSays(name, "Unknown", false)
	default:
		s.install(release)
		if s.wasReady[release.GetUID()] == nil {
			s.after(helmInterval, func() { s.helmAgain(name, release.GetUID()) })
			s.wasReady[release.GetUID()] = map[int64]bool{}
		}
		s.wasReady[release.GetUID()][valueOf(release, "value")] = true
		s.helmSays(name, "True", false)
	}
}

// helmInterval is how often helm-controller looks at a release that nobody has
// changed.
const helmInterval = 30 * time.Second

// helmAgain has a release that is Ready installed again where another object has
// installed it since: helm-controller does not find its own release then.
func (s *simulation) helmAgain(name string, uid types.UID) {
	release := s.cluster.release(name)
	if release == nil || release.GetUID() != uid || release.GetDeletionTimestamp() != nil {
		return
	}
	s.after(helmInterval, func() { s.helmAgain(name, uid) })
	if _, err := s.target(release); err != nil && !isSuspended(release) {
		delete(s.looked, name)
		s.helm(name)
		return
	}
	if !isSuspended(release) && releaseCondition(release, "Ready") == "True" && s.installedBy[helmOf(release)] != uid {
		s.note("helm: installs %s as %s has it", helmOf(release), name)
		s.install(release)
	}
}

func (s *simulation) install(release *unstructured.Unstructured) {
	helm := helmOf(release)
	s.installed[helm], s.installedBy[helm] = valueOf(release, "value"), release.GetUID()
}

// uninstall ends a release that is being deleted: a suspended one leaves what it
// has installed.
func (s *simulation) uninstall(release *unstructured.Unstructured) {
	helm := helmOf(release)
	uninstalls := !isSuspended(release) && slices.Contains(release.GetFinalizers(), helmFinalizer)
	if uninstalls {
		skips, err := s.target(release)
		if err != nil && !skips {
			s.note("helm: cannot uninstall %s: %v", helm, err)
			s.people.covered.saw(uninstallWaits)
			s.retry(release.GetName())
			return
		}
		if uninstalls = !skips; skips {
			s.judgeSkip(release)
		}
	}
	if _, is := s.installed[helm]; is && uninstalls {
		s.judgeUninstall(release)
		delete(s.installed, helm)
		s.note("helm: uninstalls %s", helm)
	} else if isSuspended(release) && !s.evidence.abandoned[release.GetUID()] {
		s.evidence.left[helm]++
	}
	s.cluster.changeRelease(release.GetName(), func(r *unstructured.Unstructured) { r.SetFinalizers(nil) })
}

// helmSays writes the status of a release.
func (s *simulation) helmSays(name, ready string, stalled bool) {
	s.cluster.changeRelease(name, func(r *unstructured.Unstructured) {
		generation := r.GetGeneration()
		reason := map[string]string{"True": "UpgradeSucceeded", "False": "UpgradeFailed", "Unknown": "Progressing"}[ready]
		conditions := []any{map[string]any{"type": "Ready", "status": ready, "reason": reason, "message": "as it is", "observedGeneration": generation}}
		status := map[string]any{"conditions": conditions, "observedGeneration": generation}
		if ready == "Unknown" {
			status["conditions"] = append(
				conditions,
				map[string]any{"type": "Reconciling", "status": "True", "reason": "Progressing", "message": "Running 'upgrade' action", "observedGeneration": generation},
			)
			before, _, _ := unstructured.NestedInt64(r.Object, "status", "observedGeneration")
			status["observedGeneration"] = before
		}
		if stalled {
			status["conditions"] = append(
				conditions,
				map[string]any{"type": "Stalled", "status": "True", "reason": "RetriesExceeded", "message": "gave up", "observedGeneration": generation},
			)
		}
		r.Object["status"] = status
	})
}

func releaseCondition(release *unstructured.Unstructured, kind string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(release.Object, "status", "conditions")
	conditions, _ := value.([]any)
	for _, item := range conditions {
		if fields, _ := item.(map[string]any); fields["type"] == kind {
			status, _ := fields["status"].(string)
			return status
		}
	}
	return ""
}

// isReady tells whether helm-controller has a release installed as it is.
func isReady(release *unstructured.Unstructured) bool {
	observed, _, _ := unstructured.NestedInt64(release.Object, "status", "observedGeneration")
	return observed == release.GetGeneration() && releaseCondition(release, "Ready") == "True"
}

// heal ends what keeps a release from being installed; helm-controller notices.
func (s *simulation) heal(name string) {
	delete(s.failing, name)
	delete(s.looked, name)
	s.after(s.between(time.Millisecond, 5*time.Second), func() { s.helm(name) })
}

// push has source-controller fetch the head of a repository, in time.
func (s *simulation) push(repository string) {
	s.after(s.between(50*time.Millisecond, 4*time.Second), func() { s.pull(repository) })
}

// pull is one look of source-controller at a source.
func (s *simulation) pull(repository string) {
	revision := s.repositories[repository].revision()
	was := s.cluster.source(repository)
	if was == nil || s.unready[repository] {
		return
	}
	if was.seen.Revision == revision && was.seen.ObservedGeneration == was.seen.Generation && was.seen.Ready && was.seen.Digest != "" {
		return
	}
	s.changeSource(repository, func(is *source) {
		is.seen.Revision, is.seen.Digest, is.seen.URL = revision, "sha256:"+revision, "http://source/"+revision
		is.seen.ObservedGeneration, is.seen.ArtifactGeneration = is.seen.Generation, is.seen.Generation
		is.seen.Ready, is.seen.Message = true, ""
	})
	s.note("source: %s has %s", repository, revision)
}

func (s *simulation) changeSource(name string, do func(*source)) {
	is := *s.cluster.source(name)
	do(&is)
	is.ResourceVersion = s.cluster.next()
	is.Generation = is.seen.Generation
	s.cluster.put(kindSource, name, &is)
}
