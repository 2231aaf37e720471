// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// States are told by shape and word, and by colour besides.

import { words } from "./text.js";

const shapes = {
  Well: ["M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1z", "M4.8 8.2 7 10.4l4.2-4.6"],
  Moving: ["M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1z", "M5 8h6M8.6 5.4 11.2 8l-2.6 2.6"],
  Waiting: ["M8 1.2 15.2 14.2H.8z", "M8 6v3.6M8 11.4v.9"],
  Failed: ["M5 1h6l4 4v6l-4 4H5l-4-4V5z", "M5.6 5.6l4.8 4.8M10.4 5.6l-4.8 4.8"],
  Unknown: ["M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1z", "M6 6.4c0-2.6 4-2.6 4 0 0 1.6-2 1.6-2 3.2M8 11.6v.6"],
};

/** Icon shows a state. Where its word stands beside it, it says nothing itself. */
export function Icon({ state, said }) {
  const [outline, mark] = shapes[state] ?? shapes.Unknown;
  return (
    <svg class={"icon " + state} viewBox="0 0 16 16" role={said ? "img" : undefined} aria-label={said ? words[state] : undefined} aria-hidden={said ? undefined : "true"}>
      <path class="shape" d={outline} /><path class="mark" d={mark} />
    </svg>
  );
}
