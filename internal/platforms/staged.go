// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/rollout"
)

// Inputs go to the clusters as versions do where a platform asks for that. What a roll-out
// calls a version is then VERSION+DIGEST, with the digest of all inputs that are given; a
// cluster is at that once it has the version and what of the inputs is for it. Which inputs
// a cluster has is on its layers.

// stagesInputs tells whether inputs go to the clusters in stages.
func (d *decider) stagesInputs() bool { return d.Platform.Spec.Rollout.StageInputs }

// goalAt returns what a roll-out calls a version with the inputs of now.
func (d *decider) goalAt(version string) string {
	if version == "" || !d.stagesInputs() {
		return version
	}
	return version + "+" + d.given.digest
}

// goal returns what a roll-out calls the version to be at in the end.
func (d *decider) goal() string { return d.goalAt(d.target) }

// versionIn returns the version in what a roll-out calls it.
func versionIn(name string) string {
	version, _, _ := strings.Cut(name, "+")
	return version
}

// given returns the inputs that a cluster has; false where its layers do not say.
func (r record) given() (map[string]any, bool) {
	return readInputs(r.inputs)
}

func readInputs(text string) (map[string]any, bool) {
	var inputs map[string]any
	if text == "" || utiljson.Unmarshal([]byte(text), &inputs) != nil || inputs == nil {
		return nil, false
	}
	return inputs, true
}

// has returns what a cluster is at as its layers remember it: its version, with the digest
// of its inputs where these go in stages.
func (d *decider) has(m *member) string {
	switch {
	case m.moving != "":
		return m.from
	case m.current == "" || !d.stagesInputs():
		return m.current
	}
	return m.current + "+" + digestOf(m.inputs, inputsDigits)
}

// called returns what a roll-out calls something that a cluster has had: as it calls that of
// all others where the inputs are those that the cluster is to have.
func (d *decider) called(m *member, had string) string {
	version, digest, _ := strings.Cut(had, "+")
	if version == "" || !d.stagesInputs() {
		return version
	}
	if digest != "" && digest == d.wantedDigest(m, version) {
		return d.goalAt(version)
	}
	return version + "+" + digest
}

// stage fills in what a roll-out sees of a cluster where inputs go in stages: a cluster that
// is at its version with inputs of before goes to the same version.
func (d *decider) stage(m *member, c *rollout.Cluster) {
	if !d.stagesInputs() {
		return
	}
	c.Current, c.Before = d.called(m, d.has(m)), d.called(m, c.Before)
	if m.moving != "" {
		c.Moving = d.called(m, m.moving+"+"+digestOf(m.inputs, inputsDigits))
	}
	m.stale = m.moving == "" && m.current != "" && c.Current != d.goalAt(m.current)
	switch {
	case m.next != "":
		c.Next = d.goalAt(m.next)
	case m.stale:
		c.Next = d.goalAt(m.current)
	}
}

// wantedDigest names the inputs that a cluster is to have at a version; empty where that
// is not known.
func (d *decider) wantedDigest(m *member, version string) string {
	bundle := d.family.find(version)
	if bundle == nil {
		return ""
	}
	return d.resolve(bundle, m.target).digest
}

// layTo lays out what a cluster is moved to: a version with the inputs of now, or what it
// had before.
func (d *decider) layTo(bundle *v1alpha1.ApplicationBundle, m *member, to string) (plan []*laid, problem string) {
	if d.stagesInputs() && to != d.goalAt(bundle.Spec.Version) {
		if had, ok := readInputs(m.inputsBefore); ok {
			return d.layWith(bundle, m, had)
		}
	}
	return d.lay(bundle, m)
}
