// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

import { useSignalEffect } from "@preact/signals";
import { Icon } from "./icons.jsx";
import { pathOf, said } from "./state.js";
import { link, lostAt, part, refused } from "./stream.js";
import { moment, words } from "./text.js";

const verdict = part("verdict");
const cluster = part("cluster");
const stale = part("stale");

/** Verdict answers whether everything is well, and if not, what the cause is. */
export function Verdict() {
  const v = verdict.value;
  useSignalEffect(() => {
    const now = verdict.value;
    if (!now) return;
    // For whoever measures how long the verdict takes.
    if (!performance.getEntriesByName("verdict").length) performance.mark("verdict");
    const bad = now.failed + now.waiting;
    document.title = (now.state === "Well" ? "✓ well" : now.state === "Moving" ? "→ under way" : `${now.state === "Failed" ? "✕" : "!"} ${bad || now.causes.length} ${words[now.state]}`) +
      " – Strata" + (cluster.value?.name ? " on " + cluster.value.name : "");
    document.getElementById("icon").href = `/icon-${now.state.toLowerCase()}.svg`;
    said.value = now.sentence;
  });
  if (!v) return null;
  return (
    <section class={"verdict " + v.state} aria-labelledby="sentence">
      <Icon state={v.state} said />
      <div>
        <h1 id="sentence">{v.sentence}</h1>
        {v.causes.length > 0 && <ol class="causes" aria-label="Causes, the worst first">{v.causes.map(Cause)}</ol>}
        {v.more > 0 && <p class="left">and {v.more === 1 ? "1 more cause" : v.more + " more causes"}</p>}
      </div>
    </section>
  );
}

function Cause(cause) {
  const name = cause.layer ?? cause.cluster;
  return (
    <li key={(cause.layer ?? "") + "/" + (cause.cluster ?? "")}>
      <Icon state={cause.state} said />
      {cause.layer ? <a href={pathOf(cause.layer)}>{name}</a> : <b>{name}</b>}
      {cause.layer && cause.cluster && <span class="on">on {cause.cluster}</span>}
      <span class="reason">{cause.reason}</span>
      {cause.object && <span class="object">{cause.object}</span>}
      {cause.waits > 0 && <span class="dim">{cause.waits === 1 ? "1 layer waits" : cause.waits + " layers wait"} for it</span>}
      {cause.since && <span class="dim">since <time dateTime={cause.since}>{moment(cause.since)}</time></span>}
      {cause.until && <span class="until">until <time dateTime={cause.until}>{moment(cause.until)}</time></span>}
    </li>
  );
}

/** Freshness says whether what is shown is current, and if not, since when. */
export function Freshness() {
  if (link.value === "lost") {
    return (
      <p class="fresh lost" role="status"><Icon state="Waiting" />
        {refused.value || "kubectl strata ui does not answer: what is shown is from " + (lostAt.value ? moment(lostAt.value) : "before") + ", and the page tries again."}
      </p>
    );
  }
  if (stale.value) {
    return (
      <p class="fresh lost" role="status"><Icon state="Waiting" />
        The cluster does not answer: what is shown may be old since {moment(stale.value.since)}. {stale.value.error}
      </p>
    );
  }
  return link.value === "live" ? <p class="fresh">live</p> : <p class="fresh">opens …</p>;
}
