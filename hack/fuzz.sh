#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs every fuzz test of the module for a while, one after the other.
#
#   hack/fuzz.sh DURATION
set -euo pipefail
cd "$(dirname "$0")/.."

# What is below test/ starts servers, and has no fuzz tests.
packages=$(go list ./... | grep -v '^github.com/strata-project/strata/test')
# The names of a package's tests come before the line that names the package.
# shellcheck disable=SC2086 # they are words
tests=$(go test -list '^Fuzz' $packages |
  awk '/^Fuzz/ {names[n++] = $1} $1 == "ok" {for (i = 0; i < n; i++) print $2, names[i]; n = 0}')

count=0
while read -r package test; do
  [[ -n $test ]] || continue
  echo "fuzz: $test of $package for $1"
  # To make an input smaller may take a minute otherwise, in which nothing new
  # is tried.
  go test -run='^$' -fuzz="^$test\$" -fuzztime="$1" -fuzzminimizetime=100x "$package"
  count=$((count + 1))
done <<<"$tests"
echo "fuzz: $count fuzz tests"
