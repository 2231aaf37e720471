// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout holds the rules by which a Platform moves its clusters to
// another version of its bundle: to which version, at what time, and which
// clusters before which. It reads no clock, no cluster and no file but the
// database of time zones.
package rollout

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	// The image that Strata ships in has no database of time zones, and without
	// one every zone but UTC would be unknown.
	_ "time/tzdata"
)

// Window is a time of the week in which clusters may be moved.
type Window struct {
	// Days are the English names of the days on which it opens, or the first three
	// letters of them; empty for every day. It may close on a later one.
	Days []string
	// Start is the time of day at which it opens, as in 22:00.
	Start string
	// Duration is how long it stays open: elapsed time, so that one of nine hours
	// has nine hours also in a night in which the clocks change, and one of 24 is
	// closed for the last hour of a day that has 25. At most 7 days.
	Duration time.Duration
	// TimeZone is a name of the IANA database, as in Europe/Berlin; empty for UTC.
	TimeZone string
}

const (
	week = 7 * 24 * time.Hour
	// horizon is how far the end of windows that follow each other without a gap
	// is looked for. It holds every change of clocks of a year.
	horizon = 54 * week
)

var startPattern = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])$`)

// Validate returns what is wrong with windows, each error with the name of its
// field. No windows (nil) are fine; a list that is there and empty is not: it
// looks like never, and somebody may have meant always.
func Validate(windows []Window) []error {
	if windows != nil && len(windows) == 0 {
		return []error{fmt.Errorf("maintenanceWindows: is empty, so that no window ever opens; leave it out where clusters may be moved at any time")}
	}
	var errs []error
	for i, window := range windows {
		for _, err := range window.validate() {
			errs = append(errs, fmt.Errorf("maintenanceWindows[%d].%w", i, err))
		}
	}
	return errs
}

func (w Window) validate() []error {
	var errs []error
	seen := map[time.Weekday]bool{}
	for i, name := range w.Days {
		day, known := weekday(name)
		switch {
		case !known:
			errs = append(errs, fmt.Errorf("days[%d]: %q is no day of the week: write one such as Monday or Mon", i, name))
		case seen[day]:
			errs = append(errs, fmt.Errorf("days[%d]: %s is there twice", i, day))
		default:
			seen[day] = true
		}
	}
	if !startPattern.MatchString(w.Start) {
		errs = append(errs, fmt.Errorf("start: %q is no time of day: write one such as 22:00", w.Start))
	}
	if w.Duration <= 0 || w.Duration > week {
		errs = append(errs, fmt.Errorf("duration: %s is not more than 0 and at most %s", w.Duration, week))
	}
	if _, err := location(w.TimeZone); err != nil {
		errs = append(errs, fmt.Errorf("timeZone: %w", err))
	}
	return errs
}

// location returns a time zone by its name. Local is refused: it would be that of
// the machine on which the controller happens to run.
func location(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("%q is no time zone: write one such as Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is unknown: write one such as Europe/Berlin", name)
	}
	return zone, nil
}

func weekday(name string) (time.Weekday, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if day.String() == name || day.String()[:3] == name {
			return day, true
		}
	}
	return 0, false
}

// Open tells whether clusters may be moved at a moment, and until when that answer
// holds: where it is open, when the last of the windows closes that overlap or
// touch; where it is closed, when the next one opens. Until is zero where the
// answer holds for a year at least. Without windows (nil) it is always open. A
// window that Validate refuses never opens.
func Open(windows []Window, now time.Time) (open bool, until time.Time) {
	_, until, open = opening(windows, now)
	if !open {
		return false, Next(windows, now)
	}
	return true, until
}

// Next returns the next moment after now at which it opens, having been closed
// before; zero where that is not in sight for a year.
func Next(windows []Window, now time.Time) time.Time {
	rules := compile(windows)
	after := now
	if _, until, open := opening(windows, now); open {
		if until.IsZero() {
			return time.Time{}
		}
		after = until
	}
	for _, span := range spans(rules, after) {
		if span.from.After(after) {
			return span.from
		}
	}
	return time.Time{}
}

// opening returns from when and until when it is open around a moment; each of
// them is zero where it is further away than the horizon.
func opening(windows []Window, now time.Time) (from, until time.Time, open bool) {
	if windows == nil {
		return time.Time{}, time.Time{}, true
	}
	rules := compile(windows)
	from, until = now, now
	for grown := true; grown && until.Sub(now) < horizon; {
		grown = false
		for _, span := range spans(rules, until) {
			if !span.from.After(until) && span.until.After(until) {
				until, grown, open = span.until, true, true
			}
		}
	}
	if !open {
		return time.Time{}, time.Time{}, false
	}
	for grown := true; grown && now.Sub(from) < horizon; {
		grown = false
		for _, span := range spans(rules, from) {
			if span.from.Before(from) && !span.until.Before(from) {
				from, grown = span.from, true
			}
		}
	}
	if now.Sub(from) >= horizon {
		from = time.Time{}
	}
	if until.Sub(now) >= horizon {
		until = time.Time{}
	}
	return from, until, true
}

// rule is a window that has been understood.
type rule struct {
	days         [7]bool
	hour, minute int
	duration     time.Duration
	zone         *time.Location
}

func compile(windows []Window) []rule {
	var rules []rule
	for _, window := range windows {
		if len(window.validate()) > 0 {
			continue
		}
		r := rule{duration: window.Duration}
		for _, name := range window.Days {
			day, _ := weekday(name)
			r.days[day] = true
		}
		if len(window.Days) == 0 {
			r.days = [7]bool{true, true, true, true, true, true, true}
		}
		start := startPattern.FindStringSubmatch(window.Start)
		r.hour, _ = strconv.Atoi(start[1])
		r.minute, _ = strconv.Atoi(start[2])
		r.zone, _ = location(window.TimeZone)
		rules = append(rules, r)
	}
	return rules
}

// span is one opening of one window: from its first moment to the one at which it
// is closed again.
type span struct{ from, until time.Time }

// spans returns what opens from nine days before a moment, so that every window is
// there that may still be open, to sixteen days after it, so that the next one is
// there also where a day was left out of the calendar. The first to open is first.
func spans(rules []rule, around time.Time) []span {
	var found []span
	for _, r := range rules {
		year, month, day := around.In(r.zone).Date()
		for shift := -9; shift <= 16; shift++ {
			if from, opens := r.on(year, month, day+shift); opens {
				found = append(found, span{from.UTC(), from.Add(r.duration).UTC()})
			}
		}
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Or(a.from.Compare(b.from), a.until.Compare(b.until)) })
	return found
}

// on returns when the window opens on a date, and whether it does. A date that
// the calendar of the zone leaves out, as Samoa did with one of 2011, has none.
func (r rule) on(year int, month time.Month, day int) (time.Time, bool) {
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	if !r.days[midnight.Weekday()] {
		return time.Time{}, false
	}
	first := firstReading(midnight, r.zone)
	if first.In(r.zone).Day() != midnight.Day() {
		return time.Time{}, false
	}
	return firstReading(midnight.Add(time.Duration(r.hour)*time.Hour+time.Duration(r.minute)*time.Minute), r.zone), true
}

// firstReading returns the first moment at which the clocks of a zone read a time,
// given as if it were UTC, or a later one. That is the first moment after the gap
// for a time that they skip, and the first of two for one that they read twice;
// [time.Date] promises neither.
func firstReading(reading time.Time, zone *time.Location) time.Time {
	// No zone is or was more than 16 hours from UTC.
	moment := reading.Add(-26 * time.Hour).In(zone)
	for {
		_, seconds := moment.Zone()
		at := reading.Add(-time.Duration(seconds) * time.Second).In(zone)
		_, end := moment.ZoneBounds()
		switch {
		case at.Before(moment):
			return moment
		case end.IsZero() || at.Before(end):
			return at
		}
		moment = end
	}
}
