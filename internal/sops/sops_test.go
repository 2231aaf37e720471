// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package sops_test

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/sops"
	"github.com/strata-project/strata/internal/sops/sopstest"
)

const secret = "apiVersion: v1\nkind: Secret\nmetadata:\n    name: a\nstringData:\n    token: t0k3n\n"

func TestDecrypt(t *testing.T) {
	// Nothing is found outside of memory, and no program is run.
	t.Setenv("PATH", "")
	t.Setenv("HOME", t.TempDir())
	one, other := sopstest.Age(t), sopstest.PGP(t)
	for name, recipient := range map[string]sopstest.Recipient{"age": one, "PGP": other} {
		keys, err := sops.KeysOf(map[string]string{recipient.Name: recipient.Private, "sops.vault-token": "x"})
		if err != nil {
			t.Fatal(err)
		}
		for format, text := range map[sops.Format]string{
			sops.YAML: secret, sops.JSON: "{\n\t\"token\": \"t0k3n\"\n}", sops.Dotenv: "TOKEN=t0k3n\n", sops.INI: "[a]\ntoken = t0k3n\n\n", sops.Binary: "t0k3n\x00",
		} {
			t.Run(name+" "+string(format), func(t *testing.T) {
				only := ""
				if format == sops.YAML {
					only = "^(data|stringData)$"
				}
				sealed := sopstest.Encrypt(t, text, format, only, recipient)
				if strings.Contains(sealed, "t0k3n") {
					t.Fatalf("it is not encrypted: %s", sealed)
				}
				if found, is := sops.FormatOf([]byte(sealed)); format != sops.YAML && format != sops.JSON && (!is || found != format) {
					t.Errorf("it is taken for %q, %v", found, is)
				}
				plain, err := sops.Decrypt([]byte(sealed), format, keys)
				if err != nil || strings.TrimSpace(string(plain)) != strings.TrimSpace(text) {
					t.Errorf("it is %q, %v, want %q", plain, err, text)
				}
			})
		}
	}
}

func TestWhatCannotBeDecrypted(t *testing.T) {
	one, other := sopstest.Age(t), sopstest.PGP(t)
	keys, err := sops.KeysOf(map[string]string{one.Name: one.Private})
	if err != nil {
		t.Fatal(err)
	}
	sealed := sopstest.Encrypt(t, secret, sops.YAML, "^stringData$", one)
	at := strings.Index(sealed, "ENC[AES256_GCM,data:") + len("ENC[AES256_GCM,data:")
	changed := sealed[:at] + "AAAA" + sealed[at+4:]
	for name, test := range map[string]struct{ text, want string }{
		"another's":   {sopstest.Encrypt(t, secret, sops.YAML, "", other), "none of the keys opens it: it is encrypted for pgp "},
		"changed":     {changed, "a value of it was changed, moved or added after it was encrypted"},
		"moved":       {strings.Replace(sealed, "    token:", "    other:", 1), "a value of it was changed, moved or added after it was encrypted"},
		"no metadata": {secret, "what is written of its encryption cannot be understood"},
		"wrong words": {"sops: [1, 2]\na: ENC[x]\n", "what is written of its encryption cannot be understood"},
		"a cloud's key": {
			"a: ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]\nsops:\n    kms: [{arn: 'arn:aws:kms:eu-west-1:1:key/x', created_at: '2026-01-01T00:00:00Z', enc: AA==}]\n    lastmodified: '2026-01-01T00:00:00Z'\n    mac: ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]\n    version: 3.9.0\n",
			"none of the keys opens it: it is encrypted for kms arn:aws:kms:eu-west-1:1:key/x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sops.Decrypt([]byte(test.text), sops.YAML, keys)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("it says %v, want %s", err, test.want)
			}
		})
	}
	for name, test := range map[string]struct {
		data map[string]string
		want string
	}{
		"nothing":       {map[string]string{"sops.aws-kms": "x"}, "it has no key whose name ends with .agekey or .asc"},
		"no age":        {map[string]string{"a.agekey": "AGE-SECRET-KEY-1QQ"}, "its key a.agekey is no key file of age"},
		"no PGP":        {map[string]string{"a.asc": "t0k3n"}, "its key a.asc is no armored private key of PGP"},
		"nothing there": {nil, "it has no key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sops.KeysOf(test.data)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "t0k3n") || strings.Contains(err.Error(), "KEY-1QQ") {
				t.Errorf("it says %v, want %s", err, test.want)
			}
		})
	}
}
