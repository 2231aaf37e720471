// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
)

// actHeader has, in a request to do something, what only the page knows.
const actHeader = "X-Strata-Act"

// another is what to do for one more browser.
const another = "Start kubectl strata ui again for another one."

// Local lets one browser of one's own machine look at what a handler serves. Other
// programs of the machine may reach the port, and pages of others may have the browser
// reach it; so that it answers only under its own name, to whoever has shown a token that
// only the address has that was printed.
type Local struct {
	next   http.Handler
	cookie string
	hosts  map[string]bool

	opened chan struct{}

	mu sync.Mutex
	// token is good for one visit; empty once it was used.
	token string
	// session is what the cookie of the browser has, and acting what requests to do something
	// have besides. Cookies go to all ports of a host; this does not leave the page, and no
	// answer has it.
	session, acting string
	// clears is true where another server may have had the address before.
	clears bool
}

// NewLocal returns what guards a handler that is served at an address of the loopback
// network, as 127.0.0.1:PORT. isChosen says that the port was chosen and may have been another
// server's before: what that one has left in the browser is cleared.
func NewLocal(next http.Handler, address string, isChosen bool) (*Local, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%s is no loopback address", host)
	}
	return &Local{
		next: next, token: rand.Text() + rand.Text(), session: rand.Text() + rand.Text(), acting: rand.Text() + rand.Text(),
		// A cookie counts for all ports of a host, so that each port has one of its own.
		cookie: "strata-" + port, clears: isChosen, opened: make(chan struct{}),
		hosts: map[string]bool{address: true, "localhost:" + port: true},
	}, nil
}

// Path returns the path that opens the page once. What acts are asked for with is behind the
// #, which no browser sends: it is for who has the address, and not for who comes first.
func (l *Local) Path() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return "/?token=" + l.token + "#act=" + l.acting
}

// Opened returns what is closed once the path was used.
func (l *Local) Opened() <-chan struct{} { return l.opened }

// ServeHTTP lets a request pass, or says why not.
func (l *Local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if !l.hosts[r.Host] {
		// The name of somebody else leads here.
		http.Error(w, "the page is not served under this name", http.StatusMisdirectedRequest)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		http.Error(w, "another page asks, which may not", http.StatusForbidden)
		return
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site == "" || site == "same-origin" || site == "none":
	case r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Method == http.MethodGet:
		// A link that somebody follows: the cookie is not sent with it, the token may be.
	default:
		http.Error(w, "another page asks, which may not", http.StatusForbidden)
		return
	}
	if token := r.URL.Query().Get("token"); token != "" {
		l.admit(w, r, token)
		return
	}
	cookie, err := r.Cookie(l.cookie)
	if err != nil || subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(l.session)) != 1 {
		http.Error(w, "This page opens with the address that kubectl strata ui has printed, once in one browser.\n"+another, http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !l.mayAct(r) {
		http.Error(w, "only the page itself may ask for that; open it with the address that kubectl strata ui has printed.\n"+another, http.StatusForbidden)
		return
	}
	l.next.ServeHTTP(w, r)
}

// mayAct tells whether the page itself asks: a browser names its origin, and it has been
// given what nobody else was.
func (l *Local) mayAct(r *http.Request) bool {
	return r.Header.Get("Origin") == "http://"+r.Host && subtle.ConstantTimeCompare([]byte(r.Header.Get(actHeader)), []byte(l.acting)) == 1
}

// admit gives whoever shows the token the cookie, once, and the page with it: after a redirect
// the browser would send no cookie where the first address was opened from elsewhere.
func (l *Local) admit(w http.ResponseWriter, r *http.Request, token string) {
	l.mu.Lock()
	good := r.Method == http.MethodGet && l.token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(l.token)) == 1
	if good {
		l.token = ""
		close(l.opened)
	}
	l.mu.Unlock()
	if !good {
		http.Error(w, "This address was used already, or is not the one that was printed.\n"+another, http.StatusUnauthorized)
		return
	}
	//nolint:gosec // Nothing encrypts what stays on this machine.
	http.SetCookie(w, &http.Cookie{Name: l.cookie, Value: l.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	if l.clears {
		// Service workers of an earlier server of this address would see all that comes. The
		// cookie stays.
		w.Header().Set("Clear-Site-Data", `"storage"`)
	}
	page := r.Clone(r.Context())
	page.URL = &url.URL{Path: "/"}
	page.Header.Del("If-None-Match")
	l.next.ServeHTTP(w, page)
}
