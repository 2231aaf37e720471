// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// How times and states read.

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false });

const date = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false });

/** moment writes a time: that of day for today, and the date besides for others. It does
 * not say how long ago that is, for the page does nothing while nothing changes. */
export function moment(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return "";
  const now = new Date();
  if (at.toDateString() === now.toDateString()) return time.format(at);
  return (at.getFullYear() === now.getFullYear() ? day : date).format(at);
}

/** words are what states are called. */
export const words = { Well: "well", Moving: "under way", Waiting: "waits", Failed: "failed", Unknown: "not known" };
