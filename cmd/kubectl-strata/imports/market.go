// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/answers/adoption"
)

const (
	// maxIndex and maxArchive bound what is downloaded.
	maxIndex   = 64 << 20
	maxArchive = 32 << 20
	// answerTime is how long a repository may take for one answer.
	answerTime = 30 * time.Second
)

// market asks Helm repositories for charts, each only once for each thing.
type market struct {
	client *http.Client
	// repositories in the order in which they are asked; those that live in the
	// cluster, then those that were given, which have no namespace.
	repositories []adoption.Repository
	indexes      map[string]answer[adoption.Index]
	charts       map[string]answer[adoption.Chart]
}

type answer[T any] struct {
	value T
	err   error
}

func newMarket(live []*unstructured.Unstructured, given []adoption.Repository) *market {
	m := &market{client: &http.Client{Timeout: answerTime}, indexes: map[string]answer[adoption.Index]{}, charts: map[string]answer[adoption.Chart]{}}
	for _, obj := range live {
		address, _, _ := unstructured.NestedString(obj.Object, "spec", "url")
		m.repositories = append(m.repositories, adoption.Repository{Namespace: obj.GetNamespace(), Name: obj.GetName(), URL: address, Lives: true})
	}
	m.repositories = append(m.repositories, given...)
	return m
}

// find returns the repository that holds the very chart of a release, or says what
// was found instead. One of the release's own namespace comes first.
func (m *market) find(ctx context.Context, release adoption.Release) (*adoption.Repository, string) {
	if len(m.repositories) == 0 {
		return nil, "there is no HelmRepository in the cluster, and none was given with --repository NAME=URL"
	}
	asked := slices.Clone(m.repositories)
	slices.SortStableFunc(asked, func(a, b adoption.Repository) int {
		return rank(a, release.Namespace) - rank(b, release.Namespace)
	})
	var reasons []string
	for _, repository := range asked {
		chart, err := m.chart(ctx, repository.URL, release.Chart.Name, release.Chart.Version)
		reason := chart.Differs(release.Chart)
		if err != nil {
			reason = err.Error()
		}
		if reason == "" && !repository.Lives {
			repository, reason = m.settled(repository, release.Namespace)
		}
		if reason == "" {
			return &repository, ""
		}
		reasons = append(reasons, fmt.Sprintf("%s (%s): %s", strings.Trim(repository.Namespace+"/"+repository.Name, "/"), withoutUser(repository.URL), reason))
	}
	const most = 5
	if more := len(reasons) - most; more > 0 {
		reasons = append(reasons[:most], fmt.Sprintf("and %d more", more))
	}
	return nil, strings.Join(reasons, "; ")
}

func rank(repository adoption.Repository, namespace string) int {
	switch {
	case repository.Lives && repository.Namespace == namespace:
		return 0
	case repository.Lives:
		return 1
	}
	return 2
}

// settled puts a repository that was given beside the release, where nothing
// forbids it to be referred to.
func (m *market) settled(repository adoption.Repository, namespace string) (adoption.Repository, string) {
	repository.Namespace = namespace
	for _, other := range m.repositories {
		if other.Lives && other.Namespace == namespace && other.Name == repository.Name {
			return repository, fmt.Sprintf("it holds the chart, but HelmRepository %s/%s has another URL: give it another name", namespace, other.Name)
		}
	}
	return repository, ""
}

// chart downloads a chart as a repository has it.
func (m *market) chart(ctx context.Context, base, name, version string) (adoption.Chart, error) {
	index, err := m.index(ctx, base)
	if err != nil {
		return adoption.Chart{}, err
	}
	entry, found := index.Find(name, version)
	if !found {
		return adoption.Chart{}, fmt.Errorf("it lists no %s %s", name, version)
	}
	address, err := resolve(base, entry.URLs[0])
	if err != nil {
		return adoption.Chart{}, err
	}
	if known, asked := m.charts[address]; asked {
		return known.value, known.err
	}
	var got answer[adoption.Chart]
	got.value, got.err = m.download(ctx, address, entry.Digest)
	m.charts[address] = got
	return got.value, got.err
}

func (m *market) download(ctx context.Context, address, digest string) (adoption.Chart, error) {
	archive, err := m.get(ctx, address, maxArchive)
	if err != nil {
		return adoption.Chart{}, err
	}
	sum := sha256.Sum256(archive)
	if wanted := strings.TrimPrefix(digest, "sha256:"); wanted != "" && wanted != hex.EncodeToString(sum[:]) {
		return adoption.Chart{}, errors.New("its archive has another digest than its index says")
	}
	return adoption.ReadChart(archive)
}

func (m *market) index(ctx context.Context, base string) (adoption.Index, error) {
	if known, asked := m.indexes[base]; asked {
		return known.value, known.err
	}
	var got answer[adoption.Index]
	if strings.HasPrefix(base, "oci://") {
		got.err = errors.New("is an OCI registry, which has no index and is not asked")
	} else {
		var text []byte
		if text, got.err = m.get(ctx, strings.TrimSuffix(base, "/")+"/index.yaml", maxIndex); got.err == nil {
			got.value, got.err = adoption.ReadIndex(text)
		}
	}
	m.indexes[base] = got
	return got.value, got.err
}

// get returns the body of an answer that is not too large.
func (m *market) get(ctx context.Context, address string, most int64) ([]byte, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, fmt.Errorf("cannot ask %s: its address must begin with http:// or https://", withoutUser(address))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot ask it: %w", err)
	}
	response, err := m.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot be reached from here: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it is only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answers with %s", response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("ends its answer early: %w", err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("answers with more than %d MiB", most>>20)
	}
	return data, nil
}

// resolve returns the address of an archive that an index names.
func resolve(base, name string) (string, error) {
	from, err := url.Parse(strings.TrimSuffix(base, "/") + "/")
	if err != nil {
		return "", fmt.Errorf("its address cannot be read: %w", err)
	}
	to, err := from.Parse(name)
	if err != nil {
		return "", fmt.Errorf("its index names an archive that has no address: %w", err)
	}
	return to.String(), nil
}

// withoutUser returns an address without a user and a password.
func withoutUser(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	parsed.User = nil
	return parsed.String()
}

// givenRepositories reads NAME=URL, and a file of helm's.
func givenRepositories(pairs []string, file string) ([]adoption.Repository, error) {
	var given []adoption.Repository
	for _, pair := range pairs {
		name, address, found := strings.Cut(pair, "=")
		if !found || address == "" {
			return nil, fmt.Errorf("--repository is %q: it must be NAME=URL", pair)
		}
		given = append(given, adoption.Repository{Name: name, URL: address})
	}
	if file != "" {
		text, err := os.ReadFile(file) //nolint:gosec // somebody names their own file
		if err != nil {
			return nil, fmt.Errorf("cannot read --helm-repositories: %w", err)
		}
		var list struct {
			Repositories []struct {
				Name string `json:"name"`
				URL  string `json:"url"`
			} `json:"repositories"`
		}
		if err := yaml.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("cannot read --helm-repositories %s: %w", file, err)
		}
		for _, each := range list.Repositories {
			given = append(given, adoption.Repository{Name: each.Name, URL: each.URL})
		}
	}
	for _, repository := range given {
		if problems := validation.IsDNS1123Subdomain(repository.Name); len(problems) > 0 {
			return nil, fmt.Errorf("%q cannot be the name of a HelmRepository: %s", repository.Name, strings.Join(problems, "; "))
		}
		if parsed, err := url.Parse(repository.URL); err != nil || parsed.User != nil {
			return nil, fmt.Errorf("the URL of repository %s cannot be used: it must be one without a user and a password", repository.Name)
		}
	}
	return given, nil
}
