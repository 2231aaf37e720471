// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

import { Act } from "./acts.jsx";
import { Icon } from "./icons.jsx";
import { pathOf } from "./state.js";
import { moment } from "./text.js";

const results = { Deployed: "Well", RolledBack: "Waiting", Failed: "Failed" };

/** Happened is a time line: deployments and approvals, and events between them. back is the
 * layer that may go back to its deployments. */
export function Happened({ happened, back }) {
  return (
    <section aria-labelledby="happened-title">
      <h3 id="happened-title">What happened</h3>
      <ol class="line">
        {happened.items.map((each, i) => (
          <li key={i} class={each.id || each.approval ? "deployment" : each.warning ? "warning" : undefined}>
            <time class="dim" dateTime={each.at}>{moment(each.at)}</time>{" "}
            {each.id ? <Deployment of={each} /> : each.approval ? <Approval of={each} /> : <Event of={each} />}
            {each.message && <p>{each.message}</p>}
            {back && each.id && each.result === "Deployed" && <Act act="rollback" name="Go back to this" more={{ layer: back, to: each.id }} />}
          </li>
        ))}
      </ol>
      {happened.items.length === 0 && <p class="dim">Nothing is kept that happened to it.</p>}
      {(happened.unseen ?? []).map((note) => <p key={note} class="note">{note}</p>)}
    </section>
  );
}

function Deployment({ of }) {
  return (
    <>
      <Icon state={results[of.result]} /> <b>{of.result}</b> {of.layer && <><a href={pathOf(of.layer)}>{of.layer}</a> </>}{of.version}
      {" "}<span class="dim">{of.revision}{of.took && ", took " + of.took}, deployment {of.id}</span>
    </>
  );
}

function Approval({ of }) {
  return <><Icon state="Well" /> <b>Approved</b> {of.approval}{of.by && <span class="dim"> by {of.by}</span>}</>;
}

function Event({ of }) {
  return (
    <>
      {of.warning && <Icon state="Waiting" said />} <span class="kind">{of.object}</span> <span class="reason">{of.reason}</span>
      {of.count > 1 && <span class="dim"> {of.count} times</span>}
    </>
  );
}
