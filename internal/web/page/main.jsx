// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

import { effect } from "@preact/signals";
import { render } from "preact";
import { Asking } from "./acts.jsx";
import { Cluster } from "./cluster.jsx";
import { Clusters } from "./clusters.jsx";
import { commandOf } from "./command.js";
import { Graph } from "./graph.jsx";
import { Icon } from "./icons.jsx";
import { Layer } from "./layer.jsx";
import { Help, Palette } from "./palette.jsx";
import { Plan } from "./plan.jsx";
import { Rollouts } from "./rollouts.jsx";
import { again, asking, closed, cluster, copy, filter, follow, from, go, help, of, only, opened, palette, planned, platform, said, theme, turn, view } from "./state.js";
import { part, show } from "./stream.js";
import { Freshness, Verdict } from "./verdict.jsx";

/** views are what the keys 1 and on lead to. */
const views = [["layers", "/", "Layers"], ["clusters", "/clusters", "Clusters"], ["platforms", "/platforms", "Roll-outs"], ["plan", "/plan", "Plan"]];

/** rollouts says how the Platform fares that fares worst; null where all are well. */
const rollouts = part("rollouts");

const shown = { layers: Graph, clusters: Clusters, platforms: Rollouts, plan: Plan };

function Page() {
  const View = shown[view.value];
  return (
    <>
      <a class="skip" href="#layers">To the layers</a>
      <header class="top">
        <a class="brand" href="/">Strata</a>
        <span class="where">{part("cluster").value?.name}</span>
        <nav aria-label="Views">
          {views.map(([name, path, title]) => <a key={name} href={path} aria-current={view.value === name ? "page" : undefined}>{title}{name === "platforms" && rollouts.value && <> <Icon state={rollouts.value} said /></>}</a>)}
        </nav>
        <Freshness />
        <button type="button" onClick={() => { palette.value = true; }}>Find <kbd>/</kbd></button>
        <button type="button" onClick={turn}>{{ "": "Auto", dark: "Dark", light: "Light" }[theme.value]}</button>
        <button type="button" onClick={() => { help.value = true; }} aria-label="Keys">?</button>
      </header>
      <main id="layers" tabIndex={-1} class={opened.value || cluster.value ? "split" : undefined}>
        <div class="view"><Verdict /><View /></div>
        <Layer /><Cluster />
      </main>
      <Palette /><Help /><Asking />
      <p class="said" role="status" aria-live="polite">{said.value}</p>
    </>
  );
}

document.addEventListener("click", follow);
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input, textarea");
  if (asking.value) return;
  if ((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !typing)) {
    palette.value = true;
  } else if (typing || event.ctrlKey || event.metaKey || event.altKey || palette.value || help.value) {
    return;
  } else if (event.key === "Escape" && (opened.value || cluster.value)) {
    const was = opened.value;
    go(closed());
    if (was) document.querySelector(`[data-layer="${CSS.escape(was)}"]`)?.focus();
  } else if (event.key === "?") {
    help.value = true;
  } else if (views[event.key - 1]) {
    go(views[event.key - 1][1]);
  } else if (event.key === "t") {
    turn();
  } else if (event.key === "c") {
    copy(commandOf());
  } else {
    return;
  }
  event.preventDefault();
});

effect(() => { document.documentElement.dataset.theme = theme.value; });
effect(() => {
  const query = {
    layers: {}, clusters: { view: "clusters", clusters: filter.value, from: from.value },
    platforms: { view: "platforms", platform: platform.value, plan: planned.value },
    plan: { view: "plan", ...(of.value && { of: of.value }), ...(only.value && { only: only.value }), ...(again.value && { again: again.value }) },
  }[view.value];
  const asked = asking.value;
  show({ ...query, ...(asked?.preview && { of: asked.preview, only: "", again: asked.again }), ...(opened.value && { layer: opened.value }), ...(cluster.value && { cluster: cluster.value }) });
});

const root = document.getElementById("page");
root.replaceChildren();
render(<Page />, root);
