# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# The first process of a host: files of its own over those of the machine, and an SSH
# server. NAME, LIB, SSHD, CONFIG, PROGRAMS and DISK are
# set by who starts it; what is on the disk outlives the host.
set -eu
mkdir -p "$DISK/etc" "$DISK/etc-work" "$DISK/lib"
mount -t overlay lab -o "lowerdir=/etc,upperdir=$DISK/etc,workdir=$DISK/etc-work" /etc
mount --bind "$DISK/lib" /var/lib
mount -t tmpfs lab /run
mkdir /run/sshd
grep -q '^sshd:' /etc/passwd || echo 'sshd:x:74:74::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
hostname "$NAME"
mount --bind "$PROGRAMS" /usr/local/bin
ip link set lo up
for unit in /var/lib/lab/*.enabled; do
  if [ -e "$unit" ]; then
    systemctl start "$(basename "$unit" .enabled)"
  fi
done
# The server finds its libraries there; what people run on the host does not.
exec env LD_LIBRARY_PATH="$LIB" "$SSHD" -D -e -f "$CONFIG"
