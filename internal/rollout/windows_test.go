// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func rfc(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}
	return moment.UTC().Format(time.RFC3339)
}

func days(names ...string) []string { return names }

func TestOpen(t *testing.T) {
	berlin := Window{Start: "22:00", Duration: 9 * time.Hour, TimeZone: "Europe/Berlin"}
	saturday := Window{Days: days("Saturday"), Start: "22:00", Duration: 9 * time.Hour, TimeZone: "Europe/Berlin"}
	for name, test := range map[string]struct {
		windows     []Window
		now         string
		open        bool
		until, next string
	}{
		"no windows":                 {nil, "2026-01-01T00:00:00Z", true, "", ""},
		"an empty list never opens":  {[]Window{}, "2026-01-01T00:00:00Z", false, "", ""},
		"one that is refused":        {[]Window{{Start: "25:00", Duration: time.Hour}}, "2026-01-01T00:00:00Z", false, "", ""},
		"first moment":               {[]Window{berlin}, "2026-01-10T21:00:00Z", true, "2026-01-11T06:00:00Z", "2026-01-11T21:00:00Z"},
		"just before":                {[]Window{berlin}, "2026-01-10T20:59:59Z", false, "2026-01-10T21:00:00Z", "2026-01-10T21:00:00Z"},
		"its end is closed":          {[]Window{berlin}, "2026-01-11T06:00:00Z", false, "2026-01-11T21:00:00Z", "2026-01-11T21:00:00Z"},
		"Saturday night on Sunday":   {[]Window{saturday}, "2026-01-11T02:00:00Z", true, "2026-01-11T06:00:00Z", "2026-01-17T21:00:00Z"},
		"Friday night on Saturday":   {[]Window{saturday}, "2026-01-10T02:00:00Z", false, "2026-01-10T21:00:00Z", "2026-01-10T21:00:00Z"},
		"over the end of a year":     {[]Window{{Start: "23:00", Duration: 2 * time.Hour}}, "2027-01-01T00:30:00Z", true, "2027-01-01T01:00:00Z", "2027-01-01T23:00:00Z"},
		"into a leap day":            {[]Window{{Days: days("Monday"), Start: "23:00", Duration: 48 * time.Hour}}, "2028-02-29T12:00:00Z", true, "2028-03-01T23:00:00Z", "2028-03-06T23:00:00Z"},
		"a leap day":                 {[]Window{{Days: days("Tuesday"), Start: "12:00", Duration: time.Hour}}, "2028-02-29T12:30:00Z", true, "2028-02-29T13:00:00Z", "2028-03-07T12:00:00Z"},
		"no leap day":                {[]Window{{Start: "12:00", Duration: time.Hour}}, "2027-02-28T13:00:00Z", false, "2027-03-01T12:00:00Z", "2027-03-01T12:00:00Z"},
		"a whole week":               {[]Window{{Days: days("Monday"), Start: "00:00", Duration: week}}, "2026-01-14T00:00:00Z", true, "", ""},
		"overlapping windows merge":  {[]Window{{Start: "01:00", Duration: 2 * time.Hour}, {Start: "02:00", Duration: 2 * time.Hour}}, "2026-01-14T01:30:00Z", true, "2026-01-14T04:00:00Z", "2026-01-15T01:00:00Z"},
		"touching windows merge":     {[]Window{{Start: "01:00", Duration: time.Hour}, {Start: "02:00", Duration: time.Hour}}, "2026-01-14T01:30:00Z", true, "2026-01-14T03:00:00Z", "2026-01-15T01:00:00Z"},
		"merged over zones":          {[]Window{{Start: "01:00", Duration: time.Hour}, {Start: "07:30", Duration: time.Hour, TimeZone: "Asia/Kolkata"}}, "2026-01-14T01:30:00Z", true, "2026-01-14T03:00:00Z", "2026-01-15T01:00:00Z"},
		"Kolkata":                    {[]Window{{Start: "22:00", Duration: time.Hour, TimeZone: "Asia/Kolkata"}}, "2026-07-01T16:30:00Z", true, "2026-07-01T17:30:00Z", "2026-07-02T16:30:00Z"},
		"Berlin skips 02:30":         {[]Window{{Start: "02:30", Duration: time.Hour, TimeZone: "Europe/Berlin"}}, "2026-03-29T00:59:59Z", false, "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z"},
		"Berlin after the gap":       {[]Window{{Start: "02:30", Duration: time.Hour, TimeZone: "Europe/Berlin"}}, "2026-03-29T01:00:00Z", true, "2026-03-29T02:00:00Z", "2026-03-30T00:30:00Z"},
		"Berlin doubles 02:30":       {[]Window{{Start: "02:30", Duration: time.Hour, TimeZone: "Europe/Berlin"}}, "2026-10-25T00:30:00Z", true, "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
		"nine hours in spring":       {[]Window{berlin}, "2026-03-29T00:00:00Z", true, "2026-03-29T06:00:00Z", "2026-03-29T20:00:00Z"},
		"nine hours in autumn":       {[]Window{berlin}, "2026-10-25T00:00:00Z", true, "2026-10-25T05:00:00Z", "2026-10-25T21:00:00Z"},
		"every day of 24 hours":      {[]Window{{Start: "00:00", Duration: 24 * time.Hour, TimeZone: "Europe/Berlin"}}, "2026-07-01T00:00:00Z", true, "2026-10-25T22:00:00Z", "2026-10-25T23:00:00Z"},
		"New York skips 02:15":       {[]Window{{Start: "02:15", Duration: time.Hour, TimeZone: "America/New_York"}}, "2026-03-08T06:59:00Z", false, "2026-03-08T07:00:00Z", "2026-03-08T07:00:00Z"},
		"New York doubles 01:30":     {[]Window{{Start: "01:30", Duration: time.Hour, TimeZone: "America/New_York"}}, "2026-11-01T05:00:00Z", false, "2026-11-01T05:30:00Z", "2026-11-01T05:30:00Z"},
		"not twice in a night":       {[]Window{{Start: "01:30", Duration: 10 * time.Minute, TimeZone: "America/New_York"}}, "2026-11-01T06:30:00Z", false, "2026-11-02T06:30:00Z", "2026-11-02T06:30:00Z"},
		"Lord Howe skips half":       {[]Window{{Start: "02:15", Duration: time.Hour, TimeZone: "Australia/Lord_Howe"}}, "2026-10-03T15:00:00Z", false, "2026-10-03T15:30:00Z", "2026-10-03T15:30:00Z"},
		"Lord Howe doubles half":     {[]Window{{Start: "01:45", Duration: time.Hour, TimeZone: "Australia/Lord_Howe"}}, "2026-04-04T14:00:00Z", false, "2026-04-04T14:45:00Z", "2026-04-04T14:45:00Z"},
		"Apia has no 30th":           {[]Window{{Days: days("Friday"), Start: "12:00", Duration: time.Hour, TimeZone: "Pacific/Apia"}}, "2011-12-29T12:00:00Z", false, "2012-01-05T22:00:00Z", "2012-01-05T22:00:00Z"},
		"Apia, the day after":        {[]Window{{Days: days("Saturday"), Start: "00:00", Duration: time.Hour, TimeZone: "Pacific/Apia"}}, "2011-12-30T09:59:59Z", false, "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z"},
		"St. John's goes back a day": {[]Window{{Days: days("Sunday"), Start: "00:00", Duration: time.Hour, TimeZone: "America/St_Johns"}}, "2010-11-07T02:29:00Z", false, "2010-11-07T02:30:00Z", "2010-11-07T02:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			open, until := Open(test.windows, at(t, test.now))
			next := Next(test.windows, at(t, test.now))
			if open != test.open || rfc(until) != test.until || rfc(next) != test.next {
				t.Errorf("open %t until %q, next %q; want %t until %q, next %q", open, rfc(until), rfc(next), test.open, test.until, test.next)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	fine := Window{Days: days("Monday", "Sun"), Start: "00:00", Duration: week, TimeZone: "Asia/Kolkata"}
	windows := []Window{
		fine,
		{Days: days("Monday", "monday", "Mon"), Start: "9:00", Duration: 0, TimeZone: "Europe/Berlyn"},
		{Start: "24:00", Duration: week + 1, TimeZone: "Local"},
	}
	var got []string
	for _, err := range Validate(windows) {
		got = append(got, err.Error())
	}
	want := []string{
		`maintenanceWindows[1].days[1]: "monday" is no day of the week: write one such as Monday or Mon`,
		`maintenanceWindows[1].days[2]: Monday is there twice`,
		`maintenanceWindows[1].start: "9:00" is no time of day: write one such as 22:00`,
		`maintenanceWindows[1].duration: 0s is not more than 0 and at most 168h0m0s`,
		`maintenanceWindows[1].timeZone: "Europe/Berlyn" is unknown: write one such as Europe/Berlin`,
		`maintenanceWindows[2].start: "24:00" is no time of day: write one such as 22:00`,
		`maintenanceWindows[2].duration: 168h0m0.000000001s is not more than 0 and at most 168h0m0s`,
		`maintenanceWindows[2].timeZone: "Local" is no time zone: write one such as Europe/Berlin`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if errs := Validate(nil); errs != nil {
		t.Errorf("nil: %v", errs)
	}
	if errs := Validate([]Window{}); len(errs) != 1 {
		t.Errorf("an empty list: %v", errs)
	}
}

// openMinutes walks over every minute from ten days before the first and notes
// when a clock on the wall comes to the start of a window for the first time that
// day, or has jumped over it. It knows nothing of how zones are described.
func openMinutes(w Window, first time.Time, minutes int) []bool {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		panic(err)
	}
	var hour, minute int
	if _, err := fmt.Sscanf(w.Start, "%d:%d", &hour, &minute); err != nil {
		panic(err)
	}
	open := make([]bool, minutes)
	// A day of the year is seen once its start, or what comes after it, was read.
	seen := map[int]bool{first.Add(-10 * 24 * time.Hour).In(zone).YearDay(): true}
	for i := -10 * 24 * 60; i < minutes; i++ {
		moment := first.Add(time.Duration(i) * time.Minute).In(zone)
		day, clock := moment.YearDay(), moment.Hour()*60+moment.Minute()
		if seen[day] || clock < hour*60+minute {
			continue
		}
		seen[day] = true
		if len(w.Days) > 0 && !slices.Contains(w.Days, moment.Weekday().String()) && !slices.Contains(w.Days, moment.Weekday().String()[:3]) {
			continue
		}
		for j := i; j < i+int(w.Duration/time.Minute) && j < minutes; j++ {
			if j >= 0 {
				open[j] = true
			}
		}
	}
	return open
}

// TestOpenIsWhatTheClockOnTheWallSays compares with a walk over every minute.
func TestOpenIsWhatTheClockOnTheWallSays(t *testing.T) {
	begins := []string{
		"2026-03-06T00:00:00Z", "2026-03-27T00:00:00Z", "2026-04-03T00:00:00Z", "2026-10-02T00:00:00Z",
		"2026-10-23T00:00:00Z", "2026-10-30T00:00:00Z", "2027-12-30T00:00:00Z", "2028-02-27T00:00:00Z", "2011-12-28T00:00:00Z",
	}
	zones := []string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"}
	window := rapid.Custom(func(t *rapid.T) Window {
		var on []string
		for day := time.Sunday; day <= time.Saturday; day++ {
			if rapid.Bool().Draw(t, "on") {
				on = append(on, rapid.SampledFrom([]string{day.String(), day.String()[:3]}).Draw(t, "name"))
			}
		}
		hour := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 23)).Draw(t, "hour")
		return Window{
			Days: on, Start: fmt.Sprintf("%02d:%02d", hour, rapid.IntRange(0, 59).Draw(t, "minute")),
			Duration: time.Duration(rapid.OneOf(rapid.IntRange(1, 24*60), rapid.IntRange(1, 7*24*60)).Draw(t, "duration")) * time.Minute,
			TimeZone: rapid.SampledFrom(zones).Draw(t, "zone"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		windows := rapid.SliceOfN(window, 1, 3).Draw(t, "windows")
		first, err := time.Parse(time.RFC3339, rapid.SampledFrom(begins).Draw(t, "first"))
		if err != nil {
			t.Fatal(err)
		}
		const minutes = 4 * 24 * 60
		truth := make([]bool, minutes)
		for _, w := range windows {
			for i, open := range openMinutes(w, first, minutes) {
				truth[i] = truth[i] || open
			}
		}
		for range 15 {
			i := rapid.IntRange(0, minutes-1).Draw(t, "now")
			now := first.Add(time.Duration(i) * time.Minute)
			change := i
			for change < minutes && truth[change] == truth[i] {
				change++
			}
			open, until := Open(windows, now)
			if open != truth[i] {
				t.Fatalf("at %s: open %t", rfc(now), open)
			}
			seen := first.Add(time.Duration(change) * time.Minute)
			if change < minutes && !until.Equal(seen) || change == minutes && !until.IsZero() && until.Before(seen) {
				t.Fatalf("at %s: until %s, want %s", rfc(now), rfc(until), rfc(seen))
			}
			opens := change
			for opens < minutes && (!truth[opens] || truth[opens-1]) {
				opens++
			}
			next := Next(windows, now)
			if opens < minutes && !next.Equal(first.Add(time.Duration(opens)*time.Minute)) {
				t.Fatalf("at %s: next %s", rfc(now), rfc(next))
			}
		}
	})
}
