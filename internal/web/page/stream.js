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
  open();
}

function open() {
  let first = true;
  const mine = new EventSource("/stream?" + shown);
  source = mine;
  mine.onmessage = (event) => {
    if (mine !== source) return;
    const change = JSON.parse(event.data);
    batch(() => {
      if (first) {
        // What the stream before had and this one has not is gone.
        for (const [name, at] of parts) if (!(name in change.set)) at.value = null;
        first = false;
      }
      for (const [name, value] of Object.entries(change.set ?? {})) part(name).value = value;
      for (const name of change.drop ?? []) part(name).value = null;
      link.value = "live";
      refused.value = "";
    });
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
