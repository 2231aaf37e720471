// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
)

// RecordOf says what a record is of.
type RecordOf string

const (
	// RecordOfClaim is the record of a claim's binding.
	RecordOfClaim RecordOf = "claim"
	// RecordOfProvider is the record of the plug-in that served a provider's claims last.
	RecordOfProvider RecordOf = "provider"
)

// Record is what the controller keeps for itself of a claim or of a provider. Those of one are
// numbered, and the last one that is signed counts.
type Record struct {
	Of     RecordOf
	UID    types.UID
	Number int64
	// Data is JSON.
	Data []byte
}

// Name returns the name of the record.
func (r Record) Name() string { return fmt.Sprintf("%s.%s.%d", r.Of, r.UID, r.Number) }

// recordMAC keeps a MAC of a record from being one of anything else.
const recordMAC = "record"

// MAC authenticates the record. It covers what the record is of, and so is none of another one.
// It is empty where there is no key, or Data is no JSON.
func (r Record) MAC(key digests.Key) string {
	parts, err := r.parts()
	if err != nil {
		return ""
	}
	return key.MAC(recordMAC, parts...)
}

// IsSigned tells whether a MAC is that of the record.
func (r Record) IsSigned(key digests.Key, mac string) bool {
	parts, err := r.parts()
	return err == nil && key.IsMAC(mac, recordMAC, parts...)
}

// parts returns what a MAC covers. An API server may write the same data in another way.
func (r Record) parts() ([]string, error) {
	data, err := canonical(r.Data)
	return []string{string(r.Of), string(r.UID), strconv.FormatInt(r.Number, 10), data}, err
}

// Digest identifies the data of the record; empty where they are no JSON.
func (r Record) Digest() string {
	data, err := canonical(r.Data)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

// canonical returns JSON in the order of its keys and without blanks.
func canonical(data []byte) (string, error) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return "", fmt.Errorf("cannot read a record: %w", err)
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// Asked is what somebody who may write the controller's Secrets has asked to be signed again: the
// digests of records, by their names.
type Asked map[string]string

// ParseAsked reads the annotation of that.
func ParseAsked(text string) Asked {
	asked := Asked{}
	for _, one := range strings.Fields(text) {
		if name, digest, found := strings.Cut(one, "="); found {
			asked[name] = digest
		}
	}
	return asked
}

// String writes the annotation.
func (a Asked) String() string {
	var all []string
	for name, digest := range a {
		all = append(all, name+"="+digest)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Allows tells whether a record is to be signed again, as it is.
func (a Asked) Allows(record Record) bool {
	digest := record.Digest()
	return digest != "" && a[record.Name()] == digest
}

// Names tells whether a record of a claim is named.
func (a Asked) Names(claim types.UID) bool {
	for name := range a {
		if strings.HasPrefix(name, string(RecordOfClaim)+"."+string(claim)+".") {
			return true
		}
	}
	return false
}

// Served is the plug-in that served the claims of a provider last. It is kept where only the
// controller writes: it says what is started.
type Served struct {
	// Provider by its name, for people.
	Provider string `json:"provider"`
	// Plugin that served, and how it ran.
	Plugin v1alpha1.CapabilityPluginStatus `json:"plugin"`
	Run    v1alpha1.PluginRun              `json:"run,omitempty"`
}

// Before returns the specification of a provider with the plug-in that served before the present
// one was given; nil where there is none.
func (s *Served) Before(now v1alpha1.CapabilityProviderSpec) *v1alpha1.CapabilityProviderSpec {
	if s == nil || now.Plugin == nil || s.Plugin.Digest == now.Plugin.Digest {
		return nil
	}
	spec := now.DeepCopy()
	spec.Plugin.Image, spec.Plugin.Digest, spec.Plugin.Run = s.Plugin.Image, s.Plugin.Digest, s.Run
	return spec
}

// objectsMAC keeps a MAC of a list of objects from being one of anything else.
const objectsMAC = "claim objects"

// SignObjects returns the MAC of what the status of a claim lists, by which the controller knows
// its own list again. It is empty where there is no key.
func SignObjects(key digests.Key, claim types.UID, listed []v1alpha1.Dependent) string {
	text, err := json.Marshal(listed)
	if err != nil || len(listed) == 0 {
		return ""
	}
	return key.MAC(objectsMAC, string(claim), string(text))
}

// ObjectsOf returns what the status of a claim lists; false where no controller with the key has
// written that, as for a claim of which it has made nothing yet.
func ObjectsOf(key digests.Key, claim *v1alpha1.CapabilityClaim) ([]v1alpha1.Dependent, bool) {
	text, err := json.Marshal(claim.Status.Objects)
	if err != nil || !key.IsMAC(claim.Status.ObjectsMAC, objectsMAC, string(claim.UID), string(text)) {
		return nil, false
	}
	return claim.Status.Objects, true
}
