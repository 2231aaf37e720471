#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs commands side by side, and prints what each has said when all before it have
# ended. It fails when one of them does, and ends them when it is ended.
#
#   hack/beside.sh COMMAND...
set -uo pipefail

said=$(mktemp -d)
pids=()
trap 'rm -rf "$said"' EXIT
trap 'kill "${pids[@]}" 2>/dev/null; wait; exit 130' INT TERM

for command; do
  bash -c "exec env $command" >"$said/${#pids[@]}" 2>&1 &
  pids+=($!)
done
code=0
for i in "${!pids[@]}"; do
  wait "${pids[$i]}" || code=1
  cat "$said/$i"
done
exit "$code"
