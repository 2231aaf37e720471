#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Breaks Strata on purpose, in a copy of the tree, once for each patch below
# test/mutants, and makes sure that the simulation finds it, as the patch says.
# A patch that no longer applies or compiles is a failure, too.
#
#   hack/mutants.sh [NAME...]
#
# MUTANT_RUNS is how many runs of the simulation each gets at most (500).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
export STRATA_RUNS=${MUTANT_RUNS:-500} GOGC=400 STRATA_TEST_ALL='' STRATA_SEED=''
if (($# == 0)); then
  for patch in test/mutants/*.patch; do
    set -- "$@" "$(basename "$patch" .patch)"
  done
fi

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do [[ ! -e $file ]] || printf '%s\0' "$file"; done |
  tar --null --files-from=- -c | tar -x -C "$copy"
cd "$copy"

simulate() { go test -count=1 -timeout 15m -run '^TestSimulation$' ./test/simulation; }

if ! simulate >unbroken.log 2>&1; then
  tail -n 20 unbroken.log
  echo "mutants: the simulation fails without any patch"
  exit 1
fi
failed=0
for name; do
  patch=$root/test/mutants/$name.patch
  wanted=$(sed -n 's/^# found as: //p' "$patch")
  if ! git apply "$patch"; then
    echo "mutants: $name: the patch no longer applies"
    failed=1
    continue
  fi
  if ! go build ./internal/... ./controllers; then
    echo "mutants: $name: the patch does not compile"
    failed=1
  elif simulate >broken.log 2>&1; then
    echo "mutants: $name: NOT FOUND in $STRATA_RUNS runs"
    failed=1
  elif ! found=$(grep -E -m 1 "seed [0-9]+: ($wanted): " broken.log); then
    grep -m 5 'seed [0-9]*:' broken.log || tail -n 20 broken.log
    echo "mutants: $name: found, but not as $wanted"
    failed=1
  else
    echo "mutants: $name: found, $(sed 's/.*\(seed [0-9]*:\)/\1/' <<<"$found")"
  fi
  git apply -R "$patch"
done
exit "$failed"
