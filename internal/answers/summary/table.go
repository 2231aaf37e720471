// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"strings"
)

const (
	// shortWhy bounds the last column where the table is not wide, in runes.
	shortWhy = 160
	// shortCommit is how much of a commit or digest is shown there.
	shortCommit = 8
)

// Header returns the names of the columns.
func Header(wide bool) []string {
	columns := []string{"NAME", "VERSION", "STATE", "READY", "CLUSTER", "REVISION", "SINCE"}
	if wide {
		columns = append(columns, "SOURCE", "PATH", "REASON", "AGE")
	}
	return append(columns, "WHY")
}

// Cells returns the row in the columns of Header. What is long is shortened
// unless the table is wide.
func (r Row) Cells(wide bool) []string {
	cells := []string{r.Name, r.Version, r.State, r.Ready, r.Cluster}
	if wide {
		return append(cells, r.Revision, r.Since, r.Source, r.Path, r.Reason, r.Age, r.Why)
	}
	return append(cells, shortRevision(r.Revision), r.Since, shorten(r.Why, shortWhy))
}

// Changed tells whether a row says something else than an earlier one, not
// counting the time that has passed.
func (r Row) Changed(last Row) bool { return r.Lasting() != last.Lasting() }

// Lasting returns the row without what the time alone changes.
func (r Row) Lasting() Row {
	r.Since, r.Age = "", ""
	return r
}

// shortRevision shortens the commit in main@sha1:COMMIT.
func shortRevision(revision string) string {
	at := strings.LastIndexByte(revision, ':')
	if at < 0 || len(revision)-at-1 <= shortCommit {
		return revision
	}
	return revision[:at+1+shortCommit]
}

func shorten(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-3]) + "..."
}
