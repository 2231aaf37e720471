// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/terminal"
)

// Why returns why a layer is not deployed as lines that fit the screen.
func Why(screen terminal.Screen, w why.Answer, now time.Time) string {
	var text strings.Builder
	Node{Spans: heading(w)}.draw(screen, &text, "", "")
	say := func(spans ...Span) { Node{Spans: spans}.draw(screen, &text, "  ", "  ") }
	deployed := w.Deployed()
	if !deployed {
		sayEnd(w, now, say)
	}
	for _, note := range w.Notes {
		say(Span{"note: " + note, terminal.Plain})
	}
	if text := affected(w.Affects); text != "" {
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
func sayEnd(w why.Answer, now time.Time, say func(...Span)) {
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
		times = append(times, "for "+duration.HumanDuration(snapshot.Age(since, now)))
	}
	if last.Count > 1 {
		times = append(times, fmt.Sprintf("%d events", last.Count))
	}
	if until != "" {
		left := "which has passed"
		if at := snapshot.Moment(until); at.After(now) {
			left = "in " + duration.HumanDuration(at.Sub(now))
		}
		times = append(times, fmt.Sprintf("until %s (%s)", until, left))
	}
	if len(times) > 0 {
		say(Span{strings.Join(times, ", "), terminal.Dim})
	}
}

// affected counts what is affected; empty where nothing is.
func affected(a why.Affected) string {
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

// heading returns the chain in one line.
func heading(w why.Answer) []Span {
	if w.Deployed() {
		return []Span{{w.Layer + " is deployed", terminal.Good}}
	}
	return []Span{{w.Path(), terminal.Strong}, {w.End().Reason, terminal.Bad}}
}
