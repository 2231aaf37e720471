// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode writes a report as JSON for machines.
func Encode(w io.Writer, r Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("cannot encode the report: %w", err)
	}
	return nil
}

// Decode reads what Encode wrote. A report of another schema, or with fields
// that this schema does not have, is an error.
func Decode(r io.Reader) (Report, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return Report{}, fmt.Errorf("cannot read the report: %w", err)
	}
	var header struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(content, &header); err != nil {
		return Report{}, fmt.Errorf("cannot decode the report: %w", err)
	}
	if header.Schema != Schema {
		return Report{}, fmt.Errorf("the report has schema %q, want %q", header.Schema, Schema)
	}
	var decoded Report
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&decoded); err != nil {
		return Report{}, fmt.Errorf("cannot decode the report: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Report{}, errors.New("cannot decode the report: more follows after its end")
	}
	return decoded, nil
}
