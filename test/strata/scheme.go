// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package strata

import (
	"errors"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Scheme returns the kinds of Kubernetes, of Flux's sources and releases, and of
// Strata, and those that more adds.
func Scheme(more ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	var problems []error
	for _, add := range append([]func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, sourcev1.AddToScheme, helmv2.AddToScheme, v1alpha1.AddToScheme,
	}, more...) {
		problems = append(problems, add(scheme))
	}
	return scheme, errors.Join(problems...)
}
