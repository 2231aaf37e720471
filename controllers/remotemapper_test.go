// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/internal/informers"
)

// What is known of a cluster's kinds is little, and the same as where all of them
// are known.
func TestGroupMapper(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	asked := map[string]int{}
	config := plane.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			asked[req.URL.Path]++
			return next.RoundTrip(req)
		})
	})
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := informers.NewGroupMapper(config, web)
	if err != nil {
		t.Fatal(err)
	}
	if len(asked) > 0 {
		t.Errorf("it asks %v before it is asked", asked)
	}
	for _, c := range []struct {
		reason, group, kind, version string
		want                         string // version and resource; empty for none
	}{
		{"the version that is asked for", "autoscaling", "HorizontalPodAutoscaler", "v1", "v1 horizontalpodautoscalers"},
		{"the best one although another was asked for first", "autoscaling", "HorizontalPodAutoscaler", "", "v2 horizontalpodautoscalers"},
		{"a version that is not served", "autoscaling", "HorizontalPodAutoscaler", "v1alpha1", ""},
		{"a kind of no group", "", "ConfigMap", "v1", "v1 configmaps"},
		{"a kind that the group does not have", "apps", "Statue", "", ""},
		{"a group that there is not", "nobody.example.com", "Statue", "v1", ""},
	} {
		var versions []string
		if c.version != "" {
			versions = []string{c.version}
		}
		got := ""
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: c.group, Kind: c.kind}, versions...)
		switch {
		case err == nil:
			got = mapping.Resource.Version + " " + mapping.Resource.Resource
		case !meta.IsNoMatchError(err):
			t.Errorf("%s: the error is %v", c.reason, err)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
		}
	}
	want := []string{"/api", "/api/v1", "/apis", "/apis/apps/v1", "/apis/autoscaling/v1", "/apis/autoscaling/v1alpha1", "/apis/autoscaling/v2"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(asked))); diff != "" {
		t.Errorf("it asks for (-want +got):\n%s", diff)
	}
	before := maps.Clone(asked)
	if _, err := mapper.RESTMapping(schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, "v1"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, asked); diff != "" {
		t.Errorf("it asks again for what it knows:\n%s", diff)
	}
}
