// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/oldwords"
	"github.com/strata-project/strata/internal/rollout"
)

// member is one cluster that the platform is installed on.
type member struct {
	target types.NamespacedName
	stage  int
	at     standpoint
	// layers are those that were made for the cluster, by name and without those of
	// picked applications.
	layers []*v1alpha1.AddonsLayer
	// away says that the cluster cannot be reached, and gone that it does not exist
	// or will not for long.
	away, gone string
	// along says what becomes of its layers where they go with it; empty where they do
	// not.
	along v1alpha1.DeletionPolicy
	upstream
	// untouched says why all layers stay as they are; empty where they do not.
	untouched string

	// sent is the version that the cluster was sent to last; empty for none.
	sent string
	record
	// moving is sent as long as it has not been reached, and current what the cluster
	// has been at.
	moving, current string
	course
	// stale is true where it is at its version with inputs of before, and refused where what
	// the specification says of inputs counts nowhere, so that it has what it had.
	stale, refused bool

	// plan are the layers that it has at its version; nil where these stay as they
	// are.
	plan []*laid
	// picked are the layers of picked applications that there are.
	picked []*v1alpha1.AddonsLayer
	// there is what the cluster has besides what is picked.
	there
	// begins is true where it is moved now.
	begins bool
	health
}

// there is what a cluster has besides what is picked: the names of the applications, and by
// these the layers that bring them where they are not the platform's.
type there struct {
	brought    map[string]bool
	underneath map[string][]string
}

// course is where a cluster goes from the version that it was sent to.
type course struct {
	// next is the version to go to, and stuck says why there is none.
	next, stuck string
	// unfit says why the cluster cannot run the version that the platform is to be at, by
	// its version of Kubernetes; empty where it can.
	unfit string
	// path are the versions to go to one after the other from sent on.
	path []string
	// forward is true where a failure does not keep the cluster from going on.
	forward bool
}

// name is how messages and roll-outs name the cluster.
func (m *member) name() string { return nameOf(m.target) }

// tooEarly says why nothing is installed for the first time; empty where it may be, or
// where something is there.
func (m *member) tooEarly() string {
	if len(m.layers)+len(m.picked) > 0 {
		return ""
	}
	return m.early
}

// touchable tells whether the cluster's layers may be written or deleted.
func (m *member) touchable() bool { return m.untouched == "" }

// settle finds which version the cluster is at, and lays out the bundle of that.
func (d *decider) settle(m *member) {
	m.sent, m.record = sentTo(m.layers, d.family.name)
	m.untouched = cmp.Or(m.gone, m.tooEarly())
	if m.sent != "" && m.touchable() {
		if bundle := d.family.find(m.sent); bundle == nil {
			m.untouched = d.family.missing(m.sent)
		} else {
			m.sent = bundle.Spec.Version
			m.plan, m.untouched = d.layAt(bundle, m)
		}
	}
	m.health = d.assess(m)
	m.current = m.sent
	if !d.reached(m) {
		m.moving, m.current = m.sent, versionIn(m.from)
	}
}

// layAt lays out the bundle of the version that a cluster was sent to, with the inputs that
// it was given then where these go in stages.
func (d *decider) layAt(bundle *v1alpha1.ApplicationBundle, m *member) (plan []*laid, problem string) {
	if !d.stagesInputs() {
		m.inputs, m.inputsBefore = "", ""
		return d.lay(bundle, m)
	}
	if had, ok := m.given(); ok {
		return d.layWith(bundle, m, had)
	}
	return d.lay(bundle, m)
}

// lay lays out a bundle on a cluster, and says why that cannot be done.
func (d *decider) lay(bundle *v1alpha1.ApplicationBundle, m *member) (plan []*laid, problem string) {
	if old := oldwords.InBundle(bundle); old != "" {
		problem = fmt.Sprintf("ApplicationBundle %s: %s", bundle.Name, old)
		d.stall(v1alpha1.ReasonInvalidSpec, problem)
		return nil, problem
	}
	known, wrong := d.inputsOf(bundle, m.target)
	if wrong != "" {
		return nil, wrong
	}
	return d.layWith(bundle, m, known)
}

// layWith lays out a bundle on a cluster with some inputs, and notes them on it where they
// go in stages.
func (d *decider) layWith(bundle *v1alpha1.ApplicationBundle, m *member, known map[string]any) (plan []*laid, problem string) {
	if d.stagesInputs() {
		if m.inputs, problem = written(known); problem != "" {
			return nil, problem
		}
	}
	plan, err := lay(d.Observation, d.names, bundle, "", known, m.target)
	if err != nil {
		return nil, err.Error()
	}
	m.connect(plan)
	return plan, ""
}

// assess says how a cluster fares with the layers that it is to have.
func (d *decider) assess(m *member) health {
	h := well()
	switch {
	case m.gone != "":
		h.note(rollout.Unreachable, "%s", m.gone)
	case m.away != "":
		h.note(rollout.Unreachable, "%s", m.away)
	case m.tooEarly() != "":
		h.note(rollout.Progressing, "%s", m.early)
	}
	if m.plan == nil {
		for _, layer := range m.layers {
			h.wants(layer.Name, layer, false)
		}
		return m.unseen(h)
	}
	wanted := map[string]bool{}
	for _, one := range m.plan {
		existing := d.own[one.name]
		switch one.presence {
		case present:
			one.draft, one.changed = draft(existing, one.name, labelled(d.Platform, m.target, d.family.name, one.label), m.annotations(), one.spec)
			h.wants(one.name, existing, one.changed)
		case unknown:
			h.note(rollout.Progressing, "%s", one.why)
			if existing != nil {
				h.wants(one.name, existing, false)
			}
		default:
			continue
		}
		wanted[one.name] = true
	}
	for _, layer := range m.layers {
		if !wanted[layer.Name] {
			h.leaves(layer)
		}
	}
	return m.unseen(h)
}

// unseen lets nothing be known of a cluster that does not answer.
func (m *member) unseen(h health) health {
	if m.away != "" || m.gone != "" {
		h.Condition, h.message = rollout.Unreachable, m.gone+m.away
	}
	return h
}

// reached tells whether every layer of the cluster has been deployed at the version
// that it was sent to. What has been may since have failed.
func (d *decider) reached(m *member) bool {
	if m.plan == nil {
		for _, layer := range m.layers {
			if layer.DeletionTimestamp == nil && layer.Status.Version != layer.Spec.Version {
				return false
			}
		}
		return true
	}
	for _, one := range m.plan {
		if one.presence != present {
			continue
		}
		if layer := d.own[one.name]; layer == nil || layer.Spec.Version != m.sent || layer.Status.Version != m.sent {
			return false
		}
	}
	return true
}

// begin sends a cluster to a version.
func (d *decider) begin(m *member, to string) {
	version := versionIn(to)
	bundle := d.family.find(version)
	if bundle == nil {
		m.note(rollout.Progressing, "cannot be moved to %s: %s", version, d.family.missing(version))
		return
	}
	had, known := m.record, d.has(m)
	plan, problem := d.layTo(bundle, m, to)
	if problem != "" {
		m.record = had
		m.note(rollout.Progressing, "cannot be moved to %s: %s", version, problem)
		return
	}
	m.plan, m.untouched, m.begins = plan, "", true
	inputs := m.inputs
	m.record = had.move(known, d.goal(), d.Now)
	m.inputs = inputs
	m.sent, m.moving = bundle.Spec.Version, bundle.Spec.Version
	m.health = d.assess(m)
	if m.Condition == rollout.Ready {
		m.note(rollout.Progressing, "is moved to %s", version)
	}
}

// write adds the layers of a cluster to the decision.
func (d *decider) write(m *member) {
	if m.along != "" {
		for _, layer := range slices.Concat(m.layers, m.picked) {
			d.along[layer.Name] = m.along
		}
		return
	}
	if !m.touchable() || m.plan == nil {
		for _, layer := range m.layers {
			d.keep[layer.Name] = true
		}
		return
	}
	for _, one := range m.plan {
		if one.presence == absent {
			continue
		}
		d.keep[one.name] = true
		if one.presence == present {
			d.put(one.draft, one.changed)
		}
	}
}

// standAlone is for a platform without a bundle: what there was of one goes.
func (m *member) standAlone() {
	m.plan = []*laid{}
	if m.untouched = cmp.Or(m.gone, m.tooEarly()); m.untouched != "" {
		m.plan = nil
	}
	if early := m.tooEarly(); early != "" {
		m.note(rollout.Progressing, "%s", early)
	}
	for _, layer := range m.layers {
		m.leaves(layer)
	}
	m.health = m.unseen(m.health)
}

// put adds a layer that is to be written. One of that name that is somebody else's
// is left alone, and so is one that is being deleted: it is made anew when it is gone.
func (d *decider) put(layer *v1alpha1.AddonsLayer, changed bool) {
	if other := d.Taken[layer.Name]; other != nil && d.own[layer.Name] == nil {
		d.stall(v1alpha1.ReasonOwnershipConflict, fmt.Sprintf("AddonsLayer %s is there and is not of this platform: delete or rename it", layer.Name))
		return
	}
	if changed && layer.DeletionTimestamp == nil {
		d.decision.Write = append(d.decision.Write, layer)
	}
}
