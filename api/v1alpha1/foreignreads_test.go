// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/reads"
)

const strata = "github.com/strata-project/strata/"

// readOf is a read of a field of a status.
type readOf struct {
	// at is the package and the function.
	at string
	// kind is that of the object, empty where the types do not say it.
	kind, path string
}

// listed is a package as the go command lists it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// programs returns the packages of Strata's programs, and the files with what each package
// exports, as the compiler has written them.
func programs(t *testing.T) (ours []listed, exports map[string]string) {
	t.Helper()
	reads.AddPrograms("../..", ".", "./cmd/...", "./pkg/...")
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-trimpath", "-json=ImportPath,Dir,GoFiles,Export", ".", "./cmd/...", "./pkg/...")
	list.Dir, list.Stderr = filepath.Join("..", ".."), os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("cannot list the packages: %v", err)
	}
	exports = map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one listed
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return ours, exports
		} else if err != nil {
			t.Fatal(err)
		}
		exports[one.ImportPath] = one.Export
		if strings.HasPrefix(one.ImportPath+"/", strata) {
			ours = append(ours, one)
		}
	}
}

// readsOfPrograms returns what the code of Strata's programs reads of statuses.
func readsOfPrograms(t *testing.T) []readOf {
	t.Helper()
	ours, exports := programs(t)
	files := token.NewFileSet()
	from := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []readOf
	for _, one := range ours {
		var parsed []*ast.File
		for _, name := range one.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(one.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		all = append(all, readsIn(t, files, from, one.ImportPath, parsed)...)
	}
	return all
}

// readsIn returns what a package reads of statuses.
func readsIn(t *testing.T, files *token.FileSet, from types.Importer, path string, parsed []*ast.File) []readOf {
	t.Helper()
	r := &reader{passed: map[ast.Expr]bool{}, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{},
	}}
	if _, err := (&types.Config{Importer: from}).Check(path, files, parsed, r.info); err != nil {
		t.Fatal(err)
	}
	for _, file := range parsed {
		for _, declaration := range file.Decls {
			r.at = strings.TrimPrefix(path, strata) + "." + nameOf(declaration)
			ast.Inspect(declaration, r.look)
		}
	}
	return r.found
}

func nameOf(declaration ast.Decl) string {
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		return declaration.Name.Name
	case *ast.GenDecl:
		for _, spec := range declaration.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				return spec.Name.Name
			case *ast.ValueSpec:
				return spec.Names[0].Name
			}
		}
	}
	return ""
}

// reader finds what a package reads of statuses of kinds that are not Strata's.
type reader struct {
	info *types.Info
	// passed are expressions that are written to, or were read as a part of another one.
	passed map[ast.Expr]bool
	// at is the function that is looked through.
	at    string
	found []readOf
}

func (r *reader) add(kind, path string) { r.found = append(r.found, readOf{r.at, kind, path}) }

func (r *reader) look(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.AssignStmt:
		for _, to := range node.Lhs {
			r.passed[to] = true
		}
	case *ast.CallExpr:
		r.call(node)
	case *ast.SelectorExpr:
		if kind, path := r.selected(node); path != "" && !r.passed[node] {
			r.add(kind, path)
		}
	case *ast.IndexExpr:
		if r.text(node.Index) == "status" && !r.passed[node] {
			r.add("", ".")
		}
	case *ast.StructType:
		r.structure(node)
	}
	return true
}

// text returns the value of a constant text; empty for all else.
func (r *reader) text(of ast.Expr) string {
	if value := r.info.Types[of].Value; value != nil && value.Kind() == constant.String {
		return constant.StringVal(value)
	}
	return ""
}

// function returns the name of a function that is called, and its package.
func (r *reader) function(call *ast.CallExpr) (in, name string) {
	var of *ast.Ident
	switch called := call.Fun.(type) {
	case *ast.SelectorExpr:
		of = called.Sel
	case *ast.Ident:
		of = called
	default:
		return "", ""
	}
	if used := r.info.Uses[of]; used != nil && used.Pkg() != nil {
		in = used.Pkg().Path()
	}
	return in, of.Name
}

// call finds a field of an unstructured object, and a condition, by the words that a function is
// given.
func (r *reader) call(call *ast.CallExpr) {
	in, name := r.function(call)
	switch {
	case strings.HasPrefix(strings.ToLower(name), "set"), strings.HasPrefix(strings.ToLower(name), "remove"), name == "delete":
		return
	case in == "github.com/fluxcd/cli-utils/pkg/kstatus/status" && name == "Compute":
		r.add("", "kstatus")
		return
	case len(call.Args) == 2 && (strings.HasSuffix(name, "Condition") || name == "ConditionOf" || strings.HasPrefix(name, "IsStatusCondition")):
		r.condition(call.Args[0], r.text(call.Args[1]))
		return
	}
	at := slices.IndexFunc(call.Args, func(of ast.Expr) bool { return r.text(of) == "status" })
	if at < 0 {
		return
	}
	path := []string{}
	for _, word := range call.Args[at+1:] {
		text := r.text(word)
		if text == "" {
			text = "*"
		}
		path = append(path, text)
	}
	r.add("", strings.Join(path, "."))
}

// condition finds a condition that is sought by its type.
func (r *reader) condition(among ast.Expr, of string) {
	kind := ""
	if selector, is := among.(*ast.SelectorExpr); is {
		if named := namedOf(r.info.Types[selector.X].Type); named != nil && isOurs(named) {
			return
		}
		if kind, _ = r.selected(selector); kind != "" {
			r.passed[among] = true
		}
	}
	r.add(kind, "conditions["+of+"]")
}

func isOurs(named *types.Named) bool {
	return named.Obj().Pkg() == nil || strings.HasPrefix(named.Obj().Pkg().Path(), strata)
}

func namedOf(of types.Type) *types.Named {
	if pointer, is := of.(*types.Pointer); is {
		of = pointer.Elem()
	}
	named, _ := of.(*types.Named)
	return named
}

// inside are types of others that are a part of a status, by the kind and the path of that part.
// What is in a list is not among them: a list is one field.
var inside = map[string][2]string{
	"Artifact":          {v1alpha1.AnySource, "artifact."},
	"ResourceInventory": {"Kustomization", "inventory."},
}

// selected returns the kind and the path of a field of a status of others that is selected; empty
// for all else, and for a field whose parts are found by themselves.
func (r *reader) selected(selector *ast.SelectorExpr) (kind, path string) {
	selection := r.info.Selections[selector]
	if selection == nil || selection.Kind() != types.FieldVal {
		return "", ""
	}
	named := namedOf(selection.Recv())
	if named == nil || isOurs(named) {
		return "", ""
	}
	name := named.Obj().Name()
	kind, isStatus := strings.CutSuffix(name, "Status")
	before := ""
	if part, is := inside[name]; is {
		kind, before = part[0], part[1]
	} else if !isStatus || kind == "" || kind == "Container" || strings.HasSuffix(kind, "Review") || kind == "TokenRequest" {
		return "", "" // the answer to a question, an error, or what is in a list
	}
	if of := namedOf(selection.Type()); of != nil {
		if _, is := inside[of.Obj().Name()]; is {
			return "", ""
		}
	}
	return kind, before + tagOfField(selection)
}

// tagOfField returns the name in JSON of a field that is selected.
func tagOfField(selection *types.Selection) string {
	in := selection.Recv()
	tag := ""
	for _, i := range selection.Index() {
		if pointer, is := in.Underlying().(*types.Pointer); is {
			in = pointer.Elem()
		}
		structure, is := in.Underlying().(*types.Struct)
		if !is {
			break
		}
		tag, in = structure.Tag(i), structure.Field(i).Type()
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name
}

// structure finds the fields that a type of Strata's reads of a status.
func (r *reader) structure(structure *ast.StructType) {
	name := func(field *ast.Field) string {
		if field.Tag == nil {
			return ""
		}
		name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
		return name
	}
	for _, field := range structure.Fields.List {
		inner, is := field.Type.(*ast.StructType)
		if !is || name(field) != "status" {
			continue
		}
		for _, one := range inner.Fields.List {
			r.add("", name(one))
		}
	}
}
