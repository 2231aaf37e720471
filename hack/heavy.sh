#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Reads test/heavy.txt, the list of what make test leaves to make test-all.
#
#   hack/heavy.sh left STEP      what the step of make test leaves out, for go test -skip
#   hack/heavy.sh all STEP       what the heavier step runs, for go test -run
#   hack/heavy.sh packages STEP  the packages that have these
#   hack/heavy.sh check          fails when the list names a test that there is not
set -euo pipefail
cd "$(dirname "$0")/.."
list=test/heavy.txt

# One name of a test, or of a test and its subtest, for go test: from A/b to ^A$/^b$.
pattern() {
  awk -v step="$1" -v how="$2" '
    # What needs programs that are built for it alone is left by the same step.
    how == "left" && step == "e2e" && $1 == "hosts" {$1 = "e2e"}
    /^#/ || NF == 0 || $1 != step || (how == "left" && $2 != "left") {next}
    {gsub("/", "$/^", $3); printf "%s^%s$", n++ ? "|" : "", $3}
    END {if (!n) printf "^$"}' "$list"
}

# The packages of the tests of a step; a name stands for one test only.
places() {
  local where=(test/e2e test/hostile test/release test/lab) name found
  if [[ $1 == unit ]]; then where=(--exclude-dir=test .); fi
  awk -v step="$1" '/^#/ || NF == 0 || $1 != step {next} {sub("/.*", "", $3); print $3}' "$list" | sort -u |
    while read -r name; do
      found=$(grep -rlE --include='*_test.go' "^func $name\(" "${where[@]}" | xargs -rn1 dirname) || true
      if [[ $(wc -w <<<"$found") != 1 ]]; then
        echo "$list: $name is the name of $(wc -w <<<"$found") tests, want one" >&2
        return 1
      fi
      echo "./${found#./}"
    done
}

case ${1:-} in
  left | all) pattern "$2" "$1" ;;
  packages) places "$2" | sort -u ;;
  check)
    wrong=$(awk '!/^#/ && NF > 0 && !(($1 == "unit" || $1 == "e2e" || $1 == "hosts") && ($2 == "left" || $2 == "less") && $4 != "") {print FILENAME ":" FNR ": want a step, left or less, a test and why"}' "$list")
    [[ -z $wrong ]] || { echo "$wrong" >&2; exit 1; }
    places unit >/dev/null
    places e2e >/dev/null
    places hosts >/dev/null
    echo "$list: all $(grep -vc '^#\|^$' "$list") tests are there"
    ;;
  *) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
esac
