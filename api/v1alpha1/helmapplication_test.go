// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// helmApplication returns the manifest of an application with versions in YAML's
// flow style.
func helmApplication(name string, versions ...string) string {
	return fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: HelmApplication\nmetadata: {name: %s}\nspec: {versions: [%s]}\n", name, strings.Join(versions, ", "))
}

const repositoryChart = `chart: {repository: {url: 'https://charts.example.com', chart: podinfo}}`

func TestValidationOfHelmApplications(t *testing.T) {
	one := func(more string) string {
		return helmApplication("valid", "{version: 1.0.0, "+repositoryChart+", "+more+"}")
	}
	chart := func(chart string) string { return helmApplication("valid", "{version: 1.0.0, chart: {"+chart+"}}") }
	number := func(version string) string {
		return helmApplication("valid", "{version: "+version+", "+repositoryChart+"}")
	}
	const commit = "commit: 0123456789abcdef0123456789abcdef01234567"
	tests := map[string]struct {
		manifest string
		// want is part of the refusal; "" where it is accepted.
		want string
	}{
		"least":                       {number("1.0.0"), ""},
		"no versions":                 {helmApplication("invalid"), "spec.versions"},
		"a v in front":                {number("v1.0.0"), ""},
		"a pre-release":               {number("1.0.0-rc.1"), ""},
		"half a version":              {number("'1.0'"), "spec.versions[0].version"},
		"build metadata":              {number("1.0.0+build"), "spec.versions[0].version"},
		"one version twice":           {helmApplication("invalid", "{version: 1.0.0, "+repositoryChart+"}", "{version: 1.0.0, "+repositoryChart+"}"), "Duplicate value"},
		"one version in two forms":    {helmApplication("invalid", "{version: 1.0.0, "+repositoryChart+"}", "{version: v1.0.0, "+repositoryChart+"}"), "v1.0.0 and 1.0.0 are the same"},
		"no chart":                    {helmApplication("invalid", "{version: 1.0.0}"), "each version must have a chart, or defaults must"},
		"a chart from nowhere":        {chart(""), "chart must have exactly one of repository, oci and git"},
		"a chart from two places":     {chart("repository: {url: 'https://x', chart: x}, oci: {url: 'oci://x/y'}"), "chart must have exactly one of repository, oci and git"},
		"a repository without a URL":  {chart("repository: {chart: x, url: x}"), "url must begin with https:// or http://"},
		"a registry":                  {chart("oci: {url: 'oci://ghcr.io/x/y'}"), ""},
		"a registry with a digest":    {chart("oci: {url: 'oci://x/y', digest: 'sha256:" + strings.Repeat("0", 64) + "'}"), ""},
		"a registry over HTTP":        {chart("oci: {url: 'https://x/y'}"), "url must begin with oci://"},
		"a tag and a digest":          {chart("oci: {url: 'oci://x/y', tag: a, digest: 'sha256:" + strings.Repeat("0", 64) + "'}"), "oci must have a tag or a digest, not both"},
		"a commit":                    {chart("git: {url: 'https://x/y', path: ./chart, " + commit + "}"), ""},
		"a branch":                    {chart("git: {url: 'https://x/y', path: ./chart}"), "git must have a tag or a commit: a branch would change what is published"},
		"a tag and a commit":          {chart("git: {url: 'https://x/y', path: ./chart, tag: v1, " + commit + "}"), "git must have a tag or a commit"},
		"a path that leaves":          {chart("git: {url: 'https://x/y', path: ./../chart, tag: v1}"), "path must begin with ./ and stay in the repository"},
		"readiness":                   {one("ready: Applied"), ""},
		"another readiness":           {one("ready: Soon"), "ready must be Healthy"},
		"a release name":              {one("releaseName: Shop"), "releaseName must be a name of small letters"},
		"a namespace":                 {one("namespace: {name: shop, create: true, labels: {a: b}}"), ""},
		"no name of a namespace":      {one("namespace: {name: Shop}"), "namespace.name must be the name of a namespace"},
		"a chart of all versions":     {strings.Replace(helmApplication("valid", "{version: 1.0.0}", "{version: 1.1.0}"), "spec: {", "spec: {defaults: {"+repositoryChart+"}, ", 1), ""},
		"defaults without a chart":    {strings.Replace(helmApplication("valid", "{version: 1.0.0}"), "spec: {", "spec: {defaults: {releaseName: a}, ", 1), "each version must have a chart, or defaults must"},
		"a dependency twice":          {one("dependsOn: [{name: a}, {name: a}]"), "Duplicate value"},
		"a parameter twice":           {one("parameters: [{name: a, value: b}, {name: a, value: c}]"), "Duplicate value"},
		"a path that is no pointer":   {one("ignoreDifferences: [{kind: Deployment, paths: [spec]}]"), "paths[0]"},
		"a timeout":                   {one("timeout: 0s"), "timeout must be at least 1s"},
		"values of any shape":         {one("values: {a: {b: [1, two]}}"), ""},
		"documentation without a URL": {strings.Replace(number("1.0.0"), "spec: {", "spec: {documentation: README, ", 1), "documentation must be a URL"},
		"an icon":                     {strings.Replace(number("1.0.0"), "spec: {", "spec: {icon: 'data:image/svg+xml;base64,AAAA', ", 1), ""},
		"an icon of a file":           {strings.Replace(number("1.0.0"), "spec: {", "spec: {icon: icon.png, ", 1), "icon must be a URL or begin with data:image/"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			needsServer(t)
			refused(t, server.Create(t.Context(), parse(t, tc.manifest), client.DryRunAll), tc.want)
		})
	}
}

// refused checks an answer of the API server; an empty want is one that accepts.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("it is refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("it is accepted, want %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("it is refused with %v, want %q", err, want)
	}
}

// What was published cannot be changed, as far as the API server sees it; what is
// said of it can.
func TestPublishedVersionsAreImmutable(t *testing.T) {
	const published = "version: 1.0.0, " + repositoryChart
	const full = published + ", releaseName: shop, namespace: {name: shop}, parameters: [{name: a, value: b}], dependsOn: [{name: db, range: ^1}], recommends: [{name: mail}], kubeVersion: '>=1.31'"
	replace := func(old, with string) string { return "{" + strings.Replace(full, old, with, 1) + "}" }
	for name, tc := range map[string]struct {
		is   []string
		want string
	}{
		"nothing":               {[]string{"{" + full + "}"}, ""},
		"preview and the like":  {[]string{"{" + full + ", preview: true, endOfLife: '2030-01-01T00:00:00Z', withdrawn: it loses data}"}, ""},
		"another version":       {[]string{"{" + full + "}", "{version: 1.1.0, " + repositoryChart + "}"}, ""},
		"the version goes":      {[]string{"{version: 1.1.0, " + repositoryChart + "}"}, ""},
		"chart":                 {[]string{replace("podinfo", "other")}, "cannot get another chart"},
		"releaseName":           {[]string{replace("releaseName: shop, ", "")}, "cannot get another releaseName"},
		"namespace":             {[]string{replace("{name: shop}", "{name: shops}")}, "cannot get another namespace"},
		"parameters":            {[]string{replace("value: b", "value: c")}, "cannot get other parameters"},
		"dependencies":          {[]string{replace("range: ^1", "range: ^2")}, "cannot get other dependencies"},
		"recommendations":       {[]string{replace("name: mail", "name: post")}, "cannot get other recommendations"},
		"range of Kubernetes":   {[]string{replace(">=1.31", ">=1.32")}, "cannot get another range of Kubernetes versions"},
		"one version of others": {[]string{"{version: 0.9.0, " + repositoryChart + "}", replace("podinfo", "other")}, "cannot get another chart"},
	} {
		t.Run(name, func(t *testing.T) {
			needsServer(t)
			app := parse(t, helmApplication("immutable-"+strings.ReplaceAll(strings.ToLower(name), " ", "-"), "{"+full+"}"))
			create(t, app)
			next := parse(t, helmApplication(app.GetName(), tc.is...))
			next.SetResourceVersion(app.GetResourceVersion())
			refused(t, server.Update(t.Context(), next), tc.want)
		})
	}
}
