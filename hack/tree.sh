#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the reference tree on three API servers with Flux, and says what is done. A cluster
# is made by a bundle and filled, another one is made on it, and an application is picked
# on top; parts are switched off and on; the version goes from 1.0.0 to 1.2.0 over 1.1.0;
# an API server is away for a while; all is deleted from the leaves, and, made once more,
# from the root.
#
#   hack/tree.sh [OUTAGE]    OUTAGE is how long the API server is away; 2m without one
set -euo pipefail
cd "$(dirname "$0")/.."
export STRATA_TREE_OUTAGE=${1:-2m}
go test -trimpath ./test/e2e -count=1 -timeout 20m -v -run '^TestReferenceTree$' |
  sed -nuE 's/^ +(tree_test|standin)\.go:[0-9]+: /  /p; /^ +[a-z_]+_test\.go:[0-9]+: /p; /^(---|ok|FAIL|PASS)/p'
