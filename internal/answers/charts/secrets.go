// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/secrets"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/objects"
)

// access is how a source is reached.
type access struct {
	username, password string
	// registries is a configuration of Docker; nil where there is none.
	registries []byte
	tls        *tls.Config
	// withheld says why nothing of this is there, though the source names it.
	withheld string
}

// withoutCredentials returns what is used where the credentials are not for: whom
// the source trusts, and nothing that says who asks.
func (a access) withoutCredentials() access {
	rest := access{withheld: a.withheld}
	if a.tls != nil {
		rest.tls = a.tls.Clone()
		rest.tls.Certificates, rest.tls.GetClientCertificate = nil, nil
	}
	return rest
}

// accessTo reads the Secrets that a source names: one with credentials, one with
// certificates; either may be empty. Where they may not be sent, they are not read.
func accessTo(ctx context.Context, q Request, trust Trust, source objects.ID, credentials, certificates string) (access, error) {
	a := access{withheld: trust.Withheld}
	if !trust.Host {
		return a, nil
	}
	// The library says what it decodes to whatever logger there is.
	ctx = logr.NewContext(ctx, logr.Discard())
	if credentials != "" {
		secret, err := findSecret(ctx, q, source, credentials)
		if err != nil {
			return a, err
		}
		a.registries = secret.Data[corev1.DockerConfigJsonKey]
		methods, err := secrets.AuthMethodsFromSecret(ctx, secret, secrets.WithTLSSystemCertPool())
		if err != nil {
			// Which key is wrong is said; what is in it is not.
			return a, problem(
				ChartUnavailable,
				nil,
				"Secret %s/%s of %s holds neither username and password nor certificates that fit",
				source.Namespace,
				credentials,
				source,
			)
		}
		if methods.HasBasicAuth() {
			a.username, a.password = methods.Basic.Username, methods.Basic.Password
		}
		a.tls = methods.TLS
	}
	if certificates != "" {
		secret, err := findSecret(ctx, q, source, certificates)
		if err != nil {
			return a, err
		}
		if a.tls, err = secrets.TLSConfigFromSecret(ctx, secret, secrets.WithSystemCertPool()); err != nil {
			return a, problem(
				ChartUnavailable,
				nil,
				"Secret %s/%s of %s holds no certificates that fit: it needs ca.crt, or tls.crt and tls.key",
				source.Namespace,
				certificates,
				source,
			)
		}
	}
	return a, nil
}

func findSecret(ctx context.Context, q Request, source objects.ID, name string) (*corev1.Secret, error) {
	id := objects.ID{Kind: "Secret", Namespace: source.Namespace, Name: name}
	object, err := q.Find(ctx, id)
	if err != nil {
		return nil, problem(ChartUnavailable, err, "%s needs %s, which may not be read", source, id)
	}
	if object == nil {
		return nil, problem(ChartUnavailable, nil, "%s needs %s, which is not there", source, id)
	}
	secret := &corev1.Secret{}
	if err := secretOf(object, secret); err != nil {
		return nil, problem(ChartUnavailable, err, "%s needs it", source)
	}
	return secret, nil
}

// secretOf converts a Secret, with its stringData as the API server has it.
func secretOf(object *unstructured.Unstructured, into *corev1.Secret) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		// The error repeats what it cannot convert.
		return fmt.Errorf("%s cannot be understood", objects.IDOf(object))
	}
	for key, value := range into.StringData {
		if into.Data == nil {
			into.Data = map[string][]byte{}
		}
		into.Data[key] = []byte(value)
	}
	return nil
}

// client returns an HTTP client with the certificates of a source. Another server,
// to which it is redirected, gets neither credentials nor certificates.
func (r *Renderer) client(a access) *http.Client {
	return &http.Client{Transport: &redirects{home: r.transport(a), away: r.transport(a.withoutCredentials())}}
}

func (r *Renderer) transport(a access) http.RoundTripper {
	transport := r.options.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	if own, is := transport.(*http.Transport); is && a.tls != nil {
		own = own.Clone()
		own.TLSClientConfig = a.tls
		return own
	}
	return transport
}

// redirects tells requests to the server that was asked from those that it has
// redirected to another one.
type redirects struct{ home, away http.RoundTripper }

// RoundTrip sends a request.
func (r *redirects) RoundTrip(request *http.Request) (*http.Response, error) {
	first := request
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	// Where it is not known who has redirected, it was another one.
	if request.Response == nil || first != request && sameOrigin(first.URL, request.URL) {
		return r.home.RoundTrip(request)
	}
	request = request.Clone(request.Context())
	for _, name := range []string{"Authorization", "Cookie", "Referer"} {
		request.Header.Del(name)
	}
	return r.away.RoundTrip(request)
}

// secretTexts are values that come from Secrets, and must not be in messages.
type secretTexts []string

// shortest is the length of the shortest text that is taken out of messages:
// without shorter ones, nothing would be left of them.
const shortest = 3

// textsOf returns the texts of a Secret: its values as they are, and what they hold
// as YAML.
func textsOf(secret *corev1.Secret) secretTexts {
	var texts secretTexts
	for _, data := range secret.Data {
		var value any
		texts = texts.with(string(data))
		if yaml.Unmarshal(data, &value) == nil {
			texts = texts.withLeaves(value)
		}
	}
	return texts
}

func (s secretTexts) with(text string) secretTexts {
	if text = strings.TrimSpace(text); len(text) < shortest || slices.Contains(s, text) {
		return s
	}
	return append(s, text)
}

func (s secretTexts) withLeaves(value any) secretTexts {
	switch value := value.(type) {
	case map[string]any:
		for _, each := range value {
			s = s.withLeaves(each)
		}
	case []any:
		for _, each := range value {
			s = s.withLeaves(each)
		}
	case string:
		for line := range strings.Lines(value) {
			s = s.with(line)
		}
		s = s.with(value)
	case float64:
		s = s.with(fmt.Sprint(value))
	}
	return s
}

// redact takes the texts out of a Problem. Its cause goes, too, where it had any.
func (s secretTexts) redact(err error) error {
	var p *Problem
	if len(s) == 0 || !errors.As(err, &p) {
		return err
	}
	texts := slices.Clone(s)
	// Longer texts go first: one may hold another, and a part of it would stay.
	slices.SortFunc(texts, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	message := p.Message
	for _, text := range texts {
		message = strings.ReplaceAll(message, text, "***")
	}
	if message == p.Message {
		return p
	}
	return &Problem{Reason: p.Reason, Message: message}
}

// Masked returns changes without the texts of the Secrets that a release has its
// values from, as they are or in base64.
func (r *Rendering) Masked(changes []Change) []Change {
	masked := make([]Change, 0, len(changes))
	for _, change := range changes {
		change.Fields = slices.Clone(change.Fields)
		for i, field := range change.Fields {
			change.Fields[i].From, change.Fields[i].To = r.secrets.mask(field.From), r.secrets.mask(field.To)
		}
		masked = append(masked, change)
	}
	return masked
}

// mask returns a value, or Masked where it holds one of the texts.
func (s secretTexts) mask(value any) any {
	if value == nil {
		return nil
	}
	held := encoded(value)
	if text, is := value.(string); is {
		held = text
	}
	for _, text := range s {
		if strings.Contains(held, text) || strings.Contains(held, base64.StdEncoding.EncodeToString([]byte(text))) {
			return Masked
		}
	}
	return value
}
