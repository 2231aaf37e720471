// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import "strings"

// plainInShells are the characters that mean themselves in every shell, beside letters and
// digits.
const plainInShells = "_@%+=:,./-"

// Word returns a text as one word of a shell: in quotes where a character of it may mean
// something else, and without what Line leaves out. Bidirectional marks and escapes would
// show another word than the one that is copied.
func Word(text string) string {
	text = Line(text, 0)
	if text != "" && strings.IndexFunc(text, speaksToShells) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func speaksToShells(char rune) bool {
	isPlain := char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z' || char >= '0' && char <= '9'
	return !isPlain && !strings.ContainsRune(plainInShells, char)
}

// Command returns a command that may be copied into a shell. The program is trusted, and
// may be several words; each of the other words is one word, whatever it holds.
func Command(program string, words ...string) string {
	command := program
	for _, word := range words {
		command += " " + Word(word)
	}
	return command
}
