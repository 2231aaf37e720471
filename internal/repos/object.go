// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
)

// decodeFile adds the objects of a file to a set.
func decodeFile(file string, data []byte, set *objectSet, keep keepMistake) error {
	documents, err := splitDocuments(file, data)
	if err != nil {
		return keep(file, err)
	}
	for _, d := range documents {
		if err := decodeDocument(d, set); err != nil {
			if err := keep(file, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func decodeDocument(d *document, set *objectSet) error {
	if err := d.parse(); err != nil || d.root == nil {
		return err
	}
	if d.root.Kind != kyaml.MappingNode {
		return invalid(d.file, d.line(d.root), "", "is no Kubernetes object: an object begins with apiVersion and kind")
	}
	if isEncrypted(d.root) {
		return encrypted(d.file)
	}
	if isKustomization(d) {
		return invalid(
			d.file,
			d.line(d.root),
			"",
			"is a kustomization below the layer's directory: a kustomization must be at the top of the directory that spec.source.path names, or be left out of it",
		)
	}
	value, err := d.value()
	if err != nil {
		return err
	}
	return addObjects(place{file: d.file, before: d.first - 1}, value, d.root, set, 0)
}

// place says where an object is written.
type place struct {
	file   string
	before int // lines of the file before those that its nodes count
	// whole is true where nodes have no lines of the file: a kustomization
	// made them.
	whole bool
	// provenance says how an object came about that a build has made.
	provenance provenance
}

// provenance is what a build knows of an object.
type provenance struct {
	// asFlux is true where it was built as Flux builds it.
	asFlux bool
	// confidential is true where it is made with values of Secrets, and decrypted where it
	// may hold what was decrypted.
	confidential, decrypted bool
	// unset names its variables that nobody gives, and named those with values of Secrets
	// that its identity is made of.
	unset, named []string
	// variablesUnknown is true where variables stay as they are written because it is not
	// known what they stand for.
	variablesUnknown bool
}

func (p place) line(node *kyaml.Node) int {
	if p.whole || node == nil || node.Line == 0 {
		return 0
	}
	return p.before + node.Line
}

// maxLists is how many lists may hold each other.
const maxLists = 4

// addObjects adds an object, or the objects of a list.
func addObjects(at place, value map[string]any, node *kyaml.Node, set *objectSet, depth int) error {
	items, ok := listItems(value)
	if !ok {
		return addObject(at, value, node, set)
	}
	if depth >= maxLists {
		return invalid(at.file, at.line(node), "", "is a list in a list in a list: write the objects one by one")
	}
	nodes := field(node, "items")
	for i, item := range items {
		child := element(nodes, i)
		object, ok := item.(map[string]any)
		if !ok {
			return invalid(at.file, at.line(child), fmt.Sprintf("items[%d]", i), "is no Kubernetes object: an object begins with apiVersion and kind")
		}
		inheritKind(value, object)
		if err := addObjects(at, object, child, set, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// listItems returns the items of a List, or of a list of one kind. An object
// with a name that has items of its own is no list.
func listItems(value map[string]any) ([]any, bool) {
	kind, _ := value["kind"].(string)
	items, ok := value["items"]
	if !ok || !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	if metadata, ok := value["metadata"].(map[string]any); ok && metadata["name"] != nil {
		return nil, false
	}
	list, ok := items.([]any)
	return list, ok || items == nil
}

// inheritKind gives the items of a ConfigMapList, which may leave them out,
// their kind and version.
func inheritKind(list, item map[string]any) {
	kind, _ := list["kind"].(string)
	if kind == "List" || item["kind"] != nil || item["apiVersion"] != nil {
		return
	}
	item["kind"] = strings.TrimSuffix(kind, "List")
	item["apiVersion"] = list["apiVersion"]
}

func addObject(at place, value map[string]any, node *kyaml.Node, set *objectSet) error {
	if mistake := checkObject(value); mistake != nil {
		line := at.line(node)
		if found := field(node, strings.Split(mistake.Field, ".")...); found != nil {
			line = at.line(found)
		}
		mistake.File, mistake.Line = at.file, line
		return mistake
	}
	dropNamespace(value)
	if mistake := checkNames(value); mistake != nil && (!at.provenance.variablesUnknown || !hasVariable(value)) {
		line := at.line(node)
		if found := field(node, strings.Split(mistake.Field, ".")...); found != nil {
			line = at.line(found)
		}
		mistake.File, mistake.Line = at.file, line
		return mistake
	}
	object := &unstructured.Unstructured{Object: value}
	stripServerFields(object)
	if mistake := convert(object); mistake != nil {
		mistake.File, mistake.Line = at.file, at.line(node)
		return mistake
	}
	from := at.provenance
	return set.add(directories.Manifest{
		File: at.file, Line: at.line(node), Object: object,
		AsFlux: from.asFlux, Decrypted: from.decrypted, Confidential: from.confidential || from.decrypted, Unset: from.unset, Named: from.named,
	})
}

// checkObject says what keeps a value from being an object that can be applied.
func checkObject(value map[string]any) *directories.ContentError {
	for _, name := range []string{"apiVersion", "kind"} {
		if mistake := checkText(value[name], name, true); mistake != nil {
			return mistake
		}
	}
	version, _ := value["apiVersion"].(string)
	if _, err := schema.ParseGroupVersion(version); err != nil {
		return invalid("", 0, "apiVersion", "must be a version such as v1 or a group and a version such as apps/v1, not %q", short(version))
	}
	metadata, ok := value["metadata"].(map[string]any)
	if !ok {
		return invalid("", 0, "metadata", "is missing or no mapping: an object needs metadata.name")
	}
	if metadata["generateName"] != nil && metadata["name"] == nil {
		return invalid("", 0, "metadata.generateName", "makes a new object each time it is applied: write metadata.name instead")
	}
	if mistake := checkText(metadata["name"], "metadata.name", true); mistake != nil {
		return mistake
	}
	if mistake := checkText(metadata["namespace"], "metadata.namespace", false); mistake != nil {
		return mistake
	}
	for _, name := range []string{"labels", "annotations"} {
		if mistake := checkTexts(metadata[name], "metadata."+name); mistake != nil {
			return mistake
		}
	}
	return nil
}

// dropNamespace takes the namespace from an object whose kind has none, as the API server does.
func dropNamespace(value map[string]any) {
	object := unstructured.Unstructured{Object: value}
	if kinds.HasNoNamespaces(object.GroupVersionKind().GroupKind()) {
		unstructured.RemoveNestedField(value, "metadata", "namespace")
	}
}

// rolesGroup is the API group whose objects may have names such as system:node.
const rolesGroup = "rbac.authorization.k8s.io/"

// checkNames says what the API server would say of the names and the size of an object.
func checkNames(value map[string]any) *directories.ContentError {
	metadata, _ := value["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	version, _ := value["apiVersion"].(string)
	kind, _ := value["kind"].(string)
	isName := apivalidation.NameIsDNSSubdomain
	if strings.HasPrefix(version, rolesGroup) {
		isName = func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	}
	switch {
	case len(isName(name, false)) > 0:
		return invalid("", 0, "metadata.name", "%q is no name: it has small letters, digits, dashes and dots%s", short(name), variableHint(name))
	case namespace != "" && len(apivalidation.ValidateNamespaceName(namespace, false)) > 0:
		return invalid("", 0, "metadata.namespace", "%q is no name of a namespace: it has small letters, digits and dashes, and at most 63 characters%s",
			short(namespace), variableHint(namespace))
	case version == "v1" && (kind == "ConfigMap" || kind == "Secret"):
		if size := dataSize(value); size > maxData {
			return invalid("", 0, "data", "has %d KiB, and a %s may have %d: split it", size>>10, kind, maxData>>10)
		}
	}
	return nil
}

// maxData is how many bytes a ConfigMap or a Secret may hold.
const maxData = 1 << 20

// dataSize returns how many bytes a ConfigMap or Secret holds, at least.
func dataSize(value map[string]any) int {
	size := 0
	for _, field := range []string{"data", "binaryData", "stringData"} {
		data, _ := value[field].(map[string]any)
		for key, item := range data {
			text, _ := item.(string)
			if field == "binaryData" || field == "data" && value["kind"] == "Secret" {
				size += base64.StdEncoding.DecodedLen(len(text))
			} else {
				size += len(text)
			}
			size += len(key)
		}
	}
	return size
}

// variableHint says what to do about a variable that nothing was put in the place of.
func variableHint(name string) string {
	if !strings.Contains(name, "${") {
		return ""
	}
	return "; its variables are put in where the layer says spec.postBuild"
}

// hasVariable tells whether the name or namespace of an object has a variable.
func hasVariable(value map[string]any) bool {
	metadata, _ := value["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	return strings.Contains(name+namespace, "${")
}

func checkText(value any, field string, required bool) *directories.ContentError {
	switch text := value.(type) {
	case nil:
		if required {
			return invalid("", 0, field, "is missing: every object needs it")
		}
	case string:
		if required && text == "" {
			return invalid("", 0, field, "is empty: every object needs it")
		}
	default:
		return invalid("", 0, field, "must be a string, and is %s: quote it", described(value))
	}
	return nil
}

// checkTexts checks labels and annotations: an unquoted true in them would be
// refused by the cluster, and hide all the others until then.
func checkTexts(value any, name string) *directories.ContentError {
	if value == nil {
		return nil
	}
	texts, ok := value.(map[string]any)
	if !ok {
		return invalid("", 0, name, "must be a mapping of strings, and is %s", described(value))
	}
	keys := make([]string, 0, len(texts))
	for key := range texts {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if _, ok := texts[key].(string); !ok {
			return invalid("", 0, name+"["+key+"]", "must be a string, and is %s: quote it", described(texts[key]))
		}
	}
	return nil
}

func described(value any) string {
	switch value := value.(type) {
	case nil:
		return "empty"
	case bool:
		return fmt.Sprintf("the boolean %t (YAML reads y, yes and on as true, n, no and off as false)", value)
	case int64, float64:
		return fmt.Sprintf("the number %v", value)
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	default:
		return fmt.Sprintf("%T", value)
	}
}

// serverFields of metadata are the server's alone, or mean something in the
// cluster that an object was exported from only: an owner is known by its UID,
// and an object whose owner does not exist is garbage.
var serverFields = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"selfLink", "managedFields", "ownerReferences",
}

func stripServerFields(object *unstructured.Unstructured) {
	delete(object.Object, "status")
	metadata, _ := object.Object["metadata"].(map[string]any)
	for _, name := range serverFields {
		delete(metadata, name)
	}
}

// isEncrypted reports whether SOPS encrypted a document.
func isEncrypted(root *kyaml.Node) bool {
	sops := field(root, "sops")
	if sops == nil || sops.Kind != kyaml.MappingNode {
		return false
	}
	mac := field(sops, "mac")
	return mac != nil || containsEncrypted(root, 0)
}

func containsEncrypted(node *kyaml.Node, depth int) bool {
	if depth > maxDepth {
		return false
	}
	if node.Kind == kyaml.ScalarNode {
		return strings.HasPrefix(node.Value, "ENC[")
	}
	return slices.ContainsFunc(node.Content, func(child *kyaml.Node) bool { return containsEncrypted(child, depth+1) })
}

func encrypted(file string) *directories.ContentError {
	return &directories.ContentError{
		Reason: v1alpha1.ReasonEncryptedManifest, File: file,
		Message: "is encrypted with SOPS: name the Secret that holds the key in spec.decryption.secretRef of the layer, or keep the file out of the layer's directory",
	}
}

func element(list *kyaml.Node, i int) *kyaml.Node {
	if list == nil || list.Kind != kyaml.SequenceNode || i >= len(list.Content) {
		return nil
	}
	return list.Content[i]
}
