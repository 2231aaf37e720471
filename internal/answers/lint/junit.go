// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/xml"
)

type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		ClassName string        `xml:"classname,attr"`
		File      string        `xml:"file,attr,omitempty"`
		Line      int           `xml:"line,attr,omitempty"`
		Failure   *junitFailure `xml:"failure,omitempty"`
		Output    string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit returns a report as the results of tests: a suite for each file, in which
// each finding is a test that has failed; where strict is false, one with a warning
// has passed, and says it in its output. A report without findings is one test that
// has passed.
func JUnit(r *Report, strict bool) ([]byte, error) {
	all := junitSuites{Name: "kubectl strata lint"}
	for _, finding := range r.Findings {
		last := len(all.Suites) - 1
		if last < 0 || all.Suites[last].Name != finding.File {
			all.Suites = append(all.Suites, junitSuite{Name: finding.File})
			last++
		}
		text := finding.String()
		test := junitCase{
			Name: plain(finding.Rule + ": " + message(finding)), ClassName: finding.File, File: finding.File, Line: finding.Line,
		}
		if finding.Level == Error || strict {
			test.Failure = &junitFailure{Message: plain(message(finding)), Type: finding.Rule, Text: text}
			all.Suites[last].Failures++
			all.Failures++
		} else {
			test.Output = text
		}
		all.Suites[last].Cases = append(all.Suites[last].Cases, test)
		all.Suites[last].Tests++
		all.Tests++
	}
	if len(all.Suites) == 0 {
		all.Tests = 1
		all.Suites = []junitSuite{{Name: "lint", Tests: 1, Cases: []junitCase{{Name: r.Verdict(), ClassName: "lint"}}}}
	}
	data, err := xml.MarshalIndent(all, "", "  ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}
