#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints what CHANGELOG.md says of a version, such as v0.2.0; it fails where it says
# nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

awk -v version="${1#v}" '
  /^## / {found = $2 == version || $2 == version ","; next}
  found {print; lines += NF > 0}
  END {if (!lines) {print "CHANGELOG.md says nothing of " version > "/dev/stderr"; exit 1}}' CHANGELOG.md
