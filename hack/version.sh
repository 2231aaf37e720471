#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the version of this tree: that of a release where its commit is one, by a tag or
# by hack/release/releases.txt, and else a version between the last release and the next
# patch, with the commit in it.
set -euo pipefail
cd "$(dirname "$0")/.."

commit=$(git rev-parse HEAD 2>/dev/null) || { echo dev; exit; }
dirty=
if [[ -n $(git --no-optional-locks status --porcelain 2>/dev/null) ]]; then dirty=.dirty; fi
tag=$(git tag --points-at HEAD 'v[0-9]*' | tail -n 1)
if [[ -z $tag ]]; then
  tag=$(awk -v commit="$commit" '$2 == commit {print $1}' hack/release/releases.txt)
fi
if [[ -n $tag && -z $dirty ]]; then
  echo "$tag"
  exit
fi
last=$(awk '/^v/ {last = $1} END {print last}' hack/release/releases.txt)
IFS=. read -r major minor patch <<<"${last%%-*}"
echo "$major.$minor.$((patch + 1))-dev.g${commit:0:8}$dirty"
