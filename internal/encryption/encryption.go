// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Folder is where API servers of hosts find what they read beside their arguments.
const Folder = "/etc/kubernetes/strata"

// InClear is the provider of an EncryptionConfiguration that encrypts nothing.
const InClear = "identity"

// Argument is by which an API server finds its EncryptionConfiguration.
const Argument = "encryption-provider-config"

// keyLength is that of a key of secretbox, in bytes.
const keyLength = 32

// maxProviders is how many keys a file of ours may have.
const maxProviders = 20

// What names there are: of our keys, with their generation and a part of their digest, since
// another key may get the same generation later, and of our files.
var (
	keyName  = regexp.MustCompile(`^strata-[1-9][0-9]{0,9}-[0-9a-f]{8}$`)
	fileName = regexp.MustCompile(`^encryption-[0-9a-f]{8}\.yaml$`)
)

// IsProvider tells whether something is the name of one of our keys, or InClear.
func IsProvider(name string) bool { return name == InClear || keyName.MatchString(name) }

// IsFile tells whether a path is that of an EncryptionConfiguration of ours.
func IsFile(file string) bool {
	return path.Dir(file) == Folder && fileName.MatchString(path.Base(file))
}

// Wanted returns the provider that a manifest wants Secrets to be written with, of those
// that hosts have; empty where its key is to be made.
func Wanted(spec v1alpha1.HostAPIServer, has map[string][]string) string {
	if spec.Encryption == nil {
		return InClear
	}
	for _, host := range slices.Sorted(maps.Keys(has)) {
		for _, name := range has[host] {
			if generation(name) == int(spec.Encryption.KeyGeneration) {
				return name
			}
		}
	}
	return ""
}

// Configuration is an EncryptionConfiguration that Strata has made. It has keys: it is in no
// message, and is read from hosts and sent to hosts alone.
type Configuration struct {
	// File is its path. It changes with what is in it, so that an API server starts again.
	File string
	// Content of the file.
	Content string
}

// String has no key in it, whoever prints it.
func (c Configuration) String() string { return c.File }

// New makes a configuration with providers in their order, the first of which
// writes and all of which read. keys has the key of each one.
func New(providers []string, keys map[string]string) (Configuration, error) {
	var made []apiserverv1.ProviderConfiguration
	for _, name := range providers {
		if name == InClear {
			made = append(made, apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}})
			continue
		}
		if keys[name] == "" {
			return Configuration{}, fmt.Errorf("no host has the key %s any more", name)
		}
		made = append(made, apiserverv1.ProviderConfiguration{
			Secretbox: &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{{Name: name, Secret: keys[name]}}},
		})
	}
	content, err := yaml.Marshal(apiserverv1.EncryptionConfiguration{
		TypeMeta:  metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{Resources: []string{"secrets"}, Providers: made}},
	})
	if err != nil {
		return Configuration{}, err
	}
	text := strings.TrimSpace(string(content))
	sum := sha256.Sum256([]byte(text))
	return Configuration{File: path.Join(Folder, "encryption-"+hex.EncodeToString(sum[:])[:8]+".yaml"), Content: text}, nil
}

// Read returns the providers of a configuration in their order, and its keys. An
// error repeats nothing of it.
func Read(content []byte) (providers []string, keys map[string]string, err error) {
	var read apiserverv1.EncryptionConfiguration
	if err := yaml.UnmarshalStrict(content, &read); err != nil || len(read.Resources) != 1 || len(read.Resources[0].Providers) > maxProviders {
		return nil, nil, errors.New("its configuration of encryption is none that Strata writes")
	}
	keys = map[string]string{}
	for _, each := range read.Resources[0].Providers {
		switch {
		case each.Identity != nil:
			providers = append(providers, InClear)
		case each.Secretbox != nil && len(each.Secretbox.Keys) == 1 && isKey(each.Secretbox.Keys[0]):
			key := each.Secretbox.Keys[0]
			providers, keys[key.Name] = append(providers, key.Name), key.Secret
		default:
			return nil, nil, errors.New("its configuration of encryption is none that Strata writes")
		}
	}
	return providers, keys, nil
}

func isKey(key apiserverv1.Key) bool {
	secret, err := base64.StdEncoding.DecodeString(key.Secret)
	return err == nil && len(secret) == keyLength && keyName.MatchString(key.Name)
}

// NewKey makes a key of a generation, in base64, and its name.
func NewKey(generation int32) (name, secret string) {
	key := make([]byte, keyLength)
	_, _ = rand.Read(key) // which never fails
	sum := sha256.Sum256(key)
	return fmt.Sprintf("strata-%d-%s", generation, hex.EncodeToString(sum[:])[:8]), base64.StdEncoding.EncodeToString(key)
}

// Step is what is done next on the way to another key. Its zero value is that
// nothing is left to do.
type Step struct {
	// Providers that all API servers get; nil where they stay.
	Providers []string
	// Remove has the API servers encrypt nothing any more.
	Remove bool
	// Rewrite has all Secrets written again.
	Rewrite bool
}

func (s Step) isNothing() bool { return s.Providers == nil && !s.Remove && !s.Rewrite }

// Next returns the next step to a provider that is wanted. has are the providers
// of each host of the control plane, none where it has no configuration. used are those with
// which something in etcd is written. At no moment of a step does an API server get to read
// what it has no key for: all can read with a key before one writes with it, and a key goes
// when nothing is written with it.
func Next(has map[string][]string, used []string, wanted string) Step {
	writers, needed := map[string]bool{}, map[string]bool{wanted: true}
	for _, providers := range has {
		writers[writer(providers)] = true
	}
	maps.Copy(needed, writers)
	for _, each := range used {
		needed[each] = true
	}
	all := slices.SortedFunc(maps.Keys(needed), newestFirst)
	isReadBy := func(providers []string) func(string) bool {
		return func(name string) bool { return slices.Contains(orClear(providers), name) }
	}
	for _, host := range slices.Sorted(maps.Keys(has)) {
		if reads := isReadBy(has[host]); slices.ContainsFunc(all, func(name string) bool { return !reads(name) }) {
			return Step{Providers: led(writerForAll(has, writers), all)}
		}
	}
	if len(writers) > 1 || !writers[wanted] {
		return Step{Providers: led(wanted, all)}
	}
	if slices.ContainsFunc(used, func(name string) bool { return name != wanted }) {
		return Step{Rewrite: true}
	}
	hasSome := slices.ContainsFunc(slices.Collect(maps.Values(has)), func(providers []string) bool { return len(providers) > 0 })
	return Step{Remove: wanted == InClear && hasSome}
}

// writer is the provider with which an API server writes.
func writer(providers []string) string { return orClear(providers)[0] }

func orClear(providers []string) []string {
	if len(providers) == 0 {
		return []string{InClear}
	}
	return providers
}

// writerForAll is a provider with which some host writes, and that all can read; where there
// is none, the newest one that some host writes with.
func writerForAll(has map[string][]string, writers map[string]bool) string {
	sorted := slices.SortedFunc(maps.Keys(writers), newestFirst)
	for _, name := range slices.Backward(sorted) {
		readByAll := true
		for _, providers := range has {
			readByAll = readByAll && slices.Contains(orClear(providers), name)
		}
		if readByAll {
			return name
		}
	}
	return sorted[0]
}

// led puts one of the providers first. What is in clear can always be read: snapshots of
// before have it.
func led(first string, all []string) []string {
	list := []string{first}
	for _, each := range append(slices.Clone(all), InClear) {
		if !slices.Contains(list, each) {
			list = append(list, each)
		}
	}
	return list
}

// newestFirst compares providers: higher generations first, InClear last.
func newestFirst(a, b string) int {
	return cmp.Or(cmp.Compare(generation(b), generation(a)), strings.Compare(a, b))
}

// generation of a key; 0 for InClear.
func generation(name string) int {
	text, _, _ := strings.Cut(strings.TrimPrefix(name, "strata-"), "-")
	number, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return number
}

// ErrForeignKey says that something in etcd is written with a key that is not Strata's.
var ErrForeignKey = errors.New("secrets in etcd are encrypted with a key that is not Strata's")

// ProviderOf returns the provider by which a value of etcd is written, by its beginning; the
// error is ErrForeignKey.
func ProviderOf(value []byte) (string, error) {
	rest, sealed := strings.CutPrefix(string(value[:min(len(value), 200)]), "k8s:enc:")
	if !sealed {
		return InClear, nil
	}
	rest, ours := strings.CutPrefix(rest, "secretbox:v1:")
	name, _, _ := strings.Cut(rest, ":")
	if !ours || !keyName.MatchString(name) {
		return "", ErrForeignKey
	}
	return name, nil
}

// Drift says what of a manifest is not yet so: with what Secrets are written, and with what
// they are to be; both are empty where it is so. written is the provider with which all
// Secrets are known to be written.
func Drift(has map[string][]string, written string, spec v1alpha1.HostAPIServer) (from, to string) {
	goal := Wanted(spec, has)
	written = cmp.Or(written, InClear)
	if goal != "" && Next(has, []string{written}, goal).isNothing() {
		return "", ""
	}
	writers := map[string]bool{written: true}
	for _, providers := range has {
		writers[writer(providers)] = true
	}
	if goal == "" {
		goal = "a new key of generation " + strconv.Itoa(int(spec.Encryption.KeyGeneration))
	}
	return strings.Join(slices.SortedFunc(maps.Keys(writers), newestFirst), " and "), goal
}
