// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// What the tab itself decides: where it is, and how it looks.

import { computed, signal } from "@preact/signals";

const here = () => location.pathname + location.search;

/** address is the path of the page, with what is behind it. */
export const address = signal(here());

const at = computed(() => new URL(address.value, location.origin));

/** view is what is shown beside a layer: "layers" or "clusters". */
export const view = computed(() => (at.value.pathname === "/clusters" ? "clusters" : "layers"));

/** filter chooses clusters by their labels, and from is the first row of them. */
export const filter = computed(() => at.value.searchParams.get("labels") ?? "");
export const from = computed(() => Number(at.value.searchParams.get("from") ?? 0) || 0);

/** opened is the layer that is open; empty for none. */
export const opened = computed(() => {
  const path = at.value.pathname;
  return path.startsWith("/layers/") ? nameIn(path.slice("/layers/".length)) : at.value.searchParams.get("layer") ?? "";
});

function nameIn(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // Somebody wrote it by hand.
  }
}

/** palette tells whether the palette is open, and help whether the list of keys is. */
export const palette = signal(false);
export const help = signal(false);

/** said is what a screen reader is told last. */
export const said = signal("");

/** theme is light, dark, or empty for that of the system. */
export const theme = signal(localStorage.getItem("theme") ?? "");

/** pathOf returns where a layer is shown: beside what is shown now. */
export const pathOf = (layer) => (view.value === "clusters" ? clustersAt({ layer }) : "/layers/" + encodeURIComponent(layer));

/** closed returns where the same is shown without a layer. */
export const closed = () => (view.value === "clusters" ? clustersAt({ layer: "" }) : "/");

/** clustersAt returns where clusters are shown, as now but for what is given. */
export function clustersAt(change) {
  const all = { labels: filter.value, from: from.value || "", layer: view.value === "clusters" ? opened.value : "", ...change };
  const search = new URLSearchParams(Object.entries(all).filter(([, value]) => value !== "" && value !== 0)).toString();
  return "/clusters" + (search && "?" + search);
}

/** go shows another path. */
export function go(path) {
  if (path === address.value) return;
  history.pushState(null, "", path);
  address.value = path;
}

window.addEventListener("popstate", () => { address.value = here(); });

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
