// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/internal/answers/snapshot/snapshottest"
	"github.com/strata-project/strata/internal/answers/why"
)

// layer writes down a layer in a state, with what blocks it.
func layer(name, state, ready, reason, message, more string) string {
	return fmt.Sprintf(`---
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: %s, generation: 1}
spec: {version: "1"%s}
status:
  state: %s
  observedGeneration: 1
  conditions: [{type: Ready, status: "%s", reason: %s, message: %q}]
`, name, more, state, ready, reason, message)
}

func well(name string) string { return layer(name, "Deployed", "True", "Deployed", "all is well", "") }

func waitsFor(name, on string) string {
	return layer(name, "ApplyPending", "False", "DependencyNotDeployed", "waits for "+on, "") +
		fmt.Sprintf("  blockedBy: [{kind: AddonsLayer, name: %s, reason: DependencyNotDeployed, message: is not deployed}]\n", on)
}

func onCluster(name string) string {
	return fmt.Sprintf(", cluster: {namespace: fleet, name: %s}", name)
}

const remote = `---
apiVersion: kraan.io/v1alpha1
kind: RemoteCluster
metadata: {namespace: fleet, name: edge-7, generation: 1}
spec: {kubeConfig: {secretRef: {name: edge-7}}}
status:
  observedGeneration: 1
  conditions: [{type: Ready, status: "%s", reason: Unreachable, message: "the cluster cannot be reached: no route"}]
`

// failed is base, which failed on another cluster at a release.
func failed(name string) string {
	return layer(name, "Failed", "False", "ReleaseFailed", "HelmRelease fleet/gateway has failed", onCluster("edge-7")) +
		"  blockedBy: [{kind: HelmRelease, namespace: fleet, name: gateway, reason: InstallFailed, message: context deadline exceeded}]\n"
}

func TestSentences(t *testing.T) {
	for name, test := range map[string]struct {
		objects, want string
		state         State
		lacking       []string
	}{
		"nothing yet": {"", "0 clusters, no layers", Well, nil},
		"all is well": {well("a") + well("b") + fmt.Sprintf(remote, "True"), "2 clusters, 2 layers: 2 deployed", Well, nil},
		"two wait for one that failed": {
			failed("base") + waitsFor("mid", "base") + waitsFor("apps", "mid") + well("other") + fmt.Sprintf(remote, "True"),
			"2 clusters, 4 layers: 1 deployed, 2 waiting, 1 failed; 2 wait for base on fleet/edge-7; base failed: HelmRelease gateway could not be installed",
			Failed, nil,
		},
		"on its way": {
			layer("base", "Applying", "Unknown", "Applying", "waits for releases", "") + waitsFor("apps", "base"),
			"1 cluster, 2 layers: 1 under way, 1 waiting; 1 waits for base; base is under way", Moving, nil,
		},
		"held": {
			layer("base", "Hold", "False", "Hold", "held by ops", ""),
			"1 cluster, 1 layer: 1 waiting; base is on hold: held by ops", Waiting, nil,
		},
		"rolled back": {
			layer("base", "Deployed", "False", "RolledBack", "went back from version 2 to version 1, because ops asked for it", ""),
			"1 cluster, 1 layer: 1 failed; base is rolled back: went back from version 2 to version 1, because ops asked for it", Failed, nil,
		},
		"a cluster away": {
			well("a") + fmt.Sprintf(remote, "False"),
			"2 clusters, 1 layer: 1 deployed; cluster fleet/edge-7 is not ready: the cluster cannot be reached: no route", Failed, nil,
		},
		"a circle": {
			waitsFor("a", "b") + waitsFor("b", "a"),
			"1 cluster, 2 layers: 2 waiting; 1 waits for a; a waits: is not deployed", Waiting, nil,
		},
		"many causes": {
			failed("a") + failed("b") + failed("c") + failed("d"),
			"0 clusters, 4 layers: 4 failed; a on fleet/edge-7 failed: HelmRelease gateway could not be installed; b on fleet/edge-7 failed: HelmRelease gateway could not be installed; and 2 more causes",
			Failed, nil,
		},
		"not seen": {
			well("a"), "1 cluster, 1 layer: 1 deployed; not counted, because you may not list them: remoteclusters.kraan.io", Well,
			[]string{"remoteclusters.kraan.io"},
		},
		"nothing may be seen": {
			"", "you may not list addonslayers.kraan.io, so there is nothing to say", Unknown, []string{"addonslayers.kraan.io"},
		},
		"a long message": {
			layer("a", "Failed", "False", "InvalidManifest", strings.Repeat("long ", 50), ""),
			"1 cluster, 1 layer: 1 failed; a failed: " + strings.Repeat("long ", 23) + "long…", Failed, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(snapshottest.New(t, test.objects), nil, test.lacking)
			if got.Sentence != test.want || got.State != test.state {
				t.Errorf("it is %s:\n%s\nwant %s:\n%s", got.State, got.Sentence, test.state, test.want)
			}
		})
	}
}

// What an answer finds below a layer's own words is what the sentence names, and a Pod
// that does not start makes of a layer that is under way one that waits.
func TestDeepen(t *testing.T) {
	s := snapshottest.New(t, layer("base", "Applying", "Unknown", "Applying", "waits for releases", "")+well("other"))
	v := Of(s, nil, nil)
	if v.State != Moving || v.Sentence != "1 cluster, 2 layers: 1 deployed, 1 under way" {
		t.Errorf("at first: %s %s", v.State, v.Sentence)
	}
	chain := []why.Link{
		{Kind: "AddonsLayer", Name: "base"},
		{Kind: "HelmRelease", Name: "gateway"},
		{Kind: "Pod", Namespace: "mesh", Name: "gateway-6b9", Reason: "Unschedulable", Message: "0/1 nodes are available"},
		{Kind: "Event", Name: "gateway-6b9", Reason: "FailedScheduling"},
	}
	deep := v.Deepen(why.Answer{Layer: "base", Root: "base", Chain: chain})
	if deep.State != Waiting || deep.Sentence != "1 cluster, 2 layers: 1 deployed, 1 under way; base waits: Pod gateway-6b9 cannot be scheduled" {
		t.Errorf("%s %s", deep.State, deep.Sentence)
	}
	if cause := deep.Causes[0]; cause.Object != "Pod mesh/gateway-6b9" || cause.Message != "0/1 nodes are available" {
		t.Errorf("the cause is %+v", cause)
	}
	if v.Causes[0].Object != "" {
		t.Error("the verdict of before has changed, too")
	}
	chain[2].Reason = "ContainerCreating"
	if slow := v.Deepen(why.Answer{Layer: "base", Root: "base", Chain: chain[:3]}); slow.State != Moving {
		t.Errorf("a Pod that starts is %s", slow.State)
	}
}

// Layers with some labels are judged by what they wait for, whatever labels that has.
func TestSelected(t *testing.T) {
	mine := strings.Replace(waitsFor("mine", "base"), "generation: 1}", "generation: 1, labels: {team: a}}", 1)
	s := snapshottest.New(t, failed("base")+failed("other")+mine+fmt.Sprintf(remote, "False"))
	got := Of(s, labels.SelectorFromSet(labels.Set{"team": "a"}), nil)
	want := "1 cluster, 1 layer: 1 waiting; 1 waits for base on fleet/edge-7; base failed: HelmRelease gateway could not be installed"
	if got.Sentence != want || got.State != Failed {
		t.Errorf("it is %s:\n%s\nwant\n%s", got.State, got.Sentence, want)
	}
}
