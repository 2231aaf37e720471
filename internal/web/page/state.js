// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// What the tab itself decides: where it is, and how it looks.

import { computed, signal } from "@preact/signals";

/** address is the path of the page. */
export const address = signal(location.pathname);

/** opened is the layer that is open; empty for none. */
export const opened = computed(() =>
  address.value.startsWith("/layers/") ? decodeURIComponent(address.value.slice("/layers/".length)) : "");

/** palette tells whether the palette is open, and help whether the list of keys is. */
export const palette = signal(false);
export const help = signal(false);

/** said is what a screen reader is told last. */
export const said = signal("");

/** theme is light, dark, or empty for that of the system. */
export const theme = signal(localStorage.getItem("theme") ?? "");

/** pathOf returns where a layer is shown. */
export const pathOf = (layer) => "/layers/" + encodeURIComponent(layer);

/** go shows another path. */
export function go(path) {
  if (path === address.value) return;
  history.pushState(null, "", path);
  address.value = path;
}

window.addEventListener("popstate", () => { address.value = location.pathname; });

/** follow has links of the page be followed without a load of it. */
export function follow(event) {
  const at = event.target.closest?.("a[href^='/']");
  if (!at || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(at.getAttribute("href"));
}

/** turn goes to the next theme. */
export function turn() {
  const next = { "": "dark", dark: "light", light: "" }[theme.value];
  theme.value = next;
  if (next) localStorage.setItem("theme", next);
  else localStorage.removeItem("theme");
}

/** copy puts a command onto the clipboard. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    said.value = "copied: " + text;
  } catch {
    said.value = "the browser does not let the page copy: " + text;
  }
}
