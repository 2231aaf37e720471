#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Writes everything in the tree that is made from something else:
#
#   deepcopy functions        from the types of api/
#   config/crd/bases          from the types of api/
#   chart/files/crds          from config/crd/bases
#   config/rbac/*role.yaml    from chart/files/rbac
#   docs/api.md               from the types of api/
#   docs/cli.md               from the commands of the plug-in
#   internal/web/dist         from the sources of the page
#   docs/architecture.md      in part, from the imports and declarations of the rooms
#
#   hack/generate.sh           write
#   hack/generate.sh --list    print the generated files
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == --list ]]; then
  ls api/*/zz_generated.deepcopy.go api/plugin/v1/*.pb.go config/crd/bases/*.yaml chart/files/crds/*.yaml \
    config/rbac/role.yaml config/rbac/leader_election_role.yaml config/rbac/revisions_role.yaml docs/api.md docs/cli.md docs/architecture.md \
    internal/web/dist/* 2>/dev/null || true
  exit
fi

tools=$(hack/tools.sh --dir)
hack/tools.sh controller-gen crd-ref-docs protogen protoc-gen-go-grpc

# step FUNCTION FILE...: calls a function unless all files that it reads and writes are as they were
# when it had last been called, in this clone or in another one. Files are named as for git ls-files.
step() {
  local stamp
  stamp=$(dirname "$tools")/generated/$1
  if grep -qsx "$(digest "${@:2}")" "$stamp"; then return; fi
  "$1"
  mkdir -p "$(dirname "$stamp")"
  { digest "${@:2}"; head -n 20 "$stamp" 2>/dev/null || true; } >"$stamp.$$" # so that branches do not forget each other
  mv "$stamp.$$" "$stamp"
}

# digest FILE...: of names and contents, and of this script.
digest() {
  local files
  files=$(git ls-files --cached --others --exclude-standard -- hack/generate.sh "$@" | sort -u)
  { echo "$files"; tr '\n' '\0' <<<"$files" | xargs -0 cat 2>/dev/null || true; } | git hash-object --stdin
}

protocol() { "$tools/protogen" api "$tools/protoc-gen-go-grpc" plugin/v1/plugin.proto; }

page() { hack/page.sh; }

objects() {
  "$tools/controller-gen" object:headerFile=hack/boilerplate.go.txt paths=./api/...

  # From scratch, so that the file of a kind that is gone goes too.
  rm -f config/crd/bases/*.yaml chart/files/crds/*.yaml
  "$tools/controller-gen" crd paths=./api/... output:crd:dir=config/crd/bases
  mkdir -p chart/files/crds
  cp config/crd/bases/*.yaml chart/files/crds/
}

reference() {
  "$tools/crd-ref-docs" --log-level=ERROR --config=hack/tools/crd-ref-docs/config.yaml \
    --source-path=api --renderer=markdown --output-path=docs/api.md

  # As its tables are read by people: no empty braces, no breaks at the end of a
  # cell, no two empty lines after each other.
  sed -e 's/Optional: \\{\\}/optional/; s/Required: \\{\\}/required/; s/ *<br \/> |$/ |/' docs/api.md | cat -s >docs/api.md.new
  mv docs/api.md.new docs/api.md
}

commands() {
  go run ./cmd/kubectl-strata docs >docs/cli.md.new
  mv docs/cli.md.new docs/cli.md
}

rooms() { go run ./hack/architecture docs/architecture.md; }

step protocol api/plugin hack/tools/protogen hack/tools/protoc-gen-go-grpc
step page internal/web hack/page.sh hack/tools/esbuild
step objects api go.mod hack/boilerplate.go.txt hack/tools/controller-gen config/crd/bases chart/files/crds
step reference api hack/tools/crd-ref-docs docs/api.md
step commands api cmd internal pkg go.mod docs/cli.md ':!*_test.go'
step rooms '*.go' go.mod docs/architecture.md ':!*_test.go'

# role KIND NAME FILE: a role whose rules are those of a file of the chart.
role() {
  cat <<END
# Generated from chart/files/rbac/$3. DO NOT EDIT.
apiVersion: rbac.authorization.k8s.io/v1
kind: $1
metadata:
  name: $2
rules:
END
  grep -v '^#' "chart/files/rbac/$3"
}
role ClusterRole strata controller.yaml >config/rbac/role.yaml
role Role strata-leader-election leader-election.yaml >config/rbac/leader_election_role.yaml
role Role strata-revisions revisions.yaml >config/rbac/revisions_role.yaml
