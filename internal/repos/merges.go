// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// keyName is what a key is to kubectl: its text in JSON, and what YAML takes it for. Two keys
// of one text and of different kinds are two keys in YAML and one in JSON.
type keyName struct {
	text, tag string
}

// nameOf returns what a key is to kubectl, which reads a plain yes as true.
func nameOf(key *kyaml.Node) keyName {
	if key.Kind == kyaml.AliasNode {
		key = key.Alias
	}
	name := keyName{text: key.Value, tag: "!!str"}
	if key.Style != 0 || key.Value == "" {
		return name
	}
	switch first := key.Value[0]; {
	case first >= '0' && first <= '9', first == '+', first == '-', first == '.':
		return numberName(name)
	case len(key.Value) <= len("false"):
		if said, is := booleans[key.Value]; is {
			return keyName{text: strconv.FormatBool(said), tag: "!!bool"}
		}
	}
	return name
}

// booleans are the words of YAML 1.1 for true and false.
var booleans = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "true": true, "True": true, "TRUE": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "false": false, "False": false, "FALSE": false, "off": false, "Off": false, "OFF": false,
}

// yamlFloat is what YAML 1.1 takes for a float.
var yamlFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// numberName returns the name of a key that begins as a number does. kubectl writes floats
// as short as 32 bits allow.
func numberName(name keyName) keyName {
	plain := strings.ReplaceAll(name.text, "_", "")
	if n, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return keyName{text: strconv.FormatInt(n, 10), tag: "!!int"}
	}
	if f, err := strconv.ParseFloat(plain, 64); err == nil && yamlFloat.MatchString(plain) && !math.IsInf(f, 0) {
		return keyName{text: strconv.FormatFloat(f, 'g', -1, 32), tag: "!!float"}
	}
	return name
}

// checkMerges refuses keys that are merged and can be read in two ways. The key of a mapping
// counts more than one that is merged into it. Where it stands before the <<, kubectl takes
// the merged one all the same, and kustomize does not.
func (d *document) checkMerges(node *kyaml.Node) error {
	if node == nil {
		return nil
	}
	if node.Kind == kyaml.MappingNode {
		if err := d.checkMerged(node); err != nil {
			return err
		}
	}
	for _, child := range node.Content {
		if err := d.checkMerges(child); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) checkMerged(node *kyaml.Node) error {
	var own map[string]bool
	all := map[string]keyName{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if !isMerge(key) {
			continue
		}
		own = map[string]bool{}
		for before := 0; before < i; before += 2 {
			own[nameOf(node.Content[before]).text] = true
		}
		err := eachMerged(node.Content[i+1], func(name keyName) error {
			if own[name.text] {
				return invalid(d.file, d.line(key), "",
					"the key %q stands before the << that has it, too: kubectl takes the merged one, and kustomize does not; write << first", short(name.text))
			}
			return d.addName(all, name, key)
		})
		if err != nil {
			return err
		}
	}
	if own == nil {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i]; !isMerge(key) {
			if err := d.addName(all, nameOf(key), key); err != nil {
				return err
			}
		}
	}
	return nil
}

// addName refuses a key that is the same in JSON as another, and not in YAML: which of them
// counts is left to chance.
func (d *document) addName(all map[string]keyName, name keyName, at *kyaml.Node) error {
	if first, known := all[name.text]; known && first != name {
		return invalid(d.file, d.line(at), "", "the key %q is merged, and is written in two ways: quote both", short(name.text))
	}
	all[name.text] = name
	return nil
}

// eachMerged calls a function with every key that a << puts in. checkNodes has seen to it that
// there is an end.
func eachMerged(value *kyaml.Node, do func(keyName) error) error {
	if value.Kind == kyaml.AliasNode {
		value = value.Alias
	}
	for i, child := range value.Content {
		switch {
		case value.Kind == kyaml.SequenceNode:
			if err := eachMerged(child, do); err != nil {
				return err
			}
		case i%2 != 0:
		case isMerge(child):
			if err := eachMerged(value.Content[i+1], do); err != nil {
				return err
			}
		default:
			if err := do(nameOf(child)); err != nil {
				return err
			}
		}
	}
	return nil
}
