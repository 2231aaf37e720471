// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// The parts of SARIF 2.1.0 that are written. They are few enough to be structs here.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string      `json:"id"`
		Name                 string      `json:"name"`
		ShortDescription     sarifText   `json:"shortDescription"`
		FullDescription      sarifText   `json:"fullDescription"`
		Help                 sarifText   `json:"help"`
		DefaultConfiguration sarifConfig `json:"defaultConfiguration"`
	}
	sarifConfig struct {
		Level Level `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     Level           `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI       string `json:"uri"`
		URIBaseID string `json:"uriBaseId"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

// SARIF returns a report in SARIF 2.1.0, which code hosts show beside the lines.
// version is that of this program.
func SARIF(r *Report, version string) ([]byte, error) {
	run := sarifRun{
		Tool: sarifTool{Driver: sarifDriver{
			Name: "kubectl-strata", Version: version, InformationURI: "https://github.com/strata-project/strata",
		}},
		ColumnKind: "unicodeCodePoints", Results: []sarifResult{},
	}
	rules := Rules()
	for _, rule := range rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: rule.Name, Name: pascal(rule.Name), ShortDescription: sarifText{sentence(rule.Short)}, FullDescription: sarifText{rule.Help},
			Help: sarifText{rule.Help}, DefaultConfiguration: sarifConfig{rule.Level},
		})
	}
	for _, finding := range r.Findings {
		run.Results = append(run.Results, sarifResult{
			RuleID: finding.Rule, Level: finding.Level, Message: sarifText{message(finding)},
			RuleIndex: slices.IndexFunc(rules, func(rule Rule) bool { return rule.Name == finding.Rule }),
			Locations: []sarifLocation{{sarifPhysical{
				ArtifactLocation: sarifArtifact{URI: (&url.URL{Path: finding.File}).String(), URIBaseID: "%SRCROOT%"},
				Region:           sarifRegion{StartLine: max(finding.Line, 1), StartColumn: finding.Column},
			}}},
		})
	}
	data, err := json.MarshalIndent(sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	}, "", "  ")
	return append(data, '\n'), err
}

// message is the text of a finding with the field that it is about.
func message(f Finding) string {
	if f.Field == "" {
		return f.Message
	}
	return f.Field + ": " + f.Message
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// pascal writes a name as SARIF wants names that people read.
func pascal(name string) string {
	var out strings.Builder
	for _, part := range strings.Split(name, "-") {
		out.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return out.String()
}
