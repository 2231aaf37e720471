// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

var errStillThere = errors.New("it is still there")

// contains tells whether a text contains all of the words.
func contains(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// rewrite commits files in one commit, where a file without content is removed,
// and waits until source-controller has fetched that.
func (f *fixture) rewrite(files map[string]string) string {
	f.Helper()
	return f.fetched(f.commitRewrite(files))
}

// commitRewrite commits files in one commit; a file without content is removed.
func (f *fixture) commitRewrite(files map[string]string) string {
	f.Helper()
	commit, err := f.repo.Edit("rewrite", func(dir string) error {
		for name, content := range files {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if content == "" {
				if err := os.Remove(path); err != nil {
					return err
				}
				continue
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				return err
			}
		}
		return nil
	})
	f.must(err)
	return commit
}

// orphanGrace sets the grace of a layer.
func orphanGrace(grace time.Duration) func(*v1alpha1.AddonsLayer) {
	return func(layer *v1alpha1.AddonsLayer) { layer.Spec.OrphanGrace = &metav1.Duration{Duration: grace} }
}

// namedRelease returns the manifest of configMapRelease for a Helm release of
// another name.
func (f *fixture) namedRelease(name, helmName, value string) string {
	return strings.Replace(f.configMapRelease(name, value), "  interval: 1h\n", "  interval: 1h\n  releaseName: "+helmName+"\n", 1)
}

// helmRevision is one revision of a Helm release, as Helm stores it.
type helmRevision struct {
	version int
	status  string
	// uid is that of the Secret that holds it.
	uid types.UID
}

// helmHistory returns the revisions that Helm has stored of a release of the
// fixture's namespace, oldest first; none where it is not installed.
func (f *fixture) helmHistory(helmName string) []helmRevision {
	f.Helper()
	list := &corev1.SecretList{}
	f.must(stack.client.List(f.ctx, list, client.InNamespace(f.prefix), client.MatchingLabels{"owner": "helm", "name": helmName}))
	history := make([]helmRevision, 0, len(list.Items))
	for i := range list.Items {
		labels := list.Items[i].Labels
		version, err := strconv.Atoi(labels["version"])
		f.must(err)
		history = append(history, helmRevision{version: version, status: labels["status"], uid: list.Items[i].UID})
	}
	slices.SortFunc(history, func(a, b helmRevision) int { return a.version - b.version })
	return history
}

// resource returns what a layer's status says of a HelmRelease of the
// fixture's namespace; "" where it says nothing.
func (f *fixture) resource(layer, release string) string {
	f.Helper()
	for _, resource := range f.get(layer).Status.Resources {
		if resource.Namespace == f.prefix && resource.Name == release && resource.Kind == "helmreleases.helm.toolkit.fluxcd.io" {
			return resource.Status
		}
	}
	return ""
}

// told waits for an event about a layer with a reason and all of the words.
func (f *fixture) told(layer, reason string, words ...string) {
	f.Helper()
	f.eventually(fmt.Sprintf("an event %s %q about layer %s", reason, words, layer), func() error {
		list := &eventsv1.EventList{}
		f.must(stack.client.List(f.ctx, list))
		var notes []string
		for i := range list.Items {
			event := &list.Items[i]
			if event.Regarding.Name != f.name(layer) || event.Reason != reason {
				continue
			}
			if contains(event.Note, words...) {
				return nil
			}
			notes = append(notes, event.Note)
		}
		return fmt.Errorf("those with the reason say %q", notes)
	})
}

// happening is one event of a watch, at the moment at which the test saw it.
type happening struct {
	at     time.Time
	event  watch.EventType
	object client.Object
}

// chronicle remembers everything that happens to objects of some kinds in the
// fixture's namespace, so that nothing passes between two looks.
type chronicle struct {
	*fixture
	mu   sync.Mutex
	seen map[string][]happening
}

// chronicle begins to watch, until the test ends.
func (f *fixture) chronicle(lists ...client.ObjectList) *chronicle {
	f.Helper()
	c := &chronicle{fixture: f, seen: map[string][]happening{}}
	ctx, cancel := context.WithCancel(f.ctx)
	var following sync.WaitGroup
	for _, list := range lists {
		watching, err := stack.client.Watch(ctx, list, client.InNamespace(f.prefix))
		f.must(err)
		following.Go(func() { c.follow(watching) })
	}
	f.Cleanup(func() {
		cancel()
		following.Wait()
	})
	return c
}

func (c *chronicle) follow(watching watch.Interface) {
	defer watching.Stop()
	for event := range watching.ResultChan() {
		at := time.Now()
		object, ok := event.Object.(client.Object)
		if !ok {
			continue
		}
		gvk, err := stack.client.GroupVersionKindFor(object)
		if err != nil {
			continue
		}
		c.mu.Lock()
		key := gvk.Kind + " " + object.GetName()
		c.seen[key] = append(c.seen[key], happening{at: at, event: event.Type, object: object})
		c.mu.Unlock()
	}
}

// of returns what has happened to an object so far.
func (c *chronicle) of(kind, name string) []happening {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen[kind+" "+name])
}

// count tells how often an object has seen an event.
func (c *chronicle) count(kind, name string, event watch.EventType) int {
	count := 0
	for _, h := range c.of(kind, name) {
		if h.event == event {
			count++
		}
	}
	return count
}

// when waits for the first event of an object, not before a moment, that
// matches.
func (c *chronicle) when(kind, name, what string, since time.Time, matches func(happening) bool) happening {
	c.Helper()
	var found happening
	c.eventually(fmt.Sprintf("%s %s %s", kind, name, what), func() error {
		seen := c.of(kind, name)
		for _, h := range seen {
			if !h.at.Before(since) && matches(h) {
				found = h
				return nil
			}
		}
		return fmt.Errorf("none of %d events shows it", len(seen))
	})
	return found
}

// marked waits until an object is marked as an orphan.
func (c *chronicle) marked(kind, name string, since time.Time) happening {
	c.Helper()
	return c.when(kind, name, "is marked as orphaned", since, func(h happening) bool {
		return h.object.GetLabels()[v1alpha1.OrphanedLabel] != ""
	})
}

// deleted waits until somebody deletes an object.
func (c *chronicle) deleted(kind, name string, since time.Time) happening {
	c.Helper()
	return c.when(kind, name, "is deleted", since, func(h happening) bool {
		return h.event == watch.Deleted || !h.object.GetDeletionTimestamp().IsZero()
	})
}

// neverDeleted fails the test where an object was deleted meanwhile.
func (c *chronicle) neverDeleted(kind, name string) {
	c.Helper()
	seen := c.of(kind, name)
	if len(seen) == 0 {
		c.Errorf("%s %s was never seen", kind, name)
	}
	for _, h := range seen {
		if h.event == watch.Deleted || !h.object.GetDeletionTimestamp().IsZero() {
			c.Errorf("%s %s was deleted", kind, name)
			return
		}
	}
}

// neverUninstalled fails the test where Helm has uninstalled a release, or
// begun to, or forgotten its first revision. What the chart made stays too.
func (c *chronicle) neverUninstalled(helmName string, first helmRevision) {
	c.Helper()
	secret := fmt.Sprintf("sh.helm.release.v1.%s.v%d", helmName, first.version)
	c.neverDeleted("Secret", secret)
	c.neverDeleted("ConfigMap", helmName)
	history := c.helmHistory(helmName)
	if len(history) == 0 || history[0].uid != first.uid {
		c.Errorf("Helm's history of %s began with %v and begins with %v", helmName, first, history)
	}
	for version := first.version; version <= first.version+len(history); version++ {
		for _, h := range c.of("Secret", fmt.Sprintf("sh.helm.release.v1.%s.v%d", helmName, version)) {
			if status := h.object.GetLabels()["status"]; strings.HasPrefix(status, "uninstall") {
				c.Errorf("Helm release %s was %s at revision %d", helmName, status, version)
			}
		}
	}
}

// helmChronicle remembers releases, Helm's own storage, and what the chart of
// configMapRelease makes.
func (f *fixture) helmChronicle() *chronicle {
	f.Helper()
	return f.chronicle(&helmv2.HelmReleaseList{}, &corev1.SecretList{}, &corev1.ConfigMapList{})
}
