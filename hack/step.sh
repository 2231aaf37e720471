#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs make targets one after the other and prints the name and the time of
# each, and at the end all of them together. A step that fails does not keep
# the next ones from running; the exit code is 1 when any failed.
#
#   hack/step.sh TARGET... [-- TARGET...]
#
# The targets after -- are in an order that ROTATE, a number, turns: where the time is
# short, it is not always the same ones that are left out.
#
# Where TIMES names a folder, the slowest tests of those that steps have put there
# are listed, too, slowest first.
#
# Where STRATA_DEADLINE is set (seconds since 1970), a step that is not done by
# then is stopped, and the ones after it are left out, by name.
set -uo pipefail

if [[ -n ${TIMES:-} ]]; then
  rm -rf "$TIMES"
fi

make=${MAKE:-make}
summary=()
failed=0

clock() { printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); }

steps=() turning=()
while (($# > 0)) && [[ $1 != -- ]]; do
  steps+=("$1")
  shift
done
if (($# > 1)); then
  shift
  turning=("$@")
  first=$((${ROTATE:-0} % ${#turning[@]}))
  steps+=("${turning[@]:first}" "${turning[@]:0:first}")
fi

for step in "${steps[@]}"; do
  limit=()
  if [[ -n ${STRATA_DEADLINE:-} ]]; then
    left=$((STRATA_DEADLINE - $(date +%s)))
    if ((left < 60)); then
      summary+=("$(printf '%-14s left out: the time is used up' "$step")")
      continue
    fi
    # The step and all it started get ten seconds to put things away.
    limit=(timeout --kill-after=10 "$left")
  fi
  echo "==> $step"
  begin=$SECONDS
  ${limit[@]+"${limit[@]}"} "$make" --no-print-directory "$step"
  code=$?
  took=$(clock $((SECONDS - begin)))
  case $code in
    0) verdict=ok ;;
    124 | 137) verdict="stopped: the time is used up" ;;
    *) verdict=FAILED failed=1 ;;
  esac
  echo "<== $step: $verdict after $took"
  summary+=("$(printf '%-14s %-7s %s' "$step" "$took" "$verdict")")
done

if compgen -G "${TIMES:-/nowhere}/*.json" >/dev/null; then
  echo
  echo "The 20 slowest tests:"
  cat "$TIMES"/*.json | "$("$(dirname "$0")/tools.sh" --dir)/gotestsum" tool slowest --threshold 1s --num 20
fi
echo
printf '%s\n' "${summary[@]}"
exit "$failed"
