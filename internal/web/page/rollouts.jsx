// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Platforms and how far their roll-outs have come; one alone with its clusters, and with
// what another version would do.

import { Act } from "./acts.jsx";
import { Happened } from "./happened.jsx";
import { Icon } from "./icons.jsx";
import { Commands } from "./panel.jsx";
import { clusterPath, go, pathOf, planned, planPath, platform, platformPath, previewPath } from "./state.js";
import { part } from "./stream.js";
import { moment } from "./text.js";

const all = part("platforms");
const alone = part("rollout");
const plan = part("rolloutplan");

/** Rollouts shows all Platforms, or the one that is named. */
export function Rollouts() {
  if (platform.value) return <Alone name={platform.value} />;
  const list = all.value;
  if (!list) return null;
  return (
    <section aria-label="Platforms" class="cards">
      {list.items.map((name) => <Brief key={name} name={name} />)}
      {list.items.length === 0 && (
        <div class="group empty"><h2>There are no Platforms</h2><p>A Platform names a bundle of layers, the clusters that have it, and how these are moved to another version.</p></div>
      )}
      {list.more > 0 && <p class="left">and {list.more} more, the worst first: kubectl strata platform list</p>}
    </section>
  );
}

function Brief({ name }) {
  const at = part("platform/" + name).value;
  if (!at) return null;
  const stages = at.stages.map((stage) => ({
    ...stage, done: stage.updated, failed: (stage.failed ?? 0) + (stage.unhealthy ?? 0) + (stage.stuck ?? 0),
    since: stage.waitingSince,
  }));
  return (
    <article class="group" aria-labelledby={"platform-" + name}>
      <header class="bar"><h2 id={"platform-" + name}><Icon state={at.fares} said /> <a href={platformPath(name)}>{name}</a></h2><Facts at={at} /></header>
      <p class="says">{at.why}</p>
      <Stages stages={stages} />
    </article>
  );
}

function Facts({ at }) {
  const count = at.counts;
  return (
    <p class="facts">
      <span>{at.family} {at.version}</span>
      {at.available && <span class="dim">{at.available} is there</span>}
      {at.held && <span class="until">held</span>}
      <span>{count.ready} of {count.total} clusters up to date</span>
      {count.failed > 0 && <span class="bad">{count.failed} failed</span>}
      {count.unreachable > 0 && <span class="bad">{count.unreachable} away</span>}
      {at.next && <span class="dim">next change <time dateTime={at.next}>{moment(at.next)}</time></span>}
    </p>
  );
}

const fares = { Done: "Well", Active: "Moving", Halted: "Failed", Waiting: "Waiting" };

/** Stages are shown in their order, each with how many of its clusters are where. */
function Stages({ stages, approves }) {
  if (stages.length === 0) return null;
  return <ol class="stages">{stages.map((stage) => <Stage key={stage.name} stage={stage} approves={approves} />)}</ol>;
}

function Stage({ stage, approves }) {
  const counts = [["Well", "done", stage.done], ["Moving", "under way", stage.moving], ["Failed", "failed", stage.failed], ["Unknown", "away", stage.unreachable], ["Waiting", "waiting", stage.waiting]]
    .filter(([, , count]) => count > 0);
  const asks = stage.approval && stage.state === "Active";
  return (
    <li class={"stage" + (stage.state === "Active" ? " now" : "")}>
      <b><Icon state={asks ? "Waiting" : fares[stage.state]} /> {stage.name}</b> <span class="dim">{stage.state}</span>
      <div class="parts" aria-hidden="true">{counts.map(([state, , count]) => <span key={state} class={state} style={{ flexGrow: count }} />)}</div>
      <p>{counts.map(([, word, count]) => count + " " + word).join(", ") || "no clusters"}{stage.total > 0 && " of " + stage.total}</p>
      {stage.soakUntil && <p class="until">soaks until <time dateTime={stage.soakUntil}>{moment(stage.soakUntil)}</time></p>}
      {asks && <p class="until">needs approval: {stage.approval}{stage.since && <>, since <time dateTime={stage.since}>{moment(stage.since)}</time></>}</p>}
      {approves && stage.approval && <Act act="approve" more={{ platform: approves, stage: stage.name, approval: stage.approval }} />}
      {stage.waitsFor && stage.state !== "Active" && <p class="dim">waits for {stage.waitsFor}</p>}
    </li>
  );
}

function Alone({ name }) {
  const at = alone.value?.name === name ? alone.value : null;
  if (!at) return <p class="loading">Reads …</p>;
  if (at.missing) {
    return (
      <div class="group empty">
        <h2>There is no Platform {name}</h2>
        {at.near?.length > 0 && <p>Did you mean {at.near.map((near) => <a key={near} href={platformPath(near)}>{near}</a>)}?</p>}
        <p><a href="/platforms">All Platforms</a></p>
      </div>
    );
  }
  const stands = at.standing;
  return (
    <>
      <article class="group" aria-labelledby="platform-title">
        <header class="bar">
          <h2 id="platform-title"><Icon state={part("platform/" + name).value?.fares} said /> {name}</h2>
          <Facts at={stands} /><a class="other" href="/platforms">all Platforms</a>
        </header>
        <p class="says">{stands.why}</p>
        <Stages stages={stands.stages} approves={at.approve && name} />
        {at.lacking?.map((text) => <p key={text} class="says note">not read: {text}</p>)}
      </article>
      <Plan at={at} />
      <section class="group" aria-labelledby="clusters-title">
        <header class="bar"><h2 id="clusters-title">Its clusters</h2><p class="facts">{at.states.map((each) => <span key={each.state}><Icon state={each.fares} /> {each.count} {each.state}</span>)}</p></header>
        <ClusterTable clusters={stands.clusters} />
        {at.more > 0 && <p class="left">and {at.more} more, the worst first</p>}
      </section>
      {stands.lock.length > 0 && <Picked title="What was picked" lock={stands.lock} />}
      <div class="group padded"><Happened happened={at.happened} /><h3>On a terminal</h3><Commands all={at.commands} /></div>
    </>
  );
}

function Picked({ title, lock }) {
  return (
    <section class="group" aria-label={title}>
      <h2>{title}</h2>
      <ul class="list">{lock.map((app) => <li key={app.name}><b>{app.name}</b> <span>{app.version}</span> <span class="dim">{app.why}</span></li>)}</ul>
    </section>
  );
}

const clusterFares = { Done: "Well", Begins: "Moving", Moving: "Moving", Waiting: "Waiting" };

function ClusterTable({ clusters }) {
  if (clusters.length === 0) return <p class="says dim">No cluster is meant.</p>;
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Clusters of the Platform">
      <table class="rows">
        <thead><tr>{["Cluster", "Stage", "State", "Versions", "Layers", "Why"].map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
        <tbody>
          {clusters.map((one) => (
            <tr key={one.name}>
              <th scope="row">{one.name.includes("/") ? <a href={clusterPath(one.name)}>{one.name}</a> : one.name}</th>
              <td>{one.stage}</td>
              <td class="word"><Icon state={clusterFares[one.state] ?? "Failed"} /> {one.state}</td>
              <td>{[one.version || "(none)", ...one.hops].join(" → ")}</td>
              <td>{one.layersDeployed}/{one.layers}</td>
              <td class="wide">{one.why}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Plan says what would be done, as everything is or with another version. */
function Plan({ at }) {
  const of = planned.value;
  const shown = plan.value?.of === of ? plan.value : null;
  return (
    <section class="group" aria-labelledby="plan-title">
      <header class="bar">
        <h2 id="plan-title">What would be done</h2>
        <label>with version <select value={of} onChange={(event) => go(planPath(event.target.value))}>
          <option value="">not asked</option><option value="now">as it is now</option>
          {at.versions.map((each) => <option key={each.version} value={each.version}>{each.version}{each.note && " (" + each.note + ")"}</option>)}
          {of && of !== "now" && !at.versions.some((each) => each.version === of) && <option value={of}>{of}</option>}
        </select></label>
      </header>
      {of && !shown && <p class="says dim">Reads …</p>}
      {!of && <p class="says dim">Choose a version to see which clusters would go to it, and what would be written and deleted. Nothing is done.</p>}
      {shown?.error && <p class="says bad">{shown.error}</p>}
      {shown && !shown.error && <Planned name={at.name} plan={shown} />}
    </section>
  );
}

const verbs = { create: "+", change: "~", delete: "−" };

function Planned({ name, plan: made }) {
  const p = made.plan;
  return (
    <>
      <p class="says"><b>{made.writes + made.deletes === 0 ? "Nothing would be done now." : `${made.writes === 1 ? "1 layer" : made.writes + " layers"} would be written now, ${made.deletes} deleted.`}</b> {p.why}</p>
      {p.next && <p class="says dim">It may differ from <time dateTime={p.next}>{moment(p.next)}</time> on.</p>}
      {p.missing.map((text) => <p key={text} class="says note">not read: {text}</p>)}
      <Stages stages={p.stages} />
      {p.lock.length > 0 && <Picked title="What would be picked" lock={p.lock} />}
      {p.layers.length > 0 && (
        <div class="scroll" tabIndex={0} role="group" aria-label="Layers in the order in which they are written and deleted">
          <table class="rows">
            <thead><tr>{["Order", "", "Layer", "Cluster", "Version", "After", "Note"].map((name) => <th key={name} scope="col">{name || <span class="said">Action</span>}</th>)}</tr></thead>
            <tbody>
              {p.layers.map((layer, i) => (
                <tr key={layer.name} class={layer.verb}>
                  <td>{i + 1}</td><td><b aria-hidden="true">{verbs[layer.verb]}</b> {layer.verb}</td>
                  <th scope="row">{layer.verb === "create" ? layer.name : <a href={pathOf(layer.name)}>{layer.name}</a>}</th><td>{layer.cluster}</td>
                  <td>{[layer.from, layer.to].filter((text, j, both) => text && text !== both[j - 1]).join(" → ")}</td>
                  <td>{layer.after.join(", ")}</td><td class="wide">{[layer.fields.join(", "), layer.waitsFor].filter(Boolean).join("; ")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {made.more > 0 && <p class="left">and {made.more} more</p>}
      <ClusterTable clusters={p.clusters} />
      <div class="padded"><p><a href={previewPath(`platform:${name}${made.of === "now" ? "" : "@" + made.of}`)}>What that changes, object by object</a></p><Commands all={[made.command]} /></div>
    </>
  );
}
