// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/encryption"
)

// sealed is a cluster whose API servers encrypt: the providers of each one, and with what
// each Secret in etcd is written.
type sealed struct {
	has     map[string][]string
	secrets [6]string
}

func providersOf(list []string) []string {
	if len(list) == 0 {
		return []string{encryption.InClear}
	}
	return list
}

// unreadable returns what some API server cannot read; empty where all can read all.
func (s *sealed) unreadable() string {
	for host, list := range s.has {
		for _, with := range s.secrets {
			if !slices.Contains(providersOf(list), with) {
				return fmt.Sprintf("%s with %v does not read what is written with %s", host, list, with)
			}
		}
	}
	return ""
}

// used are the providers of all Secrets.
func (s *sealed) used() []string {
	list := slices.Clone(s.secrets[:])
	slices.Sort(list)
	return slices.Compact(list)
}

// somebody writes some Secrets through some API servers.
func (s *sealed) somebodyWrites(random *rand.Rand) {
	hosts := []string{"cp-0", "cp-1", "cp-2"}
	for range random.IntN(3) {
		s.secrets[random.IntN(len(s.secrets))] = providersOf(s.has[hosts[random.IntN(len(hosts))]])[0]
	}
}

// key is the name of a key of a generation.
func key(generation int) string { return fmt.Sprintf("strata-%d-0000000%d", generation, generation) }

// On the way from one key to another, with Secrets written by anybody at any moment, killed
// between any two hosts, and with another key wanted since, every API server reads every
// Secret; and it ends with all of them written with the key that is wanted.
func TestEveryAPIServerReadsEverySecret(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		world := &sealed{has: map[string][]string{"cp-0": nil, "cp-1": nil, "cp-2": nil}}
		for i := range world.secrets {
			world.secrets[i] = encryption.InClear
		}
		wanted, steps := key(1), 0
		var path []string
		for round := 0; ; round++ {
			if round < 12 && random.IntN(3) == 0 {
				wanted = []string{encryption.InClear, key(1), key(2), key(3)}[random.IntN(4)]
			}
			step := encryption.Next(world.has, world.used(), wanted)
			path = append(path, fmt.Sprintf("%v %v -> %s: %+v", world.has, world.used(), wanted, step))
			if !step.Rewrite && !step.Remove && step.Providers == nil {
				if round >= 12 {
					break
				}
				continue
			}
			steps++
			if steps > 60 {
				t.Fatalf("seed %d goes on for ever:\n%s", seed, strings.Join(path, "\n"))
			}
			killed := round < 12 && random.IntN(2) == 0
			for i := range world.secrets {
				if step.Rewrite && (!killed || i <= 2) {
					world.secrets[i] = providersOf(world.has["cp-0"])[0]
				}
			}
			if !step.Rewrite {
				order := []string{"cp-0", "cp-1", "cp-2"}
				if killed {
					order = order[:random.IntN(3)]
				}
				for _, host := range order {
					world.has[host] = step.Providers
					world.somebodyWrites(random)
					if why := world.unreadable(); why != "" {
						t.Fatalf("seed %d: %s:\n%s", seed, why, strings.Join(path, "\n"))
					}
				}
			}
			world.somebodyWrites(random)
			if why := world.unreadable(); why != "" {
				t.Fatalf("seed %d: %s:\n%s", seed, why, strings.Join(path, "\n"))
			}
		}
		if used := world.used(); !slices.Equal(used, []string{wanted}) {
			t.Fatalf("seed %d ends with %v, and not %s", seed, used, wanted)
		}
		for host, list := range world.has {
			if wanted == encryption.InClear && list != nil || providersOf(list)[0] != wanted {
				t.Fatalf("seed %d: %s ends with %v, and not %s", seed, host, list, wanted)
			}
		}
	}
}

func TestStepsToAKey(t *testing.T) {
	one, two, plain := key(1), key(2), encryption.InClear
	all := func(list ...string) map[string][]string {
		return map[string][]string{"cp-0": list, "cp-1": list}
	}
	for name, c := range map[string]struct {
		has    map[string][]string
		used   []string
		wanted string
		want   string
	}{
		"all read it before one writes it": {all(), []string{plain}, one, "{[identity " + one + "] false false}"},
		"then all write it":                {all(plain, one), []string{plain}, one, "{[" + one + " identity] false false}"},
		"one writes it already":            {map[string][]string{"cp-0": {plain, one}, "cp-1": {one, plain}}, []string{plain}, one, "{[" + one + " identity] false false}"},
		"all can read what is written":     {map[string][]string{"cp-0": {two, one, plain}, "cp-1": {one, plain}}, []string{one}, key(3), "{[" + one + " " + key(3) + " " + two + " identity] false false}"},
		"what is written before":           {all(one, plain), []string{plain, one}, one, "{[] false true}"},
		"nothing":                          {all(one, plain), []string{one}, one, "{[] false false}"},
		"a key goes that nothing has":      {all(two, one, plain), []string{two}, key(3), "{[" + two + " " + key(3) + " identity] false false}"},
		"a key stays that something has":   {all(two, one, plain), []string{one, two}, key(3), "{[" + two + " " + key(3) + " " + one + " identity] false false}"},
		"none is wanted any more":          {all(one, plain), []string{one}, plain, "{[identity " + one + "] false false}"},
		"all is in clear again":            {all(plain, one), []string{plain}, plain, "{[] true false}"},
	} {
		if got := fmt.Sprint(encryption.Next(c.has, c.used, c.wanted)); got != c.want {
			t.Errorf("%s: it is %s, and not %s", name, got, c.want)
		}
	}
}

// What is written is read again as it was, what somebody else has written is refused, and no
// error has a key in it.
func TestEncryptionIsReadAsItIsWritten(t *testing.T) {
	name, secret := encryption.NewKey(3)
	if again, _ := encryption.NewKey(3); again == name || !encryption.IsProvider(name) || !strings.HasPrefix(name, "strata-3-") {
		t.Errorf("the keys are %s and %s", name, again)
	}
	made, err := encryption.New([]string{name, encryption.InClear}, map[string]string{name: secret})
	if err != nil || !encryption.IsFile(made.File) || strings.Contains(made.String(), secret) {
		t.Fatalf("%v, %v", made, err)
	}
	providers, keys, err := encryption.Read([]byte(made.Content))
	if err != nil || !slices.Equal(providers, []string{name, encryption.InClear}) || keys[name] != secret || len(keys) != 1 {
		t.Fatalf("%v, %v", providers, err)
	}
	if _, err := encryption.New([]string{key(9)}, nil); err == nil || !strings.Contains(err.Error(), key(9)) {
		t.Error(err)
	}
	for what, wrong := range map[string]string{
		"another provider": strings.Replace(made.Content, "secretbox", "aescbc", 1), "another name": strings.Replace(made.Content, name, "key1", 1),
		"a short key": strings.Replace(made.Content, secret, secret[:20], 1), "an unknown field": made.Content + "\nmore: 1", "nothing": "", "no YAML": "{",
	} {
		if _, _, err := encryption.Read([]byte(wrong)); err == nil || strings.Contains(err.Error(), secret[:20]) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for value, want := range map[string]string{
		"k8s:enc:secretbox:v1:" + name + ":\x01\x02": name, "k8s\x00\n\x0c\n\x02v1": encryption.InClear, "": encryption.InClear, "{}": encryption.InClear,
		"k8s:enc:secretbox:v1:key1:x": "", "k8s:enc:kms:v2:": "", "k8s:enc:": "",
	} {
		if got, err := encryption.ProviderOf([]byte(value)); got != want || (err == nil) == (want == "") {
			t.Errorf("%q: %q, %v", value, got, err)
		}
	}
}
