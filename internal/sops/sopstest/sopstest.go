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
	wrap          func(dataKey []byte) (keys.MasterKey, error)
}

// Age returns a new recipient with a key of age.
func Age(t testing.TB) Recipient {
	t.Helper()
	return must(NewAge())(t)
}

// NewAge is Age without a test.
func NewAge() (Recipient, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return Recipient{}, err
	}
	return Recipient{Name: "identity.agekey", Private: "# a comment\n" + identity.String() + "\n", wrap: func(dataKey []byte) (keys.MasterKey, error) {
		key := &sopsage.MasterKey{Recipient: identity.Recipient().String()}
		return key, key.Encrypt(dataKey)
	}}, nil
}

// PGP returns a new recipient with a key of PGP.
func PGP(t testing.TB) Recipient {
	t.Helper()
	entity, err := openpgp.NewEntity("Platform", "", "platform@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	private := must(armored(openpgp.PrivateKeyType, func(out *bytes.Buffer) error { return entity.SerializePrivate(out, nil) }))(t)
	return Recipient{Name: "platform.asc", Private: private, wrap: func(dataKey []byte) (keys.MasterKey, error) {
		key := pgp.NewMasterKeyFromFingerprint(entity.PrimaryKey.KeyIdString())
		var err error
		key.EncryptedKey, err = armored("PGP MESSAGE", func(out *bytes.Buffer) error {
			plain, err := openpgp.Encrypt(out, []*openpgp.Entity{entity}, nil, nil, nil)
			if err != nil {
				return err
			}
			if _, err := plain.Write(dataKey); err != nil {
				return err
			}
			return plain.Close()
		})
		return key, err
	}}
}

// must ends a test where there is an error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func armored(kind string, write func(*bytes.Buffer) error) (string, error) {
	var plain, text bytes.Buffer
	if err := write(&plain); err != nil {
		return "", err
	}
	out, err := armor.Encode(&text, kind, nil)
	if err != nil {
		return "", err
	}
	if _, err := out.Write(plain.Bytes()); err != nil {
		return "", err
	}
	err = out.Close()
	return text.String(), err
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
	return must(Seal(text, format, only, recipients...))(t)
}

// Seal is Encrypt without a test.
func Seal(text string, format sops.Format, only string, recipients ...Recipient) (string, error) {
	store := storeOf(format)
	branches, err := store.LoadPlainFile([]byte(text))
	if err != nil {
		return "", err
	}
	dataKey := bytes.Repeat([]byte{7}, 32)
	group := getsops.KeyGroup{}
	for _, recipient := range recipients {
		key, err := recipient.wrap(dataKey)
		if err != nil {
			return "", err
		}
		group = append(group, key)
	}
	tree := getsops.Tree{Branches: branches, Metadata: getsops.Metadata{
		KeyGroups: []getsops.KeyGroup{group}, EncryptedRegex: only, Version: "3.13.2", LastModified: time.Now().UTC(),
	}}
	cipher := aes.NewCipher()
	mac, err := tree.Encrypt(dataKey, cipher)
	if err != nil {
		return "", err
	}
	if tree.Metadata.MessageAuthenticationCode, err = cipher.Encrypt(mac, dataKey, tree.Metadata.LastModified.Format(time.RFC3339)); err != nil {
		return "", err
	}
	encrypted, err := store.EmitEncryptedFile(tree)
	return string(encrypted), err
}
