// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

// causeLines writes causes as a table shows them: indented by their depth.
func causeLines(list []v1alpha1.Cause) []string {
	var lines []string
	for _, c := range list {
		line := strings.Repeat("> ", int(c.Depth)) + c.Kind
		if name := strings.TrimPrefix(c.Namespace+"/"+c.Name, "/"); name != "" {
			line += " " + name
		}
		line += " " + c.Reason + ": " + c.Message
		if c.Until != nil {
			line += " until " + c.Until.UTC().Format(time.RFC3339Nano)
		}
		lines = append(lines, line)
	}
	return lines
}

// blockedBy gives a layer causes that it has named.
func blockedBy(list ...v1alpha1.Cause) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Status.BlockedBy = list }
}

func helm(depth int32, name, reason, message string) v1alpha1.Cause {
	return v1alpha1.Cause{Depth: depth, Kind: "HelmRelease", Namespace: "default", Name: name, Reason: reason, Message: message}
}

func because(depth int32, name, reason string) v1alpha1.Cause {
	return v1alpha1.Cause{Depth: depth, Kind: "AddonsLayer", Name: name, Reason: reason, Message: "m"}
}

func TestCauses(t *testing.T) {
	applying := func(l *v1alpha1.AddonsLayer) {
		isDeployed(oldDir)(l)
		inState(v1alpha1.StateApplying, "Unknown")(l)
		l.Status.Attempt = &v1alpha1.Attempt{
			Version: "1.0.0", Digest: newDir.Digest, Revision: newRevision,
			StartTime: metav1.NewTime(testNow.Truncate(time.Second)),
		}
		l.Status.Resources = nil
		for _, m := range newDir.Manifests {
			content, err := Content(directoriestest.Of(newRevision, m), "base", "1.0.0", nil)
			if err != nil {
				panic(err)
			}
			l.Status.Resources = append(l.Status.Resources, Resources([]dependents.Entry{{
				ID: content[0].ID, Digest: content[0].Digest, Generation: 1, Status: objects.StatusProgress, Since: longAgo.Time,
			}})...)
		}
	}
	after := func(name string, others ...string) directories.Manifest {
		var on []any
		for _, other := range others {
			on = append(on, map[string]any{"name": other})
		}
		return directoriestest.HelmRelease(name, "dependsOn", on)
	}
	failed := layer(named("mesh"), isDeployed(oldDir), inState(v1alpha1.StateFailed, "False"), blockedBy(helm(0, "web", "InstallFailed", "no such chart")))
	cases := map[string]struct {
		reason string
		o      Observation
		want   []string
	}{
		"deployed": {
			"nothing stands in the way", observation(layer(isDeployed(oldDir)), oldDir, lives(live("a"), live("b"))), nil,
		},
		"suspended release": {
			"it neither blocks nor counts", observation(layer(isDeployed(oldDir)), oldDir, lives(live("a", suspendedByHand))), nil,
		},
		"hold": {
			"somebody holds it", observation(layer(annotation(v1alpha1.HoldAnnotation, "freeze")), newDir),
			[]string{"AddonsLayer base Hold: held: freeze"},
		},
		"hold with an end": {
			"the end is known, in whole seconds",
			observation(layer(annotation(v1alpha1.HoldAnnotation, "freeze"), annotation(v1alpha1.HoldUntilAnnotation, "2026-12-01T08:00:00.7+01:00")), newDir),
			[]string{"AddonsLayer base Hold: held: freeze (until 2026-12-01T07:00:00Z) until 2026-12-01T07:00:00Z"},
		},
		"no source": {
			"the source is named with the namespace that it would have", observation(layer(), nil, func(o *Observation) { o.Source = nil }),
			[]string{"GitRepository gotk-system/addons SourceNotFound: waits for GitRepository gotk-system/addons, which does not exist"},
		},
		"source without artifact": {
			"what the source says of itself",
			observation(layer(), nil, func(o *Observation) { o.Source = &Source{Generation: 1, Message: "failed to checkout"} }),
			[]string{"GitRepository gotk-system/addons SourceNotReady: failed to checkout"},
		},
		"source that fetches": {
			"it says of itself only that it was ready", observation(layer(), nil, func(o *Observation) { o.Source.Generation, o.Source.Message = 2, "stored artifact" }),
			[]string{"GitRepository gotk-system/addons SourceNotReady: waits for GitRepository gotk-system/addons: generation 2 is not fetched yet, generation 1 is"},
		},
		"artifact": {
			"it cannot be fetched from the source", observation(layer(), nil, func(o *Observation) { o.DirectoryError = errors.New("connection refused") }),
			[]string{"GitRepository gotk-system/addons ArtifactFailed: connection refused"},
		},
		"path": {
			"only the author can mend it", observation(layer(), nil, func(o *Observation) {
				o.DirectoryError = &directories.ContentError{Reason: v1alpha1.ReasonInvalidManifest, File: "base/a.yaml", Message: "is no YAML"}
			}),
			[]string{"AddonsLayer base InvalidManifest: base/a.yaml: is no YAML"},
		},
		"cluster": {
			"the cluster is too old", observation(layer(k8s("v99.0")), newDir),
			[]string{"Cluster K8sVersion: waits for Kubernetes v99.0: the cluster is at v1.36.3"},
		},
		"missing dependency": {
			"there is nothing more to say", observation(layer(needs("mesh@1.0.0")), newDir),
			[]string{"AddonsLayer mesh DependencyNotFound: there is no layer mesh"},
		},
		"failed dependency": {
			"the release that fails is named, and its message once",
			observation(layer(needs("mesh@1.0.0")), newDir, others(Other{Layer: failed})),
			[]string{
				"AddonsLayer mesh DependencyNotDeployed: mesh is at 1.0.0, Failed",
				"> HelmRelease default/web InstallFailed: no such chart",
			},
		},
		"dependency that rolls out": {
			"what merely takes its time is left out", observation(layer(needs("mesh@1.0.0")), newDir, others(Other{Layer: layer(named("mesh"), isDeployed(oldDir), inState(v1alpha1.StateApplying, "Unknown"),
				blockedBy(helm(0, "a", reasonWaits, "waits"), helm(1, "b", "Progressing", "Running"), helm(0, "c", reasonWaits, "waits"), helm(1, "d", "InstallFailed", "no")))})),
			[]string{
				"AddonsLayer mesh DependencyNotDeployed: mesh is at 1.0.0, Applying",
				"> HelmRelease default/c DependencyNotReady: waits",
				"> > HelmRelease default/d InstallFailed: no",
			},
		},
		"changed dependency": {
			"what it says is of before", observation(layer(needs("mesh@1.0.0")), newDir, others(Other{Layer: layer(named("mesh"), isDeployed(oldDir),
				func(l *v1alpha1.AddonsLayer) { l.Generation = 2 }, blockedBy(helm(0, "web", "InstallFailed", "no such chart")))})),
			[]string{"AddonsLayer mesh DependencyNotDeployed: mesh has changed and is not deployed as it is now (generation 2, seen 1)"},
		},
		"chain that leads back": {
			"a layer is no cause of itself", observation(layer(needs("mesh@1.0.0")), newDir, others(Other{Layer: layer(named("mesh"), isDeployed(oldDir),
				inState(v1alpha1.StateApplyPending, "Unknown"), blockedBy(because(0, "apps", "X"), because(1, "base", "X"), helm(2, "web", "X", "m")))})),
			[]string{"AddonsLayer mesh DependencyNotDeployed: mesh is at 1.0.0, ApplyPending"},
		},
		"many dependencies": {
			"three are enough", observation(layer(needs("a", "b", "c", "d")), newDir),
			[]string{
				"AddonsLayer a DependencyNotFound: there is no layer a", "AddonsLayer b DependencyNotFound: there is no layer b",
				"AddonsLayer c DependencyNotFound: there is no layer c",
			},
		},
		"range": {
			"the layers whose ranges it would leave",
			observation(layer(isDeployed(oldDir), func(l *v1alpha1.AddonsLayer) { l.Spec.Version = "2.0.0" }), newDir, others(
				Other{Layer: layer(named("web"), needs("base@<2"), isDeployed(oldDir))}, Other{Layer: layer(named("any"), needs("base"), isDeployed(oldDir))},
				Other{Layer: layer(named("apps"), needs("base@>=1 <2", "base@^1"), isDeployed(oldDir))})),
			[]string{
				"AddonsLayer apps WouldBreakDependants: depends on base@>=1 <2, base@^1",
				"AddonsLayer web WouldBreakDependants: depends on base@<2",
			},
		},
		"dependency out of range": {
			"the version is named, and the release that keeps it from the next one",
			observation(layer(needs("mesh@>=2")), newDir, others(Other{Layer: failed})),
			[]string{
				"AddonsLayer mesh DependencyVersion: mesh is at 1.0.0, Failed",
				"> HelmRelease default/web InstallFailed: no such chart",
			},
		},
		"cycle": {
			"its members are named in order", observation(layer(needs("mesh")), newDir, others(Other{Layer: layer(named("mesh"), needs("apps"))}, Other{Layer: layer(named("apps"), needs("base"))})),
			[]string{
				"AddonsLayer base DependencyCycle: depends on mesh", "AddonsLayer mesh DependencyCycle: depends on apps",
				"AddonsLayer apps DependencyCycle: depends on base",
			},
		},
		"release that fails": {
			"its own reason and Helm's words, until the deadline; what it holds up comes first",
			observation(layer(applying), newDir, lives(live("a", failing), live("b"))),
			[]string{"HelmRelease default/a InstallFailed: no such chart until 2026-01-02T03:10:06Z"},
		},
		"release that gave up": {
			"no time heals it", observation(layer(applying), newDir, lives(live("a", gaveUp), live("b", failing))),
			[]string{"HelmRelease default/a InstallFailed: no such chart", "HelmRelease default/b InstallFailed: no such chart"},
		},
		"releases in order": {
			"the release that waits, and the one that it waits for",
			observation(layer(isDeployed(oldDir)), directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), after("b", "a"), after("c", "b")), lives(live("a", failing), live("b"))),
			[]string{
				"HelmRelease default/b DependencyNotReady: waits for HelmRelease default/a, which is not ready: no such chart until 2026-01-02T03:10:06Z",
				"> HelmRelease default/a InstallFailed: no such chart",
			},
		},
		"orphan": {
			"the grace ends by itself", observation(layer(isDeployed(newDir)), oldDir, lives(live("a"), live("b"))),
			[]string{"HelmRelease default/b Orphaned: waits until 2026-01-02T03:05:06Z for another layer to adopt it until 2026-01-02T03:05:06Z"},
		},
		"conflict": {
			"the object, and the layer that has it", observation(layer(), newDir, lives(live("a", of("mesh"))), func(o *Observation) {
				o.Others.Existing = map[string]bool{"mesh": true}
				o.Others.Listed = map[objects.ID][]dependents.Claim{releaseID("a"): {{Owner: "mesh", Origin: "mesh/a.yaml", ID: releaseID("a")}}}
			}),
			[]string{
				"HelmRelease default/a OwnershipConflict: HelmRelease default/a is listed by layer base (base/a.yaml) and belongs to layer mesh (mesh/a.yaml)",
				"> AddonsLayer mesh OwnershipConflict: lists it in mesh/a.yaml",
			},
		},
		"deletion that waits for others": {
			"the layers that need it; of one that goes, too, what keeps it",
			observation(layer(isDeployed(oldDir), deleted), oldDir, others(Other{Layer: layer(named("apps"), needs("base"), isDeployed(oldDir), blockedBy(helm(0, "x", "InstallFailed", "m")))},
				Other{Layer: layer(named("web"), needs("base"), isDeployed(oldDir), deleted, func(l *v1alpha1.AddonsLayer) { l.Status.ObservedGeneration = l.Generation },
					blockedBy(helm(0, "y", v1alpha1.ReasonSuspendedRelease, "is suspended")))})),
			[]string{
				"AddonsLayer apps DeletionBlocked: depends on base", "AddonsLayer web DeletionBlocked: depends on base",
				"> HelmRelease default/y SuspendedRelease: is suspended",
			},
		},
		"deletion of a suspended release": {
			"somebody has to resume it", observation(layer(isDeployed(oldDir), resourcesAre(objects.StatusOrphaned), deleted), nil, lives(live("a", marked, suspendedByHand))),
			[]string{"HelmRelease default/a SuspendedRelease: is suspended, so Flux would drop it without uninstalling anything: resume it, or abandon what it installed with the annotation kraan.io/abandon"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report, _ := Report(tc.o, Decide(tc.o), nil)
			if diff := cmp.Diff(tc.want, causeLines(report.BlockedBy)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCausesOfFailures(t *testing.T) {
	wanted := dependents.Dependent{ID: releaseID("a")}
	did := func(verb dependents.Verb, name string, err error) dependents.Result {
		return dependents.Result{Action: dependents.Action{Verb: verb, ID: releaseID(name), Wanted: &wanted}, Err: err}
	}
	o := observation(layer(), newDir)
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "X"}, "x", nil)
	report, _ := Report(o, Decide(o), []dependents.Result{
		did(dependents.VerbWrite, "ok", nil), did(dependents.VerbWrite, "other", apierrors.NewConflict(releases, "x", errors.New("changed"))),
		did(dependents.VerbWrite, "a", errors.New("no")), did(dependents.VerbDelete, "b", errors.New("no")),
		did(dependents.VerbWrite, "c", invalid), did(dependents.VerbWrite, "d", errors.New("no")),
	})
	want := []string{
		"HelmRelease default/a ApplyFailed: no", "HelmRelease default/b PruneFailed: no",
		"HelmRelease default/c InvalidManifest: " + invalid.Error(),
	}
	if diff := cmp.Diff(want, causeLines(report.BlockedBy)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCausesOfAMissingAccount(t *testing.T) {
	wanted := dependents.Dependent{ID: releaseID("a")}
	account := types.NamespacedName{Namespace: "gotk-system", Name: "deployer"}
	o := observation(layer(func(l *v1alpha1.AddonsLayer) { l.Spec.ServiceAccountName = "deployer" }), newDir)
	var results []dependents.Result
	for range 2 {
		results = append(results, dependents.Result{
			Action: dependents.Action{Verb: dependents.VerbWrite, ID: releaseID("a"), Wanted: &wanted}, Err: &accounts.MissingError{Account: account},
		})
	}
	report, _ := Report(o, Decide(o), results)
	want := []string{"ServiceAccount gotk-system/deployer ServiceAccountNotFound: that account does not exist"}
	if diff := cmp.Diff(want, causeLines(report.BlockedBy)); diff != "" {
		t.Errorf("the account is in the way, and no object (-want +got):\n%s", diff)
	}
}

// reasons returns the constants of conditions.go that are reasons of
// conditions: those before the ones of events alone.
func reasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/conditions.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			if value.Doc != nil && strings.Contains(value.Doc.Text(), "events alone") {
				break
			}
			if strings.HasPrefix(value.Names[0].Name, "Reason") {
				reason, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, reason)
			}
		}
	}
	return found
}

// Whatever the reason for which a layer is not deployed, something is named,
// also where it is not known who stands in the way.
func TestEveryReasonHasACause(t *testing.T) {
	found := reasons(t)
	if len(found) < 30 || slices.Contains(found, v1alpha1.ReasonAdopted) {
		t.Fatalf("the reasons are %v", found)
	}
	for _, reason := range found {
		if reason == v1alpha1.ReasonDeployed || reason == v1alpha1.ReasonProgressingWithRetry {
			continue
		}
		for _, state := range []v1alpha1.State{v1alpha1.StateFailed, v1alpha1.StatePruning, v1alpha1.StateApplyPending, v1alpha1.StateDeployed} {
			for _, deleting := range []bool{false, true} {
				l := layer()
				if deleting {
					deleted(l)
				}
				d := Decision{State: state, Reason: reason, Message: "why", Stalled: state == v1alpha1.StateDeployed}
				list := causesOf(observation(l, nil), d, nil)
				if len(list) == 0 || list[0].Depth != 0 || list[0].Reason != reason || list[0].Kind == "" || list[0].Message != "why" {
					t.Errorf("%s %s: %v", state, reason, causeLines(list))
				}
			}
		}
	}
}

// A layer that waits for a layer that waits for a failing release names that
// release, however long the chain; the list stays short.
func TestCausesReachTheRoot(t *testing.T) {
	const length = 40
	message := strings.Repeat("ä", 5000)
	o := observation(layer(named("l0"), isDeployed(oldDir)), oldDir, lives(live("a", gaveUp, func(obj *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(obj.Object, []any{
			map[string]any{"type": "Ready", "status": "False", "reason": "InstallFailed", "message": message},
			map[string]any{"type": "Stalled", "status": "True", "reason": "RetriesExceeded"},
		}, "status", "conditions")
		of("l0")(obj)
	})))
	for i := range length {
		report, _ := Report(o, Decide(o), nil)
		checkCauses(t, report.BlockedBy)
		for _, c := range report.BlockedBy {
			if c.Depth > 0 && len(c.Message) > maxCarriedCause {
				t.Errorf("layer %d repeats %d bytes", i, len(c.Message))
			}
		}
		root, _ := RootCause(report.BlockedBy)
		if root.Name != "a" || root.Kind != "HelmRelease" || int(root.Depth) != i || !strings.HasPrefix(root.Message, "ää") {
			t.Fatalf("layer %d names %v", i, causeLines(report.BlockedBy))
		}
		if i > 0 && (report.BlockedBy[0].Name != fmt.Sprintf("l%d", i-1) || report.BlockedBy[0].Depth != 0) {
			t.Fatalf("layer %d waits for %v", i, causeLines(report.BlockedBy))
		}
		below := withStatus(o.Layer, report)
		o = observation(layer(named(fmt.Sprintf("l%d", i+1)), needs(below.Name)), newDir, others(Other{Layer: below}))
	}
}

// checkCauses wants of causes what holds of all of them.
func checkCauses(t interface{ Errorf(string, ...any) }, list []v1alpha1.Cause) {
	if len(list) > maxCauses {
		t.Errorf("%d causes", len(list))
	}
	for i, c := range list {
		limit := maxOwnCause
		if i == 0 && c.Depth != 0 || c.Kind == "" || c.Reason == "" || c.Message == "" || len(c.Message) > limit || !utf8.ValidString(c.Message) {
			t.Errorf("cause %d: %+v", i, c)
		}
		if c.Until != nil && c.Until.Nanosecond() != 0 {
			t.Errorf("cause %d ends at %s, which a status cannot hold", i, c.Until)
		}
	}
}

func TestEveryBlockedLayerHasACause(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObservation(t)
		report, d := Report(o, Decide(o), nil)
		checkCauses(t, report.BlockedBy)
		if blocked := !d.Finalized && (d.State != v1alpha1.StateDeployed || d.Stalled); blocked != (len(report.BlockedBy) > 0) {
			t.Errorf("%s (%s) is blocked by %v", d.State, d.Reason, causeLines(report.BlockedBy))
		}
		for _, c := range report.BlockedBy {
			if c.Reason == objects.StatusSuspended {
				t.Errorf("a suspended release stands in the way: %v", c)
			}
		}
	})
}

func drawCauses(t *rapid.T) []v1alpha1.Cause {
	var list []v1alpha1.Cause
	depth := 0
	for range rapid.IntRange(0, 40).Draw(t, "causes") {
		list = append(list, because(int32(depth), fmt.Sprint("l", len(list)), "X"))
		depth = rapid.IntRange(0, depth+1).Draw(t, "depth")
	}
	return list
}

// parents returns, for each cause, the name of the one that it explains.
func parents(list []v1alpha1.Cause) map[string]string {
	found := map[string]string{}
	for i, c := range list {
		for _, before := range slices.Backward(list[:i]) {
			if before.Depth < c.Depth {
				found[c.Name] = before.Name
				break
			}
		}
	}
	return found
}

// What is trimmed keeps its order and explains nothing that it did not explain
// before, if by way of others. The root of the first chain stays; where no
// chain branches, all roots stay as long as there is room.
func TestTrimCauses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawCauses(t)
		before := slices.Clone(list)
		got := trimCauses(list)
		if diff := cmp.Diff(before, list); diff != "" {
			t.Fatalf("the list itself has changed:\n%s", diff)
		}
		if len(got) != min(len(list), maxCauses) {
			t.Fatalf("%d of %d are left", len(got), len(list))
		}
		if len(got) == 0 {
			return
		}
		kept := map[string]bool{}
		last := -1
		was, is := parents(list), parents(got)
		for _, c := range got {
			at := slices.IndexFunc(list, func(other v1alpha1.Cause) bool { return other.Name == c.Name })
			above := was[c.Name]
			for above != is[c.Name] && above != "" {
				above = was[above]
			}
			if at <= last || above != is[c.Name] {
				t.Fatalf("%s follows %q in\n%s", c.Name, is[c.Name], strings.Join(causeLines(got), "\n"))
			}
			last = at
			kept[c.Name] = true
		}
		ends, branches := 0, false
		for i, c := range list {
			if c.Depth == 0 || isRoot(list, i) {
				ends++
			}
			branches = branches || i > 0 && c.Depth > 0 && c.Depth <= list[i-1].Depth
		}
		first := 0
		for !isRoot(list, first) {
			first++
		}
		for i, c := range list {
			must := i == 0 || i == first || !branches && ends <= maxCauses && (c.Depth == 0 || isRoot(list, i))
			if must && !kept[c.Name] {
				t.Fatalf("%s is missing in\n%s\nof\n%s", c.Name, strings.Join(causeLines(got), "\n"), strings.Join(causeLines(list), "\n"))
			}
		}
	})
}

func TestRootCause(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   []v1alpha1.Cause
		want   string
	}{
		"none":     {"a deployed layer", nil, ""},
		"one":      {"the layer itself", []v1alpha1.Cause{because(0, "a", "X")}, "a"},
		"chain":    {"the deepest", []v1alpha1.Cause{because(0, "a", "X"), because(3, "b", "X"), because(0, "c", "X")}, "b"},
		"progress": {"what takes its time is worth less than what has failed", []v1alpha1.Cause{helm(0, "a", "Progressing", ""), helm(0, "b", "InstallFailed", "")}, "b"},
		"all well": {"the first of those that take their time", []v1alpha1.Cause{helm(0, "a", reasonWaits, ""), helm(1, "b", "Progressing", ""), helm(0, "c", "Progressing", "")}, "b"},
	}
	for name, tc := range cases {
		if got, found := RootCause(tc.list); got.Name != tc.want || found != (tc.want != "") {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
	}
}
