# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# The first process of a host: files of its own over those of the machine, and an SSH
# server. NAME, LIB, SSHD and CONFIG are set by who starts it.
set -eu
mount -t tmpfs lab /mnt
mkdir /mnt/etc /mnt/etc-work
mount -t overlay lab -o lowerdir=/etc,upperdir=/mnt/etc,workdir=/mnt/etc-work /etc
mount -t tmpfs lab /var/lib
mount -t tmpfs lab /run
mkdir /run/sshd
grep -q '^sshd:' /etc/passwd || echo 'sshd:x:74:74::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
hostname "$NAME"
ip link set lo up
# The server finds its libraries there; what people run on the host does not.
exec env LD_LIBRARY_PATH="$LIB" "$SSHD" -D -e -f "$CONFIG"
