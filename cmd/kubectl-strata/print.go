// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/terminal"
)

// printer writes objects in one of the output formats, and remembers what it
// wrote: which rows, so as to write only changes, and whether one is blocked.
type printer struct {
	kind    kind
	out     io.Writer
	wide    bool
	objects printers.ResourcePrinter // nil for tables
	single  bool                     // one object is written as itself, not as a list
	table   io.Writer
	flush   func() error
	rows    map[string]row
	screen  terminal.Screen // the zero value for what is not fitted to a terminal
	now     func() time.Time
}

// newPrinter returns the printer of a format. A table that goes on, or that has
// all columns, is the same on terminals as elsewhere.
func (o *showOptions) newPrinter(out io.Writer) (*printer, error) {
	p := &printer{kind: o.kind, out: out, single: o.watch, now: o.Now, rows: map[string]row{}}
	switch o.output {
	case "", "wide":
		p.wide = o.output == "wide"
		if !p.wide && !o.watch {
			p.screen = o.Screen
		}
		w := printers.GetNewTabWriter(out)
		p.table, p.flush = w, w.Flush
	case "json":
		p.objects = &printers.OmitManagedFieldsPrinter{Delegate: &printers.JSONPrinter{}}
	case "yaml":
		p.objects = &printers.OmitManagedFieldsPrinter{Delegate: &printers.YAMLPrinter{}}
	case "name":
		p.objects, p.single = &printers.NamePrinter{}, true
	default:
		return nil, fmt.Errorf("--output is %q: it must be wide, json, yaml or name", o.output)
	}
	return p, nil
}

// print writes the objects that are there at first.
func (p *printer) print(objects []unstructured.Unstructured) error {
	now := p.now()
	fitted := p.table != nil && p.screen != terminal.Screen{} && len(objects) > 0
	var cells [][]string
	if p.table != nil && len(objects) > 0 && !fitted {
		p.line(p.kind.header(p.wide))
	}
	for i := range objects {
		row, err := p.kind.row(&objects[i], now)
		if err != nil {
			return err
		}
		p.rows[row.name] = row
		switch {
		case fitted:
			cells = append(cells, row.cells(false, false))
		case p.table != nil:
			p.line(row.cells(p.wide, false))
		case p.single:
			if err := p.objects.PrintObj(&objects[i], p.out); err != nil {
				return fmt.Errorf("cannot print %s %s: %w", p.kind.Noun, row.name, err)
			}
		}
	}
	if fitted {
		return p.screen.Table(p.out, p.kind.columns(), cells)
	}
	if p.table != nil {
		if len(objects) == 0 {
			fmt.Fprintf(p.out, "No %s found.\n", p.kind.Plural)
		}
		return p.flush()
	}
	if !p.single {
		return p.objects.PrintObj(listOf(objects), p.out)
	}
	return nil
}

// update writes an object that has changed, unless its row has not.
func (p *printer) update(object *unstructured.Unstructured, deleted bool) error {
	row, err := p.kind.row(object, p.now())
	if err != nil {
		return err
	}
	last, known := p.rows[row.name]
	first := len(p.rows) == 0
	if p.table != nil && known && !deleted && row.lasting == last.lasting {
		return nil
	}
	p.rows[row.name] = row
	if deleted {
		delete(p.rows, row.name)
	}
	if p.table == nil {
		return p.objects.PrintObj(object, p.out)
	}
	if first {
		p.line(p.kind.header(p.wide))
	}
	p.line(row.cells(p.wide, deleted))
	return p.flush()
}

// line writes one line of a table. Messages are of others' making and must not
// move the cursor of a terminal.
func (p *printer) line(cells []string) {
	_, _ = io.WriteString(p.table, strings.TrimRight(printers.EscapeTerminal(strings.Join(cells, "\t")), "\t")+"\n")
}

// verdict returns errBlocked when something that is shown is blocked.
func (p *printer) verdict() error {
	for _, row := range p.rows {
		if row.blocked {
			return console.ErrBlocked
		}
	}
	return nil
}

// listOf is the list that kubectl makes of objects.
func listOf(objects []unstructured.Unstructured) runtime.Object {
	list := &unstructured.UnstructuredList{Items: objects}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	return list
}
