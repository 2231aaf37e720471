// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// What the tab itself decides: where it is, and how it looks.

import { computed, signal } from "@preact/signals";

/** The address that opens the page has what its server is asked with, once, and, behind what
 * is sent to the server, what acts are asked for with. Neither stays in the address, so that no
 * link has it, and no other port of this machine is told the second. */
function given() {
  const found = new URLSearchParams(location.hash.slice(1)).get("act");
  const url = new URL(location.href);
  if (found) localStorage.setItem("act", found);
  if (found || url.searchParams.has("token")) {
    url.searchParams.delete("token");
    url.hash = "";
    history.replaceState(null, "", url);
  }
  return localStorage.getItem("act") ?? "";
}

/** acting is what acts are asked for with; empty where the address did not have it. */
export const acting = signal(given());

const here = () => location.pathname + location.search;

/** address is the path of the page, with what is behind it. */
export const address = signal(here());

const at = computed(() => new URL(address.value, location.origin));

/** view is what is shown beside a panel: "layers", "clusters", "platforms" or "plan". */
export const view = computed(() => {
  const path = at.value.pathname;
  return path === "/plan" ? "plan" : path === "/clusters" ? "clusters" : path === "/platforms" || path.startsWith("/platforms/") ? "platforms" : "layers";
});

const searched = (name) => at.value.searchParams.get(name) ?? "";

/** filter chooses clusters by their labels, and from is the first row of them. */
export const filter = computed(() => searched("labels"));
export const from = computed(() => Number(searched("from")) || 0);

/** platform is the Platform that is shown alone, and planned the version that it is planned with; empty for none. */
export const platform = computed(() => {
  const path = at.value.pathname;
  return path.startsWith("/platforms/") ? nameIn(path.slice("/platforms/".length)) : "";
});
export const planned = computed(() => (platform.value ? searched("plan") : ""));

/** of is what is previewed, only the layer that is asked about, and again tells requests of the same apart. */
export const of = computed(() => (view.value === "plan" ? searched("of") : ""));
export const only = computed(() => (view.value === "plan" ? searched("only") : ""));
export const again = computed(() => (view.value === "plan" ? searched("again") : ""));

/** opened is the layer that is open, and cluster the cluster that is; empty for none. */
export const opened = computed(() => {
  const path = at.value.pathname;
  return path.startsWith("/layers/") ? nameIn(path.slice("/layers/".length)) : searched("layer");
});
export const cluster = computed(() => (opened.value ? "" : searched("cluster")));

function nameIn(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // Somebody wrote it by hand.
  }
}

/** asking is the act that is asked about, with the preview that it has; null for none. */
export const asking = signal(null);

/** palette tells whether the palette is open, and help whether the list of keys is. */
export const palette = signal(false);
export const help = signal(false);

/** said is what a screen reader is told last. */
export const said = signal("");

/** theme is light, dark, or empty for that of the system. */
export const theme = signal(localStorage.getItem("theme") ?? "");

/** hereWith returns where the same is shown, but for what is given; what is empty is left out. */
function hereWith(change) {
  const search = new URLSearchParams(at.value.search);
  for (const [name, value] of Object.entries(change)) {
    if (value) search.set(name, value);
    else search.delete(name);
  }
  const text = search.toString();
  return at.value.pathname + (text && "?" + text);
}

/** pathOf returns where a layer is shown: beside what is shown now. */
export const pathOf = (layer) => (view.value === "layers" ? "/layers/" + encodeURIComponent(layer) : hereWith({ layer, cluster: "" }));

/** clusterPath returns where a cluster is shown: beside what is shown now. */
export const clusterPath = (name) => (view.value === "layers" ? "/clusters?" + new URLSearchParams({ cluster: name }) : hereWith({ cluster: name, layer: "" }));

/** platformPath returns where a Platform is shown alone. */
export const platformPath = (name) => "/platforms/" + encodeURIComponent(name);

/** planPath returns where the Platform that is shown is planned with a version. */
export const planPath = (version) => hereWith({ plan: version });

/** previewPath returns where a preview is shown, of all layers or of one. */
export function previewPath(of, only, again) {
  const search = new URLSearchParams(Object.entries({ of, only, again }).filter(([, value]) => value)).toString();
  return "/plan" + (search && "?" + search);
}

/** closed returns where the same is shown without a panel. */
export const closed = () => (view.value === "layers" ? "/" : hereWith({ layer: "", cluster: "" }));

/** clustersAt returns where clusters are shown, as now but for what is given. */
export const clustersAt = (change) => (view.value === "clusters" ? hereWith(change) : "/clusters");

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
