// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

import { effect } from "@preact/signals";
import { render } from "preact";
import { Clusters } from "./clusters.jsx";
import { Graph } from "./graph.jsx";
import { Layer } from "./layer.jsx";
import { Help, Palette } from "./palette.jsx";
import { closed, copy, filter, follow, from, go, help, opened, palette, said, theme, turn, view } from "./state.js";
import { part, show } from "./stream.js";
import { Freshness, Verdict } from "./verdict.jsx";

function Page() {
  return (
    <>
      <a class="skip" href="#layers">To the layers</a>
      <header class="top">
        <a class="brand" href="/">Strata</a>
        <span class="where">{part("cluster").value?.name}</span>
        <nav aria-label="Views">
          <a href="/" aria-current={view.value === "layers" ? "page" : undefined}>Layers</a>
          <a href="/clusters" aria-current={view.value === "clusters" ? "page" : undefined}>Clusters</a>
        </nav>
        <Freshness />
        <button type="button" onClick={() => { palette.value = true; }}>Find <kbd>/</kbd></button>
        <button type="button" onClick={turn}>{{ "": "Auto", dark: "Dark", light: "Light" }[theme.value]}</button>
        <button type="button" onClick={() => { help.value = true; }} aria-label="Keys">?</button>
      </header>
      <main id="layers" tabIndex={-1} class={opened.value ? "split" : undefined}>
        <div class="view"><Verdict />{view.value === "clusters" ? <Clusters /> : <Graph />}</div>
        <Layer />
      </main>
      <Palette /><Help />
      <p class="said" role="status" aria-live="polite">{said.value}</p>
    </>
  );
}

const commandOf = () => part("cluster").value.program + (opened.value ? " why " + opened.value : view.value === "clusters" ? " clusters" : " status");

document.addEventListener("click", follow);
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input, textarea");
  if ((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !typing)) {
    palette.value = true;
  } else if (typing || event.ctrlKey || event.metaKey || event.altKey || palette.value || help.value) {
    return;
  } else if (event.key === "Escape" && opened.value) {
    const was = opened.value;
    go(closed());
    document.querySelector(`[data-layer="${CSS.escape(was)}"]`)?.focus();
  } else if (event.key === "?") {
    help.value = true;
  } else if (event.key === "1" || event.key === "2") {
    go(event.key === "1" ? "/" : "/clusters");
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
  const query = view.value === "clusters" ? { view: "clusters", clusters: filter.value, from: from.value } : {};
  show(opened.value ? { ...query, layer: opened.value } : query);
});

const root = document.getElementById("page");
root.replaceChildren();
render(<Page />, root);
