// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/chartutil"
	"helm.sh/helm/v4/pkg/chart/common"
	"sigs.k8s.io/yaml"
)

// standIns makes what charts see in the place of the values of a Secret. It has the
// value's type and shape, so that charts render: it is a number for a number, has the
// keys of an object and as many items as a list, is an object in JSON or YAML, base64,
// PEM or an address of the web where the value is, and is empty where that is empty.
// Nothing else of a value is in it, nor how long it is: it follows from where the
// value stands.
type standIns struct {
	// of names the value: its Secret and key.
	of string
	// salt makes others of them.
	salt string
}

// deepest is how many shapes of a text are looked at one in the other, such as JSON
// in base64.
const deepest = 4

// value returns what stands in for the value of a reference, in the way that Flux
// reads it from the reference. before is what the value was, where it had one.
func (s standIns) value(of meta.ValuesReference, value, before []byte, had bool) (string, error) {
	unreadable := problem(
		ValuesUnavailable,
		nil,
		"%s, which spec.valuesFrom names, cannot be understood (key %s%s)",
		strings.TrimSuffix(s.of, " "+of.GetValuesKey()),
		of.GetValuesKey(),
		forPath(of),
	)
	if of.TargetPath == "" {
		is, err := common.ReadValues(value)
		if err != nil {
			return "", unreadable
		}
		var was any
		if values, err := common.ReadValues(before); had && err == nil {
			was = map[string]any(values)
		}
		text, err := json.Marshal(s.like(map[string]any(is), was, "", 0))
		if err != nil {
			return "", unreadable
		}
		return string(text), nil
	}
	if of.Literal {
		return s.text(string(value), textOr(before, had), "", 0), nil
	}
	is, err := atPath(value)
	if err != nil {
		return "", unreadable
	}
	if len(is) != 1 {
		return "", problem(
			StandInsRefused,
			nil,
			"%s, which spec.valuesFrom names, holds several values at once (key %s%s), which nothing stands in for",
			strings.TrimSuffix(s.of, " "+of.GetValuesKey()),
			of.GetValuesKey(),
			forPath(of),
		)
	}
	var was any
	if values, err := atPath(before); had && err == nil {
		was = values[probe]
	}
	return asArgument(s.like(is[probe], was, "", 0), true), nil
}

func forPath(of meta.ValuesReference) string {
	if of.TargetPath == "" {
		return ""
	}
	return ", for targetPath " + of.TargetPath
}

func textOr(before []byte, had bool) any {
	if !had {
		return nil
	}
	return string(before)
}

// probe is where atPath puts a value.
const probe = "x"

// atPath returns what Flux makes of a value that is for a path.
func atPath(value []byte) (common.Values, error) {
	into := common.Values{}
	return into, chartutil.ReplacePathValue(into, probe, string(value))
}

// meaning are the characters that mean something in a value for a path.
var meaning = strings.NewReplacer(`\`, `\\`, `,`, `\,`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`)

// asArgument returns a value as it is written for a path.
func asArgument(value any, top bool) string {
	switch value := value.(type) {
	case string:
		if top {
			return "'" + meaning.Replace(value) + "'"
		}
		return meaning.Replace(value)
	case []any:
		items := make([]string, len(value))
		for i, item := range value {
			items[i] = asArgument(item, false)
		}
		return "{" + strings.Join(items, ",") + "}"
	case nil:
		return "null"
	}
	return fmt.Sprint(value)
}

// like returns what stands in for a value. was is what it was, nil where it was not.
func (s standIns) like(value, was any, path string, depth int) any {
	switch value := value.(type) {
	case map[string]any:
		before, _ := was.(map[string]any)
		made := make(map[string]any, len(value))
		for key, each := range value {
			made[key] = s.like(each, before[key], path+"."+key, depth)
		}
		return made
	case []any:
		before, _ := was.([]any)
		made := make([]any, len(value))
		for i, each := range value {
			var old any
			if i < len(before) {
				old = before[i]
			}
			made[i] = s.like(each, old, path+"["+strconv.Itoa(i)+"]", depth)
		}
		return made
	case string:
		return s.text(value, was, path, depth)
	case bool:
		return s.pick(value, was) == 0
	case nil:
		return nil
	}
	number := 1 + s.pick(value, was)
	if number, is := value.(float64); is && number != math.Trunc(number) {
		return float64(s.pick(value, was)) + 1.5
	}
	return number
}

// pick returns 0, or 1 for a value that has changed. Salts pick either.
func (s standIns) pick(value, was any) int {
	picked := 0
	if was != nil && !reflect.DeepEqual(value, was) {
		picked = 1
	}
	if s.salt != "" {
		picked = int(s.salt[len(s.salt)-1]) & 1
	}
	return picked
}

// word returns the word for a text.
func (s standIns) word(text string, was any, path string) string {
	sum := sha256.Sum256([]byte(s.salt + "\x00" + s.of + "\x00" + path))
	if s.salt != "" {
		return "s" + hex.EncodeToString(sum[:8])
	}
	word := "stand-in-" + hex.EncodeToString(sum[:4])
	if was != nil && !reflect.DeepEqual(any(text), was) {
		word += "-changed"
	}
	return word
}

var (
	webAddress = regexp.MustCompile(`^(?i)(https?)://[^\s]+$`)
	// pemTypes are those that are kept: what else stands there may be a secret.
	pemTypes  = regexp.MustCompile(`^((RSA|EC|DSA|OPENSSH|ENCRYPTED|PGP) )?(PRIVATE KEY|PUBLIC KEY|CERTIFICATE|CERTIFICATE REQUEST|DH PARAMETERS)$`)
	plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)
)

// text returns what stands in for a text.
func (s standIns) text(text string, was any, path string, depth int) string {
	before, _ := was.(string)
	if strings.TrimSpace(text) == "" {
		return ""
	}
	word := s.word(text, was, path)
	if depth >= deepest {
		return word
	}
	if value, encode := structureOf(text); encode != nil {
		var old any
		if was != nil {
			old, _ = structureOf(before)
		}
		if made, err := encode(s.like(value, old, path, depth+1)); err == nil {
			return string(made)
		}
		return word
	}
	if data, is := decoded(text); is {
		inner := any(nil)
		if old, is := decoded(before); is && was != nil {
			inner = old
		}
		if isText(data) {
			return base64.StdEncoding.EncodeToString([]byte(s.text(data, inner, path+"#", depth+1)))
		}
		return base64.StdEncoding.EncodeToString([]byte(word))
	}
	if block, _ := pem.Decode([]byte(text)); block != nil && pemTypes.MatchString(block.Type) {
		return string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: []byte(word)}))
	}
	if scheme := webAddress.FindStringSubmatch(text); scheme != nil {
		return strings.ToLower(scheme[1]) + "://" + word + ".invalid"
	}
	return word
}

// structureOf returns what a text holds as JSON, or as YAML of several lines, and what
// writes such; nil where it is a text like any other.
func structureOf(text string) (any, func(any) ([]byte, error)) {
	var value any
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if json.Unmarshal([]byte(trimmed), &value) == nil {
			return value, json.Marshal
		}
	}
	if !strings.Contains(trimmed, "\n") || yaml.Unmarshal([]byte(text), &value) != nil {
		return nil, nil
	}
	table, is := value.(map[string]any)
	if !is || slices.ContainsFunc(slices.Collect(maps.Keys(table)), func(key string) bool { return !plainName.MatchString(key) }) {
		return nil, nil
	}
	return table, yaml.Marshal
}

// decoded returns what a text holds in base64. Many a password is base64 by chance: it
// counts where it is padded, or holds a text.
func decoded(text string) (string, bool) {
	trimmed := strings.TrimSpace(text)
	data, err := base64.StdEncoding.DecodeString(trimmed)
	if err != nil || len(data) == 0 {
		return "", false
	}
	return string(data), strings.HasSuffix(trimmed, "=") || isText(string(data))
}

func isText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) })
}
