// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package plugindeploy_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/plugindeploy"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func database() plugindeploy.Plugin {
	return plugindeploy.Plugin{
		Provider: "postgres.example", ProviderUID: "1", Namespace: "databases", Controller: "strata",
		CapabilityPlugin: v1alpha1.CapabilityPlugin{Image: "oci://registry.example:5000/plugins/postgres:1.0", Digest: "sha256:" + strings.Repeat("1", 64)},
	}
}

// secret returns the Secret's data at a time, and whether that is written.
func secret(t *testing.T, p plugindeploy.Plugin, data map[string][]byte, at time.Time) (map[string][]byte, bool) {
	t.Helper()
	made, changed, err := p.Secret(data, at)
	if err != nil {
		t.Fatal(err)
	}
	return made.Data, changed
}

// Certificates are renewed well before they end, by the same authority, so that each side takes the
// other one's of before and of now.
func TestCertificatesAreRenewed(t *testing.T) {
	p := database()
	first, changed := secret(t, p, nil, start)
	if !changed || len(first) != 6 {
		t.Fatalf("there are %d parts", len(first))
	}
	if same, changed := secret(t, p, first, start.Add(59*24*time.Hour)); changed || !maps.EqualFunc(first, same, bytes.Equal) {
		t.Error("what is good is made anew")
	}
	at := start.Add(61 * 24 * time.Hour)
	second, changed := secret(t, p, first, at)
	if !changed || !bytes.Equal(first["ca.crt"], second["ca.crt"]) || bytes.Equal(first["tls.crt"], second["tls.crt"]) || bytes.Equal(first["client.crt"], second["client.crt"]) {
		t.Error("what ends soon is not renewed by the same authority")
	}
	for _, server := range []map[string][]byte{first, second} {
		for _, client := range []map[string][]byte{first, second} {
			if err := handshake(t, p, server, client, at); err != nil {
				t.Errorf("one of before does not fit one of now: %v", err)
			}
		}
	}
	other, _ := secret(t, p, nil, start)
	if handshake(t, p, other, first, start) == nil || handshake(t, p, first, other, start) == nil {
		t.Error("the certificates of another authority fit")
	}
	if _, changed := secret(t, p, first, start.Add(9*365*24*time.Hour)); !changed {
		t.Error("nine years later all is as it was")
	}
	late, _ := secret(t, p, first, start.Add(10*365*24*time.Hour))
	if bytes.Equal(late["ca.crt"], first["ca.crt"]) {
		t.Error("an authority that ends is kept")
	}
}

// What somebody has spoiled in the Secret, or taken from another one, is made anew.
func TestSpoiledCertificates(t *testing.T) {
	p := database()
	first, _ := secret(t, p, nil, start)
	elsewhere := p
	elsewhere.Namespace = "other"
	foreign, _ := secret(t, elsewhere, nil, start)
	for name, spoil := range map[string]func(map[string][]byte){
		"no certificate": func(data map[string][]byte) { delete(data, "tls.crt") },
		"no authority":   func(data map[string][]byte) { delete(data, "ca.key") },
		"rubbish":        func(data map[string][]byte) { data["client.key"] = []byte("rubbish") },
		"another's": func(data map[string][]byte) {
			data["tls.crt"], data["tls.key"] = foreign["tls.crt"], foreign["tls.key"]
		},
		"client's": func(data map[string][]byte) {
			data["tls.crt"], data["tls.key"] = data["client.crt"], data["client.key"]
		},
		"for both, no CA": func(data map[string][]byte) { data["ca.crt"], data["ca.key"] = data["tls.crt"], data["tls.key"] },
	} {
		data := maps.Clone(first)
		spoil(data)
		mended, changed := secret(t, p, data, start)
		if err := handshake(t, p, mended, mended, start); !changed || err != nil {
			t.Errorf("%s: %v, %v", name, changed, err)
		}
	}
	if moved, changed := secret(t, elsewhere, first, start); !changed || handshake(t, elsewhere, moved, moved, start) != nil {
		t.Error("a plug-in that has moved has the certificate of before")
	}
}

// handshake connects a plug-in with the controller, by a Secret each.
func handshake(t *testing.T, p plugindeploy.Plugin, server, client map[string][]byte, at time.Time) error {
	t.Helper()
	own, err := tls.X509KeyPair(server["tls.crt"], server["tls.key"])
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(server["ca.crt"])
	now := func() time.Time { return at }
	config, err := p.ClientTLS(client)
	if err != nil {
		return err
	}
	config.Time = now
	one, other := net.Pipe()
	defer func() { _, _ = one.Close(), other.Close() }()
	served := make(chan error, 1)
	go func() {
		over := tls.Server(one, &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, Time: now,
		})
		err := over.Handshake()
		_ = one.Close()
		served <- err
	}()
	if err := tls.Client(other, config).Handshake(); err != nil {
		return err
	}
	_, _ = other.Read(make([]byte, 1)) // until the other side has judged
	return <-served
}

// The names of what is there are those of a Service, whatever the provider's is, and differ.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, provider := range []string{"a", "a.b", "a-b", strings.Repeat("x", 253), strings.Repeat("x", 252) + "y", strings.Repeat("x", 39) + "..z"} {
		for _, digest := range []string{"sha256:1", "sha256:2"} {
			name := plugindeploy.Plugin{Provider: provider, CapabilityPlugin: v1alpha1.CapabilityPlugin{Digest: digest}}.Name()
			if len(name) > 63 || strings.ContainsAny(name, "._") || strings.Contains(name, "--") || seen[name] {
				t.Errorf("%s is named %s", provider, name)
			}
			seen[name] = true
		}
	}
}

// The kubelet fetches by the digest, whatever tag is written; a port is no tag.
func TestImageOfTheDeployment(t *testing.T) {
	for address, want := range map[string]string{
		"oci://registry.example:5000/plugins/postgres:1.0": "registry.example:5000/plugins/postgres@",
		"oci://registry.example:5000/plugins/postgres":     "registry.example:5000/plugins/postgres@",
		"oci://registry.example/postgres":                  "registry.example/postgres@",
	} {
		p := database()
		p.Image = address
		objects, err := p.Objects()
		if err != nil {
			t.Fatal(err)
		}
		if got := plugindeploy.ImageOf(objects); got != want+p.Digest {
			t.Errorf("%s is %s", address, got)
		}
	}
}
