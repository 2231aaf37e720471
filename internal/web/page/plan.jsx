// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// What a revision, a version of a bundle or an earlier deployment would change, object by
// object, and what now differs from what is wanted.

import { Icon } from "./icons.jsx";
import { Commands } from "./panel.jsx";
import { again, go, of, only, pathOf, previewPath } from "./state.js";
import { part } from "./stream.js";
import { moment } from "./text.js";

const preview = part("preview");
const choices = part("choices");

/** Plan is the view of plans and of what differs. */
export function Plan() {
  const made = preview.value;
  const shown = of.value && made?.of === of.value && (made.only ?? "") === only.value && (made.again ?? "") === again.value ? made : null;
  return (
    <section class="group" aria-labelledby="preview-title">
      <header class="bar"><h2 id="preview-title">Plan and compare</h2><Chooser /></header>
      {!of.value && <Nothing />}
      {of.value && !shown && <p class="says dim">Reads …</p>}
      {shown && !shown.done && <p class="says" role="status"><Icon state="Moving" /> {shown.says} …</p>}
      {shown?.error && <p class="says bad"><Icon state="Failed" said /> {shown.error}</p>}
      {shown?.done && !shown.error && <Made made={shown} />}
      {shown && <div class="padded"><Commands all={[shown.command]} /></div>}
    </section>
  );
}

function Nothing() {
  return (
    <div class="empty">
      <p>Choose a revision to see what it would do to this cluster before it is merged, or compare what is there with what is wanted.</p>
      <p>Nothing is changed: the controller's own rules run on what was read.</p>
    </div>
  );
}

const fixed = { sources: "what the sources hold now", drift: "what differs now", folder: "the files of the folder as they are" };

/** named says in words what is previewed. */
function named(text) {
  const [kind, rest] = [text.split(":", 1)[0], text.slice(text.indexOf(":") + 1)];
  return fixed[kind] ?? { git: rest, platform: "platform " + rest, rollback: "going back: " + rest }[kind] ?? text;
}

function Chooser() {
  const offered = choices.value ?? { revisions: [] };
  const known = ["", "sources", "drift", ...(offered.folder ? ["folder"] : []), ...offered.revisions.map((each) => "git:" + each.name)];
  const chosen = of.value;
  return (
    <form class="chooser" onSubmit={(event) => { event.preventDefault(); const text = event.target.elements.revision.value.trim(); if (text) go(previewPath("git:" + text)); }}>
      <label>of <select value={chosen} onChange={(event) => go(previewPath(event.target.value, only.value))}>
        <option value="">choose …</option>
        <option value="sources">{fixed.sources}</option><option value="drift">{fixed.drift}</option>
        {offered.folder && <option value="folder">{fixed.folder}</option>}
        {offered.folder && <optgroup label={offered.folder}>{offered.revisions.map((each) => <option key={each.name} value={"git:" + each.name}>{each.name}: {each.commit.slice(0, 8)} {each.title}</option>)}</optgroup>}
        {!known.includes(chosen) && <option value={chosen}>{named(chosen)}</option>}
      </select></label>
      {offered.folder && <label>or commit <input type="text" name="revision" size={12} spellcheck={false} /></label>}
      {only.value && <span>layer {only.value} <a href={previewPath(chosen)}>all layers</a></span>}
      {chosen && <button type="button" onClick={() => go(previewPath(chosen, only.value, Date.now().toString(36)))}>Make it again</button>}
      {offered.error && <span class="bad">{offered.error}</span>}
    </form>
  );
}

/** Made shows what a preview has come to. */
export function Made({ made }) {
  return (
    <>
      <p class="says"><b>{made.verdict}</b></p>
      <p class="says dim">{made.heading}, made at <time dateTime={made.at}>{moment(made.at)}</time></p>
      {made.blocked?.length > 0 && (
        <ul class="list">
          {made.blocked.map((layer) => (
            <li key={layer.layer}>
              <Icon state={layer.verdict === "refuse" || layer.verdict === "fail" ? "Failed" : "Waiting"} />
              <b><a href={pathOf(layer.layer)}>{layer.layer}</a></b> {layer.version} <span class="word">{layer.verdict}</span> <span class="reason">{layer.reason}</span>
              {layer.until && <span class="until">until <time dateTime={layer.until}>{moment(layer.until)}</time></span>}
              {layer.message && <p class="dim">{layer.message}</p>}
            </li>
          ))}
        </ul>
      )}
      {made.actions && <Actions all={made.actions} />}
      {made.layers?.map((layer) => <Drift key={layer.layer} layer={layer} />)}
      {made.left && <p class="left">and {made.left.join(", ")} more</p>}
      {made.notes?.map((note) => <p key={note} class="says note">{note}</p>)}
    </>
  );
}

const signs = { install: "+", create: "+", adopt: "+", prune: "−", orphan: "−", release: "−", suspend: "!", supersede: "!", downgrade: "!", reinstall: "!" };
const colours = { "+": "plus", "−": "minus", "-": "minus", "!": "warn", "~": "tilde" };

function Actions({ all }) {
  return (
    <ol class="actions">
      {all.map((action, i) => {
        const sign = signs[action.action] ?? "~";
        return (
          <li key={i}>
            <p>
              <span class="wave-number">wave {action.wave}</span> <b class={"verb " + colours[sign]}>{sign} {action.action}</b> <b>{action.object}</b>
              {action.charts && <span> {action.charts}</span>} <span class="dim">layer <a href={pathOf(action.layer)}>{action.layer}</a> {action.version}{action.file && ", " + action.file}</span>
            </p>
            {action.remark && <p class="dim">{action.remark}</p>}
            <Lines lines={action.lines} />
          </li>
        );
      })}
    </ol>
  );
}

function Drift({ layer }) {
  return (
    <section class="drift" aria-label={"layer " + layer.layer}>
      <p><Icon state={layer.objects > 0 ? "Waiting" : "Unknown"} /> <b><a href={pathOf(layer.layer)}>{layer.layer}</a></b> <span class="word">{layer.objects === 1 ? "1 object differs" : layer.objects > 1 ? layer.objects + " objects differ" : "nothing differs of what could be compared"}</span></p>
      <Lines lines={layer.lines} />
      {layer.beside?.map((text) => <p key={text} class="dim">no drift: {text}</p>)}
      {layer.unknown?.map((text) => <p key={text} class="dim">not compared: {text}</p>)}
    </section>
  );
}

/** Lines shows changes as they are written: + comes, − goes, ~ changes. */
function Lines({ lines }) {
  if (!lines) return null;
  return (
    <pre class="diff" tabIndex={0}>
      {lines.map((line, i) => <span key={i} class={colours[line.sign]}>{(line.sign === "-" ? "−" : line.sign || " ") + " " + line.text + "\n"}</span>)}
    </pre>
  );
}
