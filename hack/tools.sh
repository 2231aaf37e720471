#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the tools named on the command line from the modules below hack/tools
# into the cache folder, unless they are there and current, and says where
# that folder is. A tool is built again when its go.mod, its go.sum or the Go
# version changes.
#
#   hack/tools.sh --dir            print the folder of the tools
#   hack/tools.sh NAME...          build these
#   hack/tools.sh                  build all
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)

cache_root() {
  if [[ -n ${STRATA_CACHE:-} ]]; then
    mkdir -p "$STRATA_CACHE"
    (cd "$STRATA_CACHE" && pwd)
  elif [[ $(uname) == Darwin ]]; then
    echo "$HOME/Library/Caches/strata"
  else
    echo "${XDG_CACHE_HOME:-$HOME/.cache}/strata"
  fi
}

dir=$(cache_root)/tools
if [[ ${1:-} == --dir ]]; then
  echo "$dir"
  exit
fi

# What the stamp of a tool says when the tool is current.
pins() {
  { go version; cat "$root/hack/tools/$1/go.mod" "$root/hack/tools/$1/go.sum"; } | git hash-object --stdin
}

build() {
  local name=$1 folder=$root/hack/tools/$1 stamp package tags begin
  if [[ ! -f $folder/go.mod ]]; then
    echo "tools: there is no hack/tools/$name" >&2
    return 1
  fi
  stamp=$(pins "$name")
  if [[ -x $dir/$name && $(cat "$dir/$name.stamp" 2>/dev/null) == "$stamp" ]]; then
    return
  fi
  package=$(awk '$1 == "tool" {print $2}' "$folder/go.mod")
  # A comment "// tags: LIST" in a go.mod names build tags.
  tags=$(awk '$1 == "//" && $2 == "tags:" {print $3}' "$folder/go.mod")
  echo "tools: building $name ($package), once"
  begin=$SECONDS
  mkdir -p "$dir"
  # Built beside its place and moved there, so that two runs at a time are no
  # harm and nobody executes half a file.
  (cd "$folder" && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -trimpath -tags "$tags" -o "$dir/.$name.$$" "$package")
  mv "$dir/.$name.$$" "$dir/$name"
  echo "$stamp" >"$dir/$name.stamp"
  echo "tools: built $name in $((SECONDS - begin)) s"
}

if [[ $# == 0 ]]; then
  for folder in "$root"/hack/tools/*/; do
    set -- "$@" "$(basename "$folder")"
  done
fi
for name; do
  build "$name"
done
