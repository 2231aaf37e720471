# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

journal ""
say "stops etcd and the API server"
stop_static etcd kube-apiserver kube-controller-manager kube-scheduler
# What etcd has had is kept once. After that, what is there is of a run that was killed.
if [ ! -f "$STATE/restoring" ]; then
  if [ -d /var/lib/etcd/member ]; then
    park
  fi
  : >"$STATE/restoring"
  sync "$STATE/restoring"
fi
say "puts in place what was saved"
mkdir -p /var/lib/etcd
rm -rf /var/lib/etcd/member
must tar -xzf "$STATE/restore.tar.gz" -C /var/lib/etcd
sync
start_static
journal ',"ended":true'
rm -rf "$STATE/restoring" "$STATE/restore.tar.gz"
say "begins with what was saved"
