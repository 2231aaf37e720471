// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

// Dispute is an object that Strata and another manager change again and again.
type Dispute struct {
	ID objects.ID
	// Rival is who changes which field.
	fields.Rival
	// Times is how often that was undone.
	Times int
	// Until is when it is undone the next time, and Ends when the dispute is forgotten if
	// it need not be undone any more.
	Until, Ends time.Time
}

// dispute reports that a wanted object is disputed, and whether it is.
func (p *planner) dispute(d *Dependent) (Dispute, bool) {
	dispute, is := p.Disputes[d.ID]
	if !is {
		return Dispute{}, false
	}
	dispute.ID = d.ID
	p.plan.Disputes = append(p.plan.Disputes, dispute)
	for _, moment := range []time.Time{dispute.Until, dispute.Ends} {
		if moment.After(p.Now) {
			p.until(moment)
		}
	}
	return dispute, true
}

// planDisputed has a disputed object that differs stand as it is, and corrects it when it
// is time: it is as it was deployed, but for what somebody else wants of it.
func (p *planner) planDisputed(d *Dependent, entry Entry, dispute Dispute, live *unstructured.Unstructured) objects.Standing {
	standing := d.judge(live)
	standing.Current = true
	if !p.Now.Before(dispute.Until) && p.MayWrite && !p.Held {
		p.act(Action{Verb: VerbWrite, ID: d.ID, Stage: d.Stage, Wanted: d, Correction: true, Again: isAgain(d, entry, live)})
	}
	return standing
}
