// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package primaries decides what becomes of the objects that a primary wants, and what its
// status says of them: a primary is an object of a kind, and its objects are dependents in
// the sense of package dependents. It reads no clock, no cluster and no file.
package primaries

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/printable"
)

// maxMessage bounds what the status says of one object, in bytes.
const maxMessage = 1024

// Object is one that a primary wants.
type Object struct {
	// ID by which others of the same Of name it.
	ID string
	// Of says who of the primary has it made; empty for the primary itself.
	Of string
	// Object as it should be; nil where it cannot be made yet.
	Object *unstructured.Unstructured
	// Cluster that it goes to, as in objects.ID.
	Cluster string
	// Waits says why Object cannot be made yet; empty where it can.
	Waits string
	// DependsOn names the objects that must be ready before, and that go later.
	DependsOn []string
	// Mode is how it is brought about; the zero value is ModeApply.
	Mode dependents.Mode
	// Ready says how the live object fares; nil where its kind says.
	Ready func(live *unstructured.Unstructured) objects.Standing
	// Inherits is true for an object that goes over from whoever of the primary had it before.
	// Any other one is left as it is, and kept, where somebody else of the primary has it.
	Inherits bool
	// Replaces is true for an object that what was wanted by its ID before, and by another
	// name, goes for.
	Replaces bool
	// Withheld says why an object that is only observed is not to be had; empty where it is.
	Withheld string
	// Confidential is true where nobody may be told what Object holds, as with Secrets.
	Confidential bool
}

// Identity returns the ID of the object on its cluster; zero where it cannot be made yet.
func (o Object) Identity() objects.ID {
	if o.Object == nil {
		return objects.ID{}
	}
	return objects.IDOf(o.Object).On(o.Cluster)
}

// Look is everything that is decided from.
type Look struct {
	// Owner is the value of the owner's label.
	Owner string
	Keys  dependents.Keys
	Now   time.Time
	// Objects that are wanted.
	Objects []Object
	// Known is what the status has listed until now.
	Known []v1alpha1.Dependent
	// Live holds the objects of both as they are, and those in their place, whoever has
	// them; perhaps as metadata only.
	Live map[objects.ID]*unstructured.Unstructured
	// Stale holds those of which Live is known to be older than the last write.
	Stale map[objects.ID]bool
	// NotServed holds kinds that their cluster does not serve.
	NotServed map[objects.ServedKind]bool
	// Reserved holds objects that others keep for themselves, with what they are.
	Reserved map[objects.ID]string
	// MayPrune allows to delete all that is not wanted; otherwise only what was replaced is.
	MayPrune bool
	// Stays says of objects that are not wanted why they are there; empty where they are no
	// longer listed.
	Stays string
	// DigestKey keys the digests of Secrets.
	DigestKey digests.Key
}

// Plan decides what to do.
func (l Look) Plan() dependents.Plan {
	identities := l.identities()
	in := dependents.Input{
		Owner: l.Owner, Keys: l.Keys, Now: l.Now, Grace: -1, Keep: map[objects.ID]bool{}, Inventory: l.inventory(),
		Found:  dependents.Found{Live: l.Live, Stale: l.Stale, NotServed: l.NotServed},
		Limits: dependents.Limits{MayWrite: true, MayPrune: true, Reserved: l.reserved()},
	}
	for _, object := range l.Objects {
		if object.Object == nil {
			for _, known := range l.Known {
				in.Keep[IdentityOf(known)] = in.Keep[IdentityOf(known)] || keyOf(known) == object.key()
			}
			continue
		}
		if l.hadBy(object) != "" {
			in.Keep[object.Identity()] = true
			continue
		}
		in.Wanted = append(in.Wanted, l.dependent(object, identities))
	}
	return dependents.Make(in)
}

// hadBy returns who else of the primary has an object that is wanted; empty for nobody.
func (l Look) hadBy(object Object) string {
	if object.Inherits {
		return ""
	}
	for _, known := range l.Known {
		if known.Of != object.Of && IdentityOf(known) == object.Identity() {
			return known.Of
		}
	}
	return ""
}

// key tells an object from all others of its primary, also from those of the same ID that
// somebody else of it has made. Neither part has a slash.
func (o Object) key() string { return joined(o.Of, o.ID) }

func keyOf(known v1alpha1.Dependent) string { return joined(known.Of, known.ID) }

func joined(of, id string) string {
	if of == "" {
		return id
	}
	return of + "/" + id
}

// split takes a key apart.
func split(key string) (of, id string) {
	of, id, found := strings.Cut(key, "/")
	if !found {
		return "", key
	}
	return of, id
}

// identities returns the objects by their keys: as they are wanted, and else as they were.
func (l Look) identities() map[string]objects.ID {
	found := map[string]objects.ID{}
	for _, known := range l.Known {
		found[keyOf(known)] = IdentityOf(known)
	}
	for _, object := range l.Objects {
		if object.Object != nil {
			found[object.key()] = object.Identity()
		}
	}
	return found
}

// reserved adds to Reserved what is there already and is not the primary's: nothing is taken
// over, since who names an object need not be who has it.
func (l Look) reserved() map[objects.ID]string {
	found := maps.Clone(l.Reserved)
	if found == nil {
		found = map[objects.ID]string{}
	}
	for id, live := range l.Live {
		if why := Foreign(l.Owner, l.Keys, live); why != "" && found[id] == "" {
			found[id] = why
		}
	}
	return found
}

// Foreign says of a live object that it is not the primary's; empty where it is.
func Foreign(owner string, keys dependents.Keys, live *unstructured.Unstructured) string {
	switch has := live.GetLabels()[keys.Owner]; has {
	case owner:
		return ""
	case "":
		return "there already, and somebody else's"
	default:
		return "there already, and another one's (" + keys.Owner + "=" + has + ")"
	}
}

func (l Look) dependent(object Object, identities map[string]objects.ID) dependents.Dependent {
	id := object.Identity()
	labelled := object.Object.DeepCopy()
	labels := labelled.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[l.Keys.Owner] = l.Owner
	labelled.SetLabels(labels)
	made := dependents.Dependent{
		ID: id, Object: dependents.ContentOf(labelled), Digest: l.DigestKey.OfObject(labelled, object.Confidential), Confidential: object.Confidential,
		Stage: kinds.StageOf(id.GroupKind()), Detached: true, Mode: object.Mode, Withheld: object.Withheld, Assess: kinds.AssessOf(labelled), Ready: object.Ready,
		NotesOrigin: kinds.TakesAlong(id.GroupKind()), Origin: object.key(),
	}
	for _, on := range object.DependsOn {
		if id, known := identities[joined(object.Of, on)]; known {
			made.DependsOn = append(made.DependsOn, id)
		}
	}
	return made
}

// IdentityOf returns the ID of an object that a status lists.
func IdentityOf(known v1alpha1.Dependent) objects.ID {
	return objects.ID{Cluster: known.Cluster, Group: known.Group, Kind: known.Kind, Namespace: known.Namespace, Name: known.Name}
}

// inventory reads what the status lists.
func (l Look) inventory() []dependents.Entry {
	byID := map[string]objects.ID{}
	for _, known := range l.Known {
		byID[keyOf(known)] = IdentityOf(known)
	}
	replaced := map[string]bool{}
	for _, object := range l.Objects {
		replaced[object.key()] = object.Replaces
	}
	entries := make([]dependents.Entry, 0, len(l.Known))
	for _, known := range l.Known {
		id := IdentityOf(known)
		entry := dependents.Entry{
			ID: id, Digest: known.Digest, UID: known.UID, Generation: known.Generation, ResourceVersion: known.ResourceVersion,
			Completed: known.Completed, Status: known.Status, Since: known.LastTransitionTime.Time, Origin: keyOf(known),
			Stays: !l.MayPrune && !replaced[keyOf(known)],
			// Without a rank: what goes after what is said by DependsOn alone, so that no object
			// waits for one that waits for it.
		}
		for _, on := range known.DependsOn {
			if id, listed := byID[joined(known.Of, on)]; listed {
				entry.DependsOn = append(entry.DependsOn, id)
			}
		}
		if live := l.Live[id]; live != nil {
			entry.Deletion, entry.Spared = kinds.DeletionOf(id.GroupKind(), live)
			entry.Assess = kinds.AssessOf(live)
		}
		entries = append(entries, entry)
	}
	return entries
}

// Report returns what the status lists after a plan was carried out, and how the objects
// stand. Nothing of it hangs on the order of the objects.
func (l Look) Report(plan dependents.Plan, results []dependents.Result) ([]v1alpha1.Dependent, []objects.Standing) {
	standings := l.standings(plan, results)
	return list(dependents.Record(plan.Inventory, results), messagesOf(standings)), standings
}

// Planned returns what the status lists before a plan is carried out, so that nothing is made
// that no status knows.
func Planned(plan dependents.Plan) []v1alpha1.Dependent {
	return list(plan.Inventory, messagesOf(plan.Standings))
}

// messagesOf returns what a status says of objects. A word that comes and goes with each scaling
// is not worth a write.
func messagesOf(standings []objects.Standing) map[objects.ID]string {
	messages := map[objects.ID]string{}
	for _, standing := range standings {
		if standing.Message != objects.Scaling {
			messages[standing.ID] = printable.Line(standing.Message, maxMessage)
		}
	}
	return messages
}

// standings says how the objects stand after a plan was carried out.
func (l Look) standings(plan dependents.Plan, results []dependents.Result) []objects.Standing {
	outcome := map[objects.ID]dependents.Result{}
	for _, result := range results {
		if last, seen := outcome[result.Action.ID]; !seen || last.Err == nil {
			outcome[result.Action.ID] = result
		}
	}
	waits := map[string]string{}
	for _, object := range l.Objects {
		if object.Object == nil {
			waits[object.key()] = object.Waits
		}
	}
	standings := slices.Clone(plan.Standings)
	for i := range standings {
		standing := &standings[i]
		if why := waits[standing.Origin]; why != "" && standing.Health == objects.Progressing && !standing.Unwanted {
			standing.Message = why // it stays as it is until then
		}
		result, done := outcome[standing.ID]
		switch {
		case done && result.Err != nil:
			standing.Health, standing.Status, standing.Message = objects.Failed, objects.StatusFailed, result.Err.Error()
		case done && !result.Outdated && result.Action.Verb == dependents.VerbWrite:
			standing.Health, standing.Message = objects.Progressing, "was applied a moment ago"
		case l.Stays != "" && standing.Unwanted && standing.Health == objects.Ignored && standing.Status != objects.StatusKept:
			standing.Message = l.Stays
		}
	}
	for _, object := range l.Objects {
		if had := l.hadBy(object); object.Object != nil && had != "" {
			standings = append(standings, objects.Standing{
				ID: object.Identity(), Health: objects.Failed, Status: objects.StatusFailed, Message: "is there already, made by " + had + ", and is left alone",
				Origin: object.key(),
			})
		}
	}
	if _, unready := Sum(standings); unready {
		return standings // what waits is told of by what it waits for
	}
	for _, object := range l.Objects {
		if object.Waits != "" {
			standings = append(standings, objects.Standing{
				ID: objects.ID{Name: object.ID}, Health: objects.Blocked, Status: objects.StatusMissing, Message: object.Waits, Origin: object.key(),
			})
		}
	}
	return standings
}

// Sum returns the standing that decides for all, as a sentence names it; false where each
// object is as it should be.
func Sum(standings []objects.Standing) (objects.Standing, bool) {
	worst, found := objects.Worst(standings)
	if !found || worst.Health <= objects.Ignored {
		return objects.Standing{}, false
	}
	named := worst.ID.String()
	if worst.ID.Kind == "" {
		_, named = split(worst.Origin)
	}
	worst.Message = strings.TrimSpace(fmt.Sprintf("%s %s", named, worst.Message))
	return worst, true
}

// list writes an inventory as a status has it, in the order of the IDs.
func list(entries []dependents.Entry, messages map[objects.ID]string) []v1alpha1.Dependent {
	named := map[objects.ID]string{}
	for _, entry := range entries {
		_, named[entry.ID] = split(entry.Origin)
	}
	listed := make([]v1alpha1.Dependent, 0, len(entries))
	for _, entry := range entries {
		of, id := split(entry.Origin)
		one := v1alpha1.Dependent{
			ID: id, Of: of, Group: entry.ID.Group, Kind: entry.ID.Kind, Namespace: entry.ID.Namespace, Name: entry.ID.Name, Cluster: entry.ID.Cluster,
			Status: entry.Status, Message: messages[entry.ID], LastTransitionTime: metav1.NewTime(entry.Since.Truncate(time.Second)),
			Digest: entry.Digest, UID: entry.UID, Generation: entry.Generation, ResourceVersion: entry.ResourceVersion, Completed: entry.Completed,
		}
		for _, on := range entry.DependsOn {
			if id := named[on]; id != "" && on != entry.ID {
				one.DependsOn = append(one.DependsOn, id)
			}
		}
		slices.Sort(one.DependsOn)
		one.DependsOn = slices.Compact(one.DependsOn)
		listed = append(listed, one)
	}
	slices.SortFunc(listed, func(a, b v1alpha1.Dependent) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.ID, b.ID), IdentityOf(a).Compare(IdentityOf(b)))
	})
	return listed
}
