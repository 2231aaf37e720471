// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

const (
	// keepForReleases is for how long passwords of before stay valid at least where releases
	// read the binding. One that was being upgraded when the binding changed may have been
	// given the old values: it is looked at again within that time.
	keepForReleases = time.Minute
	// keepForOthers is as keepForReleases, where no release reads the binding: whoever else
	// does has to read it again by then.
	keepForOthers = time.Hour
	// maxReaders bounds how many releases a binding remembers.
	maxReaders = 500
)

// Rotation says which passwords a binding has, and who had others before. It is written with
// them, so that both are there or neither is.
type Rotation struct {
	Number int64 `json:"number"`
	// Since is when the binding was given them.
	Since time.Time `json:"since"`
	// Readers are the releases that read what has changed, by their names, with the digests of
	// the values that they had installed before.
	Readers map[string]string `json:"readers,omitempty"`
}

// RotationOf returns what the Secret of a binding says of its passwords; zero for nothing, and
// for what cannot be read.
func RotationOf(binding metav1.Object) Rotation {
	rotation := Rotation{}
	if json.Unmarshal([]byte(binding.GetAnnotations()[v1alpha1.RotationAnnotation]), &rotation) != nil {
		return Rotation{}
	}
	return rotation
}

// Mark notes on a binding, which is about to be written, that it has passwords of a number.
// live is it as it is, or nil, before has its content, and releases are those of the
// namespace. A binding that has these passwords already keeps what it says of them.
func Mark(binding, live *unstructured.Unstructured, before map[string][]byte, number int64, releases []*unstructured.Unstructured, now time.Time) {
	if number == 0 {
		return
	}
	rotation := Rotation{}
	if live != nil {
		rotation = RotationOf(live)
	}
	if rotation.Number != number {
		rotation = Rotation{Number: number, Since: now.UTC().Truncate(time.Second), Readers: map[string]string{}}
		changed := changedKeys(before, binding)
		byName := func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) }
		for _, release := range slices.SortedFunc(slices.Values(releases), byName) {
			if live != nil && len(rotation.Readers) < maxReaders && readsOneOf(release, objects.IDOf(binding), changed) {
				rotation.Readers[release.GetName()] = valuesDigest(release)
			}
		}
	}
	text, err := json.Marshal(rotation)
	if err != nil {
		panic(err) // of a number, a time and texts
	}
	annotations := binding.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.RotationAnnotation] = string(text)
	binding.SetAnnotations(annotations)
}

// changedKeys returns the keys of a Secret whose values are not as before.
func changedKeys(before map[string][]byte, secret *unstructured.Unstructured) map[string]bool {
	data, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	changed := map[string]bool{}
	for key, value := range data {
		if was, had := before[key]; !had || encoded(was) != value {
			changed[key] = true
		}
	}
	for key := range before {
		if _, has := data[key]; !has {
			changed[key] = true
		}
	}
	return changed
}

// readsOneOf tells whether a release takes values from some keys of a Secret.
func readsOneOf(release *unstructured.Unstructured, secret objects.ID, keys map[string]bool) bool {
	return slices.ContainsFunc(kinds.ValueKeysOf(release), func(of kinds.ValueKey) bool {
		return of.ID == secret && keys[of.Key]
	})
}

// valuesDigest returns the digest of the values that a release was installed with last.
func valuesDigest(release *unstructured.Unstructured) string {
	digest, _, _ := unstructured.NestedString(release.Object, "status", "lastAttemptedConfigDigest")
	return digest
}

// Taken is what tells of a release whether it has taken other passwords.
type Taken struct {
	Digest           string
	Ready, Suspended bool
}

// HasTaken returns what a release has taken.
func HasTaken(release *unstructured.Unstructured) Taken {
	return Taken{valuesDigest(release), objects.AssessObject(kinds.AssessOf(release), release).Health == objects.Ready, objects.IsSuspended(release)}
}

// Taking is what is looked at to tell whether passwords were taken by all.
type Taking struct {
	// Claim that has them.
	Claim *v1alpha1.CapabilityClaim
	// Number of the passwords, and what the binding says of them.
	Number  int64
	Binding Rotation
	// Releases of the namespace.
	Releases []*unstructured.Unstructured
	// Sharing are the claims that are bound to this one, each with what tells of it whether its
	// readers have taken them: their statuses do not.
	Sharing []Taking
	Now     time.Time
}

// Waits says who has yet to take the passwords; empty where all have. until is when that is
// to be asked again, where it hangs on the time alone.
func (t Taking) Waits() (waits string, until time.Time) {
	if t.Binding.Number < t.Number {
		return "waits until the binding has them", until
	}
	byName := map[string]*unstructured.Unstructured{}
	for _, release := range t.Releases {
		byName[release.GetName()] = release
	}
	for _, name := range slices.Sorted(maps.Keys(t.Binding.Readers)) {
		if why := t.hasYet(byName[name], t.Binding.Readers[name]); why != "" {
			return "waits for HelmRelease " + name + ", which " + why, until
		}
	}
	for _, of := range t.Sharing {
		if waits, until := of.Waits(); waits != "" {
			return fmt.Sprintf("waits for CapabilityClaim %s/%s, which is bound to this one", of.Claim.Namespace, of.Claim.Name), until
		}
	}
	if until = t.Binding.Since.Add(t.keep()); t.Now.Before(until) {
		return "stay until " + until.UTC().Format(time.RFC3339), until
	}
	return "", time.Time{}
}

// IsOver tells whether passwords of before had to be valid for long enough, whoever has taken
// the next ones.
func (t Taking) IsOver() bool {
	return t.Binding.Number >= t.Number && !t.Now.Before(t.Binding.Since.Add(t.keep()))
}

// hasYet says what a release that had others before has yet to do; empty for nothing.
func (t Taking) hasYet(release *unstructured.Unstructured, before string) string {
	if release == nil || release.GetDeletionTimestamp() != nil {
		return ""
	}
	switch has := HasTaken(release); {
	case has.Suspended:
		return "is suspended"
	case has.Digest == before:
		return "has yet to take them"
	case !has.Ready:
		return "is not ready with them yet"
	}
	return ""
}

func (t Taking) keep() time.Duration {
	of := t.Claim.Spec.Rotation
	switch {
	case of != nil && of.KeepPrevious != nil:
		return of.KeepPrevious.Duration
	case hasClusterBinding(t.Claim): // it is not known when workloads read it
		return keepForOthers
	case len(t.Binding.Readers) > 0 || len(t.Sharing) > 0:
		return keepForReleases
	}
	return keepForOthers
}
