// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// The stream of the tab: what the server shows comes in parts, and of each only what
// changes. A part is a signal, so that only what shows it is drawn again.

import { batch, signal } from "@preact/signals";

/** parts has a signal for each part that was ever shown. */
const parts = new Map();

/** link says whether the stream is there: "opening", "live" or "lost". */
export const link = signal("opening");

/** refused has what the server said in place of a stream; empty while there is one. */
export const refused = signal("");

/** lostAt is when the stream was lost. */
export const lostAt = signal(null);

/** part returns the signal of a part; its value is null while there is none. */
export function part(name) {
  let found = parts.get(name);
  if (!found) {
    found = signal(null);
    parts.set(name, found);
  }
  return found;
}

let source = null;
let shown = "";

/** show opens the stream of what the tab shows from now on. */
export function show(query) {
  const text = new URLSearchParams(query).toString();
  if (source && shown === text) return;
  shown = text;
  if (source) source.close();
  later = null;
  open();
}

/** later is what the first message of a stream has beside the verdict; null for nothing. */
let later = null;

/** take shows a change. */
function take({ set = {}, drop = [] }) {
  batch(() => {
    for (const [name, value] of Object.entries(set)) part(name).value = value;
    for (const name of drop) part(name).value = null;
    link.value = "live";
    refused.value = "";
  });
}

function takeLater() {
  const change = later;
  later = null;
  if (change) take(change);
}

/** begin shows the first message of a stream: the verdict at once, and all else once that
 * is on the screen. */
function begin(change) {
  const { cluster, verdict, ...rest } = change.set;
  // What the stream before had and this one has not is gone.
  const gone = [...parts.keys()].filter((name) => !(name in change.set));
  if (part("verdict").value) return take({ set: change.set, drop: gone });
  later = { set: rest, drop: gone };
  take({ set: { cluster, verdict } });
  requestAnimationFrame(() => setTimeout(takeLater));
}

function open() {
  let first = true;
  const mine = new EventSource("/stream?" + shown);
  source = mine;
  mine.onmessage = (event) => {
    if (mine !== source) return;
    const change = JSON.parse(event.data);
    takeLater();
    if (first) begin(change);
    else take(change);
    first = false;
  };
  mine.onopen = () => { first = true; };
  mine.onerror = () => {
    if (mine !== source) return;
    if (link.value === "live") lostAt.value = new Date();
    link.value = "lost";
    // A browser tries again by itself but where the server has refused.
    if (mine.readyState === EventSource.CLOSED) ask();
  };
}

/** ask finds out why there is no stream, and tries again a little later. */
async function ask() {
  try {
    const answer = await fetch("/stream?" + shown + "&once=1");
    if (!answer.ok) refused.value = (await answer.text()).trim();
  } catch {
    refused.value = "";
  }
  setTimeout(() => { if (link.value === "lost") open(); }, 5000);
}
