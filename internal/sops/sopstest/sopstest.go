// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sopstest encrypts files for tests as the program sops does.
package sopstest

import (
	"bytes"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	getsops "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/pgp"
	"github.com/getsops/sops/v3/stores/dotenv"
	"github.com/getsops/sops/v3/stores/ini"
	"github.com/getsops/sops/v3/stores/json"
	"github.com/getsops/sops/v3/stores/yaml"

	"github.com/strata-project/strata/internal/sops"
)

// Recipient is whom files are encrypted for.
type Recipient struct {
	// Private is the key as a Secret of Flux has it, under Name.
	Name, Private string
	wrap          func(t testing.TB, dataKey []byte) keys.MasterKey
}

// Age returns a new recipient with a key of age.
func Age(t testing.TB) Recipient {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return Recipient{Name: "identity.agekey", Private: "# a comment\n" + identity.String() + "\n", wrap: func(t testing.TB, dataKey []byte) keys.MasterKey {
		key := &sopsage.MasterKey{Recipient: identity.Recipient().String()}
		if err := key.Encrypt(dataKey); err != nil {
			t.Fatal(err)
		}
		return key
	}}
}

// PGP returns a new recipient with a key of PGP.
func PGP(t testing.TB) Recipient {
	t.Helper()
	entity, err := openpgp.NewEntity("Platform", "", "platform@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	private := armored(t, openpgp.PrivateKeyType, func(out *bytes.Buffer) error { return entity.SerializePrivate(out, nil) })
	return Recipient{Name: "platform.asc", Private: private, wrap: func(t testing.TB, dataKey []byte) keys.MasterKey {
		key := pgp.NewMasterKeyFromFingerprint(entity.PrimaryKey.KeyIdString())
		key.EncryptedKey = armored(t, "PGP MESSAGE", func(out *bytes.Buffer) error {
			plain, err := openpgp.Encrypt(out, []*openpgp.Entity{entity}, nil, nil, nil)
			if err != nil {
				return err
			}
			if _, err := plain.Write(dataKey); err != nil {
				return err
			}
			return plain.Close()
		})
		return key
	}}
}

func armored(t testing.TB, kind string, write func(*bytes.Buffer) error) string {
	t.Helper()
	var plain, text bytes.Buffer
	if err := write(&plain); err != nil {
		t.Fatal(err)
	}
	out, err := armor.Encode(&text, kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// store reads plain files of a format, and writes encrypted ones.
type store interface {
	LoadPlainFile(data []byte) (getsops.TreeBranches, error)
	EmitEncryptedFile(tree getsops.Tree) ([]byte, error)
}

func storeOf(format sops.Format) store {
	stores := config.NewStoresConfig()
	switch format {
	case sops.JSON:
		return json.NewStore(&stores.JSON)
	case sops.Dotenv:
		return dotenv.NewStore(&stores.Dotenv)
	case sops.INI:
		return ini.NewStore(&stores.INI)
	case sops.Binary:
		return json.NewBinaryStore(&stores.JSONBinary)
	default:
		return yaml.NewStore(&stores.YAML)
	}
}

// Encrypt returns a file encrypted for recipients: of YAML and JSON the values below keys
// that match a regular expression, which is empty for all.
func Encrypt(t testing.TB, text string, format sops.Format, only string, recipients ...Recipient) string {
	t.Helper()
	store := storeOf(format)
	branches, err := store.LoadPlainFile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	dataKey := bytes.Repeat([]byte{7}, 32)
	group := getsops.KeyGroup{}
	for _, recipient := range recipients {
		group = append(group, recipient.wrap(t, dataKey))
	}
	tree := getsops.Tree{Branches: branches, Metadata: getsops.Metadata{
		KeyGroups: []getsops.KeyGroup{group}, EncryptedRegex: only, Version: "3.13.2", LastModified: time.Now().UTC(),
	}}
	cipher := aes.NewCipher()
	mac, err := tree.Encrypt(dataKey, cipher)
	if err != nil {
		t.Fatal(err)
	}
	if tree.Metadata.MessageAuthenticationCode, err = cipher.Encrypt(mac, dataKey, tree.Metadata.LastModified.Format(time.RFC3339)); err != nil {
		t.Fatal(err)
	}
	encrypted, err := store.EmitEncryptedFile(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(encrypted)
}
