// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts says what Helm would make of a Flux HelmRelease: it fetches the
// chart from where the release says, puts the values together as Flux does, and
// renders with Helm's own engine. Nothing is asked of a cluster but through what
// the caller hands in, nothing is run, and templates see neither the environment
// nor files outside of the chart. What differs between two sets of objects, and
// which of their API versions a Kubernetes version does not serve, it says, too.
//
// Templates run in this process. They end at a time limit as far as the caller is
// concerned; but Go's templates cannot be stopped, so one that loops for ever goes
// on, and takes memory, until the process ends. A chart is trusted here as far as
// whoever installs it trusts it anyway.
package charts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// Reasons of a Problem.
const (
	// ChartUnavailable is where the chart's source is not there, may not be read,
	// does not answer, or answers with something else.
	ChartUnavailable = "ChartUnavailable"
	// ChartNotFound is where the source has no such chart, or not in such a version.
	ChartNotFound = "ChartNotFound"
	// ValuesUnavailable is where values are lacking, or cannot be understood.
	ValuesUnavailable = "ValuesUnavailable"
	// RenderFailed is where the chart refuses: its templates, its schema of values,
	// or its range of Kubernetes versions.
	RenderFailed = "RenderFailed"
	// Unsupported is where the release says something that only Flux can do.
	Unsupported = "Unsupported"
	// StandInsRefused is where the chart refuses what stands in for values of Secrets.
	StandInsRefused = "StandInsRefused"
)

// Problem is why a release cannot be rendered. Values of Secrets are not in it.
type Problem struct {
	// Reason is one word, one of the constants.
	Reason string
	// Message says what is wrong, and where it can be mended.
	Message string
	// Err is the cause, or nil. The message tells of it already.
	Err error
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// problem returns a Problem whose message ends with its cause, where it has one. Servers
// and charts may put any address into what they say.
func problem(reason string, cause error, format string, args ...any) *Problem {
	message := fmt.Sprintf(format, args...)
	if cause != nil {
		message += ": " + cause.Error()
	}
	return &Problem{Reason: reason, Message: address.Hide(message), Err: cause}
}

// redacted returns what may be shown of an address.
func redacted(text string) string { return address.Show(text) }

// Options of a Renderer.
type Options struct {
	// Dir is a folder in which charts are kept by their digest, at most 512 MiB of
	// them; it is made where it is not there. Empty keeps none.
	Dir string
	// Timeout of one download; 30 s where it is 0.
	Timeout time.Duration
	// Transport to repositories and registries; nil for the default one. A transport
	// that is no *http.Transport is used as it is, without the certificates that a
	// source may name.
	Transport http.RoundTripper
	// Offline says why nothing is fetched; empty fetches. Charts that Files hold are
	// rendered all the same.
	Offline string
}

// limits bound what a chart may take.
type limits struct {
	archive int64         // bytes of a chart, packed and unpacked
	index   int64         // bytes of a repository's index
	cache   int64         // bytes of all charts that are kept
	render  time.Duration // of one rendering
}

// Renderer renders releases. It may be used by several goroutines.
type Renderer struct {
	options Options
	limits  limits
	cache   *cache

	mu      sync.Mutex
	indexes map[string]*indexEntry
}

var quiet sync.Once

// New returns a Renderer. Helm's library prints warnings with values in them by way
// of the standard library's default loggers: these are silenced for the process.
func New(options Options) (*Renderer, error) {
	if options.Timeout == 0 {
		options.Timeout = 30 * time.Second
	}
	quiet.Do(func() { slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) })
	r := &Renderer{
		options: options,
		limits:  limits{archive: 64 << 20, index: 50 << 20, cache: 512 << 20, render: 30 * time.Second},
		indexes: map[string]*indexEntry{},
	}
	if options.Dir != "" {
		if err := os.MkdirAll(options.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("cannot keep charts: %w", err)
		}
		r.cache = &cache{dir: options.Dir, limit: r.limits.cache}
	}
	return r, nil
}

// Request is one release to be rendered.
type Request struct {
	// Release is the HelmRelease, of any version of its API that has spec.chart or
	// spec.chartRef.
	Release *unstructured.Unstructured
	// Find returns an object that the release refers to: a HelmRepository,
	// OCIRepository, GitRepository, Bucket, HelmChart, ConfigMap or Secret; or nil
	// where there is none. Its error says that it may not be read.
	Find func(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error)
	// Trust says where the credentials of a source that Find has returned may be
	// sent. Where it is nil none are, and the Secrets are not read.
	Trust func(source *unstructured.Unstructured) Trust
	// Secrets says what charts see of Secrets; its zero value shows stand-ins.
	Secrets Secrets
	// Files returns the content of a GitRepository, Bucket or ExternalArtifact that
	// holds a chart as a folder; nil where that cannot be had. May be nil itself.
	Files func(ctx context.Context, source objects.ID) (fs.FS, error)
	// Namespaced tells of kinds that are not Kubernetes' own whether their objects
	// are in namespaces, and whether it knows. May be nil: only what CRDs of the
	// same rendering say is known then.
	Namespaced func(kind schema.GroupKind) (namespaced, known bool)
	// KubeVersion such as 1.34 or v1.34.2; empty for that of Helm's libraries.
	KubeVersion string
	// APIVersions that templates see besides those that Kubernetes has in that
	// version: group/version, or group/version/Kind.
	APIVersions []string
	// Revision is that of the Helm release: 1, or 0, renders an installation, more
	// an upgrade.
	Revision int
}

// Rendering is what Helm would apply, with the labels that Flux adds, but without
// those that Helm adds to what it applies (app.kubernetes.io/managed-by and its
// annotations). Objects of kinds that are known to be in namespaces have one.
type Rendering struct {
	// Chart, Version and AppVersion are the chart's own.
	Chart, Version, AppVersion string
	// Release is the name of the Helm release, and Namespace where its objects are.
	Release, Namespace string
	// Objects, Hooks and CRDs are sorted by their IDs. Hooks are what Helm runs
	// around its actions; CRDs are of the chart's folder crds, where Flux's policy
	// has them applied.
	Objects []*unstructured.Unstructured
	Hooks   []*unstructured.Unstructured
	CRDs    []*unstructured.Unstructured
	// KeepCRDs says that CRDs which are there already are left as they are: Flux's
	// policy Create.
	KeepCRDs bool
	// FromSecrets says that values of Secrets are in it, or what stands in for them.
	FromSecrets bool

	secrets secretTexts
}

// Render renders a release. Its error is a *Problem, or that of the context. What
// templates draw at random, such as passwords, keys and the time, is the same in
// every rendering.
func (r *Renderer) Render(ctx context.Context, q Request) (rendering *Rendering, err error) {
	defer func() {
		// Archives and indexes are of others' making, and Helm's loader is no judge.
		if thrown := recover(); thrown != nil {
			rendering, err = nil, problem(ChartUnavailable, nil, "the chart of %s breaks what reads it: %v", objects.IDOf(q.Release), thrown)
		}
	}()
	release := &helmv2.HelmRelease{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(q.Release.Object, release); err != nil {
		return nil, problem(RenderFailed, err, "%s cannot be understood", objects.IDOf(q.Release))
	}
	rendering, err = r.render(ctx, q, release)
	if err == nil {
		return rendering, nil
	}
	var known *Problem
	if ctx.Err() != nil || !errors.As(err, &known) {
		return nil, errors.Join(ctx.Err(), err)
	}
	return nil, known
}

func (r *Renderer) render(ctx context.Context, q Request, release *helmv2.HelmRelease) (*Rendering, error) {
	if q.Revision > 1 && release.GetUpgrade().PreserveValues {
		return nil, problem(
			Unsupported,
			nil,
			"spec.upgrade.preserveValues keeps the values of the deployed Helm release, which are not at hand: without it, %s can be rendered",
			objects.IDOf(q.Release),
		)
	}
	chart, err := r.chart(ctx, q, release)
	if err != nil {
		return nil, err
	}
	values, err := valuesOf(ctx, q, release)
	if err != nil {
		return nil, err
	}
	rendering := &Rendering{
		Chart: chart.Name(), Version: chart.Metadata.Version, AppVersion: chart.Metadata.AppVersion,
		Release: path.Base(kinds.HelmReleaseIdentity(q.Release)), Namespace: release.GetReleaseNamespace(),
		FromSecrets: values.fromSecrets, secrets: values.texts,
	}
	if err := r.fill(ctx, rendering, chart, values.Values, q, release); err != nil {
		return nil, values.refused(err)
	}
	return rendering, nil
}

// indexEntry is the index of a repository, or why it cannot be had.
type indexEntry struct {
	once  sync.Once
	index *chartIndex
	err   error
}
