// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command reaching prints a pattern for go test -run and -skip: the tests of a folder whose
// code, or whose helpers' code in turn, names a declaration of that folder.
//
//	go run ./hack/reaching FOLDER DECLARATION
//
// So a suite runs in parts, each with the programs that it needs, and a change of one program
// runs its own part again. Names alone are compared: a test may be in the part for a namesake,
// and none is missing there.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "reaching: want a folder and a declaration")
		os.Exit(2)
	}
	tests, err := reaching(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintf(os.Stderr, "reaching: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("^(%s)$\n", strings.Join(tests, "|"))
}

// reaching returns the tests of a folder that reach a declaration, in order. That there are
// none is an error, since an empty pattern is that of all tests.
func reaching(folder, declaration string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	names := map[string]map[string]bool{} // of each declaration, what it names
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declared := range file.Decls {
			for name, node := range namesOf(declared) {
				if names[name] == nil {
					names[name] = map[string]bool{}
				}
				ast.Inspect(node, func(node ast.Node) bool {
					if word, is := node.(*ast.Ident); is {
						names[name][word.Name] = true
					}
					return true
				})
			}
		}
	}
	if names[declaration] == nil {
		return nil, fmt.Errorf("%s declares no %s", folder, declaration)
	}
	reach := map[string]bool{declaration: true}
	for grown := true; grown; {
		grown = false
		for name, named := range names {
			if !reach[name] && slices.ContainsFunc(slices.Collect(maps.Keys(named)), func(word string) bool { return reach[word] }) {
				reach[name], grown = true, true
			}
		}
	}
	tests := slices.DeleteFunc(slices.Sorted(maps.Keys(reach)), func(name string) bool { return !strings.HasPrefix(name, "Test") || name == "TestMain" })
	if len(tests) == 0 {
		return nil, errors.New("no test reaches " + declaration)
	}
	return tests, nil
}

// namesOf returns the functions and variables of a declaration, with their code.
func namesOf(declared ast.Decl) map[string]ast.Node {
	found := map[string]ast.Node{}
	switch declared := declared.(type) {
	case *ast.FuncDecl:
		found[declared.Name.Name] = declared
	case *ast.GenDecl:
		for _, spec := range declared.Specs {
			if values, is := spec.(*ast.ValueSpec); is {
				for _, name := range values.Names {
					found[name.Name] = values
				}
			}
		}
	}
	return found
}
