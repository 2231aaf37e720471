#!/bin/sh
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# runc, where the machine may itself be a container whose processes cannot be made ones
# that the kernel ends last: containers are made without that then.
if ! (echo -999 >/proc/self/oom_score_adj) 2>/dev/null; then
  bundle=
  for word in "$@"; do
    if [ "$bundle" = next ]; then
      bundle=$word
      break
    fi
    if [ "$word" = --bundle ]; then
      bundle=next
    fi
  done
  if [ -f "$bundle/config.json" ]; then
    sed -i 's/"oomScoreAdj":-[0-9]*/"oomScoreAdj":0/' "$bundle/config.json"
  fi
fi
exec real-runc "$@"
