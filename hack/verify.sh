#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails when a generated file is not what hack/generate.sh makes of its source.
# The files are compared with themselves before and after, so that edits that
# are not committed yet are no failure.
set -euo pipefail
cd "$(dirname "$0")/.."

before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT

save() {
  local file
  while read -r file; do
    mkdir -p "$1/$(dirname "$file")"
    cp "$file" "$1/$file"
  done < <(hack/generate.sh --list)
}

save "$before/a"
hack/generate.sh
save "$before/b"

if ! (cd "$before" && git --no-pager diff --no-index --no-prefix a b); then
  echo "verify: the files above were not current; they are now: commit what make generate has made of them" >&2
  exit 1
fi
# Whoever copies a file has its licence with it.
without=$(git ls-files '*.go' '*.sh' Makefile '.github/*.yaml' .ci/run | while read -r file; do
  [[ ! -e $file ]] || head -n 5 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
done)
if [[ -n $without ]]; then
  echo "verify: these files do not say their licence in their first lines:"$'\n'"$without" >&2
  exit 1
fi
# A mutant that does not apply breaks nothing, and is not found in make test.
for patch in test/mutants/*.patch; do
  git apply --check "$patch" || {
    echo "verify: $patch no longer applies: write it again for the code as it is" >&2
    exit 1
  }
done
hack/heavy.sh check
hack/named.sh
hack/english.sh
hack/sizes.sh check
echo "verify: all $(hack/generate.sh --list | wc -l | tr -d ' ') generated files are current"
# What was written again with the content that it had is no change for go test.
go run ./hack/mtimes
