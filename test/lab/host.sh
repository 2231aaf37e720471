# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# The first process of a host: files of its own over those of the machine, and an SSH
# server. NAME, LIB, SSHD, CONFIG, PROGRAMS, DISK, DEBIAN, KEYS, SUDOER and PLUGINS are
# set by who starts it; what is on the disk outlives the host. PLUGINS is empty but where
# the host runs containers.
set -eu
for own in etc:/etc usr:/usr lib:/var/lib cache:/var/cache log:/var/log; do
  mkdir -p "$DISK/${own%%:*}" "$DISK/work/${own%%:*}"
  mount -t overlay lab -o "lowerdir=${own#*:},upperdir=$DISK/${own%%:*},workdir=$DISK/work/${own%%:*}" "${own#*:}"
done
mount -t tmpfs lab /run
if [ -n "$PLUGINS" ]; then
  # Containers have overlays, which cannot lie on one.
  for own in lib/containerd lib/kubelet log; do
    mkdir -p "/var/$own" "$DISK/bare/$own"
    mount --bind "$DISK/bare/$own" "/var/$own"
  done
  mkdir -p "$DISK/opt" "$DISK/work/opt"
  mount -t overlay lab -o "lowerdir=/opt,upperdir=$DISK/opt,workdir=$DISK/work/opt" /opt
  mkdir -p /opt/cni
  ln -sfn "$PLUGINS" /opt/cni/bin
  # The control groups of the host look like those of a machine.
  groups=$(find /sys/fs/cgroup -mindepth 1 -maxdepth 1 -type d)
  mount -t tmpfs lab /sys/fs/cgroup
  for group in $groups; do
    mkdir "$group"
    case ${group##*/} in
    systemd) mount -t cgroup -o none,name=systemd lab "$group" ;;
    unified) mount -t cgroup2 lab "$group" ;;
    *) mount -t cgroup -o "${group##*/}" lab "$group" ;;
    esac
  done
  # The kubelet sets these, and they are the machine's: the host has copies.
  for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    mkdir -p "/run/lab-settings/${setting%/*}"
    cat "/proc/sys/$setting" >"/run/lab-settings/$setting"
    mount --bind "/run/lab-settings/$setting" "/proc/sys/$setting"
  done
fi
mkdir /run/sshd
grep -q '^sshd:' /etc/passwd || echo 'sshd:x:74:74::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
# What the machine's root has its shell do at each login is nothing of the host's.
sed -i 's#^\(root:.*\):[^:]*$#\1:/bin/sh#' /etc/passwd
# The server reads it as the user who logs in.
install -m 644 -D "$KEYS" /etc/ssh/lab_keys
if ! grep -q "^$SUDOER:" /etc/passwd; then
  echo "$SUDOER:x:4711:4711::/tmp:/bin/sh" >>/etc/passwd
  echo "$SUDOER:*:19000:0:99999:7:::" >>/etc/shadow
  cp "$DEBIAN/etc/pam.d/sudo" /etc/pam.d/sudo
  echo "$SUDOER ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers
  chmod 440 /etc/sudoers
fi
install -m 4755 -D "$DEBIAN/usr/bin/sudo" /run/programs/sudo
# sudo finds its own libraries there.
mount -t overlay lab -o "lowerdir=$DEBIAN/usr/libexec:/usr/libexec" /usr/libexec
hostname "$NAME"
grep -q " $NAME\$" /etc/hosts || echo "127.0.1.1 $NAME" >>/etc/hosts
mount --bind "$PROGRAMS" /usr/local/bin
ip link set lo up
for unit in /var/lib/lab/*.enabled; do
  if [ -e "$unit" ]; then
    systemctl start "$(basename "$unit" .enabled)"
  fi
done
# The server finds its libraries there; what people run on the host does not.
exec env LD_LIBRARY_PATH="$LIB" "$SSHD" -D -e -f "$CONFIG"
