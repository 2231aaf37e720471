// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// What may be done: each act is confirmed in a dialog that says what it does. What it has
// done is seen in the stream, as whatever else changes.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Dialog } from "./dialog.jsx";
import { Commands } from "./panel.jsx";
import { Made } from "./plan.jsx";
import { acting, asking, said } from "./state.js";
import { part } from "./stream.js";

const titles = { hold: "Hold", resume: "Resume", reconcile: "Look at it now", rollback: "Go back", approve: "Approve" };

/** intends is what the act that is asked about does, and failed why it cannot be done. */
const intends = signal(null);
const failed = signal("");
const busy = signal(false);
let asked = 0;

/** Act is a button that asks about an act. */
export function Act({ act, name, more }) {
  return <button type="button" onClick={() => open({ act, ...more })}>{name ?? titles[act]}</button>;
}

function open(act) {
  intends.value = null;
  failed.value = "";
  // What it changes is made anew, however often the same was asked about.
  asking.value = { act, preview: "", again: Date.now().toString(36) };
}

async function send(act, dry) {
  const answer = await fetch("/act", {
    method: "POST", headers: { "Content-Type": "application/json", "X-Strata-Act": acting.value },
    body: JSON.stringify(dry ? { ...act, dry } : act),
  });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

/** look asks what the act would do, as it is filled in by now. */
async function look(act) {
  const mine = ++asked;
  try {
    const found = await send(act, true);
    if (mine !== asked || !asking.value) return; // It was asked otherwise, or closed.
    intends.value = found;
    failed.value = "";
    asking.value = { ...asking.value, act, preview: found.preview ?? "" };
  } catch (error) {
    if (mine === asked) [intends.value, failed.value] = [null, error.message];
  }
}

function filled(form, act) {
  const value = (name) => form.elements[name]?.value.trim() || undefined, checked = (name) => form.elements[name]?.checked || undefined;
  return { ...act, reason: value("reason"), until: value("until"), releases: checked("releases"), source: checked("source"), to: value("to") ?? act.to };
}

/** Asking is the dialog of the act that is asked about. */
export const Asking = () => asking.value && <Asked {...asking.value} />;

function Asked({ act, preview, again }) {
  const form = useRef(null);
  useEffect(() => { look(filled(form.current, act)); }, []);
  const close = () => { asked++; asking.value = null; };
  const change = () => look(filled(form.current, act));
  const confirm = async (event) => {
    event.preventDefault();
    busy.value = true;
    const open = () => asking.value?.again === again;
    try {
      const done = await send(filled(form.current, act), false);
      said.value = done.done;
      if (open()) close();
    } catch (error) {
      (open() ? failed : said).value = error.message;
    }
    busy.value = false;
  };
  const made = part("preview").value;
  const shown = preview && made?.of === preview && made.again === again ? made : null;
  return (
    <Dialog class="act" aria-labelledby="act-title" onClose={close}>
      <form ref={form} onSubmit={confirm} onInput={change}>
        <h2 id="act-title">{titles[act.act]}: {act.layer ?? `stage ${act.stage} of platform ${act.platform}`}</h2>
        <Fields act={act} />
        {intends.value?.says.map((text) => <p key={text}>{text}</p>)}
        {failed.value && <p class="until" role="status">{failed.value}</p>}
        {preview && <section class="group" aria-label="What it changes">{shown?.error ? <p class="says bad">{shown.error}</p> : shown?.done ? <Made made={shown} /> : <p class="says dim">{shown?.says ?? "reads"} …</p>}</section>}
        {intends.value && <Commands all={[intends.value.command]} />}
        <p class="choices">
          <button type="submit" class="go" disabled={!intends.value || busy.value}>{titles[act.act]}</button>
          <button type="button" onClick={close}>Cancel</button>
        </p>
      </form>
    </Dialog>
  );
}

function Fields({ act }) {
  if (act.act === "hold") {
    return (
      <>
        <label>Why <input type="text" name="reason" autoFocus maxLength={1000} placeholder="driver freeze" /></label>
        <label>Until <input type="text" name="until" placeholder="4h, or 2026-12-07T08:00:00Z; empty until it is resumed" spellcheck={false} /></label>
        <label class="check"><input type="checkbox" name="releases" /> suspend its HelmReleases, too</label>
      </>
    );
  }
  if (act.act === "approve") return <label>Why <input type="text" name="reason" autoFocus maxLength={1000} placeholder="canary was well over night" /></label>;
  if (act.act === "reconcile") return <label class="check"><input type="checkbox" name="source" /> fetch its source, too</label>;
  return null;
}
