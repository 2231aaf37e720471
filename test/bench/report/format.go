// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"strconv"
	"strings"
)

// Format returns a value with its unit for people: three significant digits
// of times and ratios, megabytes and gigabytes of 10^6 and 10^9
// bytes, whole numbers in groups of three digits.
func Format(value float64, unit string) string {
	switch unit {
	case Seconds:
		if math.Abs(value) < 0.9995 && value != 0 {
			return significant(value*1000) + " ms"
		}
		return significant(value) + " s"
	case Bytes:
		if value >= 999.5e6 {
			return significant(value/1e9) + " GB"
		}
		return significant(value/1e6) + " MB"
	case Times:
		return significant(value) + "x"
	case Percent:
		return significant(value) + "%"
	case Count:
		if value == math.Trunc(value) {
			return grouped(value)
		}
		return significant(value)
	default:
		return significant(value) + " " + unit
	}
}

// significant returns a value with three significant digits, or with all
// those before the point, and without zeros after it that say nothing.
func significant(value float64) string {
	if value == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(value))))
	if digits <= 0 {
		return grouped(math.Round(value))
	}
	text := strconv.FormatFloat(value, 'f', digits, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// grouped returns a whole number in groups of three digits.
func grouped(value float64) string {
	text := strconv.FormatFloat(math.Abs(value), 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	if value < 0 {
		return "-" + text
	}
	return text
}
