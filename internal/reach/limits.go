// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// How much an answer may hold, unpacked.
const (
	maxVersion   = 64 << 10
	maxObject    = 3 << 20
	maxDiscovery = 16 << 20
	maxPage      = 32 << 20
	maxEvent     = maxObject
	// minPage is what a page that is not the first one counts for at least, so that a
	// list whose pages hold nothing ends, too.
	minPage = 128 << 10
)

const (
	// answerTime bounds the wait for a whole answer, but of a watch.
	answerTime = 90 * time.Second
	// watchTime is how long a watch may last that does not say, and watchMore how
	// much longer than it says.
	watchTime, watchMore = 15 * time.Minute, time.Minute
)

// ErrRedirect says that a cluster sends elsewhere.
var ErrRedirect = errors.New("the API server answers with a redirect to another address, which is not followed")

// TooLargeError says that an answer was not read to its end.
type TooLargeError struct {
	// Server is the name of the server that has answered; an API server where it is empty.
	Server string
	// What is too large, and how much it may hold.
	What  string
	Limit int64
}

// Error says what is too large.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s answers with %s of more than %d KiB, which is not read", cmp.Or(e.Server, "the API server"), e.What, e.Limit>>10)
}

// limits is a transport that follows no redirects and reads no answer without an
// end. It stands next to the network, so that every client of the connection has it.
type limits struct {
	next http.RoundTripper
	// base is the path of the API server's URL.
	base   string
	ledger *ledger
}

// WrappedRoundTripper returns what the transport sends with.
func (l *limits) WrappedRoundTripper() http.RoundTripper { return l.next }

// RoundTrip sends a request, and returns an answer that can be read to its end.
func (l *limits) RoundTrip(req *http.Request) (*http.Response, error) {
	asked := questionOf(req, l.base)
	ctx, cancel := context.WithTimeout(req.Context(), asked.time)
	answer, err := l.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	if answer.StatusCode >= 300 && answer.StatusCode < 400 && answer.StatusCode != http.StatusNotModified {
		cancel()
		_ = answer.Body.Close()
		return nil, ErrRedirect
	}
	if pause, err := strconv.Atoi(answer.Header.Get("Retry-After")); err != nil || pause < 0 || pause > maxRetryAfter {
		answer.Header.Del("Retry-After")
	}
	body := &bounded{body: answer.Body, end: cancel, what: asked.what, limit: asked.limit}
	answer.Body = body
	if answer.StatusCode >= http.StatusBadRequest {
		return shortened(answer)
	}
	switch {
	case asked.watches:
		body.frames = framesOf(answer.Header.Get("Content-Type"))
	case answer.ContentLength > body.limit:
		_ = body.Close()
		return nil, &TooLargeError{What: body.what, Limit: body.limit}
	}
	if asked.list != "" && req.Context().Value(passing{}) == nil {
		least := int64(minPage)
		if asked.begins || asked.watches {
			least = 0
		}
		body.charge, body.settle = l.ledger.open(asked.list, asked.begins, least)
	}
	return answer, nil
}

// passing is the key of a context whose lists are not kept.
type passing struct{}

// Passing returns a context for lists of which no page is kept after the next one was asked for:
// each page is bounded, and all of them together are bounded by whoever asks.
func Passing(ctx context.Context) context.Context { return context.WithValue(ctx, passing{}, true) }

// question is what a request asks for.
type question struct {
	what    string
	limit   int64
	time    time.Duration
	watches bool
	// list is what is listed or watched; empty for none. It begins where it has no
	// predecessor whose objects are kept.
	list   string
	begins bool
}

// questionOf says what a request to an API server below a path asks for.
func questionOf(req *http.Request, base string) question {
	path := strings.Trim(strings.TrimPrefix(req.URL.Path, base), "/")
	query := req.URL.Query()
	switch parts := strings.Split(path, "/"); {
	case path == "version":
		return question{what: "a version", limit: maxVersion, time: answerTime}
	case req.Method == http.MethodGet && isTrue(query, "watch"):
		return question{
			what: "an event", limit: maxEvent, time: watchTimeOf(query), watches: true,
			list: listOf(path, query), begins: isTrue(query, "sendInitialEvents"),
		}
	case req.Method == http.MethodGet && isDiscovery(parts):
		return question{what: "a list of kinds", limit: maxDiscovery, time: answerTime}
	case req.Method == http.MethodGet && isList(parts):
		asked := question{what: "a page of a list", limit: maxPage, time: answerTime}
		if query.Get("limit") != "1" { // nobody keeps that
			asked.list, asked.begins = listOf(path, query), query.Get("continue") == ""
		}
		return asked
	}
	return question{what: "an object", limit: maxObject, time: answerTime}
}

func isTrue(query url.Values, name string) bool {
	value := query.Get(name)
	return value == "true" || value == "1"
}

// watchTimeOf returns how long a watch may last.
func watchTimeOf(query url.Values) time.Duration {
	seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
	if err != nil || seconds <= 0 || seconds > int(watchTime/time.Second) {
		return watchTime
	}
	return time.Duration(seconds)*time.Second + watchMore
}

// isDiscovery tells whether a path is one that lists kinds: api, apis, and groups
// and versions below them.
func isDiscovery(parts []string) bool {
	return parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3 || parts[0] == "openapi"
}

// isList tells whether a path is that of many objects.
func isList(parts []string) bool {
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) == 1
}

// listOf names what is listed or watched.
func listOf(path string, query url.Values) string {
	return path + "?" + query.Get("labelSelector") + "&" + query.Get("fieldSelector")
}

// bounded is the body of an answer that is read up to a limit: in all, or of a
// watch each event.
type bounded struct {
	body  io.ReadCloser
	end   context.CancelFunc
	who   string
	what  string
	limit int64
	// frames finds the events of a watch; nil for one answer.
	frames frames
	// charge counts what is read for more than this answer, and settle ends that, if
	// they are set.
	charge func(int64) error
	settle func()

	read int64
	err  error
}

// Read reads up to the limit, and fails beyond it.
func (b *bounded) Read(into []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(into)) > b.limit {
		into = into[:b.limit]
	}
	n, err := b.body.Read(into)
	if err == nil || n > 0 {
		b.err = b.count(into[:n])
	}
	if b.err != nil {
		b.end()
		return 0, b.err
	}
	return n, err
}

// count says whether what was read is too much.
func (b *bounded) count(data []byte) error {
	if b.charge != nil {
		if err := b.charge(int64(len(data))); err != nil {
			return err
		}
	}
	if b.frames != nil {
		if open := b.frames.pass(data); open > b.limit {
			return &TooLargeError{What: b.what, Limit: b.limit}
		}
		return nil
	}
	if b.read += int64(len(data)); b.read > b.limit {
		return &TooLargeError{Server: b.who, What: b.what, Limit: b.limit}
	}
	return nil
}

// Close ends the answer.
func (b *bounded) Close() error {
	b.end()
	if b.settle != nil {
		b.settle()
	}
	return b.body.Close()
}

// framesOf returns what finds the events in a watch of a type.
func framesOf(contentType string) frames {
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil && mediaType == runtime.ContentTypeProtobuf {
		return &lengthFrames{}
	}
	return &jsonFrames{}
}
