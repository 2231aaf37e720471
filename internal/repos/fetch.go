// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	_ "github.com/opencontainers/go-digest/blake3" // source-controller may be told to use it

	"github.com/strata-project/strata/internal/address"
)

// fetcher downloads archives over HTTP. Flux's own fetcher drains a body that
// is too large to its end, keeps the archive outside of the cache folder and
// waits for five seconds before a retry.
type fetcher struct {
	client  *http.Client
	hosts   *Hosts
	max     int64
	retries int
	wait    time.Duration
}

func newFetcher(limit int64, through http.RoundTripper, hosts *Hosts) *fetcher {
	if through == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		// The digest is that of the bytes as they are stored.
		transport.DisableCompression = true
		transport.ResponseHeaderTimeout = 30 * time.Second
		through = transport
	}
	return &fetcher{client: &http.Client{Transport: through, CheckRedirect: hosts.follow}, hosts: hosts, max: limit, retries: 2, wait: 500 * time.Millisecond}
}

// transient is a failure that another attempt may not meet.
type transient struct{ error }

// Unwrap returns the failure.
func (t transient) Unwrap() error { return t.error }

// download writes the verified archive to a file, with retries.
func (f *fetcher) download(ctx context.Context, artifact Artifact, file string) error {
	if artifact.Size > f.max {
		return f.tooLarge(artifact.Size)
	}
	if artifact.URL == "" {
		return fmt.Errorf("cannot fetch artifact %s: where it lies was not kept: %w", artifact.Digest, ErrNotFound)
	}
	for attempt := 0; ; attempt++ {
		err := f.attempt(ctx, artifact, file)
		var again transient
		if err == nil || attempt >= f.retries || !errors.As(err, &again) {
			return err
		}
		timer := time.NewTimer(f.wait << attempt)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

func (f *fetcher) attempt(ctx context.Context, artifact Artifact, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, artifact.URL, nil)
	if err != nil {
		return fmt.Errorf("cannot fetch artifact: %w", address.Error(err))
	}
	if err := f.hosts.check(request.URL); err != nil {
		return err
	}
	response, err := f.client.Do(request)
	var refused unverifiedError
	if errors.As(err, &refused) {
		return refused
	}
	if err != nil {
		return transient{fmt.Errorf("cannot fetch artifact: %w", address.Error(err))}
	}
	// A body that is not read to its end costs its connection, which is
	// cheaper than reading what nobody wants.
	defer func() { _ = response.Body.Close() }()
	if err := checkStatus(response); err != nil {
		return err
	}
	if response.ContentLength > f.max {
		return f.tooLarge(response.ContentLength)
	}
	return f.save(response.Body, artifact, file)
}

func checkStatus(response *http.Response) error {
	place := address.Of(response.Request.URL)
	switch code := response.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusNotFound || code == http.StatusGone:
		return fmt.Errorf("cannot fetch artifact %s: %w", place, ErrNotFound)
	case code >= 500 || code == http.StatusTooManyRequests:
		return transient{fmt.Errorf("cannot fetch artifact %s: the server answers %s", place, response.Status)}
	default:
		return fmt.Errorf("cannot fetch artifact %s: the server answers %s", place, response.Status)
	}
}

func (f *fetcher) save(body io.Reader, artifact Artifact, file string) error {
	expected := digest.Digest(artifact.Digest)
	verifier := expected.Verifier()
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // #nosec G304 -- a name below the cache folder
	if err != nil {
		return fmt.Errorf("cannot store artifact: %w", err)
	}
	n, err := copyTo(io.MultiWriter(out, verifier), io.LimitReader(body, f.max+1))
	if closed := out.Close(); err == nil && closed != nil {
		err = fmt.Errorf("cannot store artifact: %w", closed)
	}
	switch {
	case err != nil:
		return err
	case n > f.max:
		return f.tooLarge(0)
	case artifact.Size > 0 && n != artifact.Size:
		return transient{fmt.Errorf("cannot fetch artifact: got %d bytes of %d: %w", n, artifact.Size, io.ErrUnexpectedEOF)}
	case !verifier.Verified():
		return unverified("the artifact is not what its source says: its digest is not %s", expected)
	}
	return nil
}

// copyTo copies like io.Copy, and tells a failure to read, which is the
// network's, from one to write.
func copyTo(out io.Writer, in io.Reader) (int64, error) {
	source := &readErrors{Reader: in}
	n, err := io.Copy(out, source)
	switch {
	case err == nil:
		return n, nil
	case source.err != nil:
		return n, transient{fmt.Errorf("cannot fetch artifact: the download broke off after %d bytes: %w", n, address.Error(source.err))}
	default:
		return n, fmt.Errorf("cannot store artifact: %w", err)
	}
}

type readErrors struct {
	io.Reader
	err error
}

// Read remembers the error of the reader.
func (r *readErrors) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func (f *fetcher) tooLarge(size int64) error {
	if size > 0 {
		return unverified("the artifact has %d bytes, and %d are allowed: leave files out of the source with spec.ignore, or raise --artifact-max-size", size, f.max)
	}
	return unverified(
		"the artifact has more than the %d bytes that are allowed: leave files out of the source with spec.ignore, or raise --artifact-max-size",
		f.max,
	)
}

// cleanDigest returns a digest as algorithm:hex. Without a digest nothing is
// fetched: the bytes could be anybody's.
func cleanDigest(text string) (string, error) {
	if text == "" {
		return "", refuse("", "the source's artifact has no digest, so it cannot be verified: update source-controller")
	}
	if !strings.Contains(text, ":") {
		text = "sha256:" + text
	}
	d, err := digest.Parse(text)
	if err != nil {
		return "", refuse("", "the digest %q of the source's artifact is not one that can be verified: %s", text, err)
	}
	return d.String(), nil
}
