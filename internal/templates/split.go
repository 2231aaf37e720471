// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"errors"
	"fmt"
	"strings"
)

// part is a piece of a text: as it stands, or an expression.
type part struct {
	text         string
	isExpression bool
}

// split cuts a text into what stands for itself and the expressions in ${...}.
// $${ stands for ${ itself. Braces and quotes in an expression are CEL's own.
func split(text string) ([]part, error) {
	var parts []part
	var literal strings.Builder
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			literal.WriteString(text)
			break
		}
		if at > 0 && text[at-1] == '$' {
			literal.WriteString(text[:at-1] + "${")
			text = text[at+2:]
			continue
		}
		literal.WriteString(text[:at])
		rest := text[at+2:]
		end, err := closing(rest)
		if err != nil {
			return nil, err
		}
		expression := strings.TrimSpace(rest[:end])
		if expression == "" {
			return nil, errors.New("${} has no expression; write $${ for ${ itself")
		}
		if literal.Len() > 0 {
			parts = append(parts, part{text: literal.String()})
			literal.Reset()
		}
		parts = append(parts, part{text: expression, isExpression: true})
		text = rest[end+1:]
	}
	if literal.Len() > 0 || len(parts) == 0 {
		parts = append(parts, part{text: literal.String()})
	}
	return parts, nil
}

// closing returns where the brace is that ends an expression.
func closing(text string) (int, error) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i, nil
			}
			depth--
		case '"', '\'':
			length, err := quoted(text[i:])
			if err != nil {
				return 0, err
			}
			i += length - 1
		}
	}
	return 0, fmt.Errorf("${%s has no } at its end; write $${ for ${ itself", shorten(text))
}

// quoted returns how long a literal of CEL is that a text begins with.
func quoted(text string) (int, error) {
	quote := text[:1]
	if strings.HasPrefix(text, quote+quote+quote) {
		quote = text[:3]
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote), nil
		}
	}
	return 0, fmt.Errorf("%s has no %s at its end", shorten(text), quote)
}

// shorten bounds what a message repeats.
func shorten(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
