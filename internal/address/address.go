// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package address says how addresses are shown: by their scheme, host and path. What
// else stands in one may be a secret, such as a user with a password, or the
// signature of an address that lets anybody read what lies there. Every text that
// leaves the process goes through it. It opens no connection.
package address

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/strata-project/strata/internal/printable"
)

// unreadable stands for what is no address.
const unreadable = "an address that cannot be understood"

// Of returns what may be shown of an address.
func Of(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// Show returns what may be shown of an address. Of what is no address nothing is.
func Show(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return unreadable
	}
	return Of(parsed)
}

// IsPlain tells whether an address holds nothing but what is shown of it, so that
// it may be kept where others read it.
func IsPlain(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && parsed.User == nil && parsed.RawQuery == "" && !parsed.ForceQuery &&
		parsed.Fragment == "" && parsed.Opaque == "" && !strings.ContainsAny(text, "?#")
}

// begins finds where an address begins in a text.
var begins = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://|"/`)

// Hide returns a text with each address in it as Show has it. Addresses in quotes
// may hold blanks, and may lack scheme and host.
func Hide(text string) string {
	var shown strings.Builder
	for {
		at := begins.FindStringIndex(text)
		if at == nil {
			shown.WriteString(text)
			return shown.String()
		}
		start := at[0]
		if text[start] == '"' {
			start++
		}
		length := lengthOf(text, start)
		shown.WriteString(text[:start])
		shown.WriteString(reduced(text[start : start+length]))
		text = text[start+length:]
	}
}

// Line returns a text in one printable line of at most limit bytes, with of
// addresses what may be shown. What is invisible goes first, since it could part an
// address in two; what is too long is cut last, since half an address hides less. A
// limit of 0 is none.
func Line(text string, limit int) string {
	return printable.Line(Hide(printable.Line(text, 0)), limit)
}

// lengthOf returns how long the address is that begins somewhere in a text: as far as
// the quotes go that it stands in, and up to a blank otherwise.
func lengthOf(text string, start int) int {
	rest := text[start:]
	if start > 0 && strings.ContainsRune("\"'`", rune(text[start-1])) {
		quote, escaped := text[start-1], false
		for i := range len(rest) {
			switch {
			case escaped:
				escaped = false
			case rest[i] == '\\' && quote == '"':
				escaped = true
			case rest[i] == quote:
				return i
			}
		}
		return len(rest)
	}
	if end := strings.IndexAny(rest, " \t\r\n\"'`<>"); end >= 0 {
		return end
	}
	return len(rest)
}

// reduced takes user, query and fragment out of an address, whether or not it can be
// parsed. Punctuation behind it belongs to the sentence.
func reduced(text string) string {
	address := strings.TrimRight(text, ":,.;)")
	behind := text[len(address):]
	if end := strings.IndexAny(address, "?#"); end >= 0 {
		address = address[:end]
		if len(behind) > 1 {
			behind = behind[len(behind)-1:] // what is before it may be of the query
		}
	}
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return address + behind
	}
	authority, path, _ := strings.Cut(rest, "/")
	// A password with a slash in it is no valid part of an address, and hidden all the same.
	if user := strings.LastIndexByte(rest, '@'); user >= 0 && (user < len(authority) || !hasPort(authority)) {
		rest = rest[user+1:]
		authority, path, _ = strings.Cut(rest, "/")
	}
	if !hasPort(authority) {
		authority, _, _ = strings.Cut(authority, ":")
		rest = authority + "/" + path
	}
	return scheme + "://" + rest + behind
}

// hasPort tells whether what follows the last colon of a host is a port. A host
// without one has it, too.
func hasPort(authority string) bool {
	if strings.HasSuffix(authority, "]") {
		return true
	}
	_, port, found := strings.Cut(authority, ":")
	if strings.HasPrefix(authority, "[") {
		_, port, found = strings.Cut(authority, "]:")
	}
	return !found || strings.Trim(port, "0123456789") == ""
}

// Error returns an error as it may be told. Whatever is in it stays to be asked for;
// nil stays nil.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return told{err}
}

// told is an error with addresses as they are shown.
type told struct{ error }

// Error returns the text of the error without what addresses may hold.
func (t told) Error() string { return textOf(t.error) }

// Unwrap returns the error as it was.
func (t told) Unwrap() error { return t.error }

// textOf returns what an error says. Of an address that cannot be parsed even the
// reason quotes parts, and a server may send any address.
func textOf(err error) string {
	var failed *url.Error
	if !errors.As(err, &failed) {
		return Hide(err.Error())
	}
	before, ends := strings.CutSuffix(err.Error(), failed.Error())
	if !ends {
		return Hide(err.Error())
	}
	if failed.Op == "parse" {
		before, _, _ = strings.Cut(before, `"`)
		return Hide(before) + unreadable
	}
	why := textOf(failed.Err)
	if strings.Contains(why, "Location header") {
		why = "it leads to " + unreadable // as clients tell of a redirect that they cannot parse
	}
	return Hide(before) + failed.Op + " " + strconv.Quote(Show(failed.URL)) + ": " + why
}
