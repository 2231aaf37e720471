// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sops decrypts what SOPS has encrypted, with private keys of age and PGP that are
// in memory. It runs no program, and reads no file, environment or network.
package sops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	getsops "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	"github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/keyservice"
	"github.com/getsops/sops/v3/stores/dotenv"
	"github.com/getsops/sops/v3/stores/ini"
	"github.com/getsops/sops/v3/stores/json"
	"github.com/getsops/sops/v3/stores/yaml"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/builds"
)

// The names of a Secret's keys end as Flux has it.
const (
	ageSuffix = ".agekey"
	pgpSuffix = ".asc"
)

// KeysOf returns the private keys of a Secret, by the names of its data: those that end with
// .agekey are key files of age, and those with .asc armored private keys of PGP. Others are
// left out. The error names what is no key, and quotes nothing of it.
func KeysOf(data map[string]string) (builds.Keys, error) {
	var keys builds.Keys
	names := make([]string, 0, len(data))
	for name := range data {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch path.Ext(name) {
		case ageSuffix:
			keys.Age = append(keys.Age, data[name])
			if _, err := open(builds.Keys{Age: []string{data[name]}}); err != nil {
				return builds.Keys{}, fmt.Errorf("its key %s is no key file of age, with one AGE-SECRET-KEY-1... in a line", name)
			}
		case pgpSuffix:
			keys.PGP = append(keys.PGP, data[name])
			if _, err := open(builds.Keys{PGP: []string{data[name]}}); err != nil {
				return builds.Keys{}, fmt.Errorf("its key %s is no armored private key of PGP without passphrase", name)
			}
		}
	}
	if keys.IsZero() {
		return builds.Keys{}, errors.New("it has no key whose name ends with .agekey or .asc: keys of cloud providers and of Vault are not used, so encrypt for a key of age or PGP, too")
	}
	return keys, nil
}

// KeysOfSecret returns the private keys that a Secret has, as KeysOf does.
func KeysOfSecret(secret *unstructured.Unstructured) (builds.Keys, error) {
	data, err := builds.DataOf(secret)
	if err != nil {
		return builds.Keys{}, err //nolint:wrapcheck // it names the key
	}
	return KeysOf(data)
}

// Format is how a file is written.
type Format string

// The formats of SOPS.
const (
	YAML   Format = "yaml"
	JSON   Format = "json"
	Dotenv Format = "dotenv"
	INI    Format = "ini"
	// Binary is any content, encrypted as a whole.
	Binary Format = "binary"
)

// FormatOf tells whether a file that is no YAML is encrypted, and how it is written.
func FormatOf(data []byte) (Format, bool) {
	switch {
	case bytes.Contains(data, []byte("sops_mac=ENC[")):
		return Dotenv, true
	case bytes.Contains(data, []byte("\"mac\": \"ENC[")):
		return Binary, true
	case bytes.Contains(data, []byte("[sops]")) && bytes.Contains(data, []byte("ENC[")):
		return INI, true
	default:
		return "", false
	}
}

// Decrypt returns data without its encryption, in the same format. As with Flux the MAC
// of the whole is not looked at, since kustomize and people change what is not encrypted;
// each value is authenticated, with its place. Errors quote nothing that is encrypted.
func Decrypt(data []byte, format Format, keys builds.Keys) (_ []byte, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = errors.New("what is written of its encryption cannot be understood")
		}
	}()
	service, err := open(keys)
	if err != nil {
		return nil, errors.New("a key cannot be used")
	}
	store := storeOf(format)
	tree, err := store.LoadEncryptedFile(data)
	if err != nil {
		return nil, errors.New("what is written of its encryption cannot be understood")
	}
	key, err := tree.Metadata.GetDataKeyWithKeyServices([]keyservice.KeyServiceClient{service}, getsops.DefaultDecryptionOrder)
	if err != nil {
		return nil, fmt.Errorf("none of the keys opens it: it is encrypted for %s", recipients(&tree.Metadata))
	}
	if _, err := tree.Decrypt(key, aes.NewCipher()); err != nil {
		return nil, errors.New("a value of it was changed, moved or added after it was encrypted")
	}
	plain, err := store.EmitPlainFile(tree.Branches)
	if err != nil {
		return nil, errors.New("what it holds cannot be written")
	}
	return plain, nil
}

// store reads and writes files of a format.
type store interface {
	LoadEncryptedFile(data []byte) (getsops.Tree, error)
	EmitPlainFile(branches getsops.TreeBranches) ([]byte, error)
}

func storeOf(format Format) store {
	stores := config.NewStoresConfig()
	switch format {
	case JSON:
		return json.NewStore(&stores.JSON)
	case Dotenv:
		return dotenv.NewStore(&stores.Dotenv)
	case INI:
		return ini.NewStore(&stores.INI)
	case Binary:
		return json.NewBinaryStore(&stores.JSONBinary)
	default:
		return yaml.NewStore(&stores.YAML)
	}
}

// maxRecipients bounds how many recipients a message names.
const maxRecipients = 5

// recipients names for whom something is encrypted.
func recipients(metadata *getsops.Metadata) string {
	var names []string
	for _, group := range metadata.KeyGroups {
		for _, key := range group {
			names = append(names, fmt.Sprintf("%s %.80s", key.TypeToIdentifier(), key.ToString()))
		}
	}
	if len(names) == 0 {
		return "nobody"
	}
	if more := len(names) - maxRecipients; more > 0 {
		names = append(names[:maxRecipients], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// service opens data keys. It is what SOPS asks in the place of agents and programs.
type service struct {
	age age.ParsedIdentities
	pgp openpgp.EntityList
}

// open reads the keys.
func open(k builds.Keys) (*service, error) {
	s := &service{}
	for _, text := range k.Age {
		if err := s.age.Import(text); err != nil {
			return nil, err
		}
	}
	for _, text := range k.PGP {
		entities, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
		if err != nil {
			return nil, err
		}
		for _, entity := range entities {
			if entity.PrivateKey == nil || entity.PrivateKey.Encrypted {
				return nil, errors.New("it has no private key that can be used")
			}
		}
		s.pgp = append(s.pgp, entities...)
	}
	return s, nil
}

// Encrypt is never asked for.
func (s *service) Encrypt(context.Context, *keyservice.EncryptRequest, ...grpc.CallOption) (*keyservice.EncryptResponse, error) {
	return nil, errors.New("nothing is encrypted here")
}

// Decrypt opens a data key with the private keys that there are.
func (s *service) Decrypt(_ context.Context, request *keyservice.DecryptRequest, _ ...grpc.CallOption) (*keyservice.DecryptResponse, error) {
	var plain []byte
	var err error
	switch key := request.GetKey().GetKeyType().(type) {
	case *keyservice.Key_AgeKey:
		plain, err = s.openAge(key.AgeKey.GetRecipient(), request.GetCiphertext())
	case *keyservice.Key_PgpKey:
		plain, err = s.openPGP(request.GetCiphertext())
	default:
		err = errors.New("only keys of age and PGP are used")
	}
	if err != nil {
		return nil, err
	}
	return &keyservice.DecryptResponse{Plaintext: plain}, nil
}

func (s *service) openAge(recipient string, encrypted []byte) ([]byte, error) {
	if len(s.age) == 0 {
		return nil, errors.New("there is no key of age") // the library would look for one
	}
	key := &age.MasterKey{Recipient: recipient, EncryptedKey: string(encrypted)}
	s.age.ApplyToMasterKey(key)
	return key.Decrypt()
}

// maxDataKey bounds how long a data key may be, in bytes.
const maxDataKey = 1 << 10

func (s *service) openPGP(encrypted []byte) ([]byte, error) {
	block, err := armor.Decode(bytes.NewReader(encrypted))
	if err != nil {
		return nil, err
	}
	message, err := openpgp.ReadMessage(block.Body, s.pgp, nil, nil)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(message.UnverifiedBody, maxDataKey))
}
