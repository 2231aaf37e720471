// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// room is what is told of a package.
type room struct {
	name    string
	imports []string

	files, exported int
	// widest is the struct with the most fields, longest the function with the most
	// lines; "" and 0 where there is none.
	widest  string
	fields  int
	longest string
	length  int
	// arrows are the pairs of files of which one names what the other declares, and
	// back those among them that run against the best order that was found.
	arrows int
	back   []arrow
}

// arrow leads from a file to another one that declares the names.
type arrow struct {
	from, to string
	names    []string
}

// measure reads the files of a package.
func measure(name string, paths []string) (*room, error) {
	r := &room{name: name}
	set := token.NewFileSet()
	var files []*ast.File
	declaredIn := map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(file) {
			continue
		}
		files = append(files, file)
		r.files++
		for _, declared := range r.declarations(set, file) {
			declaredIn[declared] = filepath.Base(path)
		}
	}
	arrows, names := map[string][]string{}, map[string]map[string]bool{}
	for _, file := range files {
		from := filepath.Base(set.File(file.Pos()).Name())
		arrows[from] = nil
		// Only names that the file does not declare itself matter.
		for _, used := range file.Unresolved {
			place, ours := declaredIn[used.Name]
			if !ours || place == from {
				continue
			}
			if names[from+place] == nil {
				names[from+place] = map[string]bool{}
				arrows[from] = append(arrows[from], place)
				r.arrows++
			}
			names[from+place][used.Name] = true
		}
	}
	for _, a := range back(arrows) {
		a.names = slices.Sorted(maps.Keys(names[a.from+a.to]))
		r.back = append(r.back, a)
	}
	return r, nil
}

// declarations returns the names that a file declares for its package, and counts.
func (r *room) declarations(set *token.FileSet, file *ast.File) []string {
	var names []string
	add := func(ident *ast.Ident) {
		names = append(names, ident.Name)
		if ident.IsExported() {
			r.exported++
		}
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
			lines := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
			if lines > r.length {
				r.longest, r.length = d.Name.Name, lines
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					add(s.Name)
					if fields, ok := s.Type.(*ast.StructType); ok && fields.Fields.NumFields() > r.fields {
						r.widest, r.fields = s.Name.Name, fields.Fields.NumFields()
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						add(name)
					}
				}
			}
		}
	}
	return names
}

// back returns the arrows that run against an order of the files, of which it makes the
// number as small as it can.
func back(arrows map[string][]string) []arrow {
	order := improved(greedy(arrows), arrows)
	place := map[string]int{}
	for i, file := range order {
		place[file] = i
	}
	var found []arrow
	for _, from := range order {
		for _, to := range slices.Sorted(slices.Values(arrows[from])) {
			if place[to] < place[from] {
				found = append(found, arrow{from: from, to: to})
			}
		}
	}
	return found
}

// greedy orders files: one that no other names comes first, one that names no other
// comes last, and of those that remain the one comes next that names most beside how
// often it is named.
func greedy(arrows map[string][]string) []string {
	left := slices.Sorted(maps.Keys(arrows))
	var first, last []string
	degree := func(file string) (out, in int) {
		for _, from := range left {
			for _, to := range arrows[from] {
				switch {
				case from == file && slices.Contains(left, to):
					out++
				case to == file:
					in++
				}
			}
		}
		return out, in
	}
	for len(left) > 0 {
		best, most := "", 0
		for _, file := range left {
			out, in := degree(file)
			if out == 0 {
				best, most = file, -1
				break
			}
			if in == 0 {
				best, most = file, 1<<20
			} else if best == "" || out-in > most {
				best, most = file, out-in
			}
		}
		if most == -1 {
			last = append(last, best)
		} else {
			first = append(first, best)
		}
		left = slices.DeleteFunc(left, func(file string) bool { return file == best })
	}
	slices.Reverse(last)
	return append(first, last...)
}

// improved moves one file after the other to the place at which the fewest arrows run
// back, until no move helps.
func improved(order []string, arrows map[string][]string) []string {
	names := func(from, to string) int {
		if slices.Contains(arrows[from], to) {
			return 1
		}
		return 0
	}
	for better := true; better; {
		better = false
		for _, file := range slices.Clone(order) {
			at := slices.Index(order, file)
			// gain is how many fewer arrows run back when the file stands at a place.
			best, most := at, 0
			for _, step := range []int{-1, 1} {
				gain := 0
				for i := at + step; i >= 0 && i < len(order); i += step {
					gain += step * (names(order[i], file) - names(file, order[i]))
					if gain > most {
						best, most = i, gain
					}
				}
			}
			if most > 0 {
				order = slices.Insert(slices.Delete(order, at, at+1), best, file)
				better = true
			}
		}
	}
	return order
}

// The goals, which docs/architecture.md gives reasons for.
const (
	mostFiles, mostExported, mostFields, mostLines = 40, 60, 20, 60
	// mostBack is the share of arrows that run back, in percent.
	mostBack = 10
)

// measures is a table of the rooms. A figure beyond its goal is bold.
func measures(rooms []*room) string {
	var out strings.Builder
	out.WriteString(
		"| room | files | exported names | fields of the widest struct | lines of the longest function | arrows that run back |\n|---|---|---|---|---|---|\n",
	)
	mark := func(text string, beyond bool) string {
		if beyond {
			return "**" + text + "**"
		}
		return text
	}
	named := func(name string, count, most int) string {
		if name == "" {
			return "-"
		}
		return mark(fmt.Sprintf("%s %d", name, count), count > most)
	}
	sorted := slices.SortedFunc(slices.Values(rooms), func(a, b *room) int { return cmp.Compare(a.name, b.name) })
	for _, r := range sorted {
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s | %s |\n", r.name,
			mark(fmt.Sprint(r.files), r.files > mostFiles),
			mark(fmt.Sprint(r.exported), r.exported > mostExported && !strings.HasPrefix(r.name, "api/")),
			named(r.widest, r.fields, mostFields), named(r.longest, r.length, mostLines),
			mark(fmt.Sprintf("%d of %d", len(r.back), r.arrows), len(r.back) > 1 && len(r.back)*100 > r.arrows*mostBack))
	}
	return out.String()
}
