// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

const readyConditions = "Deployed=True/Deployed Ready=True/Deployed"

func waitingFor(reason string) string {
	return strings.ReplaceAll("Deployed=False/R Ready=Unknown/R Reconciling=True/R", "/R", "/"+reason)
}

func failedWith(reason string) string {
	return strings.ReplaceAll("Deployed=False/R Ready=False/R Reconciling=True/ProgressingWithRetry", "/R", "/"+reason)
}

func stalledWith(reason string) string {
	return strings.ReplaceAll("Deployed=False/R Ready=False/R Stalled=True/R", "/R", "/"+reason)
}

type decideCase struct {
	reason string
	in     Observation
	want   decided
}

func runDecideCases(t *testing.T, cases map[string]decideCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, got := decide(t, tc.in)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(decided{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

var (
	oldDir = directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
	newDir = directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b"))
)

func source(change func(*Source)) func(*Observation) {
	return func(o *Observation) { change(o.Source) }
}

func TestDecideSource(t *testing.T) {
	running := layer(isDeployed(oldDir))
	away := errors.New("dial tcp: connection refused")
	runDecideCases(t, map[string]decideCase{
		"missing": {
			reason: "nothing to go by, so nothing is written, not even a repair",
			in: observation(running, nil, lives(live("a", drifted)), func(o *Observation) {
				o.Source, o.Deployed = nil, oldDir
			}),
			want: decided{v1alpha1.StatePending, "", waitingFor("SourceNotFound"), status.InProgressStatus, "waits for GitRepository gotk-system/addons, which does not exist"},
		},
		"another namespace": {
			reason: "the source's own namespace is named",
			in: observation(layer(func(l *v1alpha1.AddonsLayer) { l.Spec.Source.Namespace = "flux" }), nil, func(o *Observation) {
				o.Source = nil
			}),
			want: decided{v1alpha1.StatePending, "", waitingFor("SourceNotFound"), status.InProgressStatus, "waits for GitRepository flux/addons, which does not exist"},
		},
		"older generation": {
			reason: "what is there was fetched for another specification", in: observation(layer(), nil, source(func(s *Source) { s.Generation = 2 })),
			want: decided{v1alpha1.StatePending, "", waitingFor("SourceNotReady"), status.InProgressStatus, "waits for GitRepository gotk-system/addons: generation 2 is not fetched yet, generation 1 is"},
		},
		"older generation, failing": {
			reason: "the source says why it is not fetched", in: observation(layer(), nil, source(func(s *Source) { s.Generation, s.Ready, s.Message = 2, false, "no such branch" })),
			want: decided{
				v1alpha1.StatePending, "", waitingFor("SourceNotReady") + " SourceReady=False/SourceNotReady", status.InProgressStatus,
				"waits for GitRepository gotk-system/addons: generation 2 is not fetched yet, generation 1 is: no such branch",
			},
		},
		"no artifact": {
			reason: "the source says why there is none", in: observation(layer(), nil, source(func(s *Source) { s.Digest, s.Ready, s.Message = "", false, "auth" })),
			want: decided{v1alpha1.StatePending, "", waitingFor("SourceNotReady"), status.InProgressStatus, "waits for GitRepository gotk-system/addons, which has no artifact yet: auth"},
		},
		"turned not ready": {
			reason: "the layer stays deployed and is repaired from the last artifact, and a condition says so",
			in:     observation(running, oldDir, lives(live("a")), source(func(s *Source) { s.Ready, s.Message = false, "git is away" })),
			want: decided{
				v1alpha1.StateDeployed, "", readyConditions + " SourceReady=False/SourceNotReady", status.CurrentStatus,
				"version 1.0.0 of revision main@sha1:old is deployed: 1 release",
			},
		},
		"artifact away": {
			reason: "an artifact that cannot be fetched again undeploys nothing that came from it",
			in: observation(running, nil, lives(live("a", drifted)), source(func(s *Source) { s.Revision = oldRevision }), func(o *Observation) {
				o.DirectoryError, o.Deployed = away, oldDir
			}),
			want: decided{
				v1alpha1.StateDeployed, "Write a", readyConditions + " SourceReady=False/SourceNotReady", status.CurrentStatus,
				"version 1.0.0 of revision main@sha1:old is deployed: 1 release",
			},
		},
		"new artifact away": {
			reason: "a new revision that cannot be fetched is never reported as deployed",
			in:     observation(running, nil, lives(live("a")), func(o *Observation) { o.DirectoryError, o.Deployed = away, oldDir }),
			want:   decided{v1alpha1.StateFailed, "", failedWith("ArtifactFailed"), status.InProgressStatus, "dial tcp: connection refused"},
		},
		"bad content": {
			reason: "a mistake of the author is Stalled; nothing is pruned or changed because of it, and drift is repaired",
			in: observation(running, nil, lives(live("a", drifted), live("gone")), func(o *Observation) {
				o.DirectoryError, o.Deployed = &directories.ContentError{Reason: "InvalidManifest", File: "base/a.yaml", Line: 3, Field: "kind", Message: "is missing"}, oldDir
			}),
			want: decided{v1alpha1.StateFailed, "Write a", stalledWith("InvalidManifest"), status.FailedStatus, "base/a.yaml:3: kind: is missing"},
		},
		"bad content, with an orphan": {
			reason: "an orphan stays one: it is neither removed nor taken back",
			in: observation(layer(isDeployed(oldDir), resourcesAre(objects.StatusOrphaned)), nil, lives(live("a", marked)), func(o *Observation) {
				o.DirectoryError, o.Deployed = &directories.ContentError{Reason: "InvalidManifest", Message: "is no YAML"}, oldDir
			}),
			want: decided{v1alpha1.StateFailed, "", stalledWith("InvalidManifest"), status.FailedStatus, "is no YAML"},
		},
		"bad scope": {
			reason: "what only the cluster can tell is Stalled in the same way",
			in:     observation(layer(), directoriestest.Of(newRevision, directoriestest.Any("v1", "ConfigMap", "", "x"))),
			want: decided{
				v1alpha1.StateFailed, "", stalledWith("InvalidManifest"), status.FailedStatus,
				"base/x.yaml:1: metadata.namespace: ConfigMap x has none: name the namespace it belongs in, or spec.targetNamespace of its layer",
			},
		},
		"kind forbidden": {
			reason: "missing rights are said, also of a layer that was deployed with them",
			in: observation(running, oldDir, lives(live("a")), func(o *Observation) {
				o.KindError = errors.New("cannot list issuers")
			}),
			want: decided{v1alpha1.StateFailed, "", failedWith("ApplyFailed"), status.InProgressStatus, "the controller lacks rights: cannot list issuers; add the kind to rbac.kinds of the chart"},
		},
	})
}

func TestDecideVersionAndSpec(t *testing.T) {
	running := func(changes ...layerChange) *v1alpha1.AddonsLayer {
		return layer(append([]layerChange{isDeployed(oldDir)}, changes...)...)
	}
	newer := func(l *v1alpha1.AddonsLayer) { l.Generation = 2 }
	self := layer(named("mesh"), needs("base@1.0.0"))
	runDecideCases(t, map[string]decideCase{
		"too old": {
			reason: "no error, only a wait", in: observation(layer(k8s("v99.0")), newDir),
			want: decided{v1alpha1.StateK8sVersion, "", waitingFor("K8sVersion"), status.InProgressStatus, "waits for Kubernetes v99.0: the cluster is at v1.36.3"},
		},
		"went back": {
			reason: "what is deployed of the same generation and content still counts as that, and is repaired",
			in:     observation(running(k8s("v99.0")), oldDir, lives(live("a", drifted))),
			want: decided{
				v1alpha1.StateK8sVersion, "Write a", "Deployed=True/Deployed Ready=Unknown/K8sVersion Reconciling=True/K8sVersion",
				status.InProgressStatus, "waits for Kubernetes v99.0: the cluster is at v1.36.3",
			},
		},
		"asks for more": {
			reason: "a specification that was never deployed does not count", in: observation(running(k8s("v99.0"), newer), oldDir, lives(live("a"))),
			want: decided{v1alpha1.StateK8sVersion, "", waitingFor("K8sVersion"), status.InProgressStatus, "waits for Kubernetes v99.0: the cluster is at v1.36.3"},
		},
		"went back with new content": {
			reason: "nor does content that is not deployed; nothing of it is written or removed",
			in:     observation(running(k8s("v99.0")), newDir, lives(live("a")), func(o *Observation) { o.Deployed = oldDir }),
			want:   decided{v1alpha1.StateK8sVersion, "", waitingFor("K8sVersion"), status.InProgressStatus, "waits for Kubernetes v99.0: the cluster is at v1.36.3"},
		},
		"cluster's version unreadable": {
			reason: "it is not the author's mistake", in: observation(layer(k8s("1.16")), newDir, func(o *Observation) { o.ClusterVersion = "dev" }),
			want: decided{v1alpha1.StateK8sVersion, "", waitingFor("K8sVersion"), status.InProgressStatus, "waits for Kubernetes 1.16: the cluster is at dev"},
		},
		"nonsense": {
			reason: "the field is named", in: observation(layer(k8s("latest")), newDir),
			want: decided{
				v1alpha1.StateFailed, "", stalledWith("InvalidSpec"), status.FailedStatus,
				`spec.prereqs.k8sVersion: "latest" is neither a version such as 1.30 nor a range such as >=1.30 <2`,
			},
		},
		"dependency unreadable": {
			reason: "the field is named", in: observation(layer(needs("mesh@>=1 <2", "mesh@>=two")), newDir),
			want: decided{
				v1alpha1.StateFailed, "", stalledWith("InvalidSpec"), status.FailedStatus,
				`spec.prereqs.dependsOn[1]: "mesh@>=two" asks for a range that cannot be understood: write one such as mesh@>=1.1 <2, mesh@^2, mesh@~1.4 or mesh@1.x`,
			},
		},
		"dependency without a version": {
			reason: "the field is named, and what to write; what is deployed stays and is repaired",
			in:     observation(running(needs("mesh@")), newDir, lives(live("a", drifted)), func(o *Observation) { o.Deployed = oldDir }),
			want: decided{
				v1alpha1.StateFailed, "Write a", stalledWith("InvalidSpec"), status.FailedStatus,
				`spec.prereqs.dependsOn[0]: "mesh@" has no version behind the @: write name@version, or the name alone for any version`,
			},
		},
		"dependency with capitals": {
			reason: "no layer can have that name", in: observation(layer(needs("Mesh@1")), newDir),
			want: decided{
				v1alpha1.StateFailed, "", stalledWith("InvalidSpec"), status.FailedStatus,
				`spec.prereqs.dependsOn[0]: "Mesh@1" does not begin with the name of a layer: names of layers have no capitals: write name@version`,
			},
		},
		"itself": {
			reason: "a cycle of one", in: observation(layer(needs("base@>=1")), newDir),
			want: decided{v1alpha1.StateFailed, "", stalledWith("DependencyCycle"), status.FailedStatus, "layers depend on each other: base -> base"},
		},
		"cycle that appears while deployed": {
			reason: "what is deployed stays, also what the directory no longer lists, and is repaired",
			in: observation(running(needs("mesh@1.0.0")), newDir, lives(live("a", drifted)), others(Other{Layer: self}), func(o *Observation) {
				o.Deployed = oldDir
			}),
			want: decided{
				v1alpha1.StateFailed, "Write a", stalledWith("DependencyCycle"), status.FailedStatus, "layers depend on each other: base -> mesh -> base",
			},
		},
		"cycle of others": {
			reason: "whoever depends on a member waits for it, and is not stalled itself",
			in: observation(layer(needs("mesh@1.0.0")), newDir, others(
				Other{Layer: layer(named("mesh"), needs("dns"), inState(v1alpha1.StateFailed, "False"), func(l *v1alpha1.AddonsLayer) {
					l.Status.ObservedGeneration = 1
					l.Status.Conditions[0].Message = "layers depend on each other: mesh -> dns -> mesh"
				})},
				Other{Layer: layer(named("dns"), needs("mesh"))})),
			want: decided{
				v1alpha1.StateApplyPending, "", waitingFor("DependencyNotDeployed"), status.InProgressStatus,
				"waits for mesh@1.0.0: mesh has deployed no version yet, Failed: layers depend on each other: mesh -> dns -> mesh",
			},
		},
		"cycle": {
			reason: "the way around is shown", in: observation(layer(needs("mesh@1.0.0")), newDir, others(Other{Layer: self})),
			want: decided{
				v1alpha1.StateFailed, "", stalledWith("DependencyCycle"), status.FailedStatus, "layers depend on each other: base -> mesh -> base",
			},
		},
	})
}

func TestDecideDependencies(t *testing.T) {
	mesh := func(changes ...layerChange) *v1alpha1.AddonsLayer {
		return layer(append([]layerChange{named("mesh"), isDeployed(oldDir)}, changes...)...)
	}
	seen := func(want string, other Other) decideCase {
		reason := "DependencyNotDeployed"
		if strings.Contains(want, "is at 2.0.0") {
			reason = "DependencyVersion"
		}
		return decideCase{
			reason: "it waits, and says for what and what is seen", in: observation(layer(needs("mesh@1.0.0")), newDir, others(other)),
			want: decided{v1alpha1.StateApplyPending, "", waitingFor(reason), status.InProgressStatus, "waits for mesh@1.0.0: " + want},
		}
	}
	goes := func(why string, other Other) decideCase {
		return decideCase{
			reason: why, in: observation(layer(needs("mesh@1.0.0")), newDir, others(other)),
			want: decided{v1alpha1.StateApplying, "Write a, Write b", waitingFor("Applying"), status.InProgressStatus, "HelmRelease default/a has yet to be applied"},
		}
	}
	atVersion := func(v string) layerChange { return func(l *v1alpha1.AddonsLayer) { l.Status.Version = v } }
	held := func(l *v1alpha1.AddonsLayer) { l.Spec.Hold = true; l.Generation++ }
	cases := map[string]decideCase{
		"missing": {
			reason: "the layer that is not there is named", in: observation(layer(needs("mesh@1.0.0", "dns")), newDir, func(o *Observation) { o.Layers["mesh"] = Other{} }),
			want: decided{
				v1alpha1.StateApplyPending, "", waitingFor("DependencyNotFound"), status.InProgressStatus,
				"waits for mesh@1.0.0: there is no layer mesh; waits for dns: there is no layer dns",
			},
		},
		"deployed":                goes("all holds", Other{Layer: mesh()}),
		"same source, untouched":  goes("a commit that does not touch the dependency disturbs nobody", Other{Layer: mesh(), SameSource: true, Digest: oldDir.Digest}),
		"held":                    goes("a held layer counts as what it has deployed", Other{Layer: mesh(held), SameSource: true, Digest: "newer"}),
		"other version":           seen("mesh is at 2.0.0, Deployed", Other{Layer: mesh(atVersion("2.0.0"))}),
		"new":                     seen("mesh has not been looked at yet", Other{Layer: layer(named("mesh"))}),
		"changed":                 seen("mesh has changed and is not deployed as it is now (generation 2, seen 1)", Other{Layer: mesh(func(l *v1alpha1.AddonsLayer) { l.Generation = 2 })}),
		"failing":                 seen("mesh is at 1.0.0, Failed: no such chart", Other{Layer: mesh(inState(v1alpha1.StateFailed, "False"))}),
		"held and never deployed": seen("mesh is at 1.0.0, Hold: no such chart", Other{Layer: mesh(held, inState(v1alpha1.StateHold, "Unknown"))}),
		"going":                   seen("mesh is being deleted", Other{Layer: mesh(deleted)}),
		"same source, touched": seen("revision main@sha1:new changes mesh, which has not deployed that yet; mesh is at 1.0.0, Deployed",
			Other{Layer: mesh(), SameSource: true, Digest: "newer"}),
		"same source, unreadable": seen("what revision main@sha1:new holds for mesh cannot be read", Other{Layer: mesh(), SameSource: true}),
		"in the range": {
			reason: "a range is content with any version in it", in: observation(layer(needs("mesh@>=1.1 <2")), newDir, others(Other{Layer: mesh(atVersion("1.4.2"))})),
			want: decided{v1alpha1.StateApplying, "Write a, Write b", waitingFor("Applying"), status.InProgressStatus, "HelmRelease default/a has yet to be applied"},
		},
		"out of the range": {
			reason: "the range and what is seen are named", in: observation(layer(needs("mesh@>=1.1 <2")), newDir, others(Other{Layer: mesh()})),
			want: decided{
				v1alpha1.StateApplyPending, "", waitingFor("DependencyVersion"), status.InProgressStatus,
				"waits for mesh@>=1.1 <2: mesh is at 1.0.0, Deployed",
			},
		},
		"no semantic version": {
			reason: "a range never takes it, and it is said why", in: observation(layer(needs("mesh@>=0.1")), newDir, others(Other{Layer: mesh(atVersion("0.1.01"))})),
			want: decided{
				v1alpha1.StateApplyPending, "", waitingFor("DependencyVersion"), status.InProgressStatus,
				"waits for mesh@>=0.1: mesh is at 0.1.01, Deployed, which is no semantic version, so that no range takes it",
			},
		},
		"nothing deployed, and a range": {
			reason: "nothing deployed is no wrong version",
			in: observation(layer(needs("mesh@>=1")), newDir, others(Other{Layer: layer(named("mesh"), inState(v1alpha1.StateApplying, "Unknown"), func(l *v1alpha1.AddonsLayer) {
				l.Status.ObservedGeneration = 1
			})})),
			want: decided{
				v1alpha1.StateApplyPending, "", waitingFor("DependencyNotDeployed"), status.InProgressStatus,
				"waits for mesh@>=1: mesh has deployed no version yet, Applying: no such chart",
			},
		},
		"any version": {
			reason: "a bare name is content with any version", in: observation(layer(needs("mesh")), newDir, others(Other{Layer: mesh(atVersion("7"))})),
			want: decided{v1alpha1.StateApplying, "Write a, Write b", waitingFor("Applying"), status.InProgressStatus, "HelmRelease default/a has yet to be applied"},
		},
		"any version, but some": {
			reason: "nothing deployed is no version",
			in:     observation(layer(needs("mesh")), newDir, others(Other{Layer: mesh(atVersion(""))})),
			want:   decided{v1alpha1.StateApplyPending, "", waitingFor("DependencyNotDeployed"), status.InProgressStatus, "waits for mesh: mesh has deployed no version yet, Deployed"},
		},
	}
	runDecideCases(t, cases)
}

func TestDecideWhileWaiting(t *testing.T) {
	changed := directoriestest.Of(newRevision, directoriestest.HelmRelease("a", "chart", "newer"), directoriestest.HelmRelease("b"))
	running := layer(isDeployed(directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("c"))), needs("mesh@1.0.0"))
	deployedDir := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("c"))
	const message = "waits for mesh@1.0.0: there is no layer mesh"
	runDecideCases(t, map[string]decideCase{
		"content that is deployed is repaired": {
			reason: "the content of before comes back, not the new one; prune does not look at dependencies",
			in:     observation(running, changed, lives(live("a", drifted), live("c")), func(o *Observation) { o.Deployed = deployedDir }),
			want:   decided{v1alpha1.StateApplyPending, "Write a, Mark c", waitingFor("DependencyNotFound"), status.InProgressStatus, message},
		},
		"content that is no longer known is left": {
			reason: "what cannot be compared is not changed", in: observation(running, changed, lives(live("a", drifted), live("c"))),
			want: decided{v1alpha1.StateApplyPending, "Mark c", waitingFor("DependencyNotFound"), status.InProgressStatus, message},
		},
		"an orphan is adopted": {
			reason: "ownership changes before dependencies are looked at",
			in: observation(running, changed, lives(live("a"), live("c"), live("b", of("mesh"), marked)), func(o *Observation) {
				o.Deployed, o.Others.Existing = deployedDir, map[string]bool{"mesh": true}
			}),
			want: decided{v1alpha1.StateApplyPending, "Adopt b, Mark c", waitingFor("DependencyNotFound"), status.InProgressStatus, message},
		},
	})
	decision, _, _ := decide(t, observation(running, changed, lives(live("a", drifted), live("c")), func(o *Observation) { o.Deployed = deployedDir }))
	if got := decision.Plan.Of(dependents.VerbWrite)[0].Wanted.Manifest().Object["spec"]; got.(map[string]any)["chart"] != nil {
		t.Errorf("new content is written while the layer waits: %v", got)
	}
}

func TestDecideProgress(t *testing.T) {
	under := func(state v1alpha1.State, started time.Duration) layerChange {
		return func(l *v1alpha1.AddonsLayer) {
			isDeployed(oldDir)(l)
			inState(state, "Unknown")(l)
			l.Status.Attempt = &v1alpha1.Attempt{
				Version: "1.0.0", Revision: oldRevision, Digest: newDir.Digest,
				StartTime: metav1.NewTime(testNow.Add(-started).Truncate(time.Second)),
			}
			content, _ := Content(newDir, "base", "1.0.0", nil)
			l.Status.Resources = nil
			for _, d := range content {
				l.Status.Resources = append(l.Status.Resources, Resources([]dependents.Entry{{ID: d.ID, Digest: d.Digest, Generation: 1, Status: "InstallFailed", Since: longAgo.Time}})...)
			}
		}
	}
	young := layer(under(v1alpha1.StateApplying, time.Minute))
	old := layer(under(v1alpha1.StateApplying, 6*time.Minute+time.Second))
	const bad = "HelmRelease default/b is not ready: no such chart"
	runDecideCases(t, map[string]decideCase{
		"in time": {
			reason: "a release that is not ready is Applying", in: observation(young, newDir, lives(live("a"), live("b", failing))),
			want: decided{v1alpha1.StateApplying, "", waitingFor("Applying"), status.InProgressStatus, bad},
		},
		"out of time": {
			reason: "the default is the releases' own timeout and a minute; it may still heal",
			in:     observation(old, newDir, lives(live("a"), live("b", failing))),
			want:   decided{v1alpha1.StateFailed, "", failedWith("Timeout"), status.InProgressStatus, "not deployed within 6m0s: " + bad},
		},
		"given up": {
			reason: "what its controller has given up is failed at once", in: observation(young, newDir, lives(live("a"), live("b", gaveUp))),
			want: decided{v1alpha1.StateFailed, "", failedWith("ReleaseFailed"), status.InProgressStatus, "HelmRelease default/b has failed: no such chart"},
		},
		"heals": {
			reason: "Failed goes on watching",
			in:     observation(layer(under(v1alpha1.StateFailed, time.Hour)), newDir, lives(live("a"), live("b"))),
			want:   decided{v1alpha1.StateDeployed, "", readyConditions, status.CurrentStatus, "version 1.0.0 of revision main@sha1:new is deployed: 2 releases"},
		},
		"suspended": {
			reason: "a suspended release neither blocks nor counts", in: observation(young, newDir, lives(live("a"), live("b", failing, suspendedByHand))),
			want: decided{v1alpha1.StateDeployed, "", readyConditions, status.CurrentStatus, "version 1.0.0 of revision main@sha1:new is deployed: 2 releases, 1 of them suspended"},
		},
		"deployed, then failing": {
			reason: "a deployed layer has a deadline of its own, however long ago it was deployed",
			in: observation(layer(isDeployed(newDir), func(l *v1alpha1.AddonsLayer) { l.Spec.Timeout = &metav1.Duration{Duration: time.Second} }),
				newDir, lives(live("a"), live("b", failing))),
			want: decided{v1alpha1.StateApplying, "", waitingFor("Applying"), status.InProgressStatus, bad},
		},
		"deployed, then drifting": {
			reason: "drift is corrected", in: observation(layer(isDeployed(newDir)), newDir, lives(live("a"), live("b", drifted))),
			want: decided{v1alpha1.StateApplying, "Write b", waitingFor("Applying"), status.InProgressStatus, "HelmRelease default/b has yet to be applied"},
		},
		"pruning": {
			reason: "only something leaving is left", in: observation(layer(isDeployed(newDir)), oldDir, lives(live("a"), live("b"))),
			want: decided{
				v1alpha1.StatePruning, "Mark b", waitingFor("Pruning"), status.InProgressStatus,
				"HelmRelease default/b waits until 2026-01-02T03:05:06Z for another layer to adopt it",
			},
		},
		"kept for others": {
			reason: "an orphan that another layer lists does not count against Deployed",
			in: observation(layer(isDeployed(newDir)), oldDir, lives(live("a"), live("b")), func(o *Observation) {
				o.Others = dependents.Others{Existing: map[string]bool{"mesh": true}, Listed: map[objects.ID][]dependents.Claim{releaseID("b"): {{Owner: "mesh"}}}}
			}),
			want: decided{v1alpha1.StateDeployed, "Mark b", readyConditions, status.CurrentStatus, "version 1.0.0 of revision main@sha1:old is deployed: 1 release, 1 objects kept for other layers"},
		},
		"conflict": {
			reason: "both layers and both files are named, and nothing is changed",
			in: observation(layer(), newDir, lives(live("b", of("mesh"))), func(o *Observation) {
				o.Others = dependents.Others{Existing: map[string]bool{"mesh": true}, Listed: map[objects.ID][]dependents.Claim{releaseID("b"): {{Owner: "mesh", Origin: "mesh/b.yaml"}}}}
			}),
			want: decided{
				v1alpha1.StateFailed, "", stalledWith("OwnershipConflict"), status.FailedStatus,
				"HelmRelease default/b is listed by layer base (base/b.yaml) and belongs to layer mesh (mesh/b.yaml)",
			},
		},
		"kind that never comes": {
			reason: "after the timeout, kind and file are named",
			in: observation(layer(func(l *v1alpha1.AddonsLayer) {
				isDeployed(directoriestest.Of(oldRevision, directoriestest.Any("acme.io/v1", "Issuer", "", "ca")))(l)
				inState(v1alpha1.StateApplying, "Unknown")(l)
			}), directoriestest.Of(oldRevision, directoriestest.Any("acme.io/v1", "Issuer", "", "ca")), func(o *Observation) {
				o.Scopes[objects.ServedKind{GroupKind: schema.GroupKind{Group: "acme.io", Kind: "Issuer"}}] = objects.ScopeUnknown
			}),
			want: decided{
				v1alpha1.StateFailed, "", failedWith("KindNotServed"), status.InProgressStatus,
				"not deployed within 1m0s: Issuer ca is of kind Issuer.acme.io, which the cluster does not serve (base/ca.yaml)",
			},
		},
	})
}

func TestDecideAttempt(t *testing.T) {
	start := metav1.NewTime(testNow.Truncate(time.Second))
	again := func(state v1alpha1.State, conditions ...metav1.Condition) layerChange {
		return func(l *v1alpha1.AddonsLayer) {
			l.Status.State, l.Status.Conditions = state, conditions
			l.Status.Attempt = &v1alpha1.Attempt{Version: "1.0.0", Revision: oldRevision, Digest: newDir.Digest, StartTime: longAgo}
		}
	}
	stalled := metav1.Condition{Type: "Stalled", Status: "True"}
	cases := map[string]struct {
		reason string
		layer  *v1alpha1.AddonsLayer
		want   metav1.Time
	}{
		"first":                {"it begins now", layer(), start},
		"goes on":              {"the deadline counts from its beginning", layer(again(v1alpha1.StateApplying)), longAgo},
		"pruning":              {"nor does pruning begin it anew", layer(again(v1alpha1.StatePruning)), longAgo},
		"failed":               {"a failure that may heal is no new beginning", layer(again(v1alpha1.StateFailed)), longAgo},
		"mended":               {"an author who mended it has all the time", layer(again(v1alpha1.StateFailed, stalled)), start},
		"after a hold":         {"time that it was held does not count", layer(again(v1alpha1.StateHold)), start},
		"after a dependency":   {"nor time that it waited", layer(again(v1alpha1.StateApplyPending)), start},
		"deployed":             {"a deployed layer begins anew", layer(again(v1alpha1.StateDeployed)), start},
		"another version":      {"another version is another attempt", layer(again(v1alpha1.StateApplying), func(l *v1alpha1.AddonsLayer) { l.Spec.Version = "2" }), start},
		"another content":      {"so is other content", layer(again(v1alpha1.StateApplying), func(l *v1alpha1.AddonsLayer) { l.Status.Attempt.Digest = "x" }), start},
		"same, other revision": {"a revision with the same content is the same attempt", layer(again(v1alpha1.StateApplying)), longAgo},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.layer.DeepCopy()
			decision := Decide(observation(tc.layer, newDir))
			want := &v1alpha1.Attempt{Version: tc.layer.Spec.Version, Revision: newRevision, Digest: newDir.Digest, StartTime: tc.want}
			if diff := cmp.Diff(want, decision.Attempt); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, tc.layer); diff != "" {
				t.Errorf("the layer that was seen is changed:\n%s", diff)
			}
		})
	}
}

func TestDecideHold(t *testing.T) {
	until := annotation(v1alpha1.HoldUntilAnnotation, "2026-01-02T03:04:08Z")
	reason := annotation(v1alpha1.HoldAnnotation, "driver freeze")
	specHold := func(l *v1alpha1.AddonsLayer) { l.Spec.Hold = true }
	drift := lives(live("a", drifted, marked), live("b"))
	known := func(o *Observation) { o.Deployed = oldDir }
	heldConditions := "Deployed=True/Deployed Held=True/Hold Ready=Unknown/Hold"
	runDecideCases(t, map[string]decideCase{
		"by specification": {
			reason: "nothing is applied, pruned, adopted or corrected; what is deployed stays that",
			in:     observation(layer(isDeployed(oldDir), specHold), newDir, drift, known),
			want:   decided{v1alpha1.StateHold, "", heldConditions, status.InProgressStatus, "held: spec.hold is true"},
		},
		"by annotation": {
			reason: "the reason and the end are said", in: observation(layer(isDeployed(oldDir), reason, until), newDir, drift, known),
			want: decided{v1alpha1.StateHold, "", heldConditions, status.InProgressStatus, "held: driver freeze (until 2026-01-02T03:04:08Z)"},
		},
		"never deployed": {
			reason: "a hold deploys nothing", in: observation(layer(reason), newDir),
			want: decided{v1alpha1.StateHold, "", "Deployed=False/Hold Held=True/Hold Ready=Unknown/Hold", status.InProgressStatus, "held: driver freeze"},
		},
		"releases too": {
			reason: "the releases are suspended, and nothing else is done",
			in: observation(layer(isDeployed(oldDir), reason, annotation(v1alpha1.HoldReleasesAnnotation, "true")), newDir,
				lives(live("a", drifted), live("b")), known),
			want: decided{v1alpha1.StateHold, "Suspend a", heldConditions, status.InProgressStatus, "held: driver freeze"},
		},
		"before everything else": {
			reason: "a hold is no error, whatever is wrong", in: observation(layer(reason, k8s("nonsense")), nil, func(o *Observation) { o.Source = nil }),
			want: decided{v1alpha1.StateHold, "", "Deployed=False/Hold Held=True/Hold Ready=Unknown/Hold", status.InProgressStatus, "held: driver freeze"},
		},
	})
	decision, _, _ := decide(t, observation(layer(reason, until), newDir))
	if want := testNow.Truncate(time.Second).Add(3 * time.Second); !decision.Until.Equal(want) {
		t.Errorf("the layer is looked at when the hold ends: want %v, got %v", want, decision.Until)
	}
	over, _, _ := decide(t, observation(layer(reason, annotation(v1alpha1.HoldUntilAnnotation, "2026-01-02T03:04:05Z")), newDir))
	if over.State != v1alpha1.StateApplying || over.Hold.Active {
		t.Errorf("a hold that is over holds nothing: %+v", over)
	}
}

// A version that the cluster no longer serves concerns what is written in it,
// and hides no object of the kind.
func TestVersionsThatAreNotServed(t *testing.T) {
	obj := func(version string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.dev/" + version, "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": "default"},
		}}
	}
	old := &directories.Directory{Digest: "old", Manifests: []directories.Manifest{{File: "w.yaml", Object: obj("v1beta1")}}}
	mended := &directories.Directory{Digest: "new", Manifests: []directories.Manifest{{File: "w.yaml", Object: obj("v1")}}}
	gk := schema.GroupKind{Group: "example.dev", Kind: "Widget"}
	o := Observation{
		Layer:            layer(),
		ObservedContents: ObservedContents{Directory: old, Deployed: old},
		ObservedClusters: ObservedClusters{
			Scopes:   map[objects.ServedKind]objects.Scope{{GroupKind: gk}: objects.ScopeNamespaced},
			Unserved: map[objects.ServedVersion]bool{{GroupVersionKind: gk.WithVersion("v1beta1")}: true},
		},
	}
	if !o.notServed(o.Directory)[objects.ServedKind{GroupKind: gk}] {
		t.Error("a directory in a version that is not served cannot be applied")
	}
	if content := o.deployedContent(); len(content) != 0 {
		t.Errorf("what cannot be applied is no content to repair: %v", content)
	}
	o.Directory = mended
	if o.notServed(o.Directory)[objects.ServedKind{GroupKind: gk}] {
		t.Error("the kind is served at the version that the directory is written in now, whatever was deployed before")
	}
}
