// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxText bounds how large one text may become on the way, in bytes.
const maxText = 1 << 20

// tooLarge returns an error of its own each time: CEL writes into it where it was.
func tooLarge() ref.Val { return types.NewErr("%s", errTextTooLarge) }

// What the functions say of a mistake: no values, and no lengths of texts.
const (
	errTextTooLarge = "a text becomes larger than 1024 KiB"
	errNoTexts      = "join needs a list of texts"
	errNoSubstring  = "substring is asked for characters that the text does not have"
	errNoDigest     = "digest is asked for of something that no value can be, or that is too large"
)

// functions are those of CEL's extension for strings that values need, under the
// same names. The extension itself charges for what a function has made when it is
// made: one replace may by then have taken all memory.
func functions() []cel.EnvOption {
	text, list := cel.StringType, cel.ListType(cel.StringType)
	return []cel.EnvOption{
		member("lowerAscii", []*cel.Type{text}, text, func(args []ref.Val) ref.Val { return mapASCII(args[0], 'A', 'Z', 'a'-'A') }),
		member("upperAscii", []*cel.Type{text}, text, func(args []ref.Val) ref.Val { return mapASCII(args[0], 'a', 'z', 'A'-'a') }),
		member("trim", []*cel.Type{text}, text, func(args []ref.Val) ref.Val { return types.String(strings.TrimSpace(str(args[0]))) }),
		member("split", []*cel.Type{text, text}, list, func(args []ref.Val) ref.Val {
			return types.NewStringList(types.DefaultTypeAdapter, strings.Split(str(args[0]), str(args[1])))
		}),
		member("replace", []*cel.Type{text, text, text}, text, replace),
		cel.Function("digest", cel.Overload("strata_digest", []*cel.Type{cel.DynType}, text, cel.UnaryBinding(digest))),
		cel.Function("join",
			cel.MemberOverload("strata_join", []*cel.Type{list}, text, cel.FunctionBinding(joinTexts)),
			cel.MemberOverload("strata_join_with", []*cel.Type{list, text}, text, cel.FunctionBinding(joinTexts))),
		cel.Function("substring",
			cel.MemberOverload("strata_substring", []*cel.Type{text, cel.IntType}, text, cel.FunctionBinding(substring)),
			cel.MemberOverload("strata_substring_to", []*cel.Type{text, cel.IntType, cel.IntType}, text, cel.FunctionBinding(substring))),
	}
}

func member(name string, args []*cel.Type, result *cel.Type, do func([]ref.Val) ref.Val) cel.EnvOption {
	return cel.Function(name, cel.MemberOverload("strata_"+name, args, result, cel.FunctionBinding(func(values ...ref.Val) ref.Val { return do(values) })))
}

func str(value ref.Val) string {
	text, _ := value.(types.String)
	return string(text)
}

// mapASCII moves the letters of a range.
func mapASCII(value ref.Val, from, to, by rune) ref.Val {
	return types.String(strings.Map(func(r rune) rune {
		if r >= from && r <= to {
			return r + by
		}
		return r
	}, str(value)))
}

// digestDigits is how many hexadecimal digits a digest has.
const digestDigits = 16

// digest identifies a value, as JSON: another one has another digest, however it is written.
func digest(value ref.Val) ref.Val {
	plain, err := (&converter{left: maxItems}).value(value)
	if err != nil {
		return types.NewErr("%s", errNoDigest)
	}
	data, err := json.Marshal(plain)
	if err != nil {
		return types.NewErr("%s", errNoDigest)
	}
	sum := sha256.Sum256(data)
	return types.String(hex.EncodeToString(sum[:])[:digestDigits])
}

func replace(args []ref.Val) ref.Val {
	in, old, with := str(args[0]), str(args[1]), str(args[2])
	// Both factors are bounded by what a variable or a text can hold.
	if len(in)+strings.Count(in, old)*(len(with)-len(old)) > maxText {
		return tooLarge()
	}
	return types.String(strings.ReplaceAll(in, old, with))
}

// joinTexts joins texts, with a separator where there is one.
func joinTexts(args ...ref.Val) ref.Val {
	list, is := args[0].(traits.Lister)
	if !is {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	separator := ""
	if len(args) == 2 {
		separator = str(args[1])
	}
	var joined strings.Builder
	// A list may be far longer than what it took to make it.
	for it, first := list.Iterator(), true; it.HasNext() == types.True; first = false {
		item, is := it.Next().(types.String)
		if !is {
			return types.NewErr("%s", errNoTexts)
		}
		if !first {
			joined.WriteString(separator)
		}
		joined.WriteString(string(item))
		if joined.Len() > maxText {
			return tooLarge()
		}
	}
	return types.String(joined.String())
}

// substring cuts by characters, as CEL counts them.
func substring(args ...ref.Val) ref.Val {
	runes := []rune(str(args[0]))
	from, _ := args[1].(types.Int)
	to := types.Int(len(runes))
	if len(args) == 3 {
		to, _ = args[2].(types.Int)
	}
	if from < 0 || to < from || int(to) > len(runes) {
		return types.NewErr("%s", errNoSubstring)
	}
	return types.String(string(runes[from:to]))
}
