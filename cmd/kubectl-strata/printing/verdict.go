// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/verdict"
	"github.com/strata-project/strata/internal/terminal"
)

// mostCauses is how many causes are written out.
const mostCauses = 10

// Verdict returns how everything stands as lines that fit the screen. program is how the
// plug-in is called.
func Verdict(screen terminal.Screen, v verdict.Verdict, now time.Time, program string) string {
	var text strings.Builder
	style := terminal.Good
	switch v.State {
	case verdict.Failed:
		style = terminal.Bad
	case verdict.Waiting, verdict.Moving, verdict.Unknown:
		style = terminal.Strong
	}
	Node{Spans: []Span{{v.Sentence, style}}}.draw(screen, &text, "", "")
	say := func(spans ...Span) { Node{Spans: spans}.draw(screen, &text, "  ", "  ") }
	for i, cause := range v.Causes {
		if i == mostCauses {
			say(Span{fmt.Sprintf("and %s: %s get", count(len(v.Causes)-mostCauses, "more cause"), program), terminal.Dim})
			break
		}
		sayCause(cause, now, program, say)
	}
	return text.String()
}

// sayCause tells what is known of one cause.
func sayCause(cause verdict.Cause, now time.Time, program string, say func(...Span)) {
	name, command := cause.Layer, program+" why "+cause.Layer
	if name == "" {
		name, command = "cluster "+cause.Cluster, program+" clusters "+cause.Cluster+" -o wide"
	} else if cause.Cluster != "" {
		name += " on " + cause.Cluster
	}
	style := terminal.Bad
	if cause.State == verdict.Moving {
		style = terminal.Plain
	}
	spans := []Span{{name, terminal.Strong}, {cause.Reason, style}}
	if cause.Object != "" {
		spans = append(spans, Span{cause.Object, terminal.Plain})
	}
	var notes []string
	if cause.Since != "" {
		notes = append(notes, "for "+duration.HumanDuration(snapshot.Age(cause.Since, now)))
	}
	if cause.Until != "" {
		notes = append(notes, "until "+cause.Until)
	}
	if cause.Waits > 0 {
		notes = append(notes, count(cause.Waits, "layer")+" behind it")
	}
	if len(notes) > 0 {
		spans = append(spans, Span{strings.Join(notes, ", "), terminal.Dim})
	}
	say(append(spans, Span{command, terminal.Dim})...)
}
