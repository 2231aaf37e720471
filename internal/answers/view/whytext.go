// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/terminal"
)

// Conclude adds what to try about the end of the chain, and on which cluster there
// is more to see. program is how the plug-in is called.
func (w Why) Conclude(s *snapshot.Snapshot, program string) Why {
	end := w.end()
	if w.State == string(v1alpha1.StateDeployed) && !w.Blocked {
		return w
	}
	for i := len(w.Chain) - 1; i > 0 && end.Cluster == ""; i-- {
		if w.Chain[i].Kind != "HelmRelease" {
			continue
		}
		if release := releaseNamed(s, w.Chain[i]); release != nil && IsElsewhere(release) {
			cluster := elsewhere(release)
			w.Notes = append(w.Notes, "what Helm has made is on "+cluster+", which is not asked: ask it with the kubectl context that you have for it")
			if target := strings.Contains(cluster, "/"); target {
				end.Cluster = cluster
			}
		}
		break
	}
	w.Try = append(w.Try, Advice(program, w.Root, end)...)
	return w
}

// end returns what the chain ends with, but for an event of it.
func (w Why) end() Link {
	last := w.Chain[len(w.Chain)-1]
	if last.Kind == "Event" && len(w.Chain) > 1 {
		return w.Chain[len(w.Chain)-2]
	}
	return last
}

// between are links that the first line leaves out: each is known by what is behind
// it.
var between = map[string]bool{"Deployment": true, "StatefulSet": true, "DaemonSet": true, "Job": true, "ReplicaSet": true}

// heading returns the chain in one line.
func (w Why) heading() []Span {
	if w.State == string(v1alpha1.StateDeployed) && !w.Blocked {
		return []Span{{w.Layer + " is deployed", terminal.Good}}
	}
	end := w.end()
	var names []string
	for _, link := range w.Chain {
		if link.Kind == "Event" || between[link.Kind] && link.what() != end.what() {
			continue
		}
		names = append(names, link.what())
	}
	return []Span{{strings.Join(names, " <- "), terminal.Strong}, {end.Reason, terminal.Bad}}
}

// Draw returns the answer as lines that fit the screen.
func (w Why) Draw(screen terminal.Screen, now time.Time) string {
	var text strings.Builder
	Node{Spans: w.heading()}.draw(screen, &text, "", "")
	say := func(spans ...Span) { Node{Spans: spans}.draw(screen, &text, "  ", "  ") }
	deployed := w.State == string(v1alpha1.StateDeployed) && !w.Blocked
	if !deployed {
		w.sayEnd(now, say)
	}
	for _, note := range w.Notes {
		say(Span{"note: " + note, terminal.Plain})
	}
	if text := w.Affects.String(); text != "" {
		verb := "affects: "
		if deployed {
			verb = "others rely on it: "
		} else if w.Root != w.Layer {
			verb = "because of " + w.Root + ", this waits: "
		}
		say(Span{verb + text, terminal.Plain})
	}
	for _, command := range w.Try {
		say(Span{"try:", terminal.Dim}, Span{command, terminal.Plain})
	}
	return text.String()
}

// sayEnd tells what is said of the end of the chain, since when and until when.
func (w Why) sayEnd(now time.Time, say func(...Span)) {
	last, until := w.Chain[len(w.Chain)-1], ""
	since := last.Since
	for _, link := range w.Chain {
		if link.Until != "" {
			until = link.Until
		}
	}
	for i := len(w.Chain) - 1; i >= 0 && since == ""; i-- {
		since = w.Chain[i].Since
	}
	if last.Message != "" {
		say(Span{last.Message, terminal.Plain})
	}
	for _, link := range w.Chain[:len(w.Chain)-1] {
		if link.Kind == "HelmRelease" && link.Message != "" {
			say(Span{"Helm says: " + link.Message, terminal.Dim})
		}
	}
	var times []string
	if since != "" {
		times = append(times, "for "+duration.HumanDuration(Age(since, now)))
	}
	if last.Count > 1 {
		times = append(times, fmt.Sprintf("%d events", last.Count))
	}
	if until != "" {
		left := "which has passed"
		if at := moment(until); at.After(now) {
			left = "in " + duration.HumanDuration(at.Sub(now))
		}
		times = append(times, fmt.Sprintf("until %s (%s)", until, left))
	}
	if len(times) > 0 {
		say(Span{strings.Join(times, ", "), terminal.Dim})
	}
}

// String counts what is affected; empty where nothing is.
func (a Affected) String() string {
	if len(a.Layers) == 0 {
		return ""
	}
	const most = 5
	names := a.Layers
	more := ""
	if len(names) > most {
		names, more = names[:most], ", ..."
	}
	where := "on this cluster"
	if len(a.Clusters) > 1 || a.Clusters[0] != "" {
		where = "on " + count(len(a.Clusters), "cluster")
	}
	return fmt.Sprintf("%s (%s%s), %s, %s", count(len(a.Layers), "layer"), strings.Join(names, ", "), more, count(a.Releases, "release"), where)
}

// count says how many there are of something.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
