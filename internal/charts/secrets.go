// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/secrets"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/dependents"
)

// access is how a source is reached.
type access struct {
	username, password string
	// registries is a configuration of Docker; nil where there is none.
	registries []byte
	tls        *tls.Config
}

// accessTo reads the Secrets that a source names: one with credentials, one with
// certificates; either may be empty.
func accessTo(ctx context.Context, q Request, source dependents.ID, credentials, certificates string) (access, error) {
	var a access
	if credentials != "" {
		secret, err := findSecret(ctx, q, source, credentials)
		if err != nil {
			return a, err
		}
		a.registries = secret.Data[corev1.DockerConfigJsonKey]
		methods, err := secrets.AuthMethodsFromSecret(ctx, secret, secrets.WithTLSSystemCertPool())
		if err != nil {
			// Which key is wrong is said; what is in it is not.
			return a, problem(ChartUnavailable, nil, "Secret %s/%s of %s holds neither username and password nor certificates that fit", source.Namespace, credentials, source)
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
			return a, problem(ChartUnavailable, nil, "Secret %s/%s of %s holds no certificates that fit: it needs ca.crt, or tls.crt and tls.key", source.Namespace, certificates, source)
		}
	}
	return a, nil
}

func findSecret(ctx context.Context, q Request, source dependents.ID, name string) (*corev1.Secret, error) {
	id := dependents.ID{Kind: "Secret", Namespace: source.Namespace, Name: name}
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
		return fmt.Errorf("%s cannot be understood", dependents.IDOf(object))
	}
	for key, value := range into.StringData {
		if into.Data == nil {
			into.Data = map[string][]byte{}
		}
		into.Data[key] = []byte(value)
	}
	return nil
}

// client returns an HTTP client with the certificates of a source.
func (r *Renderer) client(a access) *http.Client {
	transport := r.options.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	if own, is := transport.(*http.Transport); is && a.tls != nil {
		own = own.Clone()
		own.TLSClientConfig = a.tls
		transport = own
	}
	return &http.Client{Transport: transport}
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
	// What holds another text goes first, else a rest of it would stay.
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
