// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Words for a read that is of no status of others.
const (
	// own is a status of a kind of Strata's.
	own = "own"
	// answer is what an API server answers to a question, which is stored nowhere.
	answer = "answer"
	// condition is a condition, whose field status is meant.
	condition = "condition"
	// written is a status that Strata makes.
	written = "written"
	// parts is a field whose parts are read, each of which is found by itself.
	parts = "parts"
)

// untyped has the kinds of which a function reads a field, for reads whose types do not say the kind.
// A path behind a kind is the one that has the class.
var untyped = map[string]string{
	"api/v1alpha1.IsForeign conditions[Ready]":                     own,
	"api/v1alpha1.IsMistaken conditions[Ready]":                    own,
	"cmd/kubectl-strata.fetchOne artifact.revision":                v1alpha1.AnySource,
	"cmd/kubectl-strata.fetchOne lastHandledReconcileAt":           v1alpha1.AnySource,
	"cmd/kubectl-strata.readyOf conditions":                        v1alpha1.AnySource + ":conditions[Ready]",
	"cmd/kubectl-strata.readyOf .":                                 condition,
	"cmd/kubectl-strata.stateOf state":                             own,
	"cmd/kubectl-strata.stateOf version":                           own,
	"cmd/kubectl-strata/firstlayers.handOver ":                     written,
	"cmd/kubectl-strata/firstlayers.isDeployed observedGeneration": own,
	"cmd/kubectl-strata/firstlayers.isDeployed state":              own,
	"cmd/kubectl-strata/firstlayers.layersDeployed state":          own,
	"cmd/kubectl-strata/firstlayers.readyMessage conditions":       own,
	"cmd/kubectl-strata/imports.leave lastHandledReconcileAt":      "Kustomization",
	"cmd/kubectl-strata/imports.remake ":                           written,
	"cmd/kubectl-strata/setup.established conditions":              "CustomResourceDefinition",
	"cmd/kubectl-strata/setup.established .":                       condition,
	"controllers.foundIn *":                                        own,
	"controllers.objectChanged .":                                  v1alpha1.AnyObject + ":kstatus",
	"controllers.tell conditions[CredentialsExpiring]":             own,
	"controllers.tellReady conditions[Ready]":                      own,
	"internal/answers/capabilities.said conditions[Ready]":         own,
	"internal/answers/charts.withRevision artifact":                parts,
	"internal/answers/deprovision.release inventory.entries":       "HelmRelease",
	"internal/answers/events.SubjectsOf helmChart":                 "HelmRelease",
	"internal/answers/gather.UserOf userInfo.username":             answer,
	"internal/answers/gather.asDeployed history":                   "HelmRelease",
	"internal/answers/gather.complete .":                           written,
	"internal/answers/owner.installs history":                      "HelmRelease",
	"internal/answers/releases.ChartVersion history":               "HelmRelease",
	"internal/answers/releases.ChartVersion lastAttemptedRevision": "HelmRelease",
	"internal/answers/snapshot.Condition conditions":               parts,
	"internal/answers/snapshot.Ready .":                            condition,
	"internal/answers/snapshot.Ready conditions[Ready]":            "HelmRelease " + v1alpha1.AnySource + " " + v1alpha1.AnyObject,
	"internal/answers/tree.sourceGate artifact.revision":           v1alpha1.AnySource,
	"internal/answers/upgrade.DeployedBy .":                        condition,
	"internal/answers/upgrade.DeployedBy history":                  "HelmRelease",
	"internal/answers/upgrade.InventoryOf inventory.entries":       "HelmRelease",
	"internal/answers/why.linkOfCause conditions[Ready]":           own,
	"internal/answers/why.troubleOf *":                             "Pod:initContainerStatuses Pod:containerStatuses",
	"internal/answers/why.troubleOf .":                             condition,
	"internal/answers/why.troubleOf conditions[PodScheduled]":      "Pod",
	"internal/answers/why.troubleOf message":                       "Pod",
	"internal/answers/why.troubleOf phase":                         "Pod",
	"internal/answers/why.troubleOf reason":                        "Pod",
	"internal/apply.PatchStatus .":                                 own,
	"internal/capabilities.valuesDigest lastAttemptedConfigDigest": "HelmRelease",
	"internal/claimkeeper.isNews conditions[Ready]":                own,
	"internal/kinds.ReinstallOf history":                           "HelmRelease",
	"internal/kinds.ReinstallOf storageNamespace":                  "HelmRelease",
	"internal/dependents.actionOf conditions[Ready]":               "HelmRelease",
	"internal/dependents.actionOf conditions[Reconciling]":         "HelmRelease " + v1alpha1.AnyObject,
	"internal/discoveries.Parse version.kubernetes":                "ClusterProfile",
	"internal/discoveries.withProperties properties":               "ClusterProfile",
	"internal/forecast.makeReady .":                                written,
	"internal/hooks.Standing observedGeneration":                   v1alpha1.AnyObject,
	"internal/impact.readInventory inventory.entries":              "HelmRelease",
	"internal/informers.isEstablished conditions":                  "CustomResourceDefinition",
	"internal/informers.isEstablished .":                           condition,
	"internal/kinds.InventoryOf inventory.entries":                 "HelmRelease",
	"internal/looks.conditionsOf conditions":                       own,
	"internal/objects.ConditionOf ":                                condition,
	"internal/objects.ConditionOf conditions":                      parts,
	"internal/objects.IsActing conditions[Ready]":                  "HelmRelease",
	"internal/objects.IsActing conditions[Reconciling]":            "HelmRelease",
	"internal/objects.IsActing observedGeneration":                 "HelmRelease",
	"internal/objects.IsScaling conditions[Available]":             v1alpha1.AnyObject,
	"internal/objects.IsScaling conditions[Progressing]":           v1alpha1.AnyObject,
	"internal/objects.IsScaling observedGeneration":                v1alpha1.AnyObject,
	"internal/objects.IsScaling replicas":                          v1alpha1.AnyObject,
	"internal/objects.IsScaling updatedReplicas":                   v1alpha1.AnyObject,
	"internal/objects.assessCondition conditions[Ready]":           "HelmRelease " + v1alpha1.AnyObject,
	"internal/objects.assessCondition conditions[Stalled]":         "HelmRelease " + v1alpha1.AnyObject,
	"internal/objects.assessCondition observedGeneration":          "HelmRelease " + v1alpha1.AnyObject,
	"internal/objects.assessStatus conditions[Ready]":              v1alpha1.AnyObject,
	"internal/objects.assessStatus kstatus":                        v1alpha1.AnyObject,
	"internal/objects.hasCompleted conditions[Complete]":           v1alpha1.AnyObject,
	"internal/objects.leftIn conditions":                           "Namespace",
	"internal/objects.leftIn .":                                    condition,
	"internal/objects.WaitsForChart conditions[Ready]":             "HelmRelease",
	"internal/objects.WaitsForChart lastAttemptedRevision":         "HelmRelease",
	"internal/objects.olderChart lastAttemptedRevision":            "HelmRelease",
	"internal/repos.FluxSource artifact":                           parts,
	"internal/repos.FluxSource conditions":                         parts,
	"internal/repos.FluxSource observedGeneration":                 v1alpha1.AnySource,
	"internal/repos.fetched conditions[ArtifactInStorage]":         v1alpha1.AnySource,
	"internal/repos.ready conditions[Ready]":                       v1alpha1.AnySource,
	"pkg/primary.tell conditions[Ready]":                           own,
}

// byExpressions is what is read by expressions that people write, which no test finds in code.
const byExpressions = v1alpha1.AnyObject + ":*"

// Each field of a status of others that code reads is in a class, and each class is of a field
// that code reads: a new read has to say what may follow from it.
func TestEveryFieldOfOthersThatIsReadHasAClass(t *testing.T) {
	read, used := map[string]bool{byExpressions: true}, map[string]bool{}
	for _, found := range readsOfPrograms(t) {
		if found.kind != "" {
			read[found.kind+":"+found.path] = true
			continue
		}
		of, known := untyped[found.at+" "+found.path]
		if !known {
			t.Errorf("%s reads %q of a status, and it is not known of which kind: enter it in untyped", found.at, found.path)
		}
		used[found.at+" "+found.path] = true
		for _, kind := range strings.Fields(of) {
			if slices.Contains([]string{own, answer, condition, written, parts}, kind) {
				continue
			}
			kind, path, isOther := strings.Cut(kind, ":")
			if !isOther {
				path = found.path
			}
			read[kind+":"+path] = true
		}
	}
	for at := range untyped {
		if !used[at] {
			t.Errorf("%s: nothing reads it any more", at)
		}
	}
	classes := map[string]bool{}
	for _, kind := range v1alpha1.ForeignKinds() {
		for path, class := range v1alpha1.ForeignStatusFields(kind) {
			classes[kind+":"+path] = true
			if (class.IsVerified() || class.IsBelieved()) == (class.By == "") || class == (v1alpha1.StatusClass{}) {
				t.Errorf("%s: %s is in no class, or does not say by what", kind, path)
			}
		}
	}
	if diff := cmp.Diff(read, classes); diff != "" {
		t.Errorf("what is read of statuses of others (-) and the classes in foreignfields.go (+) differ: %s", diff)
	}
}

// What is believed of statuses of others is no more than what docs/security.md tells of. A field
// that is taken off this list stays off.
func TestBelievedFieldsOfOthersBecomeNoMore(t *testing.T) {
	want := map[string][]string{
		"HelmRelease": {
			"conditions[Ready]", "conditions[Reconciling]", "conditions[Stalled]", "inventory.entries", "lastAttemptedConfigDigest",
			"lastAttemptedRevision", "observedGeneration",
		},
		v1alpha1.AnySource: {"artifact.digest", "artifact.revision", "artifact.url", "conditions[ArtifactInStorage]", "observedGeneration"},
		"Kustomization":    {"conditions[Ready]", "lastHandledReconcileAt", "observedGeneration"},
		v1alpha1.AnyObject: {
			"*", "conditions[Available]", "conditions[Complete]", "conditions[Progressing]", "conditions[Ready]", "conditions[Reconciling]", "conditions[Stalled]",
			"kstatus", "observedGeneration", "replicas", "updatedReplicas",
		},
		"CustomResourceDefinition": {"conditions"},
		"ClusterProfile":           {"properties", "version.kubernetes"},
		"Deployment":               {"readyReplicas"},
		"Node":                     {"addresses", "conditions"},
		"Pod":                      {"phase"},
	}
	got := map[string][]string{}
	for _, kind := range v1alpha1.ForeignKinds() {
		for path, class := range v1alpha1.ForeignStatusFields(kind) {
			if class.IsBelieved() {
				got[kind] = append(got[kind], path)
			}
		}
		slices.Sort(got[kind])
		if got[kind] == nil {
			delete(got, kind)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
