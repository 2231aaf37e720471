// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

import { cluster, opened, planned, platform, view } from "./state.js";
import { part } from "./stream.js";

/** commandOf returns what shows the same on a terminal. */
export function commandOf() {
  const what = opened.value ? "why " + opened.value
    : cluster.value ? "clusters " + cluster.value
    : platform.value ? (planned.value ? "platform plan " : "platform get ") + platform.value + (planned.value && planned.value !== "now" ? ` --version '${planned.value}'` : "")
    : view.value === "plan" && part("preview").value ? part("preview").value.command.slice(part("cluster").value.program.length + 1)
    : { plan: "plan", layers: "status", clusters: "clusters", platforms: "platform list" }[view.value];
  return part("cluster").value.program + " " + what;
}
