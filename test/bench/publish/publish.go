// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publish writes what a benchmark measured into the documentation: its
// tables into the page, and its plots beside it.
package publish

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/strata-project/strata/test/bench/plot"
	"github.com/strata-project/strata/test/bench/report"
)

// The page and the folder of images, below the folder of the documentation.
const (
	Page   = "benchmarks/results.md"
	Images = "benchmarks"
)

// The lines of the page between which the tables are. What is between them is
// written anew each time.
const (
	Begin = "<!-- what follows is written by the benchmark -->"
	End   = "<!-- what precedes is written by the benchmark -->"
)

// images are the plots by their file names.
var images = []struct {
	file, alt string
	draw      func([]report.Result) ([]byte, error)
}{
	{"bars.svg", "Times of the scenarios for each system, on a logarithmic axis", plot.Bars},
	{"curve.svg", "Time, CPU time and memory of each system over the number of layers", plot.Curve},
}

// Write writes the plots and tables of a report into the documentation. A plot
// for which the report has no results is left out, and removed where it was.
func Write(docs string, r report.Report) error {
	page := filepath.Join(docs, Page)
	before, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("cannot read the page: %w", err)
	}
	var body bytes.Buffer
	for _, image := range images {
		file := filepath.Join(docs, Images, image.file)
		content, err := image.draw(r.Results)
		if errors.Is(err, plot.ErrNothing) {
			if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("cannot remove a plot: %w", err)
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("cannot make the folder of plots: %w", err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return fmt.Errorf("cannot write a plot: %w", err)
		}
		fmt.Fprintf(&body, "![%s](%s)\n\n", image.alt, image.file)
	}
	if err := report.Markdown(&body, r, 2); err != nil {
		return err
	}
	after, err := replace(before, body.Bytes())
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", page, err)
	}
	if err := os.WriteFile(page, after, 0o644); err != nil {
		return fmt.Errorf("cannot write the page: %w", err)
	}
	return nil
}

// replace puts a text between the two lines of a page.
func replace(page, text []byte) ([]byte, error) {
	head, rest, ok := bytes.Cut(page, []byte(Begin+"\n"))
	_, tail, ended := bytes.Cut(rest, []byte(End+"\n"))
	if !ok || !ended {
		return nil, fmt.Errorf("it has no lines %q and, after that, %q", Begin, End)
	}
	return fmt.Appendf(nil, "%s%s\n\n%s\n\n%s\n%s", head, Begin, bytes.TrimSpace(text), End, tail), nil
}
