// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A look at a layer reads through its reader, which notes what it reads. What is read
// past it would change, and the layer would count as settled.
func TestLooksReadThroughTheirReader(t *testing.T) {
	reads := []string{"Client", "Reader", "Cache", "kinds", "sources", "metas", "fill", "readSource", "getShared"}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	methods := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			method, is := declared.(*ast.FuncDecl)
			if !is || method.Recv == nil || method.Body == nil {
				continue
			}
			pointer, _ := method.Recv.List[0].Type.(*ast.StarExpr)
			if pointer == nil {
				continue
			}
			if of, _ := pointer.X.(*ast.Ident); of == nil || of.Name != "observer" {
				continue
			}
			methods++
			ast.Inspect(method.Body, func(node ast.Node) bool {
				used, is := node.(*ast.SelectorExpr)
				if !is || !slices.Contains(reads, used.Sel.Name) {
					return true
				}
				if from, is := used.X.(*ast.SelectorExpr); is && from.Sel.Name == "r" {
					t.Errorf("%s: %s reads %s without a note: read through o.reads", set.Position(used.Pos()), method.Name.Name, used.Sel.Name)
				}
				return true
			})
		}
	}
	if methods < 20 {
		t.Errorf("only %d methods of observers were found", methods)
	}
}
