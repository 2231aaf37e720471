// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// helpLine is a flag in what a program prints for --help: its name, the word
// for its value, and what it is for.
var helpLine = regexp.MustCompile(`^\s+(?:-\w, )?-{1,2}([a-zA-Z][\w.-]*)(?:\[=\S+\])?(?: ([a-zA-Z][\w=,./]*))?(?:\s{2,}.*)?$`)

// helpDefault is a flag's default at the end of its description.
var helpDefault = regexp.MustCompile(`\(default (?:"([^"]*)"|([^)]*))\)`)

// ParseFlags returns all flags of a program, sorted by name: those of its
// help text with their defaults, and with the values that its arguments gave.
// A flag that was given more than once has all its values. Flags whose help
// names no default are "false" where they take no value, "0" where that is a
// number or a duration, and empty otherwise.
func ParseFlags(help string, args []string) []Flag {
	given := parseArgs(args)
	var flags []Flag
	seen := map[string]bool{}
	for _, entry := range helpEntries(help) {
		if entry.name == "help" || seen[entry.name] {
			continue
		}
		seen[entry.name] = true
		flag := Flag{Name: entry.name, Value: entry.value}
		if values, ok := given[entry.name]; ok {
			flag.Value, flag.Given = strings.Join(values, ","), true
		}
		flags = append(flags, flag)
	}
	for name, values := range given {
		if !seen[name] {
			flags = append(flags, Flag{Name: name, Value: strings.Join(values, ","), Given: true})
		}
	}
	slices.SortFunc(flags, func(a, b Flag) int { return cmp.Compare(a.Name, b.Name) })
	return flags
}

type helpEntry struct{ name, value string }

// helpEntries reads the flags of a help text. A description may go on over
// several lines.
func helpEntries(help string) []helpEntry {
	var entries []helpEntry
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\r\n")
		if match := helpLine.FindStringSubmatch(line); match != nil {
			entries = append(entries, helpEntry{name: match[1], value: zeroValue(match[2])})
		}
		if match := helpDefault.FindStringSubmatch(line); match != nil && len(entries) > 0 {
			entries[len(entries)-1].value = match[1] + match[2]
		}
	}
	return entries
}

// zeroValue is the default that a help text leaves out for a type of flag.
func zeroValue(kind string) string {
	switch kind {
	case "":
		return "false"
	case "int", "int32", "int64", "uint", "float", "float32", "float64", "duration":
		return "0"
	default:
		return ""
	}
}

// parseArgs reads arguments of the forms --name=value, --name value and
// --name.
func parseArgs(args []string) map[string][]string {
	given := map[string][]string{}
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !ok {
			value = "true"
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				value = args[i]
			}
		}
		given[name] = append(given[name], value)
	}
	return given
}
