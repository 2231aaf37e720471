// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// written returns a kubeconfig with fields of its cluster and its user.
func written(cluster, user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {%s}}]
users: [{name: u, user: {%s}}]
`, cluster, user)
}

const server = "server: 'https://api.example.com:6443'"

func TestParse(t *testing.T) {
	everything := Allow{Exec: true, Files: true, Insecure: true}
	for name, test := range map[string]struct {
		config []byte
		allow  Allow
		want   string // part of the error; empty for none
	}{
		"a token":                       {config: written(server, "token: secret")},
		"a user and a password":         {config: written(server, "username: a, password: secret")},
		"a proxy and a server name":     {config: written(server+", proxy-url: 'http://proxy:3128', tls-server-name: other", "token: secret")},
		"an IPv6 address":               {config: written("server: 'https://[fd00::1]:6443'", "token: secret")},
		"nothing":                       {config: nil, want: "current-context: is not set"},
		"no YAML":                       {config: []byte("\x00{"), want: "is no kubeconfig"},
		"another kind":                  {config: []byte("apiVersion: v1\nkind: Secret\n"), want: "is no kubeconfig"},
		"a context that is not there":   {config: []byte("apiVersion: v1\nkind: Config\ncurrent-context: other\n"), want: `current-context: there is no context "other"`},
		"no cluster":                    {config: []byte("apiVersion: v1\nkind: Config\ncurrent-context: it\ncontexts: [{name: it, context: {cluster: c, user: u}}]\n"), want: `contexts[it].cluster: there is no cluster "c"`},
		"no user":                       {config: []byte("apiVersion: v1\nkind: Config\ncurrent-context: it\ncontexts: [{name: it, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://a'}}]\n"), want: `contexts[it].user: there is no user "u"`},
		"no server":                     {config: written("proxy-url: 'http://a'", "token: secret"), want: "cluster.server: is not set"},
		"a server that is no URL":       {config: written("server: 'api:6443:x'", "token: secret"), want: "cluster.server: is no URL"},
		"a password in the URL":         {config: written("server: 'https://a:secret@api'", ""), want: "cluster.server: must not hold"},
		"a query in the URL":            {config: written("server: 'https://api/?token=secret'", "token: secret")},
		"no TLS":                        {config: written("server: 'http://api'", "token: secret"), want: "--insecure-kubeconfig-tls"},
		"no TLS, allowed":               {config: written("server: 'http://api'", "token: secret"), allow: everything},
		"an unchecked certificate":      {config: written(server+", insecure-skip-tls-verify: true", "token: secret"), want: "cluster.insecure-skip-tls-verify"},
		"an unchecked one, allowed":     {config: written(server+", insecure-skip-tls-verify: true", "token: secret"), allow: everything},
		"a file of certificates":        {config: written(server+", certificate-authority: /etc/passwd", "token: secret"), want: "cluster.certificate-authority: a file is refused"},
		"a server of another direction": {config: written("server: 'https://api\u202e.example.com'", "token: secret"), want: "cluster.server: is no URL"},
		"a server without an end":       {config: written("server: 'https://api/"+strings.Repeat("a", 3000)+"'", "token: secret"), want: "cluster.server: is no URL"},
		"a proxy without an end":        {config: written(server+", proxy-url: 'http://a/"+strings.Repeat("a", 3000)+"'", "token: secret"), want: "cluster.proxy-url: is no URL"},
		"a bad proxy":                   {config: written(server+", proxy-url: nonsense", "token: secret"), want: "cluster.proxy-url: is no URL"},
		"a program":                     {config: written(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: rm, interactiveMode: Never}"), want: "user.exec"},
		"a program, allowed":            {config: written(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: rm, interactiveMode: Never}"), allow: everything},
		"an auth provider":              {config: written(server, "auth-provider: {name: gcp}"), allow: everything, want: "user.auth-provider: is not supported"},
		"a file of a token":             {config: written(server, "tokenFile: /var/run/secrets/token"), want: "user.tokenFile: a file is refused"},
		"a file of a certificate":       {config: written(server, "client-certificate: a.pem"), want: "user.client-certificate: a file is refused"},
		"a file of a key":               {config: written(server, "client-key: a.pem"), want: "user.client-key: a file is refused"},
		"certificates that are nothing": {config: written(server+", certificate-authority-data: c2VjcmV0", "token: secret"), want: "has certificates or keys that cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			access, err := Parse(test.config, test.allow)
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want == "":
				if access.Config.Host == "" || access.Endpoint == "" || access.Digest == "" || strings.Contains(access.Endpoint, "secret") {
					t.Errorf("it lacks something, or shows too much: %+v", access)
				}
			case err == nil || !strings.Contains(err.Error(), test.want):
				t.Errorf("the error is %v, and lacks %q", err, test.want)
			case strings.Contains(err.Error(), "secret"):
				t.Errorf("the error quotes a secret: %v", err)
			}
		})
	}
}

func TestParseDigest(t *testing.T) {
	digest := func(token string) string {
		access, err := Parse(written(server, "token: "+token), Allow{})
		if err != nil {
			t.Fatal(err)
		}
		return access.Digest
	}
	if one := digest("a"); one == digest("b") || one != digest("a") {
		t.Error("the digest does not follow the content")
	}
}

func TestExpiryOfTokens(t *testing.T) {
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
	}
	for name, test := range map[string]struct {
		token string
		want  time.Time
		since time.Time
	}{
		"says when":      {token(`{"exp": 1800000000}`), time.Unix(1800000000, 0), time.Time{}},
		"and since when": {token(`{"exp": 1800000000, "iat": 1700000000}`), time.Unix(1800000000, 0), time.Unix(1700000000, 0)},
		"says nothing":   {token(`{}`), time.Time{}, time.Time{}},
		"negative":       {token(`{"exp": -1}`), time.Time{}, time.Time{}},
		"never":          {token(`{"exp": 1e300}`), time.Time{}, time.Time{}},
		"words":          {token(`{"exp": "tomorrow"}`), time.Time{}, time.Time{}},
		"no JSON":        {"a.!!!.c", time.Time{}, time.Time{}},
		"another format": {"abcdef", time.Time{}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			access, err := Parse(written(server, "token: '"+test.token+"'"), Allow{})
			if err != nil {
				t.Fatal(err)
			}
			if !access.Expires.Equal(test.want) || !access.Issued.Equal(test.since) {
				t.Errorf("it is from %v to %v, want %v to %v", access.Issued, access.Expires, test.since, test.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	all := map[string][]byte{"value": []byte("v"), "config": []byte("c"), "kubeconfig": []byte("k")}
	for name, test := range map[string]struct {
		data      map[string][]byte
		key, want string
		err       string
	}{
		"Flux's key comes first": {data: all, want: "v"},
		"then vcluster's":        {data: map[string][]byte{"config": []byte("c"), "kubeconfig": []byte("k")}, want: "c"},
		"then the word":          {data: map[string][]byte{"kubeconfig": []byte("k")}, want: "k"},
		"then that of KEP-4322":  {data: map[string][]byte{"Config": []byte("C")}, want: "C"},
		"the one that is named":  {data: all, key: "config", want: "c"},
		"one that is not there":  {data: all, key: "other", err: "has no key other, which spec.kubeConfig.secretRef.key names: it has config, kubeconfig, value"},
		"an empty one is none":   {data: map[string][]byte{"value": nil}, err: "is empty"},
		"nothing at all":         {err: "is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Find(test.data, test.key)
			if test.err == "" {
				if err != nil || string(got) != test.want {
					t.Errorf("found %q, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(written(server, "token: secret"))
	f.Add(written(server+", insecure-skip-tls-verify: true", "exec: {command: rm}"))
	f.Add(written("server: 'HTTPS://[fd00::1]:6443', proxy-url: 'http://proxy', tls-server-name: other", "token: e30.eyJleHAiOjE4MDAwMDAwMDB9.sig"))
	f.Add(written("server: 'http://api'", "tokenFile: /token, client-key: a.pem"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		access, err := Parse(data, Allow{})
		if err != nil {
			return
		}
		config := access.Config
		if config.ExecProvider != nil || config.AuthProvider != nil || config.Insecure || config.BearerTokenFile != "" ||
			config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" {
			t.Errorf("something refused came through: %v", config)
		}
		if !strings.HasPrefix(strings.ToLower(access.Endpoint), "https:") {
			t.Errorf("%q is not TLS", access.Endpoint)
		}
		if _, err := json.Marshal(access.Expires); err != nil {
			t.Errorf("no status can hold when the credentials end: %v", err)
		}
	})
}
