// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const here = "127.0.0.1:4321"

// guarded returns a guard, and what it lets pass.
func guarded(t *testing.T) (*Local, *int) {
	t.Helper()
	passed := 0
	local, err := NewLocal(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }), here, false)
	if err != nil {
		t.Fatal(err)
	}
	return local, &passed
}

// ask sends a request with headers, as Name: value. As a browser, it sends nothing behind a #.
func ask(h http.Handler, method, target string, headers ...string) *http.Response {
	target, _, _ = strings.Cut(target, "#")
	r := httptest.NewRequest(method, "http://"+here+target, nil)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestTokenIsUsedOnce(t *testing.T) {
	local, passed := guarded(t)
	path := local.Path()
	if got := ask(local, "GET", "/?token=wrong").StatusCode; got != http.StatusUnauthorized {
		t.Errorf("a wrong token is answered with %d", got)
	}
	if got := ask(local, "GET", "/"); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a cookie: %d", got.StatusCode)
	}
	first := ask(local, "GET", path)
	cookies := first.Cookies()
	if first.StatusCode != http.StatusOK || len(cookies) != 1 {
		t.Fatalf("the token is answered with %d and %v", first.StatusCode, cookies)
	}
	cookie := cookies[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Name != "strata-4321" || strings.Contains(path, cookie.Value) {
		t.Errorf("the cookie is %v", cookie)
	}
	if again := ask(local, "GET", path); again.StatusCode != http.StatusUnauthorized || len(again.Cookies()) > 0 {
		t.Errorf("a second visit is answered with %d", again.StatusCode)
	}
	if *passed != 1 {
		t.Errorf("%d requests passed, want the page alone", *passed)
	}
	if got := ask(local, "GET", "/", "Cookie: "+cookie.Name+"="+cookie.Value).StatusCode; got != http.StatusOK || *passed != 2 {
		t.Errorf("with the cookie: %d", got)
	}
	if got := ask(local, "GET", "/", "Cookie: "+cookie.Name+"="+cookie.Value[1:]).StatusCode; got != http.StatusUnauthorized {
		t.Errorf("with half a cookie: %d", got)
	}
	if empty := ask(local, "GET", "/?token="); empty.StatusCode != http.StatusUnauthorized {
		t.Errorf("an empty token after the first visit is answered with %d", empty.StatusCode)
	}
}

// Whatever a page of somebody else has a browser send, the cookie along with it, is
// refused: by the name that leads here, by where it comes from, and by its method.
func TestForgedRequests(t *testing.T) {
	for name, test := range map[string]struct {
		method, target string
		headers        []string
		want           int
	}{
		"its own":                  {"GET", "/stream", []string{"Sec-Fetch-Site: same-origin"}, http.StatusOK},
		"typed by hand":            {"GET", "/", []string{"Sec-Fetch-Site: none"}, http.StatusOK},
		"as localhost":             {"GET", "/", []string{"Host: localhost:4321"}, http.StatusOK},
		"DNS rebinding":            {"GET", "/", []string{"Host: evil.example:4321"}, http.StatusMisdirectedRequest},
		"another port":             {"GET", "/", []string{"Host: 127.0.0.1:80"}, http.StatusMisdirectedRequest},
		"no port":                  {"GET", "/", []string{"Host: 127.0.0.1"}, http.StatusMisdirectedRequest},
		"another origin":           {"GET", "/stream", []string{"Origin: http://evil.example"}, http.StatusForbidden},
		"another port's origin":    {"GET", "/stream", []string{"Origin: http://127.0.0.1:80"}, http.StatusForbidden},
		"an origin without a name": {"GET", "/stream", []string{"Origin: null"}, http.StatusForbidden},
		"another site's script":    {"GET", "/stream", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"}, http.StatusForbidden},
		"another port's script":    {"GET", "/app.js", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"}, http.StatusForbidden},
		"another site's form":      {"POST", "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, http.StatusForbidden},
		"a link of another site":   {"GET", "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			local, passed := guarded(t)
			cookie := ask(local, "GET", local.Path()).Cookies()[0]
			got := ask(local, test.method, test.target, append(test.headers, "Cookie: "+cookie.Name+"="+cookie.Value)...)
			if got.StatusCode != test.want || (*passed > 1) != (test.want == http.StatusOK) {
				t.Errorf("it is answered with %d, want %d; %d passed", got.StatusCode, test.want, *passed)
			}
		})
	}
}

// Whatever is asked for with another method than those that look comes from the page itself:
// a browser says so, and the page was given what no cookie has.
func TestForgedActs(t *testing.T) {
	for name, test := range map[string]struct {
		headers []string
		want    int
	}{
		"its own":                     {[]string{"Origin: http://" + here, "Sec-Fetch-Site: same-origin", "X-Strata-Act: ACT"}, http.StatusOK},
		"with the cookie alone":       {[]string{"Origin: http://" + here, "Sec-Fetch-Site: same-origin"}, http.StatusForbidden},
		"with an empty secret":        {[]string{"Origin: http://" + here, "X-Strata-Act: "}, http.StatusForbidden},
		"with half the secret":        {[]string{"Origin: http://" + here, "X-Strata-Act: HALF"}, http.StatusForbidden},
		"without an origin":           {[]string{"X-Strata-Act: ACT"}, http.StatusForbidden},
		"from localhost":              {[]string{"Origin: http://localhost:4321", "X-Strata-Act: ACT"}, http.StatusForbidden},
		"from another port":           {[]string{"Origin: http://127.0.0.1:80", "X-Strata-Act: ACT"}, http.StatusForbidden},
		"by a form of another site":   {[]string{"Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "X-Strata-Act: ACT"}, http.StatusForbidden},
		"by a form, without a name":   {[]string{"Origin: null", "X-Strata-Act: ACT"}, http.StatusForbidden},
		"under another name":          {[]string{"Host: evil.example:4321", "Origin: http://evil.example:4321", "X-Strata-Act: ACT"}, http.StatusMisdirectedRequest},
		"of a browser without a word": {[]string{"Origin: http://" + here, "X-Strata-Act: ACT"}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
				local, passed := guarded(t)
				first := ask(local, "GET", local.Path())
				cookie := first.Cookies()[0]
				text, err := io.ReadAll(first.Body)
				if err != nil {
					t.Fatal(err)
				}
				_, secret, _ := strings.Cut(local.Path(), "#act=")
				if len(secret) < 40 || strings.Contains(string(text), secret) || strings.Contains(fmt.Sprint(first.Header), secret) || cookie.Value == secret {
					t.Fatalf("the secret is %q, and the first answer %v %s", secret, first.Header, text)
				}
				headers := []string{"Cookie: " + cookie.Name + "=" + cookie.Value}
				for _, header := range test.headers {
					headers = append(headers, strings.NewReplacer(": ACT", ": "+secret, ": HALF", ": "+secret[1:]).Replace(header))
				}
				if got := ask(local, method, "/act", headers...).StatusCode; got != test.want || (*passed > 1) != (test.want == http.StatusOK) {
					t.Errorf("%s is answered with %d, want %d; %d passed", method, got, test.want, *passed)
				}
			}
		})
	}
}

// Whoever comes first with the token, such as another user who has seen it, looks and does
// not act: what acts are asked for with is in no answer.
func TestTheFirstVisitorCannotAct(t *testing.T) {
	local, passed := guarded(t)
	token, _, _ := strings.Cut(local.Path(), "#")
	cookie := ask(local, "GET", token).Cookies()[0]
	select {
	case <-local.Opened():
	default:
		t.Error("nobody is told that the page was opened")
	}
	got := ask(local, "POST", "/act", "Cookie: "+cookie.Name+"="+cookie.Value, "Origin: http://"+here, "X-Strata-Act: "+cookie.Value)
	if got.StatusCode != http.StatusForbidden || *passed != 1 {
		t.Errorf("an act is answered with %d", got.StatusCode)
	}
}

// At a port that was chosen, what an earlier server has left in the browser goes, and the
// cookie of this one stays.
func TestWhatAnEarlierServerLeftIsCleared(t *testing.T) {
	for _, isChosen := range []bool{true, false} {
		local, err := NewLocal(http.NotFoundHandler(), here, isChosen)
		if err != nil {
			t.Fatal(err)
		}
		first := ask(local, "GET", local.Path())
		want := ""
		if isChosen {
			want = `"storage"`
		}
		if got := first.Header.Get("Clear-Site-Data"); got != want || len(first.Cookies()) != 1 {
			t.Errorf("with a port that was chosen %t: %q, and cookies %v", isChosen, got, first.Cookies())
		}
	}
}

func TestLocalIsLoopback(t *testing.T) {
	for address, good := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "0.0.0.0:1": false, "192.0.2.1:1": false, "example.com:1": false, "x": false} {
		if _, err := NewLocal(nil, address, false); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}
