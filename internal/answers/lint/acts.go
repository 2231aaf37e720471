// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
)

// checkActs says which decisions of people are in git that are meant for one moment: whatever
// applies the repository gives them again as soon as they are used up.
func (l *linter) checkActs() {
	for _, each := range l.objects {
		if each.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
			continue
		}
		annotations := each.GetAnnotations()
		for _, act := range v1alpha1.Acts() {
			if value, says := annotations[act.Annotation]; says && act.GivenAgain(value) {
				l.add(ruleActOnce, each.place, "metadata.annotations["+act.Annotation+"]", "",
					"%q is a decision for one moment, and git would give it again each time: take it out, and run kubectl annotate %s %s %s=VALUE",
					act.Annotation, strings.ToLower(each.GetKind()), each.GetName(), act.Annotation)
			}
		}
	}
}
