// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Clusters by layers, those in trouble first, in windows: the server says which rows and
// columns there are.

import { Icon } from "./icons.jsx";
import { clusterPath, clustersAt, filter, from, go, opened, pathOf } from "./state.js";
import { part } from "./stream.js";
import { moment, words } from "./text.js";

const heat = part("heat");

/** signs are what cells show beside their colour. */
const signs = { Well: "✓", Moving: "→", Waiting: "!", Failed: "✕" };

/** Clusters is the map of clusters, and what clusters and applications are made of. */
export function Clusters() {
  const map = heat.value;
  if (!map) return null;
  return (
    <>
      <section class="group" aria-labelledby="map-title">
        <header class="bar">
          <h2 id="map-title">Clusters by layers</h2>
          <span class="dim">{map.total === 1 ? "1 cluster" : map.total + " clusters"}{map.says && ": " + map.says}</span>
          <label>Labels <input type="text" placeholder="region=eu,stage!=test" value={filter.value} spellcheck={false}
            onChange={(event) => go(clustersAt({ labels: event.target.value.trim(), from: "" }))} /></label>
        </header>
        {map.rows.length > 0 ? <Map map={map} /> : <p class="empty">{filter.value ? "No cluster has these labels." : "There are no clusters yet: kubectl strata clusters add"}</p>}
        <Pages map={map} />
        <p class="legend">{Object.entries(signs).map(([state, sign]) => <span key={state}><b class={"cell " + state}>{sign}</b> {words[state]}</span>)}</p>
      </section>
      <Hosts /><Claims />
    </>
  );
}

function Map({ map }) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Map of clusters">
      <table class="map">
        <thead>
          <tr><th scope="col">Cluster</th><th scope="col">Ready</th><th scope="col">Credentials</th>{map.columns.map((column) => <th key={column} scope="col" class="column"><span>{column}</span></th>)}</tr>
        </thead>
        <tbody>{map.rows.map((name) => <Row key={name} name={name} columns={map.columns} />)}</tbody>
      </table>
      {map.moreColumns > 0 && <p class="left">and {map.moreColumns} more layers that fewer clusters have</p>}
    </div>
  );
}

function Row({ name, columns }) {
  const row = part("row/" + name).value;
  if (!row) return null;
  return (
    <tr>
      <th scope="row"><Icon state={row.fares} said /> {name ? <a href={clusterPath(name)}>{name}</a> : "this cluster"} {row.kubernetes && <span class="dim">{row.kubernetes}</span>}</th>
      <td class="ready" title={row.message}>{row.ready ? row.deployed + "/" + row.layers : row.reason}{row.seen && <span class="dim"> seen {moment(row.seen)}</span>}</td>
      <td class={row.ending ? "until" : "dim"}>{row.expires && <>until <time dateTime={row.expires}>{moment(row.expires)}</time></>}</td>
      {row.cells.map((cell, i) => <td key={columns[i]}>{cell && <Cell cell={cell} at={name} />}</td>)}
    </tr>
  );
}

function Cell({ cell, at }) {
  const text = `${cell.layer}${at && " on " + at}: ${cell.state} ${cell.version ?? ""}${cell.more ? `, and ${cell.more} more` : ""}`;
  return <a class={"cell " + cell.fares + (opened.value === cell.layer ? " open" : "")} href={pathOf(cell.layer)} aria-label={text} title={text} data-layer={cell.layer}>{signs[cell.fares]}</a>;
}

function Pages({ map }) {
  const shown = map.rows.length;
  if (shown === map.total) return null;
  return (
    <p class="pages">
      {map.from > 0 && <a href={clustersAt({ from: Math.max(0, map.from - shown) })}>the {Math.min(shown, map.from)} before</a>}
      <span>{map.from + 1} to {map.from + shown} of {map.total}, the worst first</span>
      {map.from + shown < map.total && <a href={clustersAt({ from: map.from + shown })}>the next {Math.min(shown, map.total - map.from - shown)}</a>}
    </p>
  );
}

function Hosts() {
  const hosts = part("hosts").value;
  if (!hosts) return null;
  return (
    <section class="group" aria-labelledby="hosts-title">
      <h2 id="hosts-title">Clusters made of hosts</h2>
      <ul class="list">
        {hosts.items.map((at) => (
          <li key={at.name}>
            <Icon state={at.ready ? "Well" : "Failed"} said /> <b>{at.name}</b> <span class="dim">{at.version}</span>
            {at.healthy && <span>{at.healthy} hosts healthy</span>}{at.etcd && <span>etcd {at.etcd}</span>}
            {at.ends && <span class="dim">certificates until <time dateTime={at.ends}>{moment(at.ends)}</time></span>}
            {!at.ready && <span class="reason">{at.reason}</span>}
            {!at.ready && at.message && <p class="dim">{at.message}</p>}
            {at.bad.map((host) => <p key={host.name} class="dim"><Icon state="Waiting" /> {host.name} ({host.role}) is {host.class}{host.note && ": " + host.note}</p>)}
          </li>
        ))}
      </ul>
      {hosts.more > 0 && <p class="left">and {hosts.more} more</p>}
    </section>
  );
}

function Claims() {
  const claims = part("claims").value;
  if (!claims) return null;
  return (
    <section class="group" aria-labelledby="claims-title">
      <h2 id="claims-title">Claims of capabilities</h2>
      <ul class="list">
        {claims.items.map((claim) => (
          <li key={claim.name}>
            <Icon state={claim.ready ? "Well" : "Waiting"} said /> <b>{claim.name}</b> <span>{claim.capability}</span>
            <span class="dim">{claim.provider ? "by " + claim.provider + " " + (claim.version ?? "") : "by nobody"}</span>
            {claim.layer && <a href={pathOf(claim.layer)}>{claim.layer}</a>}
            {!claim.ready && <span class="reason">{claim.reason}</span>}
            {!claim.ready && claim.message && <p class="dim">{claim.message}</p>}
          </li>
        ))}
      </ul>
      {claims.more > 0 && <p class="left">and {claims.more} more: kubectl strata capability claims</p>}
    </section>
  );
}
