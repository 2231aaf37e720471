# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Says what there is on a host, and changes nothing. It is read from the input of sh, so
# that it is in no command line. ROOT is where the host's files are.
ROOT=${ROOT:-}
LC_ALL=C
export LC_ALL

# say writes a line; a value is one line and short, whatever a program says.
say() {
  printf '%s=%s\n' "$1" "$(printf '%s' "$2" | tr -cd '[:print:]' | cut -c1-300)"
}

# unit writes what systemd says of a unit: loaded, active, and how.
unit() {
  say "unit.$1" "$(systemctl show "$1" -p LoadState -p ActiveState -p SubState --value 2>/dev/null | tr '\n' ' ')"
}

# present writes which of the paths are there; a folder counts when something is in it.
present() {
  key=$1
  shift
  for path in "$@"; do
    if [ -f "$ROOT$path" ] || [ -n "$(ls -A "$ROOT$path" 2>/dev/null)" ]; then
      say "$key" "$path"
    fi
  done
}

# digest writes the SHA-256 of a file.
digest() {
  if [ -f "$ROOT$2" ]; then
    say "$1" "$(sha256sum "$ROOT$2" | cut -d' ' -f1)"
  fi
}

say user "$(id -u)"
say hostname "$(uname -n)"
say kernel "$(uname -r)"
say machine "$(uname -m)"
say time "$(date +%s)"
# shellcheck disable=SC1091 # it is the host's
say os "$(. "$ROOT/etc/os-release" 2>/dev/null && printf '%s %s' "${ID:-}" "${VERSION_ID:-}")"
say cgroup "$(stat -fc %T "$ROOT/sys/fs/cgroup" 2>/dev/null)"
say swap "$(tail -n +2 "$ROOT/proc/swaps" 2>/dev/null | wc -l)"
say memory "$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' "$ROOT/proc/meminfo" 2>/dev/null)"
say free "$(df -Pk "$ROOT/var/lib" 2>/dev/null | sed -n '2s/ \{1,\}/ /gp' | cut -d' ' -f4)"

for name in kubelet containerd; do
  unit "$name"
done
if command -v kubelet >/dev/null 2>&1; then
  say version.kubelet "$(kubelet --version 2>/dev/null)"
fi
if command -v kubeadm >/dev/null 2>&1; then
  say version.kubeadm "$(kubeadm version -o short 2>/dev/null)"
fi
if command -v containerd >/dev/null 2>&1; then
  say version.containerd "$(containerd --version 2>/dev/null)"
fi

present initialised /etc/kubernetes/kubelet.conf
present remains /etc/kubernetes/pki /etc/kubernetes/manifests /etc/kubernetes/admin.conf \
  /etc/kubernetes/super-admin.conf /etc/kubernetes/bootstrap-kubelet.conf /var/lib/etcd /var/lib/kubelet/pki
digest authority /etc/kubernetes/pki/ca.crt

# A certificate is public. Its end is read from it elsewhere, since openssl may lack.
for path in "$ROOT"/etc/kubernetes/pki/*.crt "$ROOT"/etc/kubernetes/pki/etcd/*.crt; do
  if [ -f "$path" ] && [ "$(wc -c <"$path")" -le 20000 ]; then
    printf 'certificate.%s=%s\n' "${path#"$ROOT"/etc/kubernetes/pki/}" "$(base64 <"$path" | tr -d '\n')"
  fi
done

# The last line of the journal is the last action that was begun.
if [ -f "$ROOT/var/lib/strata/journal" ]; then
  say journal "$(tail -n 1 "$ROOT/var/lib/strata/journal")"
fi
# A lock that is held is an action that goes on.
if [ -f "$ROOT/var/lib/strata/action.lock" ] && ! flock -n -s "$ROOT/var/lib/strata/action.lock" true; then
  say busy 1
fi
say end 1
