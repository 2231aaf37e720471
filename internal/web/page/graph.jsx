// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// The graph of layers, in waves. Which layers there are, and in which wave, the server
// says; here each has a place by its wave and row alone, so that nothing moves when states
// change.

import { Icon } from "./icons.jsx";
import { opened, pathOf } from "./state.js";
import { part } from "./stream.js";
import { moment, words } from "./text.js";

const width = 224, height = 72, gapX = 64, gapY = 16, title = 30;

const graph = part("graph");

/** Graph shows all groups of layers. */
export function Graph() {
  const g = graph.value;
  if (!g) return null;
  return (
    <section class="graph" aria-label="Layers in the order in which they are deployed" onKeyDown={move}>
      {g.groups.map((group) => <Group key={group.cluster ?? ""} group={group} />)}
      {g.groups.length === 0 && <Empty />}
      {g.left && <p class="left">{g.left}: kubectl strata get</p>}
    </section>
  );
}

function Empty() {
  return (
    <div class="empty">
      <h2>There are no layers yet</h2>
      <p>An AddonsLayer names a directory of HelmReleases, and what must hold before they are deployed.</p>
      <p><code>kubectl strata lint DIRECTORY</code> checks what you have written; what you apply is here at once.</p>
    </div>
  );
}

/** laid returns where the layers of a group stand, and how large that is. */
function laid(group) {
  const spots = new Map(), titles = [];
  let top = 0, columns = 0;
  for (const lane of group.lanes) {
    if (group.lanes.length > 1 || lane.platform) {
      titles.push({ y: top, text: lane.platform ? "platform " + lane.platform : "of no platform" });
      top += title;
    }
    lane.waves.forEach((wave, x) => wave.forEach((name, y) => spots.set(name, { x: x * (width + gapX), y: top + y * (height + gapY) })));
    top += Math.max(...lane.waves.map((wave) => wave.length)) * (height + gapY);
    columns = Math.max(columns, lane.waves.length);
  }
  return { spots, titles, w: columns * (width + gapX) - gapX, h: top - gapY };
}

function Group({ group }) {
  const { spots, titles, w, h } = laid(group);
  const name = group.cluster || "this cluster";
  return (
    <section class="group" aria-label={name}>
      <h2>{name}</h2>
      <div class="scroll" tabIndex={0} role="group" aria-label={"Layers on " + name}>
        <div class="waves" style={{ "--w": w + "px", "--h": h + "px" }}>
          <svg class="edges" width={w} height={h} aria-hidden="true">
            {[...spots.keys()].map((layer) => <Edges key={layer} name={layer} spots={spots} />)}
          </svg>
          {group.lanes.map((lane, i) => (
            <section key={lane.platform ?? ""} aria-label={titles[i]?.text}>
              {titles[i] && <h3 class="lane" style={{ top: titles[i].y + "px" }}>{titles[i].text}</h3>}
              <ol>
                {lane.waves.map((wave, x) => wave.length > 0 && (
                  <li key={x}><span class="wave">wave {x + 1}</span>
                    <ul>{wave.map((layer) => <Node key={layer} name={layer} spot={spots.get(layer)} />)}</ul>
                  </li>
                ))}
              </ol>
            </section>
          ))}
        </div>
      </div>
      {group.left && <p class="left">{group.left}</p>}
    </section>
  );
}

/** Edges leads from what a layer depends on to the layer. What holds it up is lit. */
function Edges({ name, spots }) {
  const node = part("node/" + name).value;
  if (!node?.needs) return null;
  const to = spots.get(name);
  return node.needs.filter((on) => spots.has(on)).map((on) => <Edge key={on} from={spots.get(on)} to={to} on={on} waits={node.fares !== "Well"} />);
}

function Edge({ from, to, on, waits }) {
  const before = part("node/" + on).value;
  const lit = waits && before && before.fares !== "Well";
  const x1 = from.x + width, y1 = from.y + height / 2, x2 = to.x, y2 = to.y + height / 2;
  const bend = Math.max(24, (x2 - x1) / 2);
  return <path class={lit ? "edge lit " + before.fares : "edge"} d={`M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`} />;
}

function Node({ name, spot }) {
  const node = part("node/" + name).value;
  if (!node) return null;
  const open = opened.value === name;
  return (
    <li class="node" style={{ left: spot.x + "px", top: spot.y + "px" }}>
      <a href={pathOf(name)} class={node.fares + (open ? " open" : "")} aria-current={open ? "true" : undefined} data-layer={name}
        title={node.why || undefined}>
        <span class="name"><Icon state={node.fares} /><b>{name}</b></span>
        <span class="state">{node.state}{node.ready && " " + node.ready}<span class="version">{node.version}</span></span>
        <span class="why">{node.fares === "Well" ? (node.since ? "since " + moment(node.since) : words.Well) : node.why || words[node.fares]}</span>
      </a>
    </li>
  );
}

/** move goes from layer to layer by the arrow keys, to the nearest one in that direction. */
function move(event) {
  const at = event.target.closest?.("[data-layer]");
  const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
  if (!at || !direction || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const [dx, dy] = direction, from = middle(at);
  let best = null, least = Infinity;
  for (const other of document.querySelectorAll("[data-layer]")) {
    const to = middle(other), along = (to.x - from.x) * dx + (to.y - from.y) * dy;
    if (along < 8) continue;
    // What lies to the side counts more than what is far.
    const apart = along + 3 * Math.abs((to.x - from.x) * dy + (to.y - from.y) * dx);
    if (apart < least) [best, least] = [other, apart];
  }
  best?.focus();
}

function middle(element) {
  const box = element.getBoundingClientRect();
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}
