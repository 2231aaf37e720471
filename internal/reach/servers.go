// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// maxServerError is how long an answer may be that says what is wrong, unpacked.
const maxServerError = 256 << 10

// Bounds are those of the answers of a server that is no API server.
type Bounds struct {
	// Server is the name of the server in errors, such as s3://backups.
	Server string
	// Of returns the bound of the answer to a request.
	Of func(*http.Request) Bound
	// Redirects is how many are followed one after another; 0 takes one for the answer.
	Redirects int
}

// Bound is that of one answer.
type Bound struct {
	// Size that it may have, in bytes, unpacked.
	Size int64
	// Time until it must be there as a whole.
	Time time.Duration
}

// Always bounds all answers of a server in the same way.
func Always(size int64, limit time.Duration) func(*http.Request) Bound {
	return func(*http.Request) Bound { return Bound{Size: size, Time: limit} }
}

// Client returns a client of a server, over a transport, whose answers are bounded. An error
// says who has answered, and wraps a *TooLargeError where it was too much.
func Client(over http.RoundTripper, within Bounds) *http.Client {
	return &http.Client{
		Transport: &serverLimits{next: over, within: within},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			switch {
			case within.Redirects == 0:
				return http.ErrUseLastResponse
			case len(via) > within.Redirects:
				return fmt.Errorf("%s has sent elsewhere more than %d times", within.Server, within.Redirects)
			}
			return nil
		},
	}
}

// serverLimits is a transport that reads no answer without an end.
type serverLimits struct {
	next   http.RoundTripper
	within Bounds
}

// WrappedRoundTripper returns what the transport sends with.
func (l *serverLimits) WrappedRoundTripper() http.RoundTripper { return l.next }

// RoundTrip sends a request, and returns an answer that can be read to its end.
func (l *serverLimits) RoundTrip(req *http.Request) (*http.Response, error) {
	allowed := l.within.Of(req)
	slow := fmt.Errorf("%s takes longer than %s for an answer: %w", l.within.Server, allowed.Time, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(req.Context(), allowed.Time, slow)
	answer, err := l.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if errors.Is(context.Cause(ctx), slow) {
			err = slow
		}
		cancel()
		return nil, err
	}
	body := &bounded{body: answer.Body, end: cancel, who: l.within.Server, what: "data", limit: allowed.Size}
	if answer.StatusCode >= http.StatusMultipleChoices {
		body.what, body.limit = "an error", min(allowed.Size, maxServerError)
	}
	if answer.ContentLength > body.limit && req.Method != http.MethodHead {
		_ = body.Close()
		return nil, &TooLargeError{Server: body.who, What: body.what, Limit: body.limit}
	}
	answer.Body = body
	return answer, nil
}
