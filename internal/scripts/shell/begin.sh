# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

set -eu
umask 077
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin
export LC_ALL PATH
# Who has sent this may go; what has begun goes on to its end.
trap '' PIPE HUP

# What a host reaches through a proxy, it does not reach its cluster through: kubeadm has
# the components inherit both.
if [ -n "${HTTP_PROXY:-}${http_proxy:-}${HTTPS_PROXY:-}${https_proxy:-}" ]; then
  NO_PROXY=${NO_PROXY:-${no_proxy:-}},$DIRECT
  NO_PROXY=${NO_PROXY#,}
  no_proxy=$NO_PROXY
  export NO_PROXY no_proxy
fi

STATE=/var/lib/strata
WORK=/run/strata

# say tells who has sent this what is done now.
say() {
  printf 'strata: %s\n' "$1" 2>/dev/null || true
}

# fail ends the script with a reason.
fail() {
  printf 'strata: failed: %s\n' "$1" 2>/dev/null || true
  exit 1
}

# One action at a time: the lock falls when all that this has started has ended.
mkdir -p "$STATE" "$WORK"
exec 9>>"$STATE/action.lock"
if ! flock -n 9; then
  say "busy"
  exit 75
fi

# What programs write is kept on the host: that of the last action, and of the one before.
if [ -s "$STATE/log" ]; then
  mv "$STATE/log" "$STATE/log.1"
fi
: >"$STATE/log"

# journal writes a line that is on the disk before anything else is done.
journal() {
  printf '{"cluster":"%s","action":"%s","version":"%s"%s}\n' "$CLUSTER" "$ACTION" "$VERSION" "$1" >>"$STATE/journal"
  sync "$STATE/journal"
}

# run runs a program whose output is kept on the host.
run() {
  printf '+ %s\n' "$*" >>"$STATE/log"
  "$@" >>"$STATE/log" 2>&1 </dev/null
}

# must runs a program that has to succeed.
must() {
  run "$@" || fail "$1 has failed: kubectl strata hosts logs has what it said"
}

# put writes a file where it differs, and tells by CHANGED.
put() {
  CHANGED=
  if [ "$(cat "$1" 2>/dev/null)" != "$2" ]; then
    mkdir -p "$(dirname "$1")"
    printf '%s\n' "$2" >"$1.strata"
    chmod "${3:-644}" "$1.strata"
    sync "$1.strata"
    mv "$1.strata" "$1"
    CHANGED=1
  fi
}
