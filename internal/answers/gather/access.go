// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/objects"
)

// ChartOptions say what is asked for charts and artifacts, and what charts may see.
type ChartOptions struct {
	// TrustSources sends the credentials of sources wherever these are.
	TrustSources bool
	// ShowSecrets has charts see the true values of Secrets.
	ShowSecrets bool
	// Fetch has charts be fetched where there is no cluster.
	Fetch bool
	// Hosts are further Services that may be asked for artifacts.
	Hosts []string
}

// Offline says why charts are not fetched; empty where they are.
func (o ChartOptions) Offline(command string) string {
	if o.Fetch {
		return ""
	}
	return command + " opens no connection, unless --fetch-charts is given"
}

const (
	standInsNote    = "values of Secrets are not shown: what stands in for them are texts such as stand-in-1a2b3c4d, the numbers 1 and 2, and true and false (--show-secrets renders with the true ones)"
	trueValuesNote  = "charts were rendered with the true values of Secrets (--show-secrets): do not show this to whoever may not read them"
	standInsRefused = "; --show-secrets renders it with the true ones, which may then be shown"
)

// refusedStandIns names the flag that helps where a chart does not take what stands in
// for values of Secrets.
func refusedStandIns(err error) error {
	var problem *charts.Problem
	if errors.As(err, &problem) && problem.Reason == charts.StandInsRefused {
		return &charts.Problem{Reason: problem.Reason, Message: problem.Message + standInsRefused, Err: problem}
	}
	return err
}

// trust says where the credentials of a source may be sent: where the cluster sends
// them already. What the change itself says of the source does not count.
func (r *chartWork) trust(ctx context.Context, source *unstructured.Unstructured) charts.Trust {
	if r.options.Charts.TrustSources {
		return charts.TrustAll
	}
	live, err := r.live(ctx, objects.IDOf(source))
	trust := charts.TrustOf(source, live)
	if err != nil && trust.Withheld != "" {
		trust.Withheld = fmt.Sprintf("what the cluster has of %s cannot be read", objects.IDOf(source))
	}
	if trust.Withheld != "" {
		r.remark("the credentials of %s are not sent: %s (--trust-sources sends them)", objects.IDOf(source), trust.Withheld)
	}
	return trust
}

// live returns a source as the cluster has it; nil where it has none.
func (r *chartWork) live(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	if object := r.Objects[id]; object != nil || r.isOffline() || r.listed()[id.GroupKind()] {
		return object, nil
	}
	live, err := r.get(ctx, id)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// remark remembers what is to be said below the plan.
func (r *chartWork) remark(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.remarks == nil {
		r.remarks = map[string]bool{}
	}
	r.remarks[fmt.Sprintf(format, args...)] = true
}

// say adds the remarks to the notes, in an order that does not depend on who was
// first.
func (r *chartWork) say() {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := make([]string, 0, len(r.remarks))
	for text := range r.remarks {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	for _, text := range texts {
		r.note("%s", text)
	}
}

// secrets says what charts see of Secrets. What is planned is compared with what is
// there.
func (r *chartWork) secrets(planned bool) charts.Secrets {
	s := charts.Secrets{True: r.options.Charts.ShowSecrets}
	if planned {
		s.Was = func(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
			return r.find(ctx, r.world.Objects, id)
		}
	}
	return s
}
