// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adoption holds the rules by which what already runs becomes layers:
// what Helm's storage says, where a chart comes from, which values must not be
// written into git, and which manifests stand for the very same Helm releases. It
// reads no cluster, no file and no clock.
package adoption

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxStored bounds a stored release when it is unpacked. Helm keeps one in a
	// Secret, which holds 1 MiB at most, and packs it some ten times.
	maxStored = 32 << 20
	// maxReleaseName is the longest name that Helm allows.
	maxReleaseName = 53
)

// Release is a release as Helm has stored it.
type Release struct {
	Namespace, Name string
	// Revision is counted from 1.
	Revision int
	// Status in Helm's words, such as deployed.
	Status string
	Chart  Chart
	// Values are those that people have given, with exact integers.
	Values map[string]any
	// Delicate are the paths of large numbers that its objects show digit by digit.
	// Flux hands numbers to charts as floats, which templates write otherwise from
	// a million on: 1e+06. Helm does so, too, unless they were given with --set.
	Delicate []string
	// Manager is who else has installed it, as the labels of its objects say, such
	// as Flux; empty where nothing says so.
	Manager string
}

// Chart is what there is to know of a chart so as to recognise it.
type Chart struct {
	Name, Version string
	// Dependencies is true where it has charts of its own, which Helm does not store,
	// and which may have changed its default values.
	Dependencies bool
	// Templates holds digests of its templates by their names.
	Templates map[string]string
	// Defaults is the digest of its default values.
	Defaults string
}

// stored is how Helm's storage writes a release.
type stored struct {
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Version   int             `json:"version"`
	Info      *storedInfo     `json:"info"`
	Chart     *storedChart    `json:"chart"`
	Config    json.RawMessage `json:"config"`
	Manifest  string          `json:"manifest"`
}

type storedInfo struct {
	Status string `json:"status"`
}

type storedChart struct {
	Metadata *struct {
		Name         string            `json:"name"`
		Version      string            `json:"version"`
		Dependencies []json.RawMessage `json:"dependencies"`
	} `json:"metadata"`
	Templates []struct {
		Name string `json:"name"`
		Data []byte `json:"data"`
	} `json:"templates"`
	Values json.RawMessage `json:"values"`
}

// Decode reads what the Secret of a Helm release holds under the key release. The
// error says what is wrong with it.
func Decode(data []byte) (Release, error) {
	text, err := unpack(data)
	if err != nil {
		return Release{}, err
	}
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return Release{}, fmt.Errorf("is no Helm release: %w", err)
	}
	if s.Info == nil || s.Chart == nil || s.Chart.Metadata == nil || s.Chart.Metadata.Name == "" || s.Chart.Metadata.Version == "" {
		return Release{}, errors.New("is no Helm release: it lacks a chart, or a status")
	}
	if problems := validation.IsDNS1123Subdomain(s.Name); len(problems) > 0 || len(s.Name) > maxReleaseName {
		return Release{}, fmt.Errorf("has a name that Helm does not allow: %q", s.Name)
	}
	if problems := validation.IsDNS1123Label(s.Namespace); len(problems) > 0 {
		return Release{}, fmt.Errorf("names a namespace that cannot be one: %q", s.Namespace)
	}
	values, err := readValues(s.Config)
	if err != nil {
		return Release{}, err
	}
	chart := Chart{
		Name: s.Chart.Metadata.Name, Version: s.Chart.Metadata.Version,
		Dependencies: len(s.Chart.Metadata.Dependencies) > 0, Templates: map[string]string{},
	}
	for _, template := range s.Chart.Templates {
		chart.Templates[template.Name] = digestOf(template.Data)
	}
	if chart.Defaults, err = digestOfValues(s.Chart.Values); err != nil {
		return Release{}, err
	}
	return Release{
		Namespace: s.Namespace, Name: s.Name, Revision: s.Version, Status: s.Info.Status,
		Chart: chart, Values: values, Delicate: delicateIn(values, "", s.Manifest), Manager: managerOf(s.Manifest),
	}, nil
}

// unpack takes off what Helm's storage wraps around a release.
func unpack(data []byte) ([]byte, error) {
	packed, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return nil, fmt.Errorf("is not written in base64: %w", err)
	}
	if !bytes.HasPrefix(packed, []byte{0x1f, 0x8b, 0x08}) {
		return packed, nil // Helm's first releases are not compressed
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("cannot be unpacked: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxStored+1))
	if err != nil {
		return nil, fmt.Errorf("cannot be unpacked: %w", err)
	}
	if len(text) > maxStored {
		return nil, fmt.Errorf("is larger than %d MiB when it is unpacked", maxStored>>20)
	}
	return text, nil
}

// readValues reads values with exact integers, and refuses numbers that whoever
// reads YAML would round.
func readValues(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]any{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var exact map[string]any
	if err := decoder.Decode(&exact); err != nil {
		return nil, fmt.Errorf("has values that are no mapping: %w", err)
	}
	if path := roundedAt(exact, ""); path != "" {
		return nil, fmt.Errorf("has the value %s, a number with more digits than YAML keeps: write it as a string", path)
	}
	var values map[string]any
	if err := utiljson.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("has values that cannot be read: %w", err)
	}
	return values, nil
}

// roundedAt returns where a number is that neither an int64 nor a float64 keeps.
func roundedAt(value any, path string) string {
	switch value := value.(type) {
	case json.Number:
		if _, err := value.Int64(); err == nil {
			return ""
		}
		float, err := value.Float64()
		// A float of the shortest form is what Helm itself has written.
		if err == nil && isShortest(value.String(), float) {
			return ""
		}
		return path
	case map[string]any:
		for _, key := range sortedKeys(value) {
			if found := roundedAt(value[key], join(path, key)); found != "" {
				return found
			}
		}
	case []any:
		for i, item := range value {
			if found := roundedAt(item, fmt.Sprintf("%s[%d]", path, i)); found != "" {
				return found
			}
		}
	}
	return ""
}

// isShortest tells whether a number comes back from a float. One that is too small
// for a float is not calculated, for its exponent may be anything.
func isShortest(text string, float float64) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	if len(text) > 400 || float == 0 {
		return float == 0 && !strings.ContainsAny(mantissa, "123456789")
	}
	again := strconv.FormatFloat(float, 'g', -1, 64)
	written, ok := new(big.Rat).SetString(text)
	if !ok {
		return false
	}
	kept, ok := new(big.Rat).SetString(again)
	return ok && written.Cmp(kept) == 0
}

// delicateIn returns the paths of whole numbers that templates write otherwise when
// they are floats, and that a manifest holds as they are.
func delicateIn(value any, path, manifest string) []string {
	var found []string
	switch value := value.(type) {
	case int64:
		if value := strconv.FormatInt(value, 10); len(strings.TrimPrefix(value, "-")) > 6 && strings.Contains(manifest, value) {
			found = append(found, path)
		}
	case map[string]any:
		for _, key := range sortedKeys(value) {
			found = append(found, delicateIn(value[key], join(path, key), manifest)...)
		}
	case []any:
		for i, item := range value {
			found = append(found, delicateIn(item, fmt.Sprintf("%s[%d]", path, i), manifest)...)
		}
	}
	return found
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// managers are the marks by which others know the objects that they install.
var managers = []struct {
	name string
	mark *regexp.Regexp
}{
	{"Flux", regexp.MustCompile(`(?m)^\s+helm\.toolkit\.fluxcd\.io/name:`)},
	{"Argo CD", regexp.MustCompile(`(?m)^\s+argocd\.argoproj\.io/(instance|tracking-id):`)},
}

// managerOf returns who has installed the objects of a manifest beside Helm.
func managerOf(manifest string) string {
	for _, manager := range managers {
		if manager.mark.MatchString(manifest) {
			return manager.name
		}
	}
	return ""
}

// Unfit says why a release cannot be taken as it is; empty where it can. Only one
// that Helm has deployed, and nobody else keeps, stands still.
func (r Release) Unfit() string {
	switch {
	case r.Manager != "":
		return r.Manager + " has installed it, and would go on to"
	case r.Status == "deployed":
		return ""
	case strings.HasPrefix(r.Status, "pending-"):
		return "Helm is at work on it, or was interrupted (" + r.Status + "): wait, or roll it back"
	case r.Status == "failed":
		return "its last revision has failed: mend it, or roll it back"
	case r.Status == "uninstalling":
		return "it is being uninstalled"
	}
	return "its status is " + strconv.Quote(r.Status)
}
