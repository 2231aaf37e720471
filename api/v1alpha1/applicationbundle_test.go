// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applicationBundle returns the manifest of a bundle, with a layer that is written
// in YAML's flow style, and more of its spec.
func applicationBundle(name, layer, more string) string {
	return fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: ApplicationBundle\nmetadata: {name: %s}\nspec: {family: web, version: 1.0.0, layers: [%s]%s}\n", name, layer, more)
}

const someApplications = "applications: [{name: shop, version: 1.0.0}]"

func TestValidationOfApplicationBundles(t *testing.T) {
	layer := func(is string) string { return applicationBundle("valid", "{name: apps, "+is+"}", "") }
	spec := func(more string) string {
		return applicationBundle("valid", "{name: apps, "+someApplications+"}", ", "+more)
	}
	tests := map[string]struct {
		manifest string
		// want is part of the refusal; "" where it is accepted.
		want string
	}{
		"applications":                {layer(someApplications), ""},
		"objects":                     {layer("objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}]"), ""},
		"a cluster":                   {layer("remoteCluster: {kubeConfig: {secretRef: {name: a, namespace: a}}}"), ""},
		"a directory":                 {layer("source: {name: addons, path: ./a}"), ""},
		"a directory and a cluster":   {layer("source: {name: addons, path: ./a}, onClusterOf: tenant"), ""},
		"a layer that only waits":     {layer("waitFor: [{apiVersion: v1, kind: ConfigMap, namespace: a, name: b}]"), ""},
		"nothing":                     {layer("dependsOn: [a]"), "a layer must have exactly one of applications, objects, remoteCluster and source"},
		"two things":                  {layer(someApplications + ", source: {name: addons, path: ./a}"), "a layer must have exactly one of applications, objects, remoteCluster and source"},
		"no layers":                   {applicationBundle("invalid", "", ""), "spec.layers"},
		"a layer twice":               {applicationBundle("invalid", "{name: a, "+someApplications+"}, {name: a, "+someApplications+"}", ""), "Duplicate value"},
		"a layer's name":              {applicationBundle("invalid", "{name: A, "+someApplications+"}", ""), "the name of a layer must be of small letters, digits and dashes"},
		"an application twice":        {layer("applications: [{name: a, version: 1.0.0}, {name: a, version: 1.1.0}]"), "Duplicate value"},
		"an application's name":       {layer("applications: [{name: A, version: 1.0.0}]"), "the name of an application must be of small letters, digits and dashes"},
		"a range of an application":   {layer("applications: [{name: a, version: '>=1'}]"), "applications[0].version"},
		"readiness":                   {layer("applications: [{name: a, version: 1.0.0, ready: Soon}]"), "ready must be Healthy"},
		"values of any shape":         {layer("applications: [{name: a, version: 1.0.0, values: {a: {b: [1, '${inputs.x}']}}}]"), ""},
		"values from elsewhere":       {layer("applications: [{name: a, version: 1.0.0, valuesFrom: [{kind: Pod, name: a}]}]"), "kind must be ConfigMap or Secret"},
		"a job":                       {layer(someApplications + ", job: {name: a, namespace: a, spec: {template: {spec: {containers: []}}}}"), ""},
		"a job's name":                {layer(someApplications + ", job: {name: A, namespace: a, spec: {}}"), "the name of a job must be of small letters"},
		"hooks":                       {layer(someApplications + ", waitFor: [{apiVersion: v1, kind: Secret, name: a}], deleteBefore: [{apiVersion: v1, kind: Service, where: 'true', timeout: 1m}]"), ""},
		"a hook without a name":       {layer(someApplications + ", waitFor: [{apiVersion: v1, kind: Secret}]"), "waitFor[0].name"},
		"a hook's timeout":            {layer(someApplications + ", deleteBefore: [{apiVersion: v1, kind: Service, timeout: 0s}]"), "timeout must be at least 1s"},
		"a timeout":                   {layer(someApplications + ", timeout: 0s"), "timeout must be at least 1s"},
		"teardown":                    {layer(someApplications + ", teardownAfter: [a]"), ""},
		"an input":                    {spec("inputs: [{name: size, type: Integer, default: 1}, {name: more, type: Object, default: {a: b}}]"), ""},
		"an input's name":             {spec("inputs: [{name: a-b}]"), "the name of an input must begin with a letter"},
		"an input's type":             {spec("inputs: [{name: a, type: string}]"), "type must be String, Integer, Number, Boolean, Object or Array"},
		"an input twice":              {spec("inputs: [{name: a}, {name: a}]"), "Duplicate value"},
		"a range of Kubernetes":       {spec("kubeVersion: '>=1.31 <1.36'"), ""},
		"a chart of its own":          {layer("applications: [{name: a, version: 1.0.0, chart: {oci: {url: 'oci://a/b'}}}]"), ""},
		"a chart twice":               {layer("applications: [{name: a, application: b, version: 1.0.0, chart: {oci: {url: 'oci://a/b'}}}]"), "a chart of its own, or be one of the catalogue (application), not both"},
		"no range of Kubernetes":      {spec("kubeVersion: newest"), "kubeVersion must be a minimum such as 1.31 or a range"},
		"ranges that it upgrades":     {spec("upgradesFrom: ['>=0.9 <1']"), ""},
		"an empty range":              {spec("upgradesFrom: ['']"), "upgradesFrom[0]"},
		"a family":                    {strings.Replace(spec("preview: true"), "family: web", "family: Web", 1), "family must be a name of small letters, digits and dashes"},
		"half a version":              {strings.Replace(spec("preview: true"), "version: 1.0.0,", "version: '1.0',", 1), "spec.version"},
		"an end, and what is said":    {spec("preview: true, endOfLife: '2030-01-01T00:00:00Z', withdrawn: it loses data"), ""},
		"a parameter twice":           {layer("applications: [{name: a, version: 1.0.0, parameters: [{name: a, value: b}, {name: a, value: c}]}]"), "Duplicate value"},
		"a cluster without a Secret":  {layer("remoteCluster: {interval: 1m}"), "kubeConfig is missing"},
		"a cluster's interval":        {layer("remoteCluster: {kubeConfig: {secretRef: {name: a, namespace: a}}, interval: 0s}"), "interval must be at least 1s"},
		"an object that is no object": {layer("objects: [a]"), "objects[0]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			needsServer(t)
			refused(t, server.Create(t.Context(), parse(t, tc.manifest), client.DryRunAll), tc.want)
		})
	}
}

// A bundle that is published is refused another content, as far as the API server
// sees it; what is said of it may change.
func TestPublishedBundlesAreImmutable(t *testing.T) {
	const layers = "{name: a, " + someApplications + "}, {name: b, dependsOn: [a], " + someApplications + "}"
	const more = ", upgradesFrom: ['>=0.9'], kubeVersion: '>=1.31'"
	for name, tc := range map[string]struct {
		layers, more string
		old, with    string
		want         string
	}{
		"nothing":                {layers: layers, more: more},
		"preview and the like":   {layers: layers, more: more + ", preview: true, endOfLife: '2030-01-01T00:00:00Z', withdrawn: it loses data, description: shop"},
		"family":                 {layers: layers, more: more, old: "family: web", with: "family: other", want: "cannot get another family"},
		"version":                {layers: layers, more: more, old: "version: 1.0.0, layers", with: "version: 1.0.1, layers", want: "cannot get another version"},
		"upgradesFrom":           {layers: layers, more: more, old: "'>=0.9'", with: "'>=0.8'", want: "cannot get other upgradesFrom"},
		"no upgradesFrom":        {layers: layers, more: more, old: "upgradesFrom: ['>=0.9'], ", want: "cannot get other upgradesFrom"},
		"range of Kubernetes":    {layers: layers, more: more, old: "'>=1.31'", with: "'>=1.32'", want: "cannot get another range of Kubernetes versions"},
		"no range of Kubernetes": {layers: layers, more: more, old: ", kubeVersion: '>=1.31'", want: "cannot get another range of Kubernetes versions"},
		"another layer":          {layers: layers + ", {name: c, " + someApplications + "}", more: more, want: "cannot get other layers"},
		"a layer less":           {layers: "{name: a, " + someApplications + "}", more: more, want: "cannot get other layers"},
	} {
		t.Run(name, func(t *testing.T) {
			needsServer(t)
			bundle := parse(t, applicationBundle("immutable-"+strings.ReplaceAll(strings.ToLower(name), " ", "-"), layers, more))
			create(t, bundle)
			next := applicationBundle(bundle.GetName(), tc.layers, tc.more)
			if tc.old != "" {
				next = strings.Replace(next, tc.old, tc.with, 1)
			}
			changed := parse(t, next)
			changed.SetResourceVersion(bundle.GetResourceVersion())
			refused(t, server.Update(t.Context(), changed), tc.want)
		})
	}
}
