// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/api/v1alpha1"
)

// wrong says what is not as the last commit says, which has a revision.
func (w *world) wrong(f facts, revision string) []string {
	var problems []string
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, l := range w.Layers {
		found := f.Layers[l.Name]
		status := found.Status
		if status.State != v1alpha1.StateDeployed || status.ObservedGeneration != found.Generation || status.Version != l.version() || status.Revision != revision {
			report(
				"layer %s is %s at version %q of revision %q, want %s of %s: %s",
				l.Name,
				status.State,
				status.Version,
				status.Revision,
				l.version(),
				revision,
				readyMessage(&found),
			)
		}
		if s := f.Settings[l.settings()]; s.Labels[v1alpha1.LayerLabel] != l.Name || s.Labels[v1alpha1.OrphanedLabel] != "" || s.Data["value"] != l.Settings {
			report("ConfigMap %s has labels %v and data %v, want layer %s and %s", l.settings(), s.Labels, s.Data, l.Name, l.Settings)
		}
		for name, want := range l.Releases {
			if problem := wrongRelease(l.Name, name, want, f); problem != "" {
				report("release %s: %s", name, problem)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.unlisted(f))) {
		report("%s is left although no layer lists it", name)
	}
	slices.Sort(problems)
	return problems
}

// unlisted returns what is in the cluster of releases that no layer lists.
func (w *world) unlisted(f facts) map[string]bool {
	found := map[string]bool{}
	for name := range f.Releases {
		found["HelmRelease "+name] = w.home(name) == nil
	}
	for name := range f.Helm {
		found["Helm release "+name] = w.home(name) == nil
	}
	for name := range f.Made {
		found["object "+name] = w.home(name) == nil
	}
	for name := range f.Settings {
		found["ConfigMap "+name] = !slices.ContainsFunc(w.Layers, func(l *layer) bool { return l.settings() == name })
	}
	maps.DeleteFunc(found, func(_ string, left bool) bool { return !left })
	return found
}

// wrongRelease says what is wrong with a release that a layer lists; "" where
// nothing is.
func wrongRelease(layer, name string, want content, f facts) string {
	release, found := f.Releases[name]
	revisions := f.Helm[name]
	switch {
	case !found:
		return "it does not exist"
	case !release.DeletionTimestamp.IsZero():
		return "it is being deleted"
	case release.Labels[v1alpha1.LayerLabel] != layer || release.Labels[v1alpha1.OrphanedLabel] != "":
		return fmt.Sprintf("its labels are %v, want layer %s", release.Labels, layer)
	case release.Spec.Suspend:
		return "it is suspended"
	case contentOfRelease(&release) != want:
		return fmt.Sprintf("it holds %v, want %v", contentOfRelease(&release), want)
	case release.Status.ObservedGeneration != release.Generation || !meta.IsStatusConditionTrue(release.Status.Conditions, "Ready"):
		return fmt.Sprintf("it is not Ready: %v", release.Status.Conditions)
	case len(revisions) == 0:
		return "Helm has no revision of it"
	case f.Made[name] != want.Value:
		return fmt.Sprintf("what the chart made holds %q, want %q", f.Made[name], want.Value)
	}
	if last := revisions[len(revisions)-1]; last.Status != "deployed" || last.Content != want {
		return fmt.Sprintf("Helm's last revision is %d, %s, with %v, want %v", last.Number, last.Status, last.Content, want)
	}
	return ""
}

func contentOfRelease(release *helmv2.HelmRelease) content {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(release)
	if err != nil {
		return content{Value: err.Error()}
	}
	return contentOf(&unstructured.Unstructured{Object: object})
}

func readyMessage(layer *v1alpha1.AddonsLayer) string {
	if ready := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		return ready.Message
	}
	return "it says nothing of itself"
}

// history is what the whole run has shown.
type history struct {
	facts
	seen   map[string]sight
	faults []fault
}

// lived says what went wrong on the way, although the end may be right: what
// was installed twice, uninstalled, written back and forth, or upgraded without
// a change. excused are Helm revisions too many that helm-controller made
// because it, or what it writes to, was killed in the middle.
func (w *world) lived(h history) (problems, excused []string) {
	for _, name := range slices.Sorted(maps.Keys(w.Lives)) {
		one := biography{history: h, name: name, life: w.Lives[name], listed: w.home(name) != nil}
		one.identity()
		one.generations()
		one.revisions()
		problems, excused = append(problems, one.problems...), append(excused, one.excused...)
	}
	for _, l := range w.Layers {
		if s := h.seen["ConfigMap "+l.settings()]; len(s.UIDs) != 1 || !s.Deleted.IsZero() {
			problems = append(problems, fmt.Sprintf("ConfigMap %s was made %d times, or deleted", l.settings(), len(s.UIDs)))
		}
	}
	return problems, excused
}

// biography judges one release.
type biography struct {
	history
	name              string
	life              *life
	listed            bool
	problems, excused []string
}

func (b *biography) problem(format string, args ...any) {
	b.problems = append(b.problems, "release "+b.name+": "+fmt.Sprintf(format, args...))
}

// identity wants every object of the release to be the same from its first
// moment on, and to go only once the release was taken out.
func (b *biography) identity() {
	keys := []string{"HelmRelease " + b.name, "ConfigMap " + b.name, "Deployment " + b.name}
	for key := range b.seen {
		if strings.HasPrefix(key, "Secret sh.helm.release.v1."+b.name+".v") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		s := b.seen[key]
		if len(s.UIDs) > 1 {
			b.problem("%s was made %d times", key, len(s.UIDs))
		}
		if !s.Deleted.IsZero() && (b.listed || s.Deleted.Before(b.life.Removed)) {
			b.problem("%s was deleted although a layer listed it", key)
		}
		if i := slices.IndexFunc(s.Statuses, func(status string) bool { return strings.HasPrefix(status, "uninstall") }); i >= 0 && b.listed {
			b.problem("%s was %s although a layer lists it", key, s.Statuses[i])
		}
	}
	if b.listed && len(b.seen["HelmRelease "+b.name].UIDs) == 0 {
		b.problem("it was never seen")
	}
}

// index returns which of the release's contents one is; -1 where no commit has
// given it.
func (b *biography) index(c content) int { return slices.Index(b.life.Contents, c) }

// generations wants each content to be written once, in the order of the
// commits, and nothing else.
func (b *biography) generations() {
	last, before := -1, int64(0)
	contents := b.seen["HelmRelease "+b.name].Contents
	for _, generation := range slices.Sorted(maps.Keys(contents)) {
		at := b.index(contents[generation])
		switch {
		case at < 0:
			b.problem("generation %d holds %v, which no commit says", generation, contents[generation])
		case at < last:
			b.problem("generation %d goes back from %v to %v", generation, b.life.Contents[last], contents[generation])
		case at == last:
			b.problem("generations %d and %d hold the same", before, generation)
		}
		last, before = max(last, at), generation
	}
	if int(before) > len(b.life.Contents) {
		b.problem("it was written %d times for %d contents", before, len(b.life.Contents))
	}
}

// revisions wants Helm to have installed once, and upgraded once for each
// content that it was given, in the order of the commits.
func (b *biography) revisions() {
	last := -1
	for i, r := range b.Helm[b.name] {
		at := b.index(r.Content)
		switch {
		case r.Number != i+1:
			b.problem("revision %d of Helm is where %d should be", r.Number, i+1)
		case !r.First.Equal(b.Helm[b.name][0].First):
			b.problem("revision %d of Helm was installed anew at %s", r.Number, clock(r.First))
		case at < 0 && b.halfway(i):
			b.excused = append(
				b.excused,
				fmt.Sprintf("release %s: revision %d has the new values with the chart of before, because helm-controller had yet to see that its chart was to change",
					b.name, r.Number),
			)
		case at < 0:
			b.problem("revision %d of Helm holds %v, which no commit says", r.Number, r.Content)
		case at < last:
			b.problem("revision %d of Helm goes back to %v", r.Number, r.Content)
		case at == last:
			b.repeated(b.Helm[b.name][i-1], r)
		}
		if r.Status == "failed" || strings.HasPrefix(r.Status, "pending") {
			b.unfinished(i)
		}
		last = max(last, at)
	}
}

// halfway tells whether a revision has the values of a content with the chart of the
// one before, and is followed by one that has both: helm-controller reads a HelmChart
// that it has just written from its cache, which may be as before for a moment.
func (b *biography) halfway(i int) bool {
	revisions := b.Helm[b.name]
	if i+1 >= len(revisions) {
		return false
	}
	at := b.index(revisions[i+1].Content)
	if at < 1 {
		return false
	}
	mixed := b.life.Contents[at-1]
	mixed.Value = b.life.Contents[at].Value
	return revisions[i].Content == mixed && mixed.Chart == b.life.Contents[at].Chart
}

// repeated judges a revision with the content of the one before.
func (b *biography) repeated(before, after revision) {
	if f, found := b.disturbance(before.Made, after.Made); found {
		b.excused = append(b.excused, fmt.Sprintf("release %s: revision %d (%s) was made again as %d, because %s was killed at %s",
			b.name, before.Number, before.Status, after.Number, f.Victim, clock(f.Begin)))
		return
	}
	b.problem("revision %d of Helm, made at %s, holds what revision %d (%s), made at %s, holds, and nothing that Helm needs was killed between",
		after.Number, clock(after.Made), before.Number, before.Status, clock(before.Made))
}

// unfinished judges a revision that has failed: an action was interrupted.
func (b *biography) unfinished(i int) {
	r := b.Helm[b.name][i]
	end := r.Made.Add(2 * time.Minute)
	if i+1 < len(b.Helm[b.name]) {
		end = b.Helm[b.name][i+1].Made
	}
	if _, found := b.disturbance(r.Made, end); !found {
		b.problem("revision %d of Helm, made at %s, is %s, and nothing that Helm needs was killed until %s", r.Number, clock(r.Made), r.Status, clock(end))
	}
}

// disturbance returns a fault of what Helm needs that overlaps a period.
func (b *biography) disturbance(from, to time.Time) (fault, bool) {
	const slack = time.Second // between the clocks of Helm's record and of the faults
	i := slices.IndexFunc(b.faults, func(f fault) bool {
		needed := f.Victim == helmProgram || f.Victim == apiProgram || f.Victim == etcdProgram
		return needed && f.Begin.Before(to.Add(slack)) && f.End.After(from.Add(-slack))
	})
	if i < 0 {
		return fault{}, false
	}
	return b.faults[i], true
}

// clock shows a moment as the log does.
func clock(moment time.Time) string { return moment.UTC().Format("15:04:05.000") }

// counts says how often each word is there, the most frequent first.
func counts(words []string) string {
	number := map[string]int{}
	for _, word := range words {
		number[word]++
	}
	var parts []string
	for _, word := range slices.SortedFunc(maps.Keys(number), func(a, b string) int {
		return cmp.Or(cmp.Compare(number[b], number[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%s %d", word, number[word]))
	}
	return strings.Join(parts, ", ")
}
