# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# park keeps what etcd has on this host, where no etcd finds it.
park() {
  kept=$STATE/etcd-$(date -u +%Y%m%dT%H%M%SZ)
  say "keeps what etcd has had in $kept"
  mv /var/lib/etcd/member "$kept" || fail "cannot keep /var/lib/etcd/member"
}
