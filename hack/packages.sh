#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Lists the packages that make unit tests, all but those below test/.
#
#   hack/packages.sh race    those in which something goes on side by side
#   hack/packages.sh plain   the others: the race detector would find nothing in them, or
#                            something else has it already
set -euo pipefail
cd "$(dirname "$0")/.."

# make test-all runs these packages with the race detector, which makes their tests three
# times as long. End-to-end tests run controllers with it.
elsewhere='/strata/(controllers|cmd/kubectl-strata)$'
concurrent='(^|[^a-zA-Z])(go func|go [a-z][A-Za-z.]*\(|sync\.|atomic\.|errgroup|t\.Parallel\(\))'
go list -f '{{.ImportPath}} {{.Dir}}' ./... | grep -v '/strata/test/' |
  while read -r package dir; do
    kind=plain
    if [[ ! $package =~ $elsewhere ]] && grep -qE "$concurrent" "$dir"/*.go; then kind=race; fi
    if [[ $kind == "$1" ]]; then echo "$package"; fi
  done
