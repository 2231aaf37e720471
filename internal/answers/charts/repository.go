// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

// chartIndex is what is read of a repository's index.
type chartIndex struct {
	APIVersion string                     `json:"apiVersion"`
	Entries    map[string][]*chartVersion `json:"entries"`
}

// chartVersion is a version of a chart in an index.
type chartVersion struct {
	Name    string    `json:"name"`
	Version string    `json:"version"`
	URLs    []string  `json:"urls"`
	Created time.Time `json:"created"`
	// Digest is the SHA-256 of the packed chart, or empty.
	Digest string `json:"digest"`
}

// fromRepository fetches a chart from a HelmRepository over HTTP.
func (r *Renderer) fromRepository(ctx context.Context, q Request, repository *sourcev1.HelmRepository, ref reference) (*chart.Chart, error) {
	spec := repository.Spec
	credentials, certificates := "", ""
	if spec.SecretRef != nil {
		credentials = spec.SecretRef.Name
	}
	if spec.CertSecretRef != nil {
		certificates = spec.CertSecretRef.Name
	}
	a, err := accessTo(ctx, q, ref.trust, ref.source, credentials, certificates)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(spec.URL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, problem(ChartUnavailable, nil, "%s has no address of a repository: spec.url must begin with https://, http:// or oci://", ref.source)
	}
	fetch := func(ctx context.Context, address string, limit int64) ([]byte, error) {
		return r.download(ctx, a, spec.PassCredentials && ref.trust.Beyond, base, address, limit)
	}
	index, err := r.index(ctx, ref, base, fetch)
	if err != nil {
		return nil, err
	}
	version, err := newest(index, ref)
	if err != nil {
		return nil, err
	}
	data, err := r.packed(ctx, ref, base, version, fetch)
	if err != nil {
		return nil, err
	}
	loaded, err := unpack(data, r.limits.archive)
	if err != nil {
		return nil, problem(ChartUnavailable, err, "chart %s %s of %s cannot be read", version.Name, version.Version, ref.source)
	}
	return loaded, replaceValues(loaded, ref, fileOf(loaded))
}

// index returns the index of a repository, which is fetched once, whether that works
// or not: where a repository is away, the next release need not wait for it again.
func (r *Renderer) index(ctx context.Context, ref reference, base *url.URL, fetch fetcher) (*chartIndex, error) {
	address := base.JoinPath("index.yaml")
	// The credentials, which are the source's, decide what may be read.
	key := fmt.Sprintf("%s %t %s", ref.source, ref.trust.Host, address)
	r.mu.Lock()
	entry := r.indexes[key]
	if entry == nil {
		entry = &indexEntry{}
		r.indexes[key] = entry
	}
	r.mu.Unlock()
	entry.once.Do(func() {
		data, err := fetch(ctx, address.String(), r.limits.index)
		if err == nil {
			entry.index, err = parseIndex(data)
		}
		if err != nil {
			entry.err = problem(ChartUnavailable, err, "the index of %s at %s cannot be had", ref.source, redacted(address.String()))
		}
		if ctx.Err() != nil {
			// That says nothing of the repository.
			r.mu.Lock()
			delete(r.indexes, key)
			r.mu.Unlock()
		}
	})
	return entry.index, entry.err
}

// parseIndex reads an index, which may be YAML or JSON.
func parseIndex(data []byte) (*chartIndex, error) {
	index := &chartIndex{}
	if err := yaml.Unmarshal(data, index); err != nil {
		return nil, fmt.Errorf("it cannot be understood: %w", err)
	}
	if index.APIVersion == "" {
		return nil, errors.New("it is no index of a repository: it has no apiVersion")
	}
	return index, nil
}

// newest returns the version of a chart that Flux takes: one that is named exactly,
// or the newest that is in the range, of several of that version the latest made.
func newest(index *chartIndex, ref reference) (*chartVersion, error) {
	var found []*chartVersion
	for _, each := range index.Entries[ref.chart] {
		if each != nil {
			found = append(found, each)
		}
	}
	if len(found) == 0 {
		return nil, problem(ChartNotFound, nil, "%s has no chart %s", ref.source, ref.chart)
	}
	versions := make([]string, len(found))
	made := make([]int64, len(found))
	for i, each := range found {
		versions[i], made[i] = each.Version, each.Created.UnixNano()
	}
	at, err := pick(versions, made, ref.version)
	if err != nil {
		return nil, problem(ChartNotFound, err, "%s has no chart %s that fits", ref.source, ref.chart)
	}
	return found[at], nil
}

// pick returns which of several versions Flux takes for a version or a range, which
// may be empty for any that is no pre-release. Of equal versions it takes the one
// that was made last; made may be nil.
func pick(versions []string, made []int64, wanted string) (int, error) {
	if at := slices.Index(versions, wanted); wanted != "" && at >= 0 {
		return at, nil
	}
	constraint, err := semver.NewConstraint(cmp.Or(wanted, "*"))
	if err != nil {
		return 0, fmt.Errorf("version %q is neither a version nor a range", wanted)
	}
	best, at := (*semver.Version)(nil), -1
	for i, text := range versions {
		version, err := parseVersion(text)
		if err != nil || !constraint.Check(version) {
			continue
		}
		newer := best == nil || version.GreaterThan(best)
		if best != nil && version.Equal(best) && made != nil {
			newer = made[i] > made[at]
		}
		if newer {
			best, at = version, i
		}
	}
	if at < 0 {
		return 0, fmt.Errorf("no version of %d is within %q", len(versions), cmp.Or(wanted, "*"))
	}
	return at, nil
}

// parseVersion reads a version as Flux reads it: all three numbers must be there.
func parseVersion(text string) (*semver.Version, error) {
	if strings.Count(text, ".") < 2 {
		return nil, semver.ErrInvalidSemVer
	}
	return semver.NewVersion(text)
}

// packed returns a packed chart, from the cache where the index has its digest.
func (r *Renderer) packed(ctx context.Context, ref reference, base *url.URL, version *chartVersion, fetch fetcher) ([]byte, error) {
	digest := strings.ToLower(strings.TrimPrefix(version.Digest, "sha256:"))
	if data := r.cache.get(digest); data != nil {
		return data, nil
	}
	if len(version.URLs) == 0 {
		return nil, problem(ChartUnavailable, nil, "the index of %s has no address for chart %s %s", ref.source, version.Name, version.Version)
	}
	address, err := resolve(base, version.URLs[0])
	if err != nil {
		return nil, problem(ChartUnavailable, err, "the index of %s has no usable address for chart %s %s", ref.source, version.Name, version.Version)
	}
	data, err := fetch(ctx, address, r.limits.archive)
	if err != nil {
		return nil, problem(ChartUnavailable, err, "chart %s %s of %s at %s cannot be had", version.Name, version.Version, ref.source, redacted(address))
	}
	if got := sum(data); digest != "" && got != digest {
		return nil, problem(
			ChartUnavailable,
			nil,
			"chart %s %s of %s has the digest sha256:%s, while the index says sha256:%s: one of them was changed",
			version.Name,
			version.Version,
			ref.source,
			got,
			digest,
		)
	}
	r.cache.put(sum(data), data)
	return data, nil
}

// resolve returns the address of a chart, which an index may give below its own.
func resolve(base *url.URL, reference string) (string, error) {
	to, err := url.Parse(reference)
	if err != nil {
		return "", errors.New("it is no address")
	}
	if to.IsAbs() {
		return to.String(), nil
	}
	// The index is a file in the folder that the address of the repository names.
	folder := *base
	folder.Path, folder.RawPath = strings.TrimSuffix(base.Path, "/")+"/", ""
	resolved := folder.ResolveReference(to)
	if to.RawQuery == "" {
		resolved.RawQuery = base.RawQuery
	}
	return resolved.String(), nil
}

// fetcher returns what is at an address, if that is no larger than limit bytes.
type fetcher func(ctx context.Context, address string, limit int64) ([]byte, error)

// download fetches what is at an address. Credentials go to the host of the
// repository only, unless the repository says otherwise.
func (r *Renderer) download(ctx context.Context, a access, pass bool, base *url.URL, address string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("it is no address")
	}
	if !pass && !sameOrigin(request.URL, base) {
		a = a.withoutCredentials()
	}
	if a.username != "" {
		request.SetBasicAuth(a.username, a.password)
	}
	response, err := r.client(a).Do(request)
	if err != nil {
		return nil, cause(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read, or is not wanted
	if response.StatusCode != http.StatusOK {
		return nil, a.statusError(response.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, cause(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return data, nil
}

// statusError says what an answer means for whoever has to mend it.
func (a access) statusError(code int) error {
	switch refused := code == http.StatusUnauthorized || code == http.StatusForbidden; {
	case refused && a.withheld != "":
		return fmt.Errorf("it answers %d %s, and the credentials of the source were not sent: %s", code, http.StatusText(code), a.withheld)
	case refused:
		return fmt.Errorf("it answers %d %s: look at the credentials of the source", code, http.StatusText(code))
	default:
		return fmt.Errorf("it answers %d %s", code, http.StatusText(code))
	}
}

// cause returns what is behind an error of a request, which has the address before
// it; whoever calls has said that, without a password in it.
func cause(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		switch {
		case failed.Timeout():
			return errors.New("it does not answer in time")
		case strings.Contains(failed.Err.Error(), "Location header"):
			return errors.New("it redirects to an address that cannot be understood")
		}
		return failed.Err
	}
	return err
}
