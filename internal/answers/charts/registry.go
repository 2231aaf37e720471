// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/strata-project/strata/internal/images"
	"github.com/strata-project/strata/internal/objects"
)

// maxManifest is how many bytes of a manifest are read.
const maxManifest = 4 << 20

// chartMediaType is that of the layer of an artifact that is a chart.
const chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// chartMediaTypes are that and an older one.
var chartMediaTypes = []string{chartMediaType, "application/tar+gzip"}

// fromRegistry fetches a chart from a HelmRepository that is a registry.
func (r *Renderer) fromRegistry(ctx context.Context, q Request, repository *sourcev1.HelmRepository, ref reference) (*chart.Chart, error) {
	spec := repository.Spec
	names := secretNames{provider: spec.Provider, trust: ref.trust}
	if spec.SecretRef != nil {
		names.credentials = spec.SecretRef.Name
	}
	if spec.CertSecretRef != nil {
		names.certificates = spec.CertSecretRef.Name
	}
	at, err := r.artifacts(ctx, q, ref.source, names, strings.TrimSuffix(spec.URL, "/")+"/"+ref.chart, spec.Insecure)
	if err != nil {
		return nil, err
	}
	tag := ref.version
	if _, err := parseVersion(tag); err != nil {
		if tag, err = at.newest(ctx, ref.version, "", true); err != nil {
			return nil, err
		}
	}
	data, _, err := at.layer(ctx, tagOf(tag), chartMediaTypes...)
	if err != nil {
		return nil, err
	}
	loaded, err := unpack(data, r.limits.archive)
	if err != nil {
		return nil, problem(ChartUnavailable, err, "chart %s %s of %s cannot be read", ref.chart, tag, ref.source)
	}
	return loaded, replaceValues(loaded, ref, fileOf(loaded))
}

// fromArtifact fetches the chart that an OCIRepository is. As Flux does, it puts the
// digest of the artifact into the chart's version.
func (r *Renderer) fromArtifact(ctx context.Context, q Request, repository *sourcev1.OCIRepository, trust Trust) (*chart.Chart, error) {
	spec, source := repository.Spec, sourceID(sourcev1.OCIRepositoryKind, repository.Namespace, repository.Name)
	names := secretNames{provider: spec.Provider, trust: trust}
	if spec.SecretRef != nil {
		names.credentials = spec.SecretRef.Name
	}
	if spec.CertSecretRef != nil {
		names.certificates = spec.CertSecretRef.Name
	}
	at, err := r.artifacts(ctx, q, source, names, spec.URL, spec.Insecure)
	if err != nil {
		return nil, err
	}
	var mediaTypes []string
	if media := repository.GetLayerMediaType(); media != "" {
		mediaTypes = []string{media}
	}
	wanted, tag := "", ""
	switch ref := cmp.Or(spec.Reference, &sourcev1.OCIRepositoryRef{}); {
	case ref.Digest != "":
		wanted = ref.Digest
	case ref.SemVer != "":
		isChart := slices.Contains(mediaTypes, chartMediaType)
		if tag, err = at.newest(ctx, ref.SemVer, ref.SemverFilter, isChart); err != nil {
			return nil, err
		}
		if isChart {
			tag = tagOf(tag)
		}
	default:
		tag = cmp.Or(ref.Tag, "latest")
	}
	data, digest, err := at.layer(ctx, cmp.Or(wanted, tag), mediaTypes...)
	if err != nil {
		return nil, err
	}
	loaded, err := unpack(data, r.limits.archive)
	if err != nil {
		return nil, problem(ChartUnavailable, err, "the artifact of %s cannot be read as a chart", source)
	}
	return loaded, withDigest(loaded, source, tag, digest)
}

// withDigest puts the digest of an artifact into the version of the chart in it. A
// tag that is a version must be that of the chart.
func withDigest(c *chart.Chart, source objects.ID, tag, digest string) error {
	version, err := semver.NewVersion(c.Metadata.Version)
	if err != nil {
		return problem(ChartUnavailable, nil, "the chart of %s has the version %q, which is none", source, c.Metadata.Version)
	}
	if tagged, err := semver.NewVersion(strings.ReplaceAll(tag, "_", "+")); err == nil && tag != "" && !tagged.Equal(version) {
		return problem(ChartUnavailable, nil, "the tag %s of %s holds the chart in version %s: Flux refuses that", tag, source, c.Metadata.Version)
	}
	_, sum, _ := strings.Cut(digest, ":")
	with, err := version.SetMetadata(sum[:min(len(sum), 12)])
	if err != nil {
		return problem(ChartUnavailable, err, "the digest of %s cannot be part of a version", source)
	}
	c.Metadata.Version = with.String()
	return nil
}

// tagOf returns the tag of a version: tags have no +.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// secretNames are those that a source names, the cloud whose credentials Flux uses
// in their place, and where they may be sent.
type secretNames struct {
	credentials, certificates, provider string
	trust                               Trust
}

// artifacts is one repository of a registry.
type artifacts struct {
	*Renderer
	// source is what names the registry, for messages.
	source  fmt.Stringer
	address string
	names   secretNames
	access  access
	remote  *remote.Repository
}

// named is the source of a chart that no object names.
type named string

// String returns the name.
func (n named) String() string { return string(n) }

// Pull fetches a chart from a repository of a registry, at oci://HOST/PATH, by a tag or by
// a digest, and returns it with the digest of its artifact. The digest of what is fetched
// is checked. credential gives what the registry asks for; nil is nothing.
func (r *Renderer) Pull(ctx context.Context, address, reference string, credential auth.CredentialFunc) (*chart.Chart, string, error) {
	repository, err := remote.NewRepository(strings.TrimPrefix(address, ociScheme))
	if err != nil || !strings.HasPrefix(address, ociScheme) {
		return nil, "", fmt.Errorf("%q is no address of a chart in a registry: it must be oci://HOST/PATH", redacted(address))
	}
	repository.Client = &auth.Client{Client: r.client(access{}), Credential: credential, Cache: auth.NewCache()}
	repository.PlainHTTP = images.IsLoopback(repository.Reference.Host())
	at := &artifacts{Renderer: r, source: named("the chart"), address: redacted(address), remote: repository}
	data, digest, err := at.layer(ctx, reference, chartMediaTypes...)
	if err != nil {
		return nil, "", err
	}
	loaded, err := unpack(data, r.limits.archive)
	if err != nil {
		return nil, "", fmt.Errorf("the chart at %s cannot be read: %w", at.address, err)
	}
	return loaded, digest, nil
}

// artifacts returns the repository of a registry at an address.
func (r *Renderer) artifacts(ctx context.Context, q Request, source objects.ID, names secretNames, address string, insecure bool) (*artifacts, error) {
	repository, err := remote.NewRepository(strings.TrimPrefix(address, ociScheme))
	if err != nil || !strings.HasPrefix(address, ociScheme) {
		return nil, problem(ChartUnavailable, nil, "%s has no address of a registry: spec.url must be oci://HOST/PATH", source)
	}
	a, err := accessTo(ctx, q, names.trust, source, names.credentials, names.certificates)
	if err != nil {
		return nil, err
	}
	host := repository.Reference.Host()
	credential := auth.StaticCredential(host, auth.Credential{Username: a.username, Password: a.password})
	if a.registries != nil {
		store, err := credentials.NewMemoryStoreFromDockerConfig(a.registries)
		if err != nil {
			return nil, problem(
				ChartUnavailable,
				nil,
				"Secret %s/%s of %s holds no configuration of Docker that can be understood",
				source.Namespace,
				names.credentials,
				source,
			)
		}
		credential = credentials.Credential(store)
	}
	repository.Client = &auth.Client{Client: r.client(a), Credential: credential, Cache: auth.NewCache()}
	repository.PlainHTTP = insecure || images.IsLoopback(host)
	return &artifacts{Renderer: r, source: source, address: redacted(address), names: names, access: a, remote: repository}, nil
}

// newest returns the newest version among the tags that is in a range, as it is
// written in the tag but for _, which stands for + in tags of charts.
func (a *artifacts) newest(ctx context.Context, within, filter string, isChart bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Timeout)
	defer cancel()
	matching, err := regexp.Compile(filter)
	if err != nil {
		return "", problem(ChartNotFound, nil, "semverFilter of %s is no regular expression", a.source)
	}
	var tags []string
	err = a.remote.Tags(ctx, "", func(page []string) error {
		for _, tag := range page {
			if !matching.MatchString(tag) {
				continue
			}
			if isChart {
				tag = strings.ReplaceAll(tag, "_", "+")
			}
			tags = append(tags, tag)
		}
		return nil
	})
	if err != nil {
		return "", a.failed(err, "the tags")
	}
	at, err := pick(tags, nil, within)
	if err != nil {
		return "", problem(ChartNotFound, err, "%s at %s has no tag that fits", a.source, a.address)
	}
	return tags[at], nil
}

// layer returns the first layer of an artifact that has one of the media types, or
// the first one where none are given; and the digest of the artifact.
func (a *artifacts) layer(ctx context.Context, tag string, mediaTypes ...string) ([]byte, string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Timeout)
	defer cancel()
	found, err := a.remote.Resolve(ctx, tag)
	if err != nil {
		return nil, "", a.failed(err, tag)
	}
	if found.Size > maxManifest {
		return nil, "", problem(ChartUnavailable, nil, "the manifest of %s at %s is too large", tag, a.address)
	}
	text, err := content.FetchAll(ctx, a.remote.Manifests(), found)
	if err != nil {
		return nil, "", a.failed(err, tag)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, "", problem(ChartUnavailable, err, "the manifest of %s at %s cannot be understood", tag, a.address)
	}
	at := slices.IndexFunc(manifest.Layers, func(layer ocispec.Descriptor) bool {
		return len(mediaTypes) == 0 || slices.Contains(mediaTypes, layer.MediaType)
	})
	if at < 0 {
		return nil, "", problem(
			ChartNotFound,
			nil,
			"%s at %s is no chart: it has no layer of type %s",
			tag,
			a.address,
			cmp.Or(strings.Join(mediaTypes, " or "), "any"),
		)
	}
	layer := manifest.Layers[at]
	if data := a.cache.get(layer.Digest.Encoded()); data != nil {
		return data, found.Digest.String(), nil
	}
	if layer.Size > a.limits.archive {
		return nil, "", problem(ChartUnavailable, nil, "%s at %s is larger than %d MiB", tag, a.address, a.limits.archive>>20)
	}
	data, err := content.FetchAll(ctx, a.remote.Blobs(), layer)
	if err != nil {
		return nil, "", a.failed(err, tag)
	}
	a.cache.put(sum(data), data)
	return data, found.Digest.String(), nil
}

// failed returns what an error of the registry means.
func (a *artifacts) failed(err error, what string) error {
	var answered *errcode.ErrorResponse
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return problem(ChartNotFound, nil, "%s at %s has no %s", a.source, a.address, what)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		answered = &errcode.ErrorResponse{StatusCode: http.StatusUnauthorized}
	case !errors.As(err, &answered):
		return problem(ChartUnavailable, cause(err), "%s of %s at %s cannot be had", what, a.source, a.address)
	case answered.StatusCode == http.StatusNotFound:
		return problem(ChartNotFound, nil, "%s at %s has no %s", a.source, a.address, what)
	}
	err = a.access.statusError(answered.StatusCode)
	if a.names.credentials == "" && a.names.provider != "" && a.names.provider != sourcev1.GenericOCIProvider {
		err = fmt.Errorf("%w, which Flux has of %s and this program has not", err, a.names.provider)
	}
	return problem(ChartUnavailable, err, "%s of %s at %s cannot be had", what, a.source, a.address)
}
