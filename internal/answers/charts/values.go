// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/chartutil"
	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/chart/common"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/objects"
)

// Secrets says what charts see of the Secrets that a release takes values from.
type Secrets struct {
	// True has charts see the true values. What they make of them cannot be told from
	// anything else any more.
	True bool
	// Was returns a Secret as another rendering, which this one is compared with, had
	// it. What stands in for a value that has changed since is another one. It may be
	// nil.
	Was func(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error)
	// Salt makes stand-ins that nobody can foresee; empty makes the usual ones. Two
	// renderings with different salts differ where they depend on values of Secrets.
	Salt string
}

// releaseValues are the values of a release.
type releaseValues struct {
	common.Values
	// fromSecrets says that some of them come of Secrets, or stand in for such, which
	// standIns says. texts are what the Secrets hold.
	fromSecrets, standIns bool
	texts                 secretTexts
}

// refused says of a chart that cannot be rendered that this may be because of what
// stands in for the values of Secrets. True values are taken out of what it says; with
// stand-ins there are none, and what is taken out would tell which are like them.
func (v releaseValues) refused(err error) error {
	var p *Problem
	if !v.standIns {
		return v.texts.redact(err)
	}
	if !errors.As(err, &p) || p.Reason != RenderFailed || errors.Is(p.Err, ErrKubeVersion) {
		return err
	}
	return &Problem{Reason: StandInsRefused, Err: p.Err, Message: p.Message + " (with what stands in for values of Secrets)"}
}

// valuesOf returns the values of a release, put together by Flux's own library.
func valuesOf(ctx context.Context, q Request, release *helmv2.HelmRelease) (releaseValues, error) {
	reader := &valuesReader{request: q, references: release.Spec.ValuesFrom}
	references := slices.Clone(release.Spec.ValuesFrom)
	if !q.Secrets.True {
		for i := range references {
			if references[i].Kind == secretKind {
				references[i].ValuesKey = reader.nameOf(i)
			}
		}
	}
	values, err := chartutil.ChartValuesFromReferences(ctx, logr.Discard(), reader, release.Namespace, release.GetValues(), references...)
	if reader.err != nil {
		return releaseValues{}, reader.err
	}
	if err != nil {
		return releaseValues{}, reader.problem(err)
	}
	return releaseValues{Values: values, fromSecrets: len(reader.secrets) > 0, standIns: len(reader.secrets) > 0 && !q.Secrets.True, texts: reader.texts}, nil
}

const secretKind = "Secret"

// valuesReader is a client of which only Get is asked, for ConfigMaps and Secrets. Of
// a Secret it hands on what stands in for its values, unless the true ones are asked
// for: a name for each reference, since it depends on the reference which shape of a
// value counts.
type valuesReader struct {
	client.Client
	request    Request
	references []meta.ValuesReference
	secrets    []objects.ID
	texts      secretTexts
	// err is why values of a Secret can have no stand-ins.
	err error
}

// nameOf returns the name of what stands in for the value of a reference.
func (v *valuesReader) nameOf(i int) string {
	return fmt.Sprintf("%s#%d", v.references[i].GetValuesKey(), i)
}

// problem says which reference of valuesFrom fails, without what a Secret holds: the
// messages of parsers repeat what they cannot parse.
func (v *valuesReader) problem(err error) error {
	var failed *chartutil.ErrValuesReference
	if !errors.As(err, &failed) {
		return problem(ValuesUnavailable, err, "the values of the release cannot be read")
	}
	for i, each := range v.references {
		if failed.Kind == secretKind && failed.Key == v.nameOf(i) {
			failed.Key = each.GetValuesKey()
		}
	}
	secret := failed.Kind == secretKind
	what := fmt.Sprintf("%s %s, which spec.valuesFrom names,", failed.Kind, failed.Name)
	at := "key " + failed.Key
	for _, each := range v.references {
		if each.Kind == failed.Kind && each.Name == failed.Name.Name && each.GetValuesKey() == failed.Key && each.TargetPath != "" {
			at += ", for targetPath " + each.TargetPath
		}
	}
	switch {
	case errors.Is(failed, chartutil.ErrResourceNotFound):
		return problem(ValuesUnavailable, nil, "there is no %s %s, which spec.valuesFrom names", failed.Kind, failed.Name)
	case errors.Is(failed, chartutil.ErrKeyNotFound):
		return problem(ValuesUnavailable, nil, "%s has no key %s", what, failed.Key)
	case errors.Is(failed, chartutil.ErrUnsupportedRefKind):
		return problem(ValuesUnavailable, nil, "spec.valuesFrom names a %s: it must be a ConfigMap or a Secret", failed.Kind)
	case secret:
		return problem(ValuesUnavailable, nil, "%s cannot be understood (%s)", what, at)
	}
	return problem(ValuesUnavailable, failed.Err, "%s cannot be understood (%s)", what, at)
}

// Get reads a ConfigMap or a Secret.
func (v *valuesReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := "ConfigMap"
	if _, is := into.(*corev1.Secret); is {
		kind = secretKind
	}
	id := objects.ID{Kind: kind, Namespace: key.Namespace, Name: key.Name}
	object, err := v.request.Find(ctx, id)
	if err != nil {
		return fmt.Errorf("%s may not be read: %w", id, err)
	}
	if object == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(kind) + "s"}, key.String())
	}
	switch into := into.(type) {
	case *corev1.Secret:
		if err := secretOf(object, into); err != nil {
			return err
		}
		v.secrets = append(v.secrets, id)
		v.texts = append(v.texts, textsOf(into)...)
		if !v.request.Secrets.True {
			into.Data = v.standInsFor(ctx, id, into.Data)
		}
	default:
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
			return fmt.Errorf("%s cannot be understood: %w", id, err)
		}
	}
	return nil
}

// standInsFor returns what stands in for the values of a Secret, by the names of the
// references to it.
func (v *valuesReader) standInsFor(ctx context.Context, id objects.ID, data map[string][]byte) map[string][]byte {
	was := v.was(ctx, id)
	made := map[string][]byte{}
	for i, each := range v.references {
		value, has := data[each.GetValuesKey()]
		if each.Kind != secretKind || each.Name != id.Name || !has {
			continue
		}
		s := standIns{of: id.String() + " " + each.GetValuesKey(), salt: v.request.Secrets.Salt}
		before, had := was[each.GetValuesKey()]
		text, err := s.value(each, value, before, had)
		if err != nil {
			v.err = err
			return nil
		}
		made[v.nameOf(i)] = []byte(text)
	}
	return made
}

// was returns the values of a Secret as another rendering had them.
func (v *valuesReader) was(ctx context.Context, id objects.ID) map[string][]byte {
	if v.request.Secrets.Was == nil {
		return nil
	}
	object, err := v.request.Secrets.Was(ctx, id)
	secret := &corev1.Secret{}
	if err != nil || object == nil || secretOf(object, secret) != nil {
		return nil
	}
	return secret.Data
}
