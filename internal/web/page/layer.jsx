// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// One layer: why it is not deployed, and what it is made of.

import { Act } from "./acts.jsx";
import { Happened } from "./happened.jsx";
import { Icon } from "./icons.jsx";
import { Commands, Panel } from "./panel.jsx";
import { opened, pathOf, previewPath } from "./state.js";
import { part } from "./stream.js";
import { moment } from "./text.js";

const layer = part("layer");

const fares = (state) => ({ Ready: "Well", Open: "Well", Deployed: "Well", NotRead: "Unknown", Unseen: "Unknown", Closed: "Waiting", InProgress: "Moving", Applying: "Moving", Missing: "Failed" })[state] ?? "Failed";

/** Layer is the panel of the layer that is open. */
export function Layer() {
  const name = opened.value;
  if (!name) return null;
  const shown = layer.value?.name === name ? layer.value : null;
  return (
    <Panel name={name}>
      {!shown && <p class="dim">Reads …</p>}
      {shown?.missing && <Missing layer={shown} />}
      {shown && !shown.missing && <Details layer={shown} />}
    </Panel>
  );
}

function Missing({ layer }) {
  return (
    <div class="empty">
      <p>There is no layer {layer.name}.</p>
      {layer.near?.length > 0 && <p>Did you mean {layer.near.map((name) => <a key={name} href={pathOf(name)}>{name}</a>)}?</p>}
    </div>
  );
}

function Details({ layer }) {
  const tree = layer.tree;
  return (
    <>
      <p class="facts">
        <span><Icon state={layer.fares} /> {layer.why.state}</span>
        <span>version {tree.version}</span><span>{tree.ready} ready</span>
        {tree.cluster && <span>on {tree.cluster}</span>}
      </p>
      {layer.acts?.length > 0 && <p class="choices">{layer.acts.filter((act) => act !== "rollback").map((act) => <Act key={act} act={act} more={{ layer: layer.name }} />)}</p>}
      <Why why={layer.why} />
      <h3>What it is made of</h3>
      <Tree layer={layer} />
      {layer.left && <p class="left">and {layer.left.join(", ")} more</p>}
      <p><a href={previewPath("drift", layer.name)}>What differs now</a> · <a href={previewPath("sources", layer.name)}>What its source would change now</a></p>
      <Happened happened={layer.happened} back={layer.acts?.includes("rollback") && layer.name} />
      <h3>On a terminal</h3>
      <Commands all={layer.commands} />
    </>
  );
}

/** Why shows the chain of causes, from the layer down to its root. */
function Why({ why }) {
  const well = why.state === "Deployed" && !why.blocked;
  return (
    <section aria-labelledby="why-title">
      <h3 id="why-title">{well ? "It is deployed" : "Why it is not deployed"}</h3>
      {!well && (
        <ol class="chain">
          {why.chain.map((link, i) => (
            <li key={i} class={i === why.chain.length - 1 ? "end" : undefined}>
              <span class="kind">{link.kind}</span>{" "}
              {link.kind === "AddonsLayer" ? <a href={pathOf(link.name)}>{link.name}</a> : <b>{[link.namespace, link.name].filter(Boolean).join("/")}</b>}
              {link.cluster && <span class="on"> on {link.cluster}</span>}
              {link.reason && <span class="reason">{link.reason}</span>}
              {link.message && <p>{link.message}</p>}
              <p class="dim">
                {link.since && <>since <time dateTime={link.since}>{moment(link.since)}</time> </>}
                {link.count > 1 && <>{link.count} events </>}
                {link.until && <span class="until">until <time dateTime={link.until}>{moment(link.until)}</time></span>}
              </p>
            </li>
          ))}
        </ol>
      )}
      {why.notes.map((note) => <p key={note} class="note">{note}</p>)}
      {why.affects.layers.length > 0 && <p class="dim">{why.affects.layers.length === 1 ? "1 layer relies" : why.affects.layers.length + " layers rely"} on {why.root}: {why.affects.layers.slice(0, 5).join(", ")}{why.affects.layers.length > 5 && ", …"}</p>}
      {why.try.length > 0 && (<><h4>Try</h4><Commands all={why.try} /></>)}
    </section>
  );
}

function Tree({ layer }) {
  const tree = layer.tree;
  return (
    <ul class="tree">
      {tree.gates.map((gate, i) => <Row key={"gate" + i} kind="gate" state={gate.state} name={gate.wants} said={gate.seen} until={gate.until} />)}
      {tree.claims.map((claim) => <Row key={"claim" + claim.namespace + claim.name} kind="CapabilityClaim" state={claim.state} name={claim.namespace + "/" + claim.name} said={claim.message} />)}
      {tree.releases.map((release) => {
        const name = release.namespace + "/" + release.name;
        return (
          <Row key={name} kind="HelmRelease" state={release.state} name={name} said={[release.version, release.cluster && "on " + release.cluster, release.message].filter(Boolean).join(" · ")}>
            {release.objects.length > 0 && (
              <details open={release.objects.some((object) => object.state && fares(object.state) !== "Well" && fares(object.state) !== "Unknown")}>
                <summary>{release.objects.length + (layer.more?.[name] ?? 0)} objects</summary>
                <ul>
                  {release.objects.map((object) => (
                    <li key={object.kind + object.namespace + object.name}>
                      {object.state && <Icon state={fares(object.state)} />} <span class="kind">{object.kind}</span> {[object.namespace, object.name].filter(Boolean).join("/")}
                      {object.state && object.state !== "Ready" && <> <span class="word">{object.state}</span> {object.message && <span class="dim">{object.message}</span>}</>}
                    </li>
                  ))}
                  {layer.more?.[name] > 0 && <li class="left">and {layer.more[name]} more</li>}
                </ul>
              </details>
            )}
          </Row>
        );
      })}
      {tree.objects.map((object) => <Row key={object.kind + object.namespace + object.name} kind={object.kind} state={object.state} name={[object.namespace, object.name].filter(Boolean).join("/")} said={object.message} />)}
    </ul>
  );
}

function Row({ kind, state, name, said, until, children }) {
  return (
    <li>
      <Icon state={fares(state)} /> <span class="kind">{kind}</span> <b>{name}</b> <span class="word">{state}</span>
      {said && <p class="dim">{said}</p>}
      {until && <p class="until">until <time dateTime={until}>{moment(until)}</time></p>}
      {children}
    </li>
  );
}
