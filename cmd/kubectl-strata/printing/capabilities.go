// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/capabilities"
	"github.com/strata-project/strata/internal/primaries"
	"github.com/strata-project/strata/internal/providers"
)

// OfferRows returns a row for each provider, in the columns CAPABILITY, PROVIDER, VERSIONS,
// DEFAULT, SERVES, CLAIMS, READY, WHY, PLUG-IN and DESCRIPTION.
func OfferRows(offers []capabilities.Offer) [][]string {
	rows := [][]string{}
	for _, offer := range offers {
		isDefault, why := "", offer.Message
		if offer.Default {
			isDefault = "yes"
		}
		if offer.Ready == "True" {
			why = ""
		}
		rows = append(rows, []string{
			offer.Capability, offer.Name, few(offer.Versions), isDefault, offer.Serves, strconv.Itoa(len(offer.Claims)),
			offer.Ready, why, programOf(offer.Plugin), offer.Description,
		})
	}
	return rows
}

// programOf names the program that serves new claims; empty for a provider without one.
func programOf(plugin *v1alpha1.CapabilityPluginStatus) string {
	if plugin == nil {
		return ""
	}
	return strings.TrimSpace(plugin.Name+" "+plugin.Version) + " " + plugin.Digest[:min(len(plugin.Digest), shownDigest)]
}

// shownDigest is how much of a digest is shown.
const shownDigest = len("sha256:") + 12

// ClaimRows returns a row for each claim, in the columns NAMESPACE, NAME, CAPABILITY, WANTED,
// PROVIDER, VERSION, READY, AGE, WHY, BINDING, LAYER and RELEASES.
func ClaimRows(claims []capabilities.Claim, now time.Time) [][]string {
	rows := [][]string{}
	for _, claim := range claims {
		why := claim.Message
		if claim.IsReady() {
			why = claim.Outdated
		}
		if why == "" && claim.Rotating != "" {
			why = "passwords of before are still valid: " + claim.Rotating
		}
		age := ""
		if claim.Since != nil {
			age = duration.HumanDuration(claim.Age(now))
		}
		rows = append(rows, []string{
			claim.Namespace, claim.Name, claim.Capability, claim.Wanted, claim.Provider, claim.Version, claim.Ready, age, why, claim.Binding, claim.Layer,
			few(claim.Releases),
		})
	}
	return rows
}

// CandidateRows returns a row for each provider that a claim may have, in the columns
// PROVIDER, WOULD GET and AGAINST IT.
func CandidateRows(candidates []capabilities.Candidate) [][]string {
	rows := [][]string{}
	for _, candidate := range candidates {
		gets := candidate.Version
		if candidate.Against == "" && gets == "" {
			gets = "an instance"
		}
		rows = append(rows, []string{candidate.Provider, gets, candidate.Against})
	}
	return rows
}

// DependentRows returns a row for each object of a claim, in the columns ID, OBJECT, OF, STATUS
// and WHY.
func DependentRows(dependents []v1alpha1.Dependent) [][]string {
	rows := [][]string{}
	for _, dependent := range dependents {
		rows = append(rows, []string{
			dependent.ID, strings.TrimSpace(primaries.IdentityOf(dependent).String()), dependent.Of, dependent.Status, dependent.Message,
		})
	}
	return rows
}

// CheckRows returns a row for each promise of a plug-in, in the columns KEPT, CHECK and MESSAGE.
func CheckRows(checks []providers.Check) [][]string {
	rows := [][]string{}
	for _, check := range checks {
		kept := "yes"
		if !check.Passed {
			kept = "no"
		}
		rows = append(rows, []string{kept, check.Name, check.Message})
	}
	return rows
}

// StepRows returns a row for each object of a claim that moves, in the columns VERB, ID, OF,
// OBJECT and NOTE.
func StepRows(steps []capabilities.Step) [][]string {
	rows := [][]string{}
	for _, step := range steps {
		rows = append(rows, []string{step.Verb, step.ID, step.Of, step.Object, step.Note})
	}
	return rows
}
