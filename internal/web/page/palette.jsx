// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// The palette finds layers by name and does what has a key. The server looks, so that the
// page need not hold all names.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Dialog } from "./dialog.jsx";
import { Icon } from "./icons.jsx";
import { commandOf } from "./command.js";
import { copy, go, help, opened, palette, pathOf, previewPath, turn } from "./state.js";

const typed = signal("");
const found = signal([]);
const at = signal(0);
let asked = 0;

const acts = () => [
  { name: "Show the layers", run: () => go("/") },
  { name: "Show the clusters", run: () => go("/clusters") },
  { name: "Show the roll-outs", run: () => go("/platforms") },
  { name: "Plan a revision", run: () => go("/plan") },
  { name: "Show what the sources would change now", run: () => go(previewPath("sources", opened.value)) },
  { name: "Show what differs now from what is wanted", run: () => go(previewPath("drift", opened.value)) },
  { name: "Change between light and dark", run: turn },
  { name: "Show the keys", run: () => { help.value = true; } },
  { name: "Copy the command that shows this", run: () => copy(commandOf()) },
];

async function look(given) {
  // No name has a stroke: the key that opens the palette was pressed once more.
  const text = given.replaceAll("/", "");
  typed.value = text;
  at.value = 0;
  const mine = ++asked;
  try {
    const answer = await fetch("/search?q=" + encodeURIComponent(text));
    if (mine === asked && answer.ok) found.value = await answer.json();
  } catch {
    if (mine === asked) found.value = [];
  }
}

const choices = () => {
  const word = typed.value.toLowerCase();
  return [
    ...found.value.map((layer) => ({ name: layer.name, state: layer.fares, more: layer.cluster, run: () => go(pathOf(layer.name)) })),
    ...acts().filter((act) => act.name.toLowerCase().includes(word)),
  ];
};

/** Palette is a dialog over the page. */
export const Palette = () => palette.value && <Opened />;

function Opened() {
  useEffect(() => { look(""); }, []);
  const list = choices();
  const close = () => { palette.value = false; };
  const choose = (choice) => { close(); choice?.run(); };
  const key = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      at.value = (at.value + step + list.length) % Math.max(list.length, 1);
      event.preventDefault();
      document.getElementById("choice-" + at.value)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(list[at.value]);
    }
  };
  return (
    <Dialog class="palette" aria-label="Find a layer, or do something" onClose={close} onKeyDown={key}>
      <input type="text" role="combobox" aria-expanded="true" aria-controls="choices" aria-autocomplete="list" aria-activedescendant={list.length ? "choice-" + at.value : undefined}
        aria-label="Name of a layer, or what to do" placeholder="A layer, or what to do" value={typed.value} onInput={(event) => look(event.target.value)} autoFocus />
      <ul id="choices" role="listbox" aria-label="What was found">
        {list.map((choice, i) => (
          <li key={i} id={"choice-" + i} role="option" aria-selected={i === at.value} onClick={() => choose(choice)}>
            {choice.state && <Icon state={choice.state} said />}<span>{choice.name}</span>{choice.more && <span class="on">on {choice.more}</span>}
          </li>
        ))}
      </ul>
      {list.length === 0 && <p class="dim" role="status">Nothing has this name.</p>}
    </Dialog>
  );
}

/** Help lists the keys. */
export function Help() {
  const close = () => { help.value = false; };
  return help.value && (
    <Dialog class="keys" aria-labelledby="keys-title" onClose={close}>
      <h2 id="keys-title">Keys</h2>
      <dl>
        {[["/ or Ctrl-K", "find a layer, or do something"], ["arrows", "go from layer to layer"], ["Enter", "open a layer"], ["Esc", "close what is open"], ["1, 2, 3, 4", "the layers, the clusters, the roll-outs, plans"], ["c", "copy the command that shows this"], ["t", "light, dark, or as the system has it"], ["?", "this list"]].map(([key, what]) => (
          <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>
        ))}
      </dl>
      <button type="button" onClick={close}>Close</button>
    </Dialog>
  );
}
