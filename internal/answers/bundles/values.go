// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/fleet"
)

// secretive are names of values that may be secret although nothing secret belongs
// into a bundle.
var secretive = regexp.MustCompile(`(?i)passw|secret|token|credential|(private|api|access|encryption)[-_.]?key`)

// hidden stands for what may be secret.
const hidden = "(not shown)"

// shownAt returns a value as it may be shown: not, where its path says that it may be
// secret.
func shownAt(path, value string) string {
	if value != "" && secretive.MatchString(path) {
		return hidden
	}
	return value
}

// valuesOf returns the values and parameters of an application by their paths.
func valuesOf(app *v1alpha1.BundleApplication) map[string]string {
	found := map[string]string{}
	if app.Values != nil {
		var values any
		if err := json.Unmarshal(app.Values.Raw, &values); err != nil {
			found["(all)"] = "is no JSON"
		}
		fleet.Flatten("", values, found)
		delete(found, "")
	}
	for _, parameter := range app.Parameters {
		found[parameter.Name] = fleet.JSON(parameter.Value)
	}
	return found
}

// manifestsOf returns the objects of a layer by their kinds and names, which may
// have templates. Of two that have the same the later has a number behind it.
func manifestsOf(of *v1alpha1.BundleLayer) map[string]map[string]any {
	found := map[string]map[string]any{}
	for i := range of.Objects {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(of.Objects[i].Raw, &object.Object); err != nil || object.Object == nil {
			continue
		}
		name := object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
		for n := 2; found[name] != nil; n++ {
			name = fmt.Sprintf("%s (%d)", strings.Split(name, " (")[0], n)
		}
		found[name] = object.Object
	}
	return found
}

// objectsOf returns what both compares to see which objects are there.
func objectsOf(of *v1alpha1.BundleLayer) map[string]string {
	found := map[string]string{}
	for name, object := range manifestsOf(of) {
		found[name], _ = object["apiVersion"].(string)
	}
	return found
}
