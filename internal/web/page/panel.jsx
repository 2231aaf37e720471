// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// What stands beside a view: a layer, or a cluster.

import { useEffect, useRef } from "preact/hooks";
import { closed, copy, go } from "./state.js";

/** Panel has the name of what is open, and a button that closes it. */
export function Panel({ name, children }) {
  const heading = useRef(null);
  useEffect(() => { heading.current?.focus(); }, [name]);
  return (
    <aside class="panel" aria-labelledby="panel-title">
      <header>
        <h2 id="panel-title" tabIndex={-1} ref={heading}>{name}</h2>
        <button type="button" class="close" onClick={() => go(closed())} aria-label="Close">✕</button>
      </header>
      {children}
    </aside>
  );
}

/** Commands are what somebody may run on a terminal. */
export function Commands({ all }) {
  return (
    <ul class="commands">
      {all.map((text) => <li key={text}><code>{text}</code><button type="button" onClick={() => copy(text)} aria-label={"Copy " + text}>copy</button></li>)}
    </ul>
  );
}
