// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Check tells what is wrong with the templates of a value, as JSON has it; each
// problem begins with the field's path. It returns the fields of variables that
// they read, such as inputs.size.
func (l *Language) Check(value any) (uses, problems []string) {
	found := map[string]bool{}
	_, _ = walk("", value, func(path, text string) (any, error) { // it has no error of its own
		parts, err := split(text)
		if err != nil {
			problems = append(problems, place(path, err))
			return nil, nil
		}
		for _, part := range parts {
			if !part.isExpression {
				continue
			}
			compiled, err := l.compile(part.text)
			if err != nil {
				problems = append(problems, place(path, err))
				continue
			}
			l.uses(compiled, found)
		}
		return nil, nil
	})
	return slices.Sorted(maps.Keys(found)), problems
}

// Fill returns a copy of a value in which all templates are filled. A text that is
// one template becomes what that comes to, of whatever type; in other texts
// templates must come to a text, a number, or true or false. Keys are no
// templates.
func (l *Language) Fill(value any, data Data) (any, error) {
	left := maxFilled
	return walk("", value, func(path, text string) (any, error) {
		filled, err := l.fillText(text, data)
		if err != nil {
			return nil, errors.New(place(path, err))
		}
		if filled != any(text) {
			if left -= sizeOf(filled); left < 0 {
				return nil, errors.New(place(path, fmt.Errorf("the templates come to more than %d KiB", maxFilled>>10)))
			}
		}
		return filled, nil
	})
}

// FillText is as Fill for a text that stays one.
func (l *Language) FillText(text string, data Data) (string, error) {
	filled, err := l.fillText(text, data)
	if err != nil {
		return "", err
	}
	return scalar(text, filled)
}

func (l *Language) fillText(text string, data Data) (any, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	parts, err := split(text)
	if err != nil {
		return nil, err
	}
	var filled strings.Builder
	for _, part := range parts {
		if !part.isExpression {
			filled.WriteString(part.text)
			continue
		}
		compiled, err := l.compile(part.text)
		if err != nil {
			return nil, err
		}
		value, err := l.evaluate(compiled, data)
		if err != nil || len(parts) == 1 {
			return value, err
		}
		written, err := scalar("${"+part.text+"}", value)
		if err != nil {
			return nil, err
		}
		filled.WriteString(written)
		if filled.Len() > maxFilled {
			return nil, fmt.Errorf("the templates come to more than %d KiB", maxFilled>>10)
		}
	}
	return filled.String(), nil
}

// scalar writes a value into a text.
func scalar(of string, value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case nil:
		return "", fmt.Errorf("%s is null, and must be a text, a number, or true or false", shorten(of))
	case []any:
		return "", fmt.Errorf("%s is a list, and must be a text, a number, or true or false", shorten(of))
	default:
		return "", fmt.Errorf("%s is an object, and must be a text, a number, or true or false", shorten(of))
	}
}

// walk copies a value and replaces its texts.
func walk(path string, value any, replace func(path, text string) (any, error)) (any, error) {
	switch v := value.(type) {
	case string:
		return replace(path, v)
	case []any:
		copied := make([]any, len(v))
		for i, item := range v {
			replaced, err := walk(fmt.Sprintf("%s[%d]", path, i), item, replace)
			if err != nil {
				return nil, err
			}
			copied[i] = replaced
		}
		return copied, nil
	case map[string]any:
		copied := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			replaced, err := walk(join(path, key), v[key], replace)
			if err != nil {
				return nil, err
			}
			copied[key] = replaced
		}
		return copied, nil
	default:
		return value, nil
	}
}

func join(path, key string) string {
	if strings.ContainsAny(key, ".[]") || key == "" {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func place(path string, err error) string {
	if path == "" {
		return err.Error()
	}
	return path + ": " + err.Error()
}

// maxItems bounds how many items and fields an expression may come to.
const maxItems = 10_000

// converter turns values of CEL into such as JSON has.
type converter struct {
	// left is how many items and fields there may still be. A list that was added to
	// itself again and again is far longer than what it took to make it.
	left int
}

func (c *converter) value(value ref.Val) (any, error) {
	switch v := value.(type) {
	case types.String:
		return string(v), nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, errors.New("is a number that is too large")
		}
		return int64(v), nil
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, errors.New("is no number")
		}
		return float64(v), nil
	case types.Null:
		return nil, nil
	case types.Timestamp, types.Duration:
		return fmt.Sprint(v.ConvertToType(types.StringType)), nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, errors.New("has no value: add .orValue(...)")
		}
		return c.value(v.GetValue())
	case traits.Lister:
		return c.list(v)
	case traits.Mapper:
		return c.object(v)
	default:
		return nil, fmt.Errorf("is of the type %s, which values cannot have", value.Type().TypeName())
	}
}

// one counts an item or a field.
func (c *converter) one() error {
	c.left--
	if c.left < 0 {
		return fmt.Errorf("has more than %d items", maxItems)
	}
	return nil
}

func (c *converter) list(list traits.Lister) (any, error) {
	items := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		if err := c.one(); err != nil {
			return nil, err
		}
		item, err := c.value(it.Next())
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (c *converter) object(object traits.Mapper) (any, error) {
	fields := map[string]any{}
	for it := object.Iterator(); it.HasNext() == types.True; {
		if err := c.one(); err != nil {
			return nil, err
		}
		key := it.Next()
		name, is := key.(types.String)
		if !is {
			return nil, fmt.Errorf("has a key of the type %s, and keys must be texts", key.Type().TypeName())
		}
		field, err := c.value(object.Get(key))
		if err != nil {
			return nil, err
		}
		fields[string(name)] = field
	}
	return fields, nil
}

// sizeOf returns how large the texts of a value are, in bytes.
func sizeOf(value any) int {
	const each = 8
	switch v := value.(type) {
	case string:
		return each + len(v)
	case []any:
		size := each
		for _, item := range v {
			size += sizeOf(item)
		}
		return size
	case map[string]any:
		size := each
		for key, item := range v {
			size += each + len(key) + sizeOf(item)
		}
		return size
	default:
		return each
	}
}
