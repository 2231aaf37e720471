// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import "encoding/binary"

// frames finds where the messages of a stream end.
type frames interface {
	// pass takes the next bytes, and returns how many bytes the longest of the
	// messages had that were open in them, as far as is known.
	pass(data []byte) int64
}

// jsonFrames finds the objects in a stream of JSON.
type jsonFrames struct {
	open    int64
	depth   int
	text    bool
	escaped bool
}

func (f *jsonFrames) pass(data []byte) int64 {
	longest := int64(0)
	for _, char := range data {
		f.open++
		longest = max(longest, f.open)
		switch {
		case f.escaped:
			f.escaped = false
		case f.text:
			f.escaped, f.text = char == '\\', char != '"'
		case char == '"':
			f.text = true
		case char == '{' || char == '[':
			f.depth++
		case char == '}' || char == ']':
			f.depth--
			if f.depth <= 0 {
				f.depth, f.open = 0, 0
			}
		}
	}
	return longest
}

// lengthFrames finds the messages in a stream where each begins with its length, in
// four bytes.
type lengthFrames struct {
	head []byte
	left int64
}

func (f *lengthFrames) pass(data []byte) int64 {
	longest := int64(0)
	for len(data) > 0 {
		if f.left > 0 {
			n := min(f.left, int64(len(data)))
			f.left -= n
			data = data[n:]
			continue
		}
		n := min(4-len(f.head), len(data))
		f.head = append(f.head, data[:n]...)
		data = data[n:]
		if len(f.head) == 4 {
			f.left = int64(binary.BigEndian.Uint32(f.head))
			f.head = f.head[:0]
			longest = max(longest, f.left)
		}
	}
	return longest
}
