// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/strata-project/strata/internal/answers/drift"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/printable"
)

const (
	// mostActions is how many lines of a plan are shown, in their order, and how many layers
	// of a comparison.
	mostActions = 100
	// mostChangeLines is how many lines are shown of what changes of objects, of all together.
	mostChangeLines = 600
	// longestLine is how many runes of such a line are sent.
	longestLine = 400
)

// previewView is what a plan, or a comparison, comes to.
type previewView struct {
	// Of is what was asked for, as the page asks for it, and Again tells it from an earlier
	// one.
	Of    string `json:"of"`
	Again string `json:"again,omitempty"`
	Only  string `json:"only,omitempty"`
	Done  bool   `json:"done"`
	// Says how it gets on while it is not done.
	Says  string `json:"says,omitempty"`
	Error string `json:"error,omitempty"`
	// At is when it was made, as RFC 3339, and Heading says what of.
	At      string `json:"at,omitempty"`
	Heading string `json:"heading,omitempty"`
	// Verdict says what it comes to in one sentence.
	Verdict string          `json:"verdict,omitempty"`
	Actions []actionView    `json:"actions,omitempty"`
	Blocked []preview.Layer `json:"blocked,omitempty"`
	// Layers are those that were compared, where that was asked for.
	Layers []driftView `json:"layers,omitempty"`
	Notes  []string    `json:"notes,omitempty"`
	// Left says what is left out.
	Left    []string `json:"left,omitempty"`
	Command string   `json:"command"`
}

// actionView is one line of a plan, with what changes of each object.
type actionView struct {
	Wave    int        `json:"wave"`
	Layer   string     `json:"layer"`
	Version string     `json:"version,omitempty"`
	Action  string     `json:"action"`
	Object  string     `json:"object"`
	Charts  string     `json:"charts,omitempty"`
	File    string     `json:"file,omitempty"`
	Remark  string     `json:"remark,omitempty"`
	Lines   []lineView `json:"lines,omitempty"`
}

// lineView is a line of a change: + comes, - goes, ~ changes, and nothing says more of it.
type lineView struct {
	Sign string `json:"sign,omitempty"`
	Text string `json:"text"`
}

// driftView is what of a layer is not as it is wanted.
type driftView struct {
	Layer   string     `json:"layer"`
	Objects int        `json:"objects"`
	Lines   []lineView `json:"lines,omitempty"`
	Beside  []string   `json:"beside,omitempty"`
	Unknown []string   `json:"unknown,omitempty"`
}

// choices are what may be planned.
type choices struct {
	// Folder of the git repository; empty where there is none.
	Folder    string                `json:"folder,omitempty"`
	Revisions []repository.Revision `json:"revisions"`
	Error     string                `json:"error,omitempty"`
}

var (
	// revisions are names of branches, tags and commits, which become part of a command.
	revisions = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._/@^~+-]{0,199}$`)
	// named are names of objects.
	named = regexp.MustCompile(`^[0-9A-Za-z]([-0-9A-Za-z.]{0,251}[0-9A-Za-z])?$`)
	// counted are what pages tell requests apart by, and IDs of deployments.
	counted = regexp.MustCompile(`^[0-9A-Za-z.-]{0,32}$`)
)

// requestOf reads what is to be planned, such as git:main, platform:edge@1.1.0 or drift.
func requestOf(of, only, again string) (live.Request, error) {
	kind, rest, has := strings.Cut(of, ":")
	r := live.Request{Of: live.Of(kind), Only: only, Again: again}
	known := !has
	switch r.Of {
	case live.OfSources, live.OfFolder, live.OfDrift:
	case live.OfGit:
		r.Revision, known = rest, revisions.MatchString(rest)
	case live.OfPlatform:
		r.Platform, r.Version, _ = strings.Cut(rest, "@")
		known = named.MatchString(r.Platform) && planned.MatchString(r.Version)
	case live.OfRollback:
		r.Layer, r.To, _ = strings.Cut(rest, "@")
		known = named.MatchString(r.Layer) && r.To != "" && counted.MatchString(r.To)
	case live.OfResume:
		r.Layer, known = rest, named.MatchString(rest)
	default:
		known = false
	}
	if !known || only != "" && !named.MatchString(only) || !counted.MatchString(again) {
		return r, errors.New("what is to be planned cannot be understood: write it as sources, git:main, platform:edge@1.1.0 or drift")
	}
	return r, nil
}

// commandOf returns what shows the same on a terminal.
func commandOf(o Options, r live.Request) string {
	words := []string{"plan"}
	switch r.Of {
	case live.OfGit:
		words = append(words, "--from-git", r.Revision)
	case live.OfFolder:
		words = append(words, "--from-dir", ".")
	case live.OfPlatform:
		words = []string{"platform", "plan", r.Platform}
		if r.Version != "" {
			words = append(words, "--version", r.Version)
		}
	case live.OfRollback:
		words = []string{"rollback", r.Layer, "--to", r.To, "--plan"}
	case live.OfResume:
		words = []string{"resume", r.Layer}
	case live.OfDrift:
		words = []string{"diff"}
	case live.OfSources:
	}
	switch {
	case r.Only != "":
		words = append(words, r.Only)
	case o.Cluster.Wanted() != nil && r.Layer == "" && r.Platform == "":
		words = append(words, "-l", o.Cluster.Wanted().String())
	}
	return printable.Command(o.Program, words...)
}

// choicesOf returns what may be planned.
func choicesOf(o Options) choices {
	known := o.Cluster.Repository()
	offered := choices{Folder: known.Folder, Revisions: append([]repository.Revision{}, known.Revisions...)}
	for i := range offered.Revisions {
		offered.Revisions[i].Title = printable.Clip(offered.Revisions[i].Title, longestLine)
	}
	if known.Err != nil {
		offered.Error = clip(known.Err.Error())
	}
	return offered
}

func previewOf(o Options, r live.Request, q query) previewView {
	made := o.Cluster.Preview(r)
	view := previewView{Of: q.of, Again: q.again, Only: q.only, Done: made.Done, Says: clip(made.Says), Command: commandOf(o, r)}
	if !made.Done {
		return view
	}
	view.Says, view.At = "", snapshot.Stamp(made.At)
	left := mostChangeLines
	switch {
	case made.Err != nil:
		view.Error = clip(made.Err.Error())
	case made.Plan != nil:
		view.planned(made.Plan, &left)
	default:
		view.compared(made.Drift, &left)
	}
	if left < 0 {
		view.Left = append(view.Left, fmt.Sprintf("%d lines of changes", -left))
	}
	return view
}

func (v *previewView) planned(p *preview.Plan, left *int) {
	v.Heading, v.Verdict, v.Notes = clip(p.Heading(true)), p.Verdict(), clipped(p.Notes)
	for i, action := range p.Actions {
		if i == mostActions {
			v.Left = append(v.Left, fmt.Sprintf("%d actions", len(p.Actions)-i))
			break
		}
		one := actionView{
			Wave: action.Wave, Layer: action.Layer, Version: action.Version, Action: string(action.Action), Object: action.Object.String(),
			Charts: action.Versions(), File: action.File, Remark: clip(action.Remark()),
		}
		if action.HasDetails() {
			for _, change := range action.Changes {
				one.Lines = linesOf(one.Lines, change.Lines, left)
			}
		}
		v.Actions = append(v.Actions, one)
	}
	for i, layer := range p.Blocked {
		if i == mostActions {
			v.Left = append(v.Left, fmt.Sprintf("%d layers that wait, are held, refused or fail", len(p.Blocked)-i))
			break
		}
		layer.Message = clip(layer.Message)
		v.Blocked = append(v.Blocked, layer)
	}
}

func (v *previewView) compared(layers []drift.Layer, left *int) {
	v.Heading = "What is not as it is wanted"
	differ, objects := 0, 0
	for _, layer := range layers {
		if len(layer.Objects) > 0 {
			differ++
		}
		objects += len(layer.Objects)
		if len(layer.Objects)+len(layer.Beside)+len(layer.Unknown) == 0 {
			continue
		}
		if len(v.Layers) == mostActions {
			continue
		}
		one := driftView{Layer: layer.Layer, Objects: len(layer.Objects), Unknown: clipped(layer.Unknown[:min(len(layer.Unknown), mostListed)])}
		for _, beside := range layer.Beside[:min(len(layer.Beside), mostListed)] {
			one.Beside = append(one.Beside, clip(beside.String()))
		}
		for _, object := range layer.Objects {
			one.Lines = linesOf(one.Lines, object.Lines, left)
		}
		v.Layers = append(v.Layers, one)
	}
	v.Verdict = "What could be compared is as it is wanted."
	if objects > 0 {
		v.Verdict = fmt.Sprintf("Objects that are not as they are wanted: %d, of layers: %d.", objects, differ)
	}
}

// linesOf adds lines of a change, as many as are left.
func linesOf(to []lineView, lines []string, left *int) []lineView {
	for _, line := range lines {
		*left--
		if *left < 0 {
			continue
		}
		one := lineView{Text: printable.Clip(line, longestLine)}
		if line != "" && (line[0] == '+' || line[0] == '-' || line[0] == '~') {
			one.Sign, one.Text = line[:1], printable.Clip(strings.TrimPrefix(line[1:], " "), longestLine)
		}
		to = append(to, one)
	}
	return to
}
