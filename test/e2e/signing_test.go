// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
)

// signingKey is an author's key.
type signingKey struct {
	entity *openpgp.Entity
	// public is the part that a GitRepository trusts.
	public string
}

func (f *fixture) signingKey() signingKey {
	f.Helper()
	entity, err := openpgp.NewEntity("author", "", "author@strata.invalid", nil)
	f.must(err)
	var out bytes.Buffer
	armored, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
	f.must(err)
	f.must(entity.Serialize(armored))
	f.must(armored.Close())
	return signingKey{entity: entity, public: out.String()}
}

// sign returns the signature of a commit.
func (k signingKey) sign(commit string) (string, error) {
	var out bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&out, k.entity, strings.NewReader(commit), nil); err != nil {
		return "", err
	}
	return out.String(), nil
}
