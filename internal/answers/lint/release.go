// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/strata-project/strata/internal/schemas"
)

// What Flux's definition of a HelmRelease says, and its Go type does not. A field
// in a list has [] behind the list. The definition itself is in no library of Flux.
var (
	releaseRequired = map[string][]string{
		"spec":                                     {"interval"},
		"spec.chart":                               {"spec"},
		"spec.chart.spec":                          {"chart", "sourceRef"},
		"spec.chart.spec.sourceRef":                {"kind", "name"},
		"spec.chart.spec.verify":                   {"provider"},
		"spec.chart.spec.verify.secretRef":         {"name"},
		"spec.chartRef":                            {"kind", "name"},
		"spec.dependsOn[]":                         {"name"},
		"spec.driftDetection.ignore[]":             {"paths"},
		"spec.healthCheckExprs[]":                  {"apiVersion", "current"},
		"spec.install.strategy":                    {"name"},
		"spec.kubeConfig.configMapRef":             {"name"},
		"spec.kubeConfig.secretRef":                {"name"},
		"spec.postRenderers[].kustomize.images[]":  {"name"},
		"spec.postRenderers[].kustomize.patches[]": {"patch"},
		"spec.test.filters[]":                      {"name"},
		"spec.upgrade.strategy":                    {"name"},
		"spec.valuesFrom[]":                        {"kind", "name"},
		"spec.waitStrategy":                        {"name"},
	}
	releaseChoices = map[string][]string{
		"spec.chart.spec.reconcileStrategy":    {"ChartVersion", "Revision"},
		"spec.chart.spec.sourceRef.kind":       {"HelmRepository", "GitRepository", "Bucket"},
		"spec.chart.spec.verify.provider":      {"cosign", "notation"},
		"spec.chartRef.kind":                   {"OCIRepository", "HelmChart", "ExternalArtifact"},
		"spec.driftDetection.mode":             {"enabled", "warn", "disabled"},
		"spec.install.crds":                    {"Skip", "Create", "CreateReplace"},
		"spec.install.strategy.name":           {"RemediateOnFailure", "RetryOnFailure"},
		"spec.postRenderStrategy":              {"nohooks", "combined", "separate"},
		"spec.rollback.serverSideApply":        {"enabled", "disabled", "auto"},
		"spec.uninstall.deletionPropagation":   {"background", "foreground", "orphan"},
		"spec.upgrade.chartNameChangeStrategy": {"InPlaceUpdate", "Reinstall"},
		"spec.upgrade.crds":                    {"Skip", "Create", "CreateReplace"},
		"spec.upgrade.remediation.strategy":    {"rollback", "uninstall"},
		"spec.upgrade.serverSideApply":         {"enabled", "disabled", "auto"},
		"spec.upgrade.strategy.name":           {"RemediateOnFailure", "RetryOnFailure"},
		"spec.valuesFrom[].kind":               {"Secret", "ConfigMap"},
		"spec.waitStrategy.name":               {"poller", "legacy"},
	}
	releaseDurations = []string{
		"spec.interval", "spec.timeout", "spec.chart.spec.interval", "spec.install.timeout", "spec.install.strategy.retryInterval",
		"spec.upgrade.timeout", "spec.upgrade.strategy.retryInterval", "spec.rollback.timeout", "spec.test.timeout", "spec.uninstall.timeout",
	}
	// releaseLengths are the most characters that a text may have; none may be empty.
	releaseLengths = map[string]int{
		"spec.releaseName": 53, "spec.targetNamespace": 63, "spec.storageNamespace": 63, "spec.serviceAccountName": 253,
		"spec.chart.spec.chart": 2048, "spec.chart.spec.sourceRef.name": 253, "spec.chart.spec.sourceRef.namespace": 63,
		"spec.chartRef.name": 253, "spec.chartRef.namespace": 63, "spec.test.filters[].name": 253, "spec.valuesFrom[].name": 253,
	}
	// fluxDuration is the pattern of Flux's definitions; Go takes more.
	fluxDuration = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`)
)

// checkRelease returns what is wrong with a HelmRelease by Flux's definition.
func checkRelease(object *unstructured.Unstructured) []mistake {
	value := map[string]any{}
	for key, part := range object.Object {
		if key != "status" {
			value[key] = part
		}
	}
	found := decodeRelease(value)
	spec, _ := value["spec"].(map[string]any)
	if spec == nil {
		if value["spec"] == nil {
			found = append(found, mistake{ruleRelease, "spec", "is missing: write interval, and chart or chartRef"})
		}
		return found
	}
	if (spec["chart"] == nil) == (spec["chartRef"] == nil) {
		found = append(found, mistake{ruleRelease, "spec", "either chart or chartRef must be set, and not both"})
	}
	if config, ok := spec["kubeConfig"].(map[string]any); ok && (config["secretRef"] == nil) == (config["configMapRef"] == nil) {
		found = append(found, mistake{ruleRelease, "spec.kubeConfig", "exactly one of configMapRef or secretRef must be set"})
	}
	c := &releaseCheck{}
	c.look(spec, "spec", "spec")
	slices.SortStableFunc(c.found, func(a, b mistake) int { return strings.Compare(a.field, b.field) })
	return append(found, c.found...)
}

// maxTypeMistakes is how many fields of other types are told of one release.
const maxTypeMistakes = 20

// decodeRelease reads a release into Flux's type. A field that is of another type
// ends the reading, and is left out of the next one.
func decodeRelease(value map[string]any) []mistake {
	value = runtime.DeepCopyJSON(value)
	for _, name := range releaseDurations {
		// Errors of a duration do not say which one it is; the patterns do.
		steps := strings.Split(name, ".")
		if _, is, err := unstructured.NestedString(value, steps...); is && err == nil {
			_ = unstructured.SetNestedField(value, "1m", steps...) // the way to it is there
		}
	}
	var found []mistake
	for range maxTypeMistakes {
		data, err := json.Marshal(value)
		if err != nil {
			return append(found, mistake{ruleRelease, "", err.Error()})
		}
		strict, err := kjson.UnmarshalStrict(data, &helmv2.HelmRelease{})
		if err == nil {
			return append(found, unknownFields(strict)...)
		}
		var of *json.UnmarshalTypeError
		if !errors.As(err, &of) {
			return append(found, mistake{ruleRelease, "spec", "cannot be read: " + strings.TrimPrefix(err.Error(), "json: ")})
		}
		found = append(found, mistake{ruleRelease, of.Field, fmt.Sprintf("must be %s, and is %s", typeName(of.Type), article(of.Value))})
		steps := strings.Split(of.Field, ".")
		if _, is, err := unstructured.NestedFieldNoCopy(value, steps...); !is || err != nil {
			return found // it is in a list
		}
		unstructured.RemoveNestedField(value, steps...)
	}
	return found
}

func unknownFields(strict []error) []mistake {
	var found []mistake
	for _, each := range strict {
		var of kjson.FieldError
		if errors.As(each, &of) {
			unknown := schemas.UnknownField(of.FieldPath(), fieldsOf(reflect.TypeFor[helmv2.HelmRelease](), of.FieldPath()))
			found = append(found, asMistakes([]schemas.Mistake{unknown})...)
		}
	}
	slices.SortFunc(found, func(a, b mistake) int { return strings.Compare(a.field, b.field) })
	return found
}

// article puts a or an before what JSON calls a value.
func article(value string) string {
	value, _, _ = strings.Cut(value, " ")
	switch value {
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	}
	return "a " + value
}

func typeName(of reflect.Type) string {
	switch of.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	default:
		return "a number"
	}
}

// releaseCheck looks through a release by the tables above.
type releaseCheck struct{ found []mistake }

// look looks at a value. at is where it is, and pattern the same without numbers.
func (c *releaseCheck) look(value any, at, pattern string) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range releaseRequired[pattern] {
			if value[name] == nil {
				c.found = append(c.found, mistake{ruleRelease, at + "." + name, "is missing: Flux wants it"})
			}
		}
		for name, field := range value {
			if name != "values" || pattern != "spec" {
				c.look(field, at+"."+name, pattern+"."+name)
			}
		}
	case []any:
		for i, item := range value {
			c.look(item, at+"["+strconv.Itoa(i)+"]", pattern+"[]")
		}
	case string:
		c.text(value, at, pattern)
	}
}

func (c *releaseCheck) text(value, at, pattern string) {
	say := func(format string, args ...any) {
		c.found = append(c.found, mistake{ruleRelease, at, fmt.Sprintf(format, args...)})
	}
	choices, limit := releaseChoices[pattern], releaseLengths[pattern]
	switch {
	case choices != nil && !slices.Contains(choices, value):
		say("is %q: it must be %s", value, strings.Join(choices, " or "))
	case slices.Contains(releaseDurations, pattern) && !fluxDuration.MatchString(value):
		say("is %q: write a time such as 5m or 1h30m", value)
	case limit > 0 && value == "":
		say("is empty")
	case limit > 0 && len(value) > limit:
		say("has %d characters: %d are allowed", len(value), limit)
	}
}

// fieldsOf returns the fields that a type has where a path leads to, but for its
// last step.
func fieldsOf(at reflect.Type, name string) []string {
	parts := strings.Split(name, ".")
	for _, part := range parts[:len(parts)-1] {
		part, _, _ = strings.Cut(part, "[")
		next, known := jsonFields(at)[part]
		if !known {
			return nil
		}
		at = next
	}
	var names []string
	for field := range jsonFields(at) {
		names = append(names, field)
	}
	slices.Sort(names)
	return names
}

// jsonFields returns the fields of a type under their names in JSON.
func jsonFields(of reflect.Type) map[string]reflect.Type {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	found := map[string]reflect.Type{}
	if of.Kind() != reflect.Struct {
		return found
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
			for inner, kind := range jsonFields(field.Type) {
				found[inner] = kind
			}
		case name != "" && name != "-":
			found[name] = field.Type
		}
	}
	return found
}
