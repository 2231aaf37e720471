// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/versions"
)

// checkActs says which decisions of people are in git that do more there than what was decided:
// those for one moment, which whatever applies git gives again as soon as they are used up,
// those that leave a guard open for good, and those that do not name what they are for. A hold
// may be in git, and so may the approval of a stage for a version.
func (l *linter) checkActs() {
	for _, each := range l.objects {
		if each.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
			continue
		}
		annotations := each.GetAnnotations()
		for _, act := range v1alpha1.ActsOn(each.GetKind()) {
			value, says := annotations[act.Annotation]
			if !says {
				continue
			}
			for _, problem := range inGit(each, act, value) {
				l.add(ruleActInGit, each.place, "metadata.annotations["+act.Annotation+"]", "", "%s", problem)
			}
		}
	}
}

// inGit says what is wrong with an act in git.
func inGit(each object, act v1alpha1.Act, value string) []string {
	switch {
	case act.InGit == v1alpha1.ActIsUsedUp && isUsedUp(act, value):
		return []string{fmt.Sprintf("%q is a decision for one moment, and git would give it again each time: take it out, and run %s when it is needed",
			act.Annotation, annotating(each, act.Annotation+"="+value))}
	case act.InGit == v1alpha1.ActOpens && opens(act, each.GetKind(), value):
		return []string{fmt.Sprintf("%q opens a guard for as long as it is there, and in git that is for good: take it out, and run %s when it is needed",
			act.Annotation, annotating(each, act.Annotation+"="+value))}
	case act.Annotation == v1alpha1.ApproveAnnotation:
		platform, ok := as[v1alpha1.Platform](each.Unstructured)
		if !ok {
			return nil // which the schema has said
		}
		return approvals(platform, value)
	case act.InGit == v1alpha1.ActNames && !saysOfEach(value):
		return []string{fmt.Sprintf("%q is said of each approval that comes as long as git has it: say of which one, as in %s",
			act.Annotation, `{"STAGE@VERSION": "TEXT"}`)}
	}
	return nil
}

// annotating returns the command that annotates an object.
func annotating(each object, words ...string) string {
	command := []string{"annotate", strings.ToLower(each.GetKind()), each.GetName()}
	if each.GetNamespace() != "" {
		command = append(command, "--namespace", each.GetNamespace())
	}
	return printable.Command("kubectl", append(command, words...)...)
}

// isUsedUp tells whether an act with a value is removed when it is used. One that allows a
// revision by name is not, and allows no other.
func isUsedUp(act v1alpha1.Act, value string) bool {
	switch act.Annotation {
	case v1alpha1.AllowEmptyAnnotation, v1alpha1.AllowPruneAnnotation, v1alpha1.AllowReinstallAnnotation, v1alpha1.WithoutSnapshotAnnotation:
		return value == v1alpha1.AllowNext
	}
	return value != ""
}

// opens tells whether an act with a value opens a guard. A HostCluster is named by its ID.
func opens(act v1alpha1.Act, kind, value string) bool {
	if act.Annotation == v1alpha1.ConfirmDeletionAnnotation && kind == v1alpha1.HostClusterKind {
		return value != ""
	}
	return value == "true"
}

// saysOfEach tells whether a text says something of approvals by their values.
func saysOfEach(text string) bool {
	each := map[string]string{}
	return text == "" || json.Unmarshal([]byte(text), &each) == nil
}

// approvals says which approvals of a Platform are for nothing that it asks for: they approve
// nothing, or what is asked for some day, unseen.
func approvals(platform *v1alpha1.Platform, value string) []string {
	var problems []string
	for approval := range strings.SplitSeq(value, ",") {
		if approval = strings.TrimSpace(approval); approval == "" {
			continue
		}
		if problem := approvalProblem(platform, approval); problem != "" {
			problems = append(problems, fmt.Sprintf("%q %s", approval, problem))
		}
	}
	return problems
}

func approvalProblem(platform *v1alpha1.Platform, approval string) string {
	plain, _, _ := strings.Cut(approval, "#")
	name, goal, _ := strings.Cut(plain, "@")
	version, inputs, _ := strings.Cut(goal, "+")
	stages := platform.Spec.Rollout.Stages
	at := slices.IndexFunc(stages, func(stage v1alpha1.RolloutStage) bool { return stage.Name == name })
	switch {
	case name == "" || version == "" || versions.IsRange(version) || versions.Semantic(version) == nil:
		return "names no stage and version, and approves nothing: write STAGE@VERSION, such as " + cmp.Or(name, "production") + "@1.2.0"
	case at < 0:
		return "is for a stage that the Platform does not have, and would approve the first one of that name unseen: take it out"
	case !stages[at].Approval:
		return "is for a stage that waits for nobody, and would approve it unseen once it does: take it out"
	case !goesTo(platform, version):
		return fmt.Sprintf("is for a version that the Platform does not go to, which is %s, and would approve the way there unseen whenever it does: take it out",
			platform.Spec.Bundle.Version)
	case platform.Spec.Rollout.StageInputs && inputs == "":
		return "names no inputs, which go in stages here, too, and approves nothing: the Platform's message has the value to write"
	}
	return ""
}

// goesTo tells whether a Platform may go to a version of its bundle.
func goesTo(platform *v1alpha1.Platform, version string) bool {
	bundle := platform.Spec.Bundle
	switch {
	case bundle == nil || bundle.Version == "":
		return true
	case versions.IsRange(bundle.Version):
		return versions.RangeTakes(bundle.Version, version)
	}
	return catalogue.Plain(bundle.Version) == catalogue.Plain(version)
}
