// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/reach"
)

// endless writes for as long as somebody reads.
func endless(to io.Writer, data []byte) {
	for {
		if _, err := to.Write(data); err != nil {
			return
		}
	}
}

// An answer of any server ends at its bound, unpacked, and the error says whose it was.
func TestServersAreBounded(t *testing.T) {
	blanks := bytes.Repeat([]byte(" "), 1<<20)
	for name, tc := range map[string]struct {
		answer    http.HandlerFunc
		redirects int
		limit     time.Duration
		want      string
	}{
		"what fits": {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(blanks) }},
		"too much": {answer: func(w http.ResponseWriter, _ *http.Request) {
			endless(w, blanks)
		}, want: "the bucket answers with data of more than 1024 KiB, which is not read"},
		"too much that is packed": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			endless(packed, blanks)
		}, want: "the bucket answers with data of more than 1024 KiB, which is not read"},
		"more than it may state": {answer: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1048577") }, want: "of more than 1024 KiB"},
		"an error": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write(blanks)
		}, want: "the bucket answers with an error of more than 256 KiB, which is not read"},
		"slowly": {answer: func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, limit: 50 * time.Millisecond, want: "deadline exceeded"},
		"not at all": {answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, limit: 50 * time.Millisecond, want: "the bucket takes longer than 50ms for an answer"},
		"elsewhere":  {answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) }},
		"round and round": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusFound)
		}, redirects: 3, want: "the bucket has sent elsewhere more than 3 times"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				tc.answer(w, r)
			}))
			defer server.Close()
			if tc.limit == 0 {
				tc.limit = time.Minute
			}
			client := reach.Client(&http.Transport{}, reach.Bounds{Server: "the bucket", Of: reach.Always(1<<20, tc.limit), Redirects: tc.redirects})
			answer, err := client.Get(server.URL)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				err = errors.Join(err, answer.Body.Close())
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if got := int(asked.Load()); got > tc.redirects+1 {
				t.Errorf("it was asked %d times", got)
			}
		})
	}
}
