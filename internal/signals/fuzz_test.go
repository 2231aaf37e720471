// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"net/http"
	"strings"
	"testing"
)

// An address that is accepted can be posted to, and names a host. What is
// refused is not repeated, because it may hold a password.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"http://notification-controller.flux-system.svc/", "https://user:secret@host:8443/a?b#c", "http://", "http://:80/", "host:80", "//host", "ftp://host", "HTTP://[::1]:1/", "http://[::1", "http://ho st/", "http://host/%zz", "http://h\x00", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := CheckURL(text); err != nil {
			if len(text) > 40 && strings.Contains(err.Error(), text) {
				t.Fatalf("the error repeats the address: %v", err)
			}
			return
		}
		request, err := http.NewRequest(http.MethodPost, text, http.NoBody)
		if err != nil || request.URL.Hostname() == "" || request.URL.Scheme != "http" && request.URL.Scheme != "https" {
			t.Fatalf("%q was accepted, and cannot be posted to: %v", text, err)
		}
		if _, err := NewSender(SenderOptions{URL: text}); err != nil {
			t.Fatal(err)
		}
	})
}
