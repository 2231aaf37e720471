// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/templates"
	"github.com/strata-project/strata/internal/versions"
)

// The variables of templates.
const (
	varClaim      = "claim"
	varParameters = "parameters"
	varObjects    = "objects"
	varPasswords  = "passwords"
	varPrevious   = "previous"
	varObject     = "object"
)

// The IDs of what each claim has.
const (
	BindingID   = "binding"
	PasswordsID = "passwords"
)

// maxTemplates bounds what all templates of a provider come to, in bytes: they are kept with
// each claim.
const maxTemplates = 256 << 10

var (
	// language is that of templates, and readiness that of what makes an object ready.
	language  = newLanguage(varClaim, varParameters, varObjects, varPasswords, varPrevious)
	readiness = newLanguage(varObject)
)

func newLanguage(variables ...string) *templates.Language {
	made, err := templates.New(variables...)
	if err != nil {
		panic(err) // the variables are constants
	}
	return made
}

// Blueprint is a provider as it was understood: what an instance of it is made of.
type Blueprint struct {
	spec   v1alpha1.CapabilityProviderSpec
	schema *parameterSchema
	// objects, each behind those that it needs.
	objects []blueprintObject
	// reads are the objects that each value of the binding, by its key, reads, and ready
	// those that the condition of an instance does.
	reads map[string][]string
	ready []string
}

// blueprintObject is a template with the objects that it waits for.
type blueprintObject struct {
	v1alpha1.CapabilityObject
	template map[string]any
	needs    []string
	// secret is true for a Secret, and passwords where it reads some.
	secret, passwords bool
}

// Understand returns what an instance of a provider is made of, or what is wrong with the
// provider: each problem begins with the field.
func Understand(spec v1alpha1.CapabilityProviderSpec) (*Blueprint, []string) {
	b := &understanding{Blueprint: &Blueprint{spec: spec, reads: map[string][]string{}}}
	b.versions()
	var err error
	if b.schema, err = schemaOf(spec); err != nil {
		b.wrong("parameters.schema", "%s", err)
	}
	if _, err := metav1.LabelSelectorAsSelector(spec.AllowedNamespaces); err != nil {
		b.wrong("allowedNamespaces", "%s", err)
	}
	b.templates()
	b.values()
	if len(b.problems) > 0 {
		return nil, b.problems
	}
	if circle := b.circle(); circle != "" {
		return nil, []string{"spec.objects: objects wait for each other: " + circle}
	}
	b.order()
	return b.Blueprint, nil
}

// order puts each object behind those that it needs, which are in no circle.
func (b *Blueprint) order() {
	ordered := make([]blueprintObject, 0, len(b.objects))
	placed := map[string]bool{}
	isNext := func(object blueprintObject) bool {
		return !placed[object.ID] && !slices.ContainsFunc(object.needs, func(id string) bool { return !placed[id] })
	}
	for at := slices.IndexFunc(b.objects, isNext); at >= 0; at = slices.IndexFunc(b.objects, isNext) {
		placed[b.objects[at].ID] = true
		ordered = append(ordered, b.objects[at])
	}
	b.objects = ordered
}

// understanding is one Understand.
type understanding struct {
	*Blueprint
	problems []string
}

func (u *understanding) wrong(field, format string, args ...any) {
	u.problems = append(u.problems, "spec."+field+": "+fmt.Sprintf(format, args...))
}

func (u *understanding) versions() {
	for i, version := range u.spec.Versions {
		if strings.TrimSpace(version) != version || versions.IsRange(version) && versions.Semantic(version) == nil {
			u.wrong(fmt.Sprintf("versions[%d]", i), "%q is no version", version)
		}
	}
}

func (u *understanding) templates() {
	size := 0
	for _, object := range u.spec.Objects {
		size += len(object.Template.Raw)
	}
	if size > maxTemplates {
		u.wrong("objects", "the templates have %d bytes, more than %d", size, maxTemplates)
		return
	}
	for _, object := range u.spec.Objects {
		field := "objects[" + object.ID + "]"
		understood := blueprintObject{CapabilityObject: object}
		var err error
		if understood.template, err = decodeObject(&object.Template); err != nil {
			u.wrong(field+".template", "%s", err)
			continue
		}
		u.template(field+".template", &understood)
		if object.Ready != "" {
			if _, err := readiness.CheckCondition(object.Ready); err != nil {
				u.wrong(field+".ready", "%s", err)
			}
		}
		for _, on := range object.DependsOn {
			u.needs(field+".dependsOn", &understood.needs, on)
		}
		slices.Sort(understood.needs)
		understood.needs = slices.Compact(understood.needs)
		u.objects = append(u.objects, understood)
	}
}

// template checks one template. Its kind is known before it is filled, so that it is known
// who may make it.
func (u *understanding) template(field string, object *blueprintObject) {
	path, wrong := templates.CheckObject(object.template)
	if wrong != "" && !isFilledLater(object.template, path) {
		u.wrong(field+"."+path, "%s", wrong)
		return
	}
	version, _ := object.template["apiVersion"].(string)
	kind, _ := object.template["kind"].(string)
	if strings.Contains(version+kind, "${") {
		u.wrong(field, "apiVersion and kind must stand there, and cannot be filled")
		return
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		u.wrong(field+".apiVersion", "%s", err)
		return
	}
	observed := object.Mode == v1alpha1.CapabilityObserve
	if gv.Group == v1alpha1.GroupVersion.Group && !observed {
		u.wrong(field+".kind", "no provider makes objects of %s: what makes layers, claims and clusters is not left to claims", gv.Group)
	}
	object.secret = gv.Group == "" && kind == "Secret"
	if observed {
		u.observed(field, object)
	}
	uses, problems := language.Check(object.template)
	for _, problem := range problems {
		u.wrong(field, "%s", problem)
	}
	for _, use := range uses {
		variable, name, _ := strings.Cut(use, ".")
		switch {
		case isSecret(variable) && !object.secret:
			u.wrong(field, "reads %s, which only Secrets may hold", variable)
		case isSecret(variable):
			object.passwords = true
			u.password(field, name)
		case variable == varObjects:
			u.needs(field, &object.needs, name)
		}
	}
}

// observed checks the template of what somebody else has, which is no more than its name.
func (u *understanding) observed(field string, object *blueprintObject) {
	if object.secret {
		u.wrong(field+".kind", "Secrets are not observed: nobody is told what they hold")
	}
	beyond := func(at string, content map[string]any, fields ...string) {
		for _, name := range slices.Sorted(maps.Keys(content)) {
			if !slices.Contains(fields, name) {
				u.wrong(field+at+"."+name, "is not given for what is only observed: its name is")
			}
		}
	}
	beyond("", object.template, "apiVersion", "kind", "metadata")
	metadata, _ := object.template["metadata"].(map[string]any)
	beyond(".metadata", metadata, "name", "namespace")
}

// isFilledLater tells whether a field of a template is a text with something to be filled.
func isFilledLater(template map[string]any, path string) bool {
	var value any = template
	for _, part := range strings.Split(path, ".") {
		fields, _ := value.(map[string]any)
		value = fields[part]
	}
	text, _ := value.(string)
	return strings.Contains(text, "${")
}

// needs adds an object that another one, or a value, waits for.
func (u *understanding) needs(field string, list *[]string, id string) {
	is := func(object v1alpha1.CapabilityObject) bool { return object.ID == id }
	switch {
	case id == "":
		u.wrong(field, "reads objects as a whole: name one, as in objects.ID")
	case !slices.ContainsFunc(u.spec.Objects, is):
		u.wrong(field, "there is no object %s", id)
	case !slices.Contains(*list, id):
		*list = append(*list, id)
	}
}

// isSecret tells whether a variable holds what nobody is told.
func isSecret(variable string) bool { return variable == varPasswords || variable == varPrevious }

func (u *understanding) password(field, name string) {
	is := func(password v1alpha1.CapabilityPassword) bool { return password.Name == name }
	if !slices.ContainsFunc(u.spec.Passwords, is) {
		u.wrong(field, "there is no password %s", cmp.Or(name, "without a name"))
	}
}

// values checks what the binding is made of, and the condition of an instance.
func (u *understanding) values() {
	for _, value := range u.spec.Publishes {
		field := "publishes[" + value.Key + "]"
		texts := map[string]any{"value": value.Value}
		if ref := value.SecretKeyRef; ref != nil {
			texts = map[string]any{"secretKeyRef": map[string]any{"name": ref.Name, "namespace": ref.Namespace}}
		}
		uses, problems := language.Check(texts)
		for _, problem := range problems {
			u.wrong(field, "%s", problem)
		}
		reads := u.reads[value.Key]
		for _, use := range uses {
			variable, name, _ := strings.Cut(use, ".")
			switch {
			case isSecret(variable) && value.SecretKeyRef != nil:
				u.wrong(field, "no name is made of a password")
			case isSecret(variable):
				u.password(field, name)
			case variable == varObjects:
				u.needs(field, &reads, name)
			}
		}
		u.reads[value.Key] = reads
	}
	if u.spec.Ready == "" {
		return
	}
	uses, err := language.CheckCondition(u.spec.Ready)
	if err != nil {
		u.wrong("ready", "%s", err)
	}
	for _, use := range uses {
		variable, name, _ := strings.Cut(use, ".")
		switch variable {
		case varPasswords, varPrevious:
			u.wrong("ready", "reads %s, which are nobody's business", variable)
		case varObjects:
			u.needs("ready", &u.ready, name)
		}
	}
}

// circle returns objects that wait for each other; empty where there are none.
func (u *understanding) circle() string {
	needs := map[string][]string{}
	for _, object := range u.objects {
		needs[object.ID] = object.needs
	}
	done := map[string]bool{}
	var way []string
	var walk func(id string) string
	walk = func(id string) string {
		if at := slices.Index(way, id); at >= 0 {
			return strings.Join(append(slices.Clone(way[at:]), id), " -> ")
		}
		if done[id] {
			return ""
		}
		way = append(way, id)
		for _, next := range needs[id] {
			if circle := walk(next); circle != "" {
				return circle
			}
		}
		way = way[:len(way)-1]
		done[id] = true
		return ""
	}
	for _, object := range u.objects {
		if circle := walk(object.ID); circle != "" {
			return circle
		}
	}
	return ""
}

// decodeObject reads JSON with integers as int64.
func decodeObject(raw *apiextensionsv1.JSON) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return map[string]any{}, nil
	}
	var value any
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		return nil, fmt.Errorf("is no JSON: %w", err)
	}
	object, is := value.(map[string]any)
	if !is {
		return nil, fmt.Errorf("is %s, and must be an Object", templates.Described(value))
	}
	return object, nil
}
