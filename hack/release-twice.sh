#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes a release of the commit twice and compares every byte: in two folders, with two
# homes, nothing in the caches of Go, other umasks, time zones and languages, and files
# that have other times. PLATFORMS says for which platforms; it defaults to all.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
commit=$(git rev-parse HEAD)
version=$(hack/version.sh)
version=${version%.dirty}
# Modules are not compiled: what is downloaded serves both.
modules=$(go env GOMODCACHE)

once() {
  local name=$1 folder=$2
  shift 2
  mkdir -p "$work/home-$name" "$(dirname "$work/$folder")"
  git clone -q . "$work/$folder"
  git -C "$work/$folder" checkout -q --detach "$commit"
  find "$work/$folder" -path '*/.git' -prune -o -type f -exec touch -d "$TOUCHED" {} +
  (cd "$work/$folder" && env -u GOFLAGS -u TMPDIR HOME="$work/home-$name" GOCACHE="$work/cache-$name" GOMODCACHE="$modules" GOPATH="$work/home-$name/go" "$@" \
    go run -trimpath ./hack/release --version "$version" --registry registry.example/strata-project \
    ${PLATFORMS:+--platforms "$PLATFORMS"} --out "$work/dist-$name")
}

TOUCHED='2001-02-03 04:05:06' once a a env TZ=UTC LC_ALL=C
rm -rf "$work/cache-a"
umask 077
TOUCHED='2031-02-03 04:05:06' once b deep/er/b env TZ=Asia/Kathmandu LC_ALL=C.UTF-8

(cd "$work/dist-a" && sha256sum -c --quiet checksums.txt)
diff -r "$work/dist-a" "$work/dist-b"
echo "release-twice: $(find "$work/dist-a" -type f | wc -l) files of $version are the same"
