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

// changing are the methods that change what others see: of clients, of the memory that
// layers share, and of the queues.
var changing = []string{
	"Create", "Update", "Patch", "Apply", "Delete", "DeleteAllOf", "Status",
	"set", "forget", "Forget", "has", "wake", "wakeOne", "wakeNeighbours", "wakeOn", "wakePlatform", "wakeCluster", "wakeReaders", "wakeTwins",
	"announce", "Wrote", "Event", "Eventf",
}

// An observer that changed something would change it at every look, also for a look of
// which nothing comes.
func TestObserversOnlyRead(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			method, is := declared.(*ast.FuncDecl)
			if !is || !slices.Contains([]string{"observer", "reader"}, receiverOf(method)) {
				continue
			}
			seen++
			ast.Inspect(method, func(node ast.Node) bool {
				call, is := node.(*ast.CallExpr)
				if !is {
					return true
				}
				if called, is := call.Fun.(*ast.SelectorExpr); is && slices.Contains(changing, called.Sel.Name) {
					t.Errorf("%s: %s calls %s: what changes something belongs into announce, or into what acts and reports",
						positions.Position(call.Pos()), method.Name.Name, called.Sel.Name)
				}
				return true
			})
		}
	}
	if seen < 30 {
		t.Errorf("only %d methods of observers were found", seen)
	}
}

// receiverOf returns the name of a method's type, or nothing.
func receiverOf(method *ast.FuncDecl) string {
	if method.Recv == nil {
		return ""
	}
	of := method.Recv.List[0].Type
	if pointer, is := of.(*ast.StarExpr); is {
		of = pointer.X
	}
	if name, is := of.(*ast.Ident); is {
		return name.Name
	}
	return ""
}
