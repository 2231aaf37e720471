#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes the files that the page is served from, of its sources in internal/web/page. The
# libraries that it uses lie there as they were published, so that neither Node.js nor a
# registry is needed.
set -euo pipefail
cd "$(dirname "$0")/../internal/web"

hack=../../hack
"$hack/tools.sh" esbuild >&2
esbuild=$("$hack/tools.sh" --dir)/esbuild

# Old browsers need not be served: those that have import maps have all that is used.
vendor=./page/vendor
"$esbuild" page/main.jsx --bundle --minify --format=esm --target=es2022 --charset=utf8 --legal-comments=none \
  --jsx=automatic --jsx-import-source=preact --log-level=warning \
  --alias:preact/jsx-runtime=$vendor/preact/jsxRuntime.mjs --alias:preact/hooks=$vendor/preact/hooks.mjs \
  --alias:preact=$vendor/preact/preact.mjs \
  --alias:@preact/signals=$vendor/preact-signals/signals.mjs --alias:@preact/signals-core=$vendor/preact-signals-core/signals-core.mjs \
  --outfile=dist/app.js
"$esbuild" page/app.css --minify --log-level=warning --outfile=dist/app.css
cp page/index.html page/*.svg dist/
