# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Says what there is on a host, and changes nothing. It is read from the input of sh, so
# that it is in no command line. ROOT is where the host's files are. What takes time is to
# start programs: what the shell can do it does itself.
ROOT=${ROOT:-}
LC_ALL=C
PATH=$PATH:/opt/bin
export LC_ALL PATH
newline='
'

# say writes a line; a value is one line and short, whatever a program says.
say() {
  printf '%s=%.300s\n' "$1" "${2%%"$newline"*}"
}

# units writes what systemd says of the kubelet and containerd: loaded, active, and how.
units() {
  # shellcheck disable=SC2046 # these are several words
  set -- $(systemctl show kubelet containerd -p LoadState -p ActiveState -p SubState --value 2>/dev/null)
  if [ $# = 6 ]; then
    say unit.kubelet "$1 $2 $3"
    say unit.containerd "$4 $5 $6"
  fi
}

# certificate writes the first certificate of a file, which is public, and nothing else
# that is there. When it ends is read elsewhere, since openssl may lack.
certificate() {
  within=
  printf '%s=' "$1"
  while read -r line; do
    case $line in
    "-----BEGIN CERTIFICATE-----") within=1 ;;
    -----*) if [ -n "$within" ]; then break; fi ;;
    *) if [ -n "$within" ]; then printf '%.100s' "$line"; fi ;;
    esac
  done <"$2"
  printf '\n'
}

# holds tells whether a path is a file, or a folder with something in it.
holds() {
  if [ -f "$1" ]; then return 0; fi
  for found in "$1"/* "$1"/.[!.]*; do
    if [ -e "$found" ] || [ -L "$found" ]; then return 0; fi
  done
  return 1
}

# present writes which of the paths hold something.
present() {
  key=$1
  shift
  for path in "$@"; do
    if holds "$ROOT$path"; then
      say "$key" "$path"
    fi
  done
}

# digest writes the SHA-256 of a file.
digest() {
  if [ -f "$ROOT$2" ]; then
    sum=$(sha256sum "$ROOT$2")
    say "$1" "${sum%% *}"
  fi
}

# encryption writes which configuration of encryption the API server is given, and the names
# of what is in it. The keys beside them stay where they are.
encryption() {
  config=
  # An action may have taken the manifest away for a while.
  for folder in /var/lib/strata /etc/kubernetes; do
    if [ ! -r "$ROOT$folder/manifests/kube-apiserver.yaml" ]; then continue; fi
    while read -r _ value _; do
      case $value in --encryption-provider-config=*) config=${value#*=} ;; esac
    done <"$ROOT$folder/manifests/kube-apiserver.yaml"
  done
  if [ -z "$config" ] || [ ! -r "$ROOT$config" ]; then return 0; fi
  say encryption "$config"
  while read -r _ key value _; do
    case $key in
    name:) say provider "$value" ;;
    identity:) say provider identity ;;
    esac
  done <"$ROOT$config"
}

# look writes everything.
look() {
  say user "$(id -u)"
  say hostname "$(uname -n)"
  say kernel "$(uname -r)"
  say machine "$(uname -m)"
  say time "$(date +%s)"
  # shellcheck disable=SC1091 # it is the host's
  say os "$(. "$ROOT/etc/os-release" 2>/dev/null && printf '%s %s' "${ID:-}" "${VERSION_ID:-}")"
  say cgroup "$(stat -fc %T "$ROOT/sys/fs/cgroup" 2>/dev/null)"
  lines=0
  if [ -r "$ROOT/proc/swaps" ]; then
    while read -r _; do lines=$((lines + 1)); done <"$ROOT/proc/swaps"
  fi
  say swap "$((lines > 0 ? lines - 1 : 0))" # the first line says what the others are
  if [ -r "$ROOT/proc/meminfo" ]; then
    while read -r name value _; do
      if [ "$name" = MemTotal: ]; then
        say memory "$value"
        break
      fi
    done <"$ROOT/proc/meminfo"
  fi
  space=$(df -Pk "$ROOT/var/lib" 2>/dev/null)
  # shellcheck disable=SC2086 # these are several words
  set -- ${space##*"$newline"}
  say free "${4:-}"

  units
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
  encryption

  # A larger file is no certificate, and kubeadm's have no blanks in their names.
  # shellcheck disable=SC2044
  for path in $(find -L "$ROOT/etc/kubernetes/pki" -maxdepth 2 -name '*.crt' -size -40 2>/dev/null); do
    certificate "certificate.${path#"$ROOT"/etc/kubernetes/pki/}" "$path"
  done
  # What the kubelet serves with, where the cluster has signed it. Its key is beside it.
  serving=$ROOT/var/lib/kubelet/pki/kubelet-server-current.pem
  if [ -r "$serving" ]; then
    certificate serving "$serving"
  fi

  # The last line of the journal is the last action that was begun.
  if [ -f "$ROOT/var/lib/strata/journal" ]; then
    say journal "$(tail -n 1 "$ROOT/var/lib/strata/journal")"
  fi
  # What writes there is an action, and its last line may have started something.
  if [ -f "$ROOT/var/lib/strata/log" ]; then
    say worked "$(stat -c %Y "$ROOT/var/lib/strata/log" 2>/dev/null)"
  fi
  # A lock that is held is an action that goes on.
  if [ -f "$ROOT/var/lib/strata/action.lock" ] && ! flock -n -s "$ROOT/var/lib/strata/action.lock" true; then
    say busy 1
  fi
  say end 1
}

look | tr -cd '[:print:]\n'
