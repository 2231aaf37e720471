// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestShow(t *testing.T) {
	for text, want := range map[string]string{
		"https://bucket.example/a.tar.gz":                                   "https://bucket.example/a.tar.gz",
		"https://bucket.example:8443/a%20b.tar.gz?X-Amz-Signature=secret#x": "https://bucket.example:8443/a%20b.tar.gz",
		"https://robot:secret@bucket.example/a":                             "https://bucket.example/a",
		"/relative?sig=secret":                                              "/relative",
		"https:opaque?sig=secret":                                           "https:",
		"https://robot:secret/with@bucket.example/\x7f?sig=secret":          unreadable,
		"": "",
	} {
		if got := Show(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestIsPlain(t *testing.T) {
	for text, want := range map[string]bool{
		"http://source-controller.flux-system.svc.cluster.local./gitrepository/a/b/c.tar.gz": true,
		"https://bucket.example/a?X-Amz-Signature=secret":                                    false, "https://u@bucket.example/a": false, "https://bucket.example/a?": false,
		"https://bucket.example/a#secret": false, "https:secret": false, "https://bucket.example/a#": false, "http://a/\x7f": false,
	} {
		if got := IsPlain(text); got != want {
			t.Errorf("%q is plain: %v, want %v", text, got, want)
		}
	}
}

func TestHide(t *testing.T) {
	for text, want := range map[string]string{
		"nothing to hide: a?b=c":                                          "nothing to hide: a?b=c",
		`Get "https://b.example/a?sig=secret": connection refused`:        `Get "https://b.example/a": connection refused`,
		`cannot fetch https://b.example/a?sig=secret: refused`:            `cannot fetch https://b.example/a: refused`,
		`two: https://u:secret@a/b, oci://c/d?x=secret.`:                  `two: https://a/b, oci://c/d.`,
		`Get "/a b?sig=secret": stopped after 10 redirects`:               `Get "/a b": stopped after 10 redirects`,
		`parse "http://h/a \"b\" c?sig=secret": no`:                       `parse "http://h/a \"b\" c": no`,
		"http://h/a\u00a0b?sig=secret is away":                            "http://h/a\u00a0b is away",
		"cannot reach http://127.0.0.1:6443: check it":                    "cannot reach http://127.0.0.1:6443: check it",
		"cannot reach https://u:secret@h:6443/?sig=secret): check it":     "cannot reach https://h:6443/: check it",
		"https://u:sec/ret@h/x?y=secret":                                  "https://h/x",
		"https://registry.example:5000/chart@sha256:abc is not there":     "https://registry.example:5000/chart@sha256:abc is not there",
		"https://[::1]:5000/chart@1.0.0":                                  "https://[::1]:5000/chart@1.0.0",
		"see https://strata.example/docs, (https://strata.example/docs).": "see https://strata.example/docs, (https://strata.example/docs).",
		"failed to do request: Head 'https://h/v2/?token=secret': 401":    "failed to do request: Head 'https://h/v2/': 401",
	} {
		if got := Hide(text); got != want {
			t.Errorf("%q\nis shown as %q\nwant       %q", text, got, want)
		}
		if again := Hide(Hide(text)); again != Hide(text) {
			t.Errorf("shown twice it is %q", again)
		}
	}
}

// What a client says of a server that leads it anywhere has nothing of where it was
// led to but scheme, host and path.
func TestLine(t *testing.T) {
	for _, c := range []struct {
		reason, text string
		limit        int
		want         string
	}{
		{"a line of its own", "GET https://a.b/c?sig=secret\nfailed", 0, "GET https://a.b/c failed"},
		{"what is invisible parts no address", "at https:/\u200b/a.b/c?sig=\u200bsecret", 0, "at https://a.b/c"},
		{"cut after it was hidden", "at https://me:secret@a.b/c?sig=secret", 14, "at https://..."},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if got := Line(c.text, c.limit); got != c.want {
				t.Errorf("it is %q, not %q", got, c.want)
			}
		})
	}
}

func TestErrorOfARedirect(t *testing.T) {
	for name, c := range map[string]struct{ location, want string }{
		"for ever":   {"?sig=secret", "stopped after 10 redirects"},
		"relative":   {"a?sig=secret", "stopped after 10 redirects"},
		"absolute":   {"http://robot:secret@127.0.0.1:1/a?sig=secret", "127.0.0.1:1: connect"},
		"unreadable": {"http://robot:secret/secret@h/%zz?sig=secret", "it leads to an address that cannot be understood"},
		"port":       {"http://robot:secret/", "it leads to an address that cannot be understood"},
		"two":        {"x http://h/a b?sig=secret", "it leads to an address that cannot be understood"},
		"scheme":     {"ftp://h/a?sig=secret", "unsupported protocol scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", c.location)
				w.WriteHeader(http.StatusFound)
			}))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/a?sig=secret", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(request)
			if err == nil {
				_ = response.Body.Close()
				t.Fatal("the redirect leads somewhere")
			}
			shown := Error(fmt.Errorf("cannot fetch: %w", err))
			if text := shown.Error(); strings.Contains(text, "secret") || !strings.HasPrefix(text, "cannot fetch: ") || !strings.Contains(text, c.want) {
				t.Errorf("the error is %q, want %q", text, c.want)
			}
			if !errors.Is(shown, err) {
				t.Error("the error cannot be asked for")
			}
		})
	}
}

func TestErrorOfNothing(t *testing.T) {
	if Error(nil) != nil {
		t.Error("nothing has become an error")
	}
	if got := Error(errors.New("plain")).Error(); got != "plain" {
		t.Errorf("the error is %q", got)
	}
	joined := errors.Join(&url.Error{Op: "Get", URL: "http://h/a?sig=secret", Err: errors.New("x")}, errors.New("other"))
	if got := Error(joined).Error(); strings.Contains(got, "secret") || !strings.Contains(got, "other") {
		t.Errorf("the error is %q", got)
	}
}

// Whatever the address is, neither its query nor its user are in what is told of it.
func FuzzHide(f *testing.F) {
	for _, seed := range []string{"https://h/a", "/a b", "x y", "http://[::1", "a\"b", "h\\", "http://\xff", "%zz", "a'b", "a\nb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, base string) {
		const secret = "s3cr3t-s1gn4tur3"
		if strings.Contains(base, secret) {
			return
		}
		for _, address := range []string{base + "?sig=" + secret, base + "#" + secret, "https://u:" + secret + "@" + base} {
			told := Error(fmt.Errorf("cannot fetch: %w", &url.Error{Op: "Get", URL: address, Err: errors.New("no")})).Error()
			if strings.Contains(told, secret) {
				t.Fatalf("%q is told", told)
			}
		}
		quoted := fmt.Sprintf("Get %q: no", "https://"+base+"?sig="+secret)
		if told := Hide(quoted); strings.Contains(told, secret) {
			t.Fatalf("%q is told", told)
		}
	})
}
