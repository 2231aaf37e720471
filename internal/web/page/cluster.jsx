// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// One cluster: whether it answers, what is on it, and what happened.

import { Happened } from "./happened.jsx";
import { Icon } from "./icons.jsx";
import { Commands, Panel } from "./panel.jsx";
import { cluster, clusterPath, pathOf } from "./state.js";
import { part } from "./stream.js";
import { moment } from "./text.js";

const shownNow = part("opened");

/** Cluster is the panel of the cluster that is open. */
export function Cluster() {
  const name = cluster.value;
  if (!name) return null;
  const shown = shownNow.value?.name === name ? shownNow.value : null;
  return (
    <Panel name={name}>
      {!shown && <p class="dim">Reads …</p>}
      {shown?.missing && (
        <div class="empty">
          <p>There is no cluster {name}.</p>
          {shown.near?.length > 0 && <p>Did you mean {shown.near.map((near) => <a key={near} href={clusterPath(near)}>{near}</a>)}?</p>}
        </div>
      )}
      {shown && !shown.missing && <Details of={shown} />}
    </Panel>
  );
}

function Details({ of }) {
  return (
    <>
      <p class="facts">
        <span><Icon state={of.ready ? "Well" : "Failed"} /> {of.ready ? "answers" : of.reason || "not known yet"}</span>
        {of.kubernetes && <span>Kubernetes {of.kubernetes}</span>}
        {of.seen && <span>seen <time dateTime={of.seen}>{moment(of.seen)}</time></span>}
        {of.expires && <span>credentials until <time dateTime={of.expires}>{moment(of.expires)}</time></span>}
      </p>
      {!of.ready && of.message && <p>{of.message}</p>}
      {of.labels && <p class="dim">{Object.entries(of.labels).map(([key, value]) => key + "=" + value).join(", ")}</p>}
      <h3>Layers</h3>
      {of.layers.items.length === 0 && <p class="dim">No layer is on it.</p>}
      <ul class="tree">
        {of.layers.items.map((layer) => (
          <li key={layer.name}><Icon state={layer.fares} /> <a href={pathOf(layer.name)}>{layer.name}</a> <span class="word">{layer.state} {layer.version}</span></li>
        ))}
      </ul>
      {of.layers.more > 0 && <p class="left">and {of.layers.more} more</p>}
      <Happened happened={of.happened} />
      <h3>On a terminal</h3>
      <Commands all={of.commands} />
    </>
  );
}
