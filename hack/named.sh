#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when a document names a file, a test or a declaration that is no longer
# there: the promises of docs/security.md are worth what the tests beside them
# show. CHANGELOG.md tells what was, and is left out.
set -euo pipefail
cd "$(dirname "$0")/.."

fail=0
missing() {
  echo "$1 names \`$2\`, which is not there: name what has taken its place" >&2
  fail=1
}

tests=$(git grep -hoE '^func (Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]+' -- '*_test.go' | cut -d' ' -f2 | sort -u)
while read -r document; do
  while read -r name; do
    [ -e "$name" ] || missing "$document" "$name"
  done < <(grep -oE '`(api|chart|cmd|config|controllers|docs|examples|hack|internal|test)/[A-Za-z0-9._/-]+`' "$document" | tr -d '`' | sort -u)
  while read -r name; do
    grep -qx "$name" <<<"$tests" || missing "$document" "$name"
  done < <(grep -oE '`([a-z]+\.)?(Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*`' "$document" | tr -d '`' | sed 's/^[a-z]*\.//' | sort -u)
  while IFS=. read -r room name; do
    [ -n "$(git ls-files "*/$room/*.go")" ] || continue
    git grep -qE "^(func|type|var|const)?[[:space:]]*(\([^)]*\) )?$name\b" -- "*/$room/*.go" || missing "$document" "$room.$name"
  done < <(grep -oE '`[a-z]+(\.[A-Z][A-Za-z]*)+`' "$document" | tr -d '`' | awk -F. '{print $1 "." $NF}' | sort -u)
done < <(git ls-files '*.md' ':!CHANGELOG.md')
[ "$fail" = 0 ] && echo "verify: all files, tests and declarations that the documents name are there"
exit "$fail"
