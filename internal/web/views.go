// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/strata-project/strata/internal/printable"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/events"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/answers/tree"
	"github.com/strata-project/strata/internal/answers/verdict"
	"github.com/strata-project/strata/internal/answers/waves"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/near"
	"github.com/strata-project/strata/internal/placement"
)

const (
	// mostNodes is how many layers are drawn, however many there are.
	mostNodes = 200
	// mostCauses is how many causes stand below the verdict.
	mostCauses = 5
	// mostObjects is how many objects of one release are listed, and how many releases, claims
	// and objects of a layer.
	mostObjects = 100
	// longestText is how many runes of a message are sent.
	longestText = 4000
	// treeDepth is down to what Helm has made.
	treeDepth = 2
)

// The views that a tab may show.
const (
	viewLayers    = ""
	viewClusters  = "clusters"
	viewPlatforms = "platforms"
	viewPlan      = "plan"
)

// query says what a tab shows.
type query struct {
	view string
	// clusters chooses clusters by their labels, and from is the first row that is shown.
	clusters string
	from     int
	// platform that is shown alone, and the version that it is planned with; empty for none.
	platform, plan string
	// of is what is previewed, only the layer that is asked about, and again tells requests
	// of the same apart.
	of, only, again string
	// layer, or cluster as namespace/name, that is opened; empty for none.
	layer, cluster string
}

// planned are versions and ranges of them, such as >=1.2 <2, and now. They become part of a
// command that somebody may copy.
var planned = regexp.MustCompile(`^[0-9A-Za-z.+~^<>=!|,* -]{0,128}$`)

// queryOf reads what a tab asks for. Names that nothing can have are refused, so that what
// is kept for each query is bounded.
func queryOf(values url.Values) (query, error) {
	q := query{
		view: values.Get("view"), layer: values.Get("layer"), cluster: values.Get("cluster"), clusters: values.Get("clusters"),
		platform: values.Get("platform"), plan: values.Get("plan"), of: values.Get("of"), only: values.Get("only"), again: values.Get("again"),
	}
	if !slices.Contains([]string{viewLayers, viewClusters, viewPlatforms, viewPlan}, q.view) {
		return q, fmt.Errorf("there is no view %q", clip(q.view))
	}
	for what, name := range map[string]string{"layer": q.layer, "platform": q.platform, "cluster": q.cluster} {
		if len(name) > 253 {
			return q, fmt.Errorf("a %s has no name of %d characters", what, len(name))
		}
	}
	if !planned.MatchString(q.plan) {
		return q, errors.New("the version to plan cannot be understood: write it as 1.2.0 or >=1.2 <2")
	}
	if _, err := requestOf(q.of, q.only, q.again); q.of != "" && err != nil {
		return q, err
	}
	if _, err := labels.Parse(q.clusters); err != nil || len(q.clusters) > 1000 {
		return q, errors.New("the labels cannot be understood: write them as region=eu,stage!=test")
	}
	if text := values.Get("from"); text != "" {
		from, err := strconv.Atoi(text)
		if err != nil || from < 0 {
			return q, errors.New("the first row must be a number")
		}
		q.from = from
	}
	return q, nil
}

// layerView is what is shown of one layer.
type layerView struct {
	Name string `json:"name"`
	// Missing is true where there is no such layer, and Near are the names that may be meant.
	Missing bool          `json:"missing,omitempty"`
	Near    []string      `json:"near,omitempty"`
	Fares   verdict.State `json:"fares,omitempty"`
	Source  string        `json:"source,omitempty"`
	Path    string        `json:"path,omitempty"`
	At      string        `json:"revision,omitempty"`
	Tree    *tree.Layer   `json:"tree,omitempty"`
	// Left says what is left out of the tree, such as 20 releases.
	Left []string `json:"left,omitempty"`
	// More counts the objects of releases that are left out of the tree, by release.
	More     map[string]int `json:"more,omitempty"`
	Why      *why.Answer    `json:"why,omitempty"`
	Happened *happened      `json:"happened,omitempty"`
	// Acts are what may be done to it.
	Acts []acts.Kind `json:"acts,omitempty"`
	// Commands are what shows the same on a terminal.
	Commands []string `json:"commands,omitempty"`
}

// verdictView is the verdict with as many causes as somebody reads.
type verdictView struct {
	verdict.Verdict
	// More counts the causes that are left out.
	More int `json:"more"`
}

func verdictOf(v verdict.Verdict) verdictView {
	kept := slices.Clone(v.Causes[:min(len(v.Causes), mostCauses)])
	more := len(v.Causes) - len(kept)
	for i := range kept {
		kept[i].Message = clip(kept[i].Message)
	}
	v.Causes = kept
	return verdictView{v, more}
}

// stale says since when what is shown may be old.
type stale struct {
	Since string `json:"since"`
	Error string `json:"error"`
}

// sections returns what a tab shows, in parts that change by themselves. It reads nothing
// but what is held.
func sections(o Options, q query) map[string]any {
	s := o.Cluster.Snapshot()
	v := verdictOf(o.Cluster.Verdict(s))
	all := map[string]any{"cluster": map[string]string{"name": o.Name, "program": o.Program}, "verdict": v}
	switch q.view {
	case viewClusters:
		addClusters(all, o, s, q)
	case viewPlatforms:
		addPlatforms(all, o, s, q)
	case viewPlan:
		all["choices"] = choicesOf(o)
	default:
		graph := waves.Of(s, o.Cluster.Wanted(), mostNodes)
		all["graph"] = graph
		for name, node := range graph.Nodes {
			all["node/"+name] = node
		}
	}
	if r, err := requestOf(q.of, q.only, q.again); q.of != "" && err == nil {
		all["preview"] = previewOf(o, r, q)
	}
	if fares := worstRollout(s, o.Cluster.Wanted()); fares != verdict.Well {
		all["rollouts"] = fares
	}
	if broken, is := o.Cluster.Broken(); is {
		all["stale"] = staleOf(broken)
	}
	if q.layer != "" {
		all["layer"] = layerOf(o, s, q.layer)
	}
	if q.cluster != "" {
		all["opened"] = clusterOf(o, s, q.cluster)
	}
	return all
}

func staleOf(broken live.Break) stale {
	return stale{Since: snapshot.Stamp(broken.Since), Error: clip(broken.Err.Error())}
}

func layerOf(o Options, s *snapshot.Snapshot, name string) layerView {
	layer := s.Layer(name)
	if layer == nil {
		return layerView{Name: name, Missing: true, Near: near.Near(name, s.LayerNames())}
	}
	row := summary.Of(layer, s.Now)
	s = o.Cluster.Open(s, layer)
	made := tree.Of(s, layer, o.Cluster.Made(s, layer), treeDepth)
	answer := o.Cluster.Why(s, layer)
	view := layerView{
		Name: name, Fares: verdict.StateOf(layer), Source: row.Source, Path: row.Path, At: row.Revision, Tree: &made, Why: &answer, More: map[string]int{},
		Commands: []string{
			printable.Command(o.Program, "why", name), printable.Command(o.Program, "tree", name, "--objects"),
			printable.Command(o.Program, "events", name), printable.Command(o.Program, "history", name),
		},
	}
	all := happenedTo(o, events.SubjectsOf(s, layer), []*v1alpha1.AddonsLayer{layer}, nil, false)
	view.Happened = &all
	view.Acts = actsOf(o, layer)
	made.Releases, view.Left = cut(made.Releases, "releases", view.Left)
	made.Objects, view.Left = cut(made.Objects, "objects", view.Left)
	made.Claims, view.Left = cut(made.Claims, "claims", view.Left)
	made.Gates, view.Left = cut(made.Gates, "gates", view.Left)
	for i := range made.Releases {
		release := &made.Releases[i]
		release.Message = clip(release.Message)
		// What is not as it should be comes first, and is not left out.
		slices.SortStableFunc(release.Objects, func(a, b tree.Object) int { return worseFirst(isWell(a), isWell(b)) })
		for j := range release.Objects {
			release.Objects[j].Message = clip(release.Objects[j].Message)
		}
		if more := len(release.Objects) - mostObjects; more > 0 {
			release.Objects = release.Objects[:mostObjects]
			view.More[release.Namespace+"/"+release.Name] = more
		}
	}
	made.Message = clip(made.Message)
	for i := range answer.Chain {
		answer.Chain[i].Message = clip(answer.Chain[i].Message)
	}
	for i, note := range answer.Notes {
		answer.Notes[i] = clip(note)
	}
	return view
}

// isWell tells whether an object is as it should be, or is not looked at.
func isWell(object tree.Object) bool {
	return object.State == "" || object.State == tree.Ready || object.State == tree.NotRead
}

// cut keeps as many of a list as somebody reads, and says how many are left out.
func cut[T any](all []T, what string, left []string) ([]T, []string) {
	if more := len(all) - mostObjects; more > 0 {
		return all[:mostObjects], append(left, fmt.Sprintf("%d %s", more, what))
	}
	return all, left
}

// clip cuts a text that somebody made very long.
func clip(text string) string {
	if len(text) <= longestText {
		return text
	}
	runes := []rune(text)
	if len(runes) <= longestText {
		return text
	}
	return fmt.Sprintf("%s… and %d characters more", string(runes[:longestText]), len(runes)-longestText)
}

// mostFound is how many layers a search returns.
const mostFound = 20

// hit is a layer that was looked for.
type hit struct {
	Name    string        `json:"name"`
	Cluster string        `json:"cluster,omitempty"`
	Fares   verdict.State `json:"fares"`
}

// find returns the layers with a text in their names: those that begin with it come
// first, and where none is given, the worst.
func find(cluster Cluster, text string) []hit {
	wanted := cluster.Wanted()
	text = strings.ToLower(strings.TrimSpace(text))
	hits := []hit{}
	for _, layer := range cluster.Snapshot().Layers {
		if strings.Contains(layer.Name, text) && (wanted == nil || wanted.Matches(labels.Set(layer.Labels))) {
			hits = append(hits, hit{layer.Name, placement.ClusterName(placement.Of(layer, "")), verdict.StateOf(layer)})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		if text == "" {
			return verdict.Compare(a.Fares, b.Fares)
		}
		return cmp.Compare(strings.Index(a.Name, text), strings.Index(b.Name, text))
	})
	return hits[:min(len(hits), mostFound)]
}
