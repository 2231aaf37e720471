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

	"github.com/strata-project/strata/cmd/kubectl-strata/summary"
)

// printer writes layers in one of the output formats, and remembers what it
// wrote: which rows, so as to write only changes, and whether one is blocked.
type printer struct {
	out     io.Writer
	wide    bool
	objects printers.ResourcePrinter // nil for tables
	single  bool                     // one object is written as itself, not as a list
	table   io.Writer
	flush   func() error
	rows    map[string]summary.Row
}

// newPrinter returns the printer of a format.
func newPrinter(format string, out io.Writer, single bool) (*printer, error) {
	p := &printer{out: out, single: single, rows: map[string]summary.Row{}}
	switch format {
	case "", "wide":
		p.wide = format == "wide"
		w := printers.GetNewTabWriter(out)
		p.table, p.flush = w, w.Flush
	case "json":
		p.objects = &printers.OmitManagedFieldsPrinter{Delegate: &printers.JSONPrinter{}}
	case "yaml":
		p.objects = &printers.OmitManagedFieldsPrinter{Delegate: &printers.YAMLPrinter{}}
	case "name":
		p.objects, p.single = &printers.NamePrinter{}, true
	default:
		return nil, fmt.Errorf("--output is %q: it must be wide, json, yaml or name", format)
	}
	return p, nil
}

// print writes the layers that are there at first.
func (p *printer) print(layers []unstructured.Unstructured) error {
	now := time.Now()
	if p.table != nil && len(layers) > 0 {
		p.line(summary.Header(p.wide))
	}
	for i := range layers {
		row, err := rowOf(&layers[i], now)
		if err != nil {
			return err
		}
		p.rows[row.Name] = row
		switch {
		case p.table != nil:
			p.line(row.Cells(p.wide))
		case p.single:
			if err := p.objects.PrintObj(&layers[i], p.out); err != nil {
				return fmt.Errorf("cannot print layer %s: %w", row.Name, err)
			}
		}
	}
	if p.table != nil {
		if len(layers) == 0 {
			fmt.Fprintln(p.out, "No layers found.")
		}
		return p.flush()
	}
	if !p.single {
		return p.objects.PrintObj(listOf(layers), p.out)
	}
	return nil
}

// update writes a layer that has changed, unless its row has not.
func (p *printer) update(layer *unstructured.Unstructured, deleted bool) error {
	row, err := rowOf(layer, time.Now())
	if err != nil {
		return err
	}
	last, known := p.rows[row.Name]
	if p.table == nil {
		p.rows[row.Name] = row
		if deleted {
			delete(p.rows, row.Name)
		}
		return p.objects.PrintObj(layer, p.out)
	}
	if known && !deleted && !row.Changed(last) {
		return nil
	}
	if len(p.rows) == 0 {
		p.line(summary.Header(p.wide))
	}
	if p.rows[row.Name] = row; deleted {
		delete(p.rows, row.Name)
		row.State, row.Why = "Deleted", ""
	}
	p.line(row.Cells(p.wide))
	return p.flush()
}

// line writes one line of a table. Messages are of others' making and must not
// move the cursor of a terminal.
func (p *printer) line(cells []string) {
	_, _ = io.WriteString(p.table, strings.TrimRight(printers.EscapeTerminal(strings.Join(cells, "\t")), "\t")+"\n")
}

// verdict returns errBlocked when a layer is blocked or failed.
func (p *printer) verdict() error {
	for _, row := range p.rows {
		if row.Blocked {
			return errBlocked
		}
	}
	return nil
}

// listOf is the list that kubectl makes of objects.
func listOf(layers []unstructured.Unstructured) runtime.Object {
	list := &unstructured.UnstructuredList{Items: layers}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	return list
}
