#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Fails where a comment or a document is harder to read than it has to be, as
# CONTRIBUTING.md has it: a sentence does not begin with a clause that stands for its
# subject ("Who asks is told"). Questions may.
set -euo pipefail
cd "$(dirname "$0")/.."

found=$(git ls-files -z '*.go' '*.md' '*.sh' | xargs -0 grep -nE '(^|[.:;] |//+ |[*#-] )Who [a-z]' | grep -vE '\?|:#+ Who|^hack/english\.sh:|^CONTRIBUTING\.md:' || true)
if [ -n "$found" ]; then
  printf '%s\n' "$found" >&2
  echo "english: the sentences above begin with \"Who\" and are no questions: say who it is (\"A user who\", \"The controller\")" >&2
  exit 1
fi
echo "english: no sentence hides its subject"
