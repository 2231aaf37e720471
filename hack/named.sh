#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when a document names a file, a test or a declaration that is no longer
# there: the promises of docs/security.md are worth what the tests beside them
# show. CHANGELOG.md tells what was, and is left out.
set -euo pipefail
cd "$(dirname "$0")/.."

# named PATTERN: what documents name in backquotes, as "DOCUMENT:NAME".
named() { git grep -oE "\`$1\`" -- '*.md' ':!CHANGELOG.md' | tr -d '`' | sort -u; }

# A declaration stands as room.Name, a room alone with a dot after it.
declared() {
  git grep -oE '^(func|type|var|const)?[[:space:]]*(\([^)]*\) )?[A-Z][A-Za-z0-9_]*' -- '*.go' |
    sed -nE 's,^(.*/)?([^/]+)/[^/:]+:(.*[^A-Za-z0-9_])?([A-Z][A-Za-z0-9_]*)$,\2.\4,p'
  git ls-files '*.go' | sed -nE 's,^(.*/)?([^/]+)/[^/]+$,\2.,p'
}

missing=$(
  named '(api|chart|cmd|config|controllers|docs|examples|hack|internal|test)/[A-Za-z0-9._/-]+' |
    while IFS=: read -r document name; do [[ -e $name ]] || echo "$document:$name"; done
  named '([a-z]+\.)?(Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*' |
    awk -F: 'NR == FNR {there[$0]; next} {name = $2; sub(/^[a-z]*\./, "", name)} !(name in there)' \
      <(git grep -hoE '^func (Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]+' -- '*_test.go' | cut -d' ' -f2) -
  named '[a-z]+(\.[A-Z][A-Za-z]*)+' |
    awk -F: 'NR == FNR {there[$0]; next} {split($2, part, "."); room = part[1] "."; name = $2; sub(/.*\./, "", name)} room in there && !(room name in there)' \
      <(declared) -
)
if [[ -n $missing ]]; then
  sort -u <<<"$missing" | sed 's/\(.*\):\(.*\)/\1 names `\2`, which is not there: name what has taken its place/' >&2
  exit 1
fi
echo "verify: all files, tests and declarations that the documents name are there"
