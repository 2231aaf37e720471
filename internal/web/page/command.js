// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

import { cluster, opened, planned, platform, view } from "./state.js";
import { part } from "./stream.js";

/** word returns a text as one word of a shell: an address that somebody else has made may
 * hold anything. */
const word = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'");

/** commandOf returns what shows the same on a terminal. */
export function commandOf() {
  const program = part("cluster").value.program;
  if (view.value === "plan" && !opened.value && !cluster.value && part("preview").value) return part("preview").value.command;
  const words = opened.value ? ["why", opened.value]
    : cluster.value ? ["clusters", cluster.value]
    : platform.value ? [...(planned.value ? ["platform", "plan"] : ["platform", "get"]), platform.value, ...(planned.value && planned.value !== "now" ? ["--version", planned.value] : [])]
    : { plan: ["plan"], layers: ["status"], clusters: ["clusters"], platforms: ["platform", "list"] }[view.value];
  return [program, ...words.map(word)].join(" ");
}
