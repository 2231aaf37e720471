// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
)

// variable is what substitution would put a value in the place of.
var variable = regexp.MustCompile(`\$\{[_A-Za-z][_A-Za-z0-9]*(:?[-=+][^}]*)?\}`)

// maxLeft is how many variables of an object are named.
const maxLeft = 5

// checkLeftVariables notes what looks like a variable in objects of a layer that puts no
// values in. Whatever ConfigMaps and Secrets hold may be for others to read.
func (l *linter) checkLeftVariables(each *layer, content *directories.Directory) {
	for i := range content.Manifests {
		manifest := &content.Manifests[i]
		found := map[string]bool{}
		if metadata, is := manifest.Object.Object["metadata"]; is {
			variablesIn(metadata, found)
		}
		if manifest.Object.GetKind() != "ConfigMap" && !digests.IsSecret(manifest.Object) {
			variablesIn(fieldsBeside(manifest.Object, "metadata"), found)
		}
		if len(found) == 0 {
			continue
		}
		names := slices.Sorted(maps.Keys(found))
		l.addAs(Warning, ruleVariables, l.origin(manifest.File, manifest.Line, manifest.Object), "", each.label(),
			manifest.ID().String()+" holds "+strings.Join(names[:min(len(names), maxLeft)], ", ")+
				", and no value is put in: give the layer spec.postBuild, if that is a variable")
	}
}

func fieldsBeside(object *unstructured.Unstructured, name string) map[string]any {
	fields := maps.Clone(object.Object)
	delete(fields, name)
	return fields
}

// variablesIn adds what looks like a variable in the texts of a value.
func variablesIn(value any, found map[string]bool) {
	switch value := value.(type) {
	case string:
		for _, text := range variable.FindAllString(value, maxLeft) {
			found[text] = true
		}
	case []any:
		for _, item := range value {
			variablesIn(item, found)
		}
	case map[string]any:
		for key, item := range value {
			variablesIn(key, found)
			variablesIn(item, found)
		}
	}
}
