// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import "testing"

func TestFormat(t *testing.T) {
	for _, test := range []struct {
		reason string
		value  float64
		unit   string
		want   string
	}{
		{"nothing", 0, Seconds, "0 s"},
		{"milliseconds", 0.0871, Seconds, "87.1 ms"},
		{"a part of a millisecond", 0.000123456, Seconds, "0.123 ms"},
		{"what rounds up to a second is one", 0.9999, Seconds, "1 s"},
		{"three digits", 2.5449, Seconds, "2.54 s"},
		{"no zeros behind the point", 2.50, Seconds, "2.5 s"},
		{"all digits before the point", 12345.6, Seconds, "12 346 s"},
		{"a negative time", -0.0120, Seconds, "-12 ms"},
		{"megabytes of a million bytes", 165.4e6, Bytes, "165 MB"},
		{"gigabytes", 8.25e9, Bytes, "8.25 GB"},
		{"what rounds up to a gigabyte is one", 999.6e6, Bytes, "1 GB"},
		{"a count", 12000, Count, "12 000"},
		{"a million", 1234567, Count, "1 234 567"},
		{"a small count", 7, Count, "7"},
		{"a median that is no whole number", 1.0149, Count, "1.01"},
		{"a ratio", 59.54, Times, "59.5x"},
		{"a share", 0.0301, Percent, "0.0301%"},
		{"another unit", 3, "events", "3 events"},
	} {
		if got := Format(test.value, test.unit); got != test.want {
			t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
		}
	}
}
