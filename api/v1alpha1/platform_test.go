// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// platform returns the manifest of a Platform with a spec that is written in YAML's
// flow style.
func platform(name, spec string) string {
	return fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: Platform\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
}

const someBundle = "bundle: {family: web}"

func TestValidationOfPlatforms(t *testing.T) {
	with := func(more string) string { return platform("valid", someBundle+", "+more) }
	window := func(is string) string { return with("upgrade: {maintenanceWindows: [{" + is + "}]}") }
	stage := func(is string) string { return with("rollout: {stages: [{" + is + "}]}") }
	tests := map[string]struct {
		manifest string
		// want is part of the refusal; "" where it is accepted.
		want string
	}{
		"a bundle":                        {platform("valid", someBundle), ""},
		"applications":                    {platform("valid", "applications: [{name: shop}]"), ""},
		"a bundle and applications":       {with("applications: [{name: shop, version: '>=1 <2', namespace: shop, values: {a: '${inputs.b}'}}]"), ""},
		"nothing":                         {platform("invalid", ""), "a platform must have a bundle or layers, applications, or both"},
		"only clusters":                   {platform("invalid", "clusters: [{name: a}]"), "a platform must have a bundle or layers, applications, or both"},
		"no applications":                 {platform("invalid", "applications: []"), "spec.applications"},
		"an application twice":            {platform("invalid", "applications: [{name: a}, {name: a}]"), "Duplicate value"},
		"an application without a name":   {platform("invalid", "applications: [{name: ''}]"), "applications[0].name"},
		"an application's long name":      {platform("invalid", "applications: [{name: "+strings.Repeat("a", 54)+"}]"), "applications[0].name"},
		"an application's namespace":      {platform("invalid", "applications: [{name: a, namespace: A}]"), "namespace must be the name of a namespace"},
		"a family":                        {platform("invalid", "bundle: {family: Web}"), "family must be a name of small letters, digits and dashes"},
		"no family":                       {platform("invalid", "bundle: {version: 1.0.0}"), "bundle.family"},
		"a name of 63 characters":         {platform(strings.Repeat("a", 63), someBundle), ""},
		"a name of 64 characters":         {platform(strings.Repeat("a", 64), someBundle), "at most 63 characters"},
		"clusters":                        {with("clusters: [{name: a}, {name: b, namespace: c}], clusterSelector: {matchLabels: {a: b}, namespace: c}"), ""},
		"no clusters":                     {with("clusters: []"), "spec.clusters"},
		"all clusters":                    {with("clusterSelector: {}"), ""},
		"dependencies":                    {with("dependsOn: [{name: a}, {name: a, layer: b}]"), ""},
		"a dependency without a name":     {with("dependsOn: [{layer: b}]"), "dependsOn[0].name"},
		"a dependency on no layer":        {with("dependsOn: [{name: a, layer: B}]"), "layer must be the name of a layer of the other Platform's bundle"},
		"a template for layers":           {with("layerTemplate: {labels: {a: b}, orphanGrace: 0s, timeout: 1s, releases: {interval: 10s, driftDetection: Warn}}"), ""},
		"releases that are looked at":     {with("layerTemplate: {releases: {interval: 9s}}"), "interval must be at least 10s"},
		"drift":                           {with("layerTemplate: {releases: {driftDetection: warn}}"), "driftDetection must be Enabled"},
		"abandoned clusters":              {with("deletionPolicy: Abandon"), ""},
		"inputs":                          {with("inputs: {a: {b: [1, two]}}, inputsFrom: [{name: a}, {name: b, namespace: c, optional: true}]"), ""},
		"inputs that are no object":       {with("inputs: [a]"), "spec.inputs"},
		"inputs from nowhere":             {with("inputsFrom: [{name: ''}]"), "inputsFrom[0].name"},
		"inputs from no namespace":        {with("inputsFrom: [{name: a, namespace: A}]"), "inputsFrom.namespace must be the name of a namespace"},
		"modes and bounds":                {with("upgrade: {mode: Auto, maxStep: Patch, spread: 1h}"), ""},
		"a mode":                          {with("upgrade: {mode: auto}"), "upgrade.mode must be Manual or Auto"},
		"a mode that was once":            {with("upgrade: {mode: Notify}"), "what was Notify is Manual with upgrade.forceAfterEndOfLife: true"},
		"forced at the end of life":       {with("upgrade: {forceAfterEndOfLife: true}"), ""},
		"a bound":                         {with("upgrade: {maxStep: minor}"), "upgrade.maxStep must be Patch, Minor or Major"},
		"a spread":                        {with("upgrade: {spread: -1h}"), "upgrade.spread must not be negative"},
		"a window":                        {window("days: [Monday, Tue], start: '22:00', duration: 4h, timeZone: Europe/Berlin"), ""},
		"layers of its own":               {platform("valid", "layers: [{name: a, applications: [{name: web, version: 1.0.0, chart: {oci: {url: 'oci://a/b'}}}]}]"), ""},
		"layers and a bundle":             {with("layers: [{name: a, waitFor: [{apiVersion: v1, kind: Pod, name: a}]}]"), "layers of its own, not both"},
		"no windows":                      {with("upgrade: {maintenanceWindows: []}"), "upgrade.maintenanceWindows"},
		"a window on no days":             {window("days: [], start: '22:00', duration: 4h"), "maintenanceWindows[0].days"},
		"a window on a day that is none":  {window("days: [Mo], start: '22:00', duration: 4h"), "maintenanceWindows[0].days[0]"},
		"a window on a long day":          {window("days: [Wednesdays], start: '22:00', duration: 4h"), "maintenanceWindows[0].days[0]"},
		"a window on eight days":          {window("days: [Mon, Tue, Wed, Thu, Fri, Sat, Sun, Mon], start: '22:00', duration: 4h"), "maintenanceWindows[0].days"},
		"a window without a start":        {window("duration: 4h"), "maintenanceWindows[0].start"},
		"a start without a zero":          {window("start: '8:00', duration: 4h"), "start must be a time of day such as 22:00"},
		"a start after midnight":          {window("start: '24:00', duration: 4h"), "start must be a time of day such as 22:00"},
		"a start with seconds":            {window("start: '22:00:00', duration: 4h"), "maintenanceWindows[0].start"},
		"a window without a duration":     {window("start: '22:00'"), "maintenanceWindows[0].duration"},
		"a window of seconds":             {window("start: '22:00', duration: 59s"), "duration must be between 1m and 168h"},
		"a window of a week":              {window("start: '22:00', duration: 168h"), ""},
		"a window of more than a week":    {window("start: '22:00', duration: 168h1s"), "duration must be between 1m and 168h"},
		"a window of days":                {window("start: '22:00', duration: 1d"), "duration"},
		"stages":                          {with("rollout: {onFailure: Rollback, maxUnavailable: 10%, stages: [{name: canary, selector: {matchLabels: {a: b}}, soak: 1h, maxFailures: 0}, {name: rest-1, approval: true, maxUnavailable: 2}]}"), ""},
		"a stage twice":                   {with("rollout: {stages: [{name: a}, {name: a}]}"), "Duplicate value"},
		"a stage's name":                  {stage("name: Canary"), "the name of a stage must be of small letters, digits and dashes"},
		"a stage's long name":             {stage("name: " + strings.Repeat("a", 64)), "stages[0].name"},
		"the name of what no stage has":   {stage("name: (rest)"), "the name of a stage must be of small letters, digits and dashes"},
		"a stage's soak":                  {stage("name: a, soak: -1s"), "soak must not be negative"},
		"a stage's number of clusters":    {stage("name: a, maxUnavailable: {a: b}"), "maxUnavailable"},
		"what happens when a stage fails": {with("rollout: {onFailure: Stop}"), "rollout.onFailure must be Halt"},
		"an account":                      {with("serviceAccountName: deployer, deletionPolicy: Orphan, hold: true"), ""},
		"no name of an account":           {with("serviceAccountName: other/deployer"), "serviceAccountName must be the name of a ServiceAccount in the controller's namespace"},
		"a deletion policy":               {with("deletionPolicy: Keep"), "deletionPolicy must be Delete"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			needsServer(t)
			refused(t, server.Create(t.Context(), parse(t, tc.manifest), client.DryRunAll), tc.want)
		})
	}
}

// Every field of a Platform is in its definition, and comes back as it was stored.
func TestDefinitionOfPlatformsIsCurrent(t *testing.T) {
	needsServer(t)
	full := &v1alpha1.Platform{}
	fill(reflect.ValueOf(&full.Spec).Elem())
	fill(reflect.ValueOf(&full.Status).Elem())
	full.Name = "full"
	full.Spec.Layers = nil // as in bundles, whose definition is looked at there
	full.Spec.Applications[0].ValuesFrom[0].Kind, full.Spec.DeletionPolicy = "ConfigMap", v1alpha1.DeletionPolicyOrphan
	full.Spec.Upgrade.Mode, full.Spec.Upgrade.MaxStep = v1alpha1.UpgradeAuto, v1alpha1.UpgradePatch
	full.Spec.Upgrade.MaintenanceWindows[0].Start, full.Spec.Upgrade.MaintenanceWindows[0].Days = "22:00", []v1alpha1.Weekday{"Mon"}
	full.Spec.Rollout.OnFailure = v1alpha1.RolloutRollback
	percent, number := intstr.FromString("25%"), intstr.FromInt32(7)
	full.Spec.Rollout.MaxUnavailable, full.Spec.Rollout.Stages[0].MaxUnavailable, full.Spec.Rollout.Stages[0].MaxFailures = &percent, &percent, &number
	full.Status.Conditions[0].Status = metav1.ConditionTrue
	want := full.DeepCopy()

	create(t, full)
	full.Status = *want.Status.DeepCopy()
	if err := server.Status().Update(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	got := &v1alpha1.Platform{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(full), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("spec; does make generate help? (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Status, got.Status); diff != "" {
		t.Errorf("status; does make generate help? (-want +got):\n%s", diff)
	}
}
