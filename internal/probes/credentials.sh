# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Says with what the cluster of a host is asked, and changes nothing: as the administrator
# that kubeadm made, and as etcd's own health check. ROOT is where the host's files are.
ROOT=${ROOT:-}
LC_ALL=C
export LC_ALL

# give writes a file of at most 64 KiB in base64.
give() {
  if [ -f "$ROOT$2" ] && [ "$(wc -c <"$ROOT$2")" -le 65536 ]; then
    printf '%s=%s\n' "$1" "$(base64 <"$ROOT$2" | tr -d '\n')"
  fi
}

printf 'user=%s\n' "$(id -u)"
give admin /etc/kubernetes/admin.conf
give authority /etc/kubernetes/pki/ca.crt
give etcd.authority /etc/kubernetes/pki/etcd/ca.crt
give etcd.certificate /etc/kubernetes/pki/etcd/healthcheck-client.crt
give etcd.key /etc/kubernetes/pki/etcd/healthcheck-client.key
printf 'end=1\n'
