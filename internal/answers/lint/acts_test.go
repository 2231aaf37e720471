// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
)

// specs are of one object of each kind that people decide on by annotations.
var specs = map[string]string{
	"AddonsLayer":      "{version: 1.0.0, source: {name: platform, path: ./a}}",
	"Platform":         "{bundle: {family: base, version: 1.0.0}, rollout: {stages: [{name: canary}, {name: production, approval: true}]}}",
	"RemoteCluster":    "{kubeConfig: {secretRef: {name: none}}}",
	"ClusterDiscovery": "{kind: HostCluster, selector: {}}",
	"CapabilityClaim":  "{capability: database/none}",
	"HostCluster":      "{version: v1.36.3, ssh: {user: root, secretRef: {name: none}}, controlPlane: [{name: a, address: 192.0.2.1}]}",
}

// actsOf returns what lint says of one annotation of an object.
func actsOf(t *testing.T, kind, spec, annotation, value string) []string {
	t.Helper()
	object := fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: %s\nmetadata:\n  name: one\n  annotations:\n    %s: %q\nspec: %s\n", kind, annotation, value, spec)
	found, _ := run(t, Options{Files: repository(map[string]string{"one.yaml": object, "a/a.yaml": release("a", "")})})
	var said []string
	for _, each := range found {
		if strings.Contains(each, " act-in-git: ") {
			_, text, _ := strings.Cut(each, "]: ")
			said = append(said, text)
		}
	}
	return said
}

// valuesInGit has, of each act, a value that git is no place for, and one that may be there.
var valuesInGit = map[string]struct{ never, may string }{
	v1alpha1.HoldAnnotation:            {"", "driver freeze"},
	v1alpha1.HoldUntilAnnotation:       {"", "2026-12-24T18:00:00Z"},
	v1alpha1.HoldReleasesAnnotation:    {"", "true"},
	v1alpha1.AllowEmptyAnnotation:      {"next", "main@sha1:0123456"},
	v1alpha1.AllowPruneAnnotation:      {"next", "main@sha1:0123456"},
	v1alpha1.AllowReinstallAnnotation:  {"next", "main@sha1:0123456"},
	v1alpha1.AllowBreakAnnotation:      {"true", "false"},
	v1alpha1.ForceDeleteAnnotation:     {"true", "false"},
	v1alpha1.ConfirmDeletionAnnotation: {"true", ""},
	v1alpha1.AbandonAnnotation:         {"true", "false"},
	v1alpha1.RollbackToAnnotation:      {"3", ""},
	v1alpha1.ApproveAnnotation:         {"production", "production@1.0.0"},
	v1alpha1.ApproveReasonAnnotation:   {"seen", `{"production@1.0.0":"seen"}`},
	v1alpha1.ApprovedByAnnotation:      {"ann", `{"production@1.0.0":"ann"}`},
	v1alpha1.AcceptClusterAnnotation:   {"uid", ""},
	v1alpha1.TakeOverAnnotation:        {"uid", ""},
	v1alpha1.TakeOverClusterAnnotation: {"any", ""},
	v1alpha1.WithoutSnapshotAnnotation: {"next", "false"},
	v1alpha1.RebindAnnotation:          {"cnpg", ""},
}

// Each act is judged on each of its kinds: one that is used up, or leaves a guard open, is
// warned of, and one that stands, or names what it is for, is not.
func TestEveryActInGitIsJudged(t *testing.T) {
	for _, act := range v1alpha1.Acts() {
		values, known := valuesInGit[act.Annotation]
		if !known {
			t.Errorf("it is not said what of %s git is no place for", act.Annotation)
			continue
		}
		if stands := act.InGit == v1alpha1.ActStands; stands != (values.never == "") {
			t.Errorf("%s %s, and there is no value that git is no place for: %q", act.Annotation, act.InGit, values.never)
		}
		for _, kind := range act.On {
			if specs[kind] == "" {
				t.Fatalf("there is no %s to try %s on", kind, act.Annotation)
			}
			if values.never != "" {
				if said := actsOf(t, kind, specs[kind], act.Annotation, values.never); len(said) != 1 {
					t.Errorf("%s=%s of %s is told as %v", act.Annotation, values.never, kind, said)
				}
			}
			if said := actsOf(t, kind, specs[kind], act.Annotation, values.may); len(said) > 0 {
				t.Errorf("%s=%s of %s is told as %v", act.Annotation, values.may, kind, said)
			}
		}
	}
}

func TestActsInGit(t *testing.T) {
	const platform = "{bundle: {family: base, version: %q}, rollout: {%s stages: [{name: canary}, {name: production, approval: true}]}}"
	exact, ranged, open := fmt.Sprintf(platform, "1.1.0", ""), fmt.Sprintf(platform, "^1", ""), fmt.Sprintf(platform, "", "")
	staged := fmt.Sprintf(platform, "1.1.0", "stageInputs: true,")
	for _, tc := range []struct {
		reason, kind, spec, annotation, value string
		want                                  []string
	}{
		{"what is given again", "AddonsLayer", specs["AddonsLayer"], v1alpha1.AllowPruneAnnotation, "next", []string{
			`"kraan.io/allow-prune" is a decision for one moment, and git would give it again each time: take it out, and run kubectl annotate addonslayer one kraan.io/allow-prune=next when it is needed`,
		}},
		{"what leaves a guard open", "Platform", exact, v1alpha1.ConfirmDeletionAnnotation, "true", []string{
			`"kraan.io/confirm-deletion" opens a guard for as long as it is there, and in git that is for good: take it out, and run kubectl annotate platform one kraan.io/confirm-deletion=true when it is needed`,
		}},
		{"the ID of a cluster confirms that its hosts are reset", "HostCluster", specs["HostCluster"], v1alpha1.ConfirmDeletionAnnotation, "edge 1", []string{
			`"kraan.io/confirm-deletion" opens a guard for as long as it is there, and in git that is for good: take it out, and run kubectl annotate hostcluster one 'kraan.io/confirm-deletion=edge 1' when it is needed`,
		}},
		{"a word that opens nothing", "CapabilityClaim", specs["CapabilityClaim"], v1alpha1.AbandonAnnotation, "yes", nil},
		{"an act of another kind does nothing", "RemoteCluster", specs["RemoteCluster"], v1alpha1.AllowPruneAnnotation, "next", nil},
		{"a stage and a version", "Platform", exact, v1alpha1.ApproveAnnotation, "production@1.1.0", nil},
		{"and a selector", "Platform", exact, v1alpha1.ApproveAnnotation, " production@1.1.0#0123abcd, ", nil},
		{"a version of the range", "Platform", ranged, v1alpha1.ApproveAnnotation, "production@1.1.0", nil},
		{"any version", "Platform", open, v1alpha1.ApproveAnnotation, "production@1.1.0", nil},
		{"inputs that go in stages", "Platform", staged, v1alpha1.ApproveAnnotation, "production@1.1.0+0123abcd", nil},
		{"no version, a range, a word, no stage", "Platform", open, v1alpha1.ApproveAnnotation, "production,production@^1,production@latest,production@*,production@,@1.1.0", []string{
			`"production" names no stage and version, and approves nothing: write STAGE@VERSION, such as production@1.2.0`,
			`"production@^1" names no stage and version, and approves nothing: write STAGE@VERSION, such as production@1.2.0`,
			`"production@latest" names no stage and version, and approves nothing: write STAGE@VERSION, such as production@1.2.0`,
			`"production@*" names no stage and version, and approves nothing: write STAGE@VERSION, such as production@1.2.0`,
			`"production@" names no stage and version, and approves nothing: write STAGE@VERSION, such as production@1.2.0`,
			`"@1.1.0" names no stage and version, and approves nothing: write STAGE@VERSION, such as production@1.2.0`,
		}},
		{"a version that has yet to come, and one that is over", "Platform", exact, v1alpha1.ApproveAnnotation, "production@1.0.0,production@1.1.0,production@1.2.0", []string{
			`"production@1.0.0" is for a version that the Platform does not go to, which is 1.1.0, and would approve the way there unseen whenever it does: take it out`,
			`"production@1.2.0" is for a version that the Platform does not go to, which is 1.1.0, and would approve the way there unseen whenever it does: take it out`,
		}},
		{"a version outside of the range", "Platform", ranged, v1alpha1.ApproveAnnotation, "production@2.0.0", []string{
			`"production@2.0.0" is for a version that the Platform does not go to, which is ^1, and would approve the way there unseen whenever it does: take it out`,
		}},
		{"no such stage, and one that waits for nobody", "Platform", exact, v1alpha1.ApproveAnnotation, "prod@1.1.0,canary@1.1.0", []string{
			`"prod@1.1.0" is for a stage that the Platform does not have, and would approve the first one of that name unseen: take it out`,
			`"canary@1.1.0" is for a stage that waits for nobody, and would approve it unseen once it does: take it out`,
		}},
		{"inputs go in stages, and are not named", "Platform", staged, v1alpha1.ApproveAnnotation, "production@1.1.0", []string{
			`"production@1.1.0" names no inputs, which go in stages here, too, and approves nothing: the Platform's message has the value to write`,
		}},
		{"who approves whatever comes", "Platform", exact, v1alpha1.ApprovedByAnnotation, "ann", []string{
			`"kraan.io/approved-by" is said of each approval that comes as long as git has it: say of which one, as in {"STAGE@VERSION": "TEXT"}`,
		}},
	} {
		slices.Sort(tc.want) // findings of one place are sorted
		if diff := cmp.Diff(tc.want, actsOf(t, tc.kind, tc.spec, tc.annotation, tc.value)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}
