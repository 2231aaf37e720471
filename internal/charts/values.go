// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/strata-project/strata/internal/dependents"
)

// valuesOf returns the values of a release, put together by Flux's own library, and
// what of them comes from Secrets.
func valuesOf(ctx context.Context, q Request, release *helmv2.HelmRelease) (common.Values, secretTexts, error) {
	reader := &valuesReader{find: q.Find}
	values, err := chartutil.ChartValuesFromReferences(ctx, logr.Discard(), reader, release.Namespace, release.GetValues(), release.Spec.ValuesFrom...)
	if err != nil {
		return nil, nil, valuesProblem(err, release.Spec.ValuesFrom)
	}
	return values, reader.secrets, nil
}

// valuesProblem says which reference of valuesFrom fails, without what a Secret
// holds: the messages of parsers repeat what they cannot parse.
func valuesProblem(err error, references []meta.ValuesReference) error {
	var failed *chartutil.ErrValuesReference
	if !errors.As(err, &failed) {
		return problem(ValuesUnavailable, err, "the values of the release cannot be read")
	}
	secret := failed.Kind == "Secret"
	what := fmt.Sprintf("%s %s, which spec.valuesFrom names,", failed.Kind, failed.Name)
	at := "key " + failed.Key
	for _, each := range references {
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

// valuesReader is a client of which only Get is asked, for ConfigMaps and Secrets.
type valuesReader struct {
	client.Client
	find    func(context.Context, dependents.ID) (*unstructured.Unstructured, error)
	secrets secretTexts
}

// Get reads a ConfigMap or a Secret.
func (v *valuesReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := "ConfigMap"
	if _, is := into.(*corev1.Secret); is {
		kind = "Secret"
	}
	id := dependents.ID{Kind: kind, Namespace: key.Namespace, Name: key.Name}
	object, err := v.find(ctx, id)
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
		v.secrets = append(v.secrets, textsOf(into)...)
	default:
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
			return fmt.Errorf("%s cannot be understood: %w", id, err)
		}
	}
	return nil
}
