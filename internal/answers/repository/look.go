// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Look returns the objects of the files below some paths in whose text one of some markers
// is found, in the order of their files; without paths, of all files. What is no object is
// passed over. A document that says kind and group of one, and cannot be read, is a problem,
// with its file and line, and harms no other.
func (r *Repository) Look(ctx context.Context, markers []string, paths ...string) (found []Manifest, problems []string, err error) {
	err = r.walk(ctx, paths, func(name string) error {
		data, err := r.readSmall(name)
		if err != nil || !slices.ContainsFunc(markers, func(marker string) bool { return bytes.Contains(data, []byte(marker)) }) {
			return err
		}
		manifests, wrong := documents(name, data, markers)
		found, problems = append(found, manifests...), append(problems, wrong...)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return found, problems, nil
}

// documents returns the objects of one file, and says which cannot be read.
func documents(name string, data []byte, markers []string) (found []Manifest, problems []string) {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	at := 0
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) || err != nil && len(text) == 0 {
			return found, problems
		}
		first := 1
		if offset := bytes.Index(data[at:], text); offset >= 0 {
			first += bytes.Count(data[:at+offset], []byte("\n"))
			at += offset + len(text)
		}
		var value any
		err = yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&value)
		object, isMapping := value.(map[string]any)
		switch {
		case errors.Is(err, io.EOF): // a document without anything
		case err != nil && bytes.Contains(text, []byte("{{")): // the template of a chart
		case err != nil && isObjectOf(text, markers):
			problems = append(problems, unreadable(name, first, err))
		case err != nil || !isMapping:
		default:
			found = append(found, Manifest{File: name, Object: &unstructured.Unstructured{Object: object}, Text: text})
		}
	}
}

// isObjectOf tells whether a text says that it is an object of an API group that is looked
// for.
func isObjectOf(text []byte, markers []string) bool {
	for line := range bytes.Lines(text) {
		version, is := bytes.CutPrefix(line, []byte("apiVersion:"))
		if is && slices.ContainsFunc(markers, func(marker string) bool { return bytes.Contains(version, []byte(marker)) }) {
			return true
		}
	}
	return false
}

var lineOfYAML = regexp.MustCompile(`(?:error converting YAML to JSON: )?(?:yaml: )?line (\d+): `)

// unreadable says where a document that begins at a line cannot be read, and why.
func unreadable(name string, first int, err error) string {
	message, _, _ := strings.Cut(err.Error(), "\n")
	if at := lineOfYAML.FindStringSubmatchIndex(message); at != nil {
		line, _ := strconv.Atoi(message[at[2]:at[3]]) // it is digits
		first += max(line-1, 0)
		message = message[:at[0]] + message[at[1]:]
	}
	message = strings.TrimPrefix(strings.TrimPrefix(message, "error converting YAML to JSON: "), "yaml: ")
	return fmt.Sprintf("%s:%d: cannot be read as YAML: %s", name, first, message)
}
