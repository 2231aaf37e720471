#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# How large the programs are, stripped, for linux/amd64, and of how many packages they are
# made: the table of docs/benchmarks/sizes.md.
#
#   hack/sizes.sh check       fails when a program is not as large as the table says
#   hack/sizes.sh [REASON]    writes the table again; what has grown needs a reason, which the
#                             page keeps: hack/sizes.sh 'snapshots go to buckets, too'
#
# test/strata builds the programs with the same flags for the end-to-end tests, so that what is
# compiled for one is there for the other. What this costs beside that are three links, 20 s of
# processor time on the machine of docs/benchmarks, and 5 s for the lists of packages; only the
# latter where no program has changed, since they stay in bin/sizes.
set -euo pipefail
cd "$(dirname "$0")/.."

page=docs/benchmarks/sizes.md
# By how many percent a program may differ from the table. Another version of Go and an ordinary
# change take less; a tree of packages that comes along with one import takes more.
tolerance=3
# What is left out by flags of libraries: docs/adr/0072-programs-have-what-they-need.md.
tags=$(<hack/release/tags)
sources=(. ./cmd/strata-hosts ./cmd/kubectl-strata)

# Prints a line for each program: its name, its MB, its packages.
measure() {
  local source name
  export CGO_ENABLED=0 GOOS=linux GOARCH=amd64
  mkdir -p bin/sizes
  # As in test/strata: a compiler that seldom collects garbage is a fifth faster.
  GOGC=400 go build -trimpath -buildvcs=false -tags "$tags" -ldflags '-s -w' -o bin/sizes/ "${sources[@]}"
  for source in "${sources[@]}"; do
    name=strata
    [[ $source == . ]] || name=$(basename "$source")
    echo "$name $(wc -c <"bin/sizes/$name" | awk '{printf "%.1f", $1 / 1e6}') $(go list -tags "$tags" -deps "$source" | wc -l)"
  done
}

# Prints what the table says of a program, in the same form.
known() { awk -F ' *[|] *' -v name="$1" '$2 == name {print $3, $4}' "$page"; }

# Tells whether one number is larger than another one by more than some percent.
larger() { awk -v now="$1" -v was="$2" -v percent="$3" 'BEGIN {exit !(now > was * (1 + percent / 100))}'; }

check() {
  local measured name size packages size_was packages_was wrong=0
  if [[ $(go env GOHOSTOS)/$(go env GOHOSTARCH) != linux/amd64 ]]; then
    echo "sizes: not compared on this machine, which is not linux/amd64: everything would be compiled for that alone"
    return
  fi
  measured=$(measure)
  while read -r name size packages; do
    size_was='' packages_was=''
    read -r size_was packages_was < <(known "$name") || true
    if [[ -z $packages_was ]]; then
      echo "sizes: $page has no line for $name" >&2
      wrong=1
    elif larger "$size" "$size_was" $tolerance || larger "$packages" "$packages_was" $tolerance; then
      echo "sizes: $name has grown from $size_was MB of $packages_was packages to $size MB of $packages" >&2
      wrong=1
    elif larger "$size_was" "$size" $tolerance || larger "$packages_was" "$packages" $tolerance; then
      echo "sizes: $name is smaller than the table says: $size MB of $packages packages, and not $size_was MB of $packages_was" >&2
      wrong=1
    fi
  done <<<"$measured"
  if ((wrong)); then
    echo "sizes: $page says how to find what has come along. Take it out, or run hack/sizes.sh 'REASON' and commit the page: growth needs a reason. Without growth run hack/sizes.sh" >&2
    return 1
  fi
  echo "sizes: the programs are as large as $page says, within $tolerance %"
}

write() {
  local reason=$1 measured name size packages size_was packages_was rows='' grown='' before after
  measured=$(measure)
  while read -r name size packages; do
    size_was='' packages_was=''
    read -r size_was packages_was < <(known "$name") || true
    if [[ -n $size_was ]]; then
      if larger "$size" "$size_was" $tolerance || larger "$packages" "$packages_was" $tolerance; then
        grown+="- $name, from $size_was MB of $packages_was packages to $size MB of $packages: $reason"$'\n'
      else
        # Small steps up are not written, or many of them would need no reason.
        if larger "$size" "$size_was" 0; then size=$size_was; fi
        if larger "$packages" "$packages_was" 0; then packages=$packages_was; fi
      fi
    fi
    rows+="| $name | $size | $packages | $(gzip <"bin/sizes/$name" | wc -c | awk '{printf "%.1f", $1 / 1e6}') |"$'\n'
  done <<<"$measured"
  if [[ -n $grown && -z $reason ]]; then
    printf 'sizes: growth needs a reason, hack/sizes.sh REASON:\n%s' "$grown" >&2
    return 1
  fi
  before=$(sed '/^<!-- sizes -->$/q' "$page")
  after=$(sed '1,/^<!-- end of sizes -->$/d' "$page")
  if [[ -n $grown ]]; then after=${after/'<!-- end of what has grown -->'/"$grown<!-- end of what has grown -->"}; fi
  {
    printf '%s\n| program | MB | packages | MB, compressed |\n|---|---|---|---|\n%s<!-- end of sizes -->\n%s\n' "$before" "$rows" "$after"
  } >"$page.new"
  mv "$page.new" "$page"
  printf '%s' "$rows"
}

case ${1:-} in
  check) check ;;
  -*) sed -n 's/^#   //p' "$0" >&2; exit 2 ;;
  *) write "${1:-}" ;;
esac
