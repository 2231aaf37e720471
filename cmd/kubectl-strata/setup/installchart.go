// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/strata-project/strata/chart"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/charts"
)

// loaded returns the chart to install: the plug-in's own, or one of a registry.
func (i *installation) loaded(ctx context.Context) (*chartv2.Chart, error) {
	if i.version == "" {
		return i.build.chart()
	}
	if i.chart == "" {
		return nil, errors.New("--version needs --chart, for this plug-in was built by hand and knows no registry: give --chart oci://HOST/PATH")
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the credentials of docker login: %w", err)
	}
	renderer, err := charts.New(charts.Options{})
	if err != nil {
		return nil, err
	}
	// Versions of charts have no v; releases and tags of git do.
	reference := strings.TrimPrefix(i.version, "v")
	pulled, digest, err := renderer.Pull(ctx, i.chart, reference, credentials.Credential(store))
	if err != nil {
		return nil, err
	}
	if pulled.Metadata.Name != "strata" {
		return nil, fmt.Errorf("%s has the chart %s, and not Strata's", i.chart, pulled.Metadata.Name)
	}
	if !strings.HasPrefix(reference, "sha256:") && pulled.Metadata.Version != reference {
		return nil, fmt.Errorf("%s:%s has the chart in version %s: somebody has moved the tag", i.chart, reference, pulled.Metadata.Version)
	}
	console.Say(i.ErrOut, "chart %s@%s is of version %s", i.chart, digest, pulled.Metadata.Version)
	return pulled, nil
}

// imageGiven is an image as people write it.
var imageGiven = regexp.MustCompile(`^([^@\s]+?)(?::([A-Za-z0-9_][A-Za-z0-9_.-]*))?(?:@(sha256:[0-9a-f]{64}))?$`)

// withImage returns the values with an image that can be there. A plug-in that was built
// by hand knows none: the name in its chart stands for one that nobody has pushed.
func (i *installation) withImage(loaded *chartv2.Chart, given map[string]any) (map[string]any, error) {
	values, _ := loader.MergeMaps(loaded.Values, given)["image"].(map[string]any)
	if values["repository"] != chart.UnreleasedRepository || fmt.Sprint(values["digest"]) != "" {
		return given, nil
	}
	const why = "this plug-in was built by hand, so that it knows no image of the controller"
	answer, err := i.Ask(why + ".\nWhich one is it, as HOST/PATH:TAG or HOST/PATH@sha256:HEX? (nothing ends it)")
	if err != nil {
		return nil, err
	}
	if answer == "" {
		return nil, fmt.Errorf("nothing was done, for %s: give --set image.repository=HOST/PATH, or --version and --chart of a release", why)
	}
	parts := imageGiven.FindStringSubmatch(answer)
	if parts == nil {
		return nil, fmt.Errorf("nothing was done, for %q is no image: it must be HOST/PATH:TAG or HOST/PATH@sha256:HEX", answer)
	}
	return loader.MergeMaps(given, map[string]any{"image": map[string]any{"repository": parts[1], "tag": parts[2], "digest": parts[3]}}), nil
}

// confirm says what would be done, and asks whether to go on where somebody is there.
func (i *installation) confirm(last, next *releasev1.Release, flux []*unstructured.Unstructured) error {
	config, err := console.Config(i.Flags)
	if err != nil {
		return err
	}
	objects, err := Objects(next.Manifest)
	if err != nil {
		return err
	}
	verb := "install"
	switch {
	case last != nil && last.Chart.Metadata.Version == next.Chart.Metadata.Version:
		verb = "change"
	case last != nil:
		verb = "upgrade from " + last.Chart.Metadata.Version + " to"
	}
	console.Say(i.ErrOut, "In the namespace %s of %s:", i.namespace, config.Host)
	if len(flux) > 0 {
		console.Say(i.ErrOut, "  bring Flux from %s: %s", i.flux, counted(flux))
	}
	console.Say(i.ErrOut, "  %s Strata %s: %s", verb, next.Chart.Metadata.Version, counted(objects))
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			for _, container := range containers {
				if c, is := container.(map[string]any); is {
					console.Say(i.ErrOut, "  image %v", c["image"])
				}
			}
		}
	}
	if i.yes {
		return nil
	}
	return i.Confirm("Go on?", true)
}

// counted counts objects by their kinds, in the order of their first ones.
func counted(objects []*unstructured.Unstructured) string {
	var kinds []string
	count := map[string]int{}
	for _, object := range objects {
		count[object.GetKind()]++
		if count[object.GetKind()] == 1 {
			kinds = append(kinds, object.GetKind())
		}
	}
	var parts []string
	for _, kind := range kinds {
		parts = append(parts, fmt.Sprintf("%d %s", count[kind], kind))
	}
	return strings.Join(parts, ", ")
}
