// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/test/forged"
)

// reasons are those of conditions that others act on.
var reasons = []string{v1alpha1.ReasonContentChanged, v1alpha1.ReasonProblems, v1alpha1.ReasonPublished, "9.9.9"}

// rendered returns what a layer of a bundle is made into, and what is wrong with the bundle.
func rendered(t *testing.T, request Request) string {
	t.Helper()
	manifests, err := Render(request)
	if err != nil {
		return err.Error() + fmt.Sprint(Check(request.Bundle, request.Applications))
	}
	return written(t, manifests) + fmt.Sprint(Check(request.Bundle, request.Applications))
}

// publishedRequest returns a request whose bundle and applications have the statuses that their
// controllers write.
func publishedRequest(t *testing.T, layer string) Request {
	t.Helper()
	request := requestOf(t, layer)
	for name, app := range request.Applications {
		app = app.DeepCopy()
		app.Status = catalogue.Decide(catalogue.Observation{Application: app, Catalogue: request.Applications}).Status
		request.Applications[name] = app
	}
	request.Bundle.Status = Decide(Observation{Bundle: request.Bundle, Catalogue: request.Applications}).Status
	return request
}

// forgeries calls each with what is rendered although one field was forged.
func forgeries(
	t *testing.T,
	request Request,
	ofBundle func(v1alpha1.ApplicationBundleStatus) []forged.Forgery[v1alpha1.ApplicationBundleStatus],
	ofApplication func(v1alpha1.HelmApplicationStatus) []forged.Forgery[v1alpha1.HelmApplicationStatus],
	each func(name, rendered string),
) {
	t.Helper()
	for _, forgery := range ofBundle(request.Bundle.Status) {
		changed := request
		changed.Bundle = request.Bundle.DeepCopy()
		changed.Bundle.Status = forgery.Status
		each(forgery.Name, rendered(t, changed))
	}
	for name, app := range request.Applications {
		for _, forgery := range ofApplication(app.Status) {
			changed := request
			changed.Applications = maps.Clone(request.Applications)
			changed.Applications[name] = app.DeepCopy()
			changed.Applications[name].Status = forgery.Status
			each(name+", "+forgery.Name, rendered(t, changed))
		}
	}
}

func copiedBundle(s v1alpha1.ApplicationBundleStatus) v1alpha1.ApplicationBundleStatus {
	return *s.DeepCopy()
}

func copiedApplication(s v1alpha1.HelmApplicationStatus) v1alpha1.HelmApplicationStatus {
	return *s.DeepCopy()
}

// Whatever somebody has written into the fields of the status of a bundle or of an application of
// which nothing is to follow, the layers of the bundle are rendered as they were.
func TestForgedStatusRendersTheSame(t *testing.T) {
	for _, layer := range []string{"apps", "network", "objects"} {
		request := publishedRequest(t, layer)
		honest := rendered(t, request)
		forgeries(t, request, func(s v1alpha1.ApplicationBundleStatus) []forged.Forgery[v1alpha1.ApplicationBundleStatus] {
			return forged.Each(t, v1alpha1.ApplicationBundleKind, s, copiedBundle, reasons...)
		}, func(s v1alpha1.HelmApplicationStatus) []forged.Forgery[v1alpha1.HelmApplicationStatus] {
			return forged.Each(t, v1alpha1.HelmApplicationKind, s, copiedApplication, reasons...)
		}, func(name, got string) {
			if diff := cmp.Diff(honest, got); diff != "" {
				t.Errorf("layer %s: %s: %s", layer, name, diff)
			}
		})
	}
}
