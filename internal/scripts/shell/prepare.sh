# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# A kubelet wants no swap, forwarding, and bridges that netfilter sees.
prepare() {
  say "prepares the host"
  if [ "$(tail -n +2 /proc/swaps | wc -l)" -gt 0 ]; then
    must swapoff -a
    sed -i.before-strata 's/^\([^#].*[[:space:]]swap[[:space:]]\)/# \1/' /etc/fstab
  fi
  put /etc/modules-load.d/strata.conf "overlay
br_netfilter"
  for module in overlay br_netfilter; do
    if command -v modprobe >/dev/null 2>&1; then
      run modprobe "$module" || true # it may be built in
    fi
  done
  put /etc/sysctl.d/90-strata.conf "$SYSCTLS"
  printf '%s\n' "$SYSCTLS" | while IFS='= ' read -r key value; do
    file=/proc/sys/$(printf '%s' "$key" | tr . /)
    if [ -e "$file" ] && [ "$(cat "$file")" != "$value" ]; then
      printf '%s' "$value" >"$file"
    fi
  done
  packages kubeadm kubelet containerd
  containers
}

# has tells whether a program is there: of Kubernetes in its version, containerd in one that
# Kubernetes runs on.
has() {
  case $1 in
  containerd)
    # shellcheck disable=SC2046 # these are several words: a name, where it comes from, and its version
    set -- $(containerd --version 2>/dev/null)
    major=${3:-0}
    major=${major#v}
    [ "${major%%.*}" -ge "$CONTAINERD_LEAST" ] 2>/dev/null
    ;;
  kubeadm) [ "$(kubeadm version -o short 2>/dev/null)" = "$VERSION" ] ;;
  kubelet) [ "$(kubelet --version 2>/dev/null)" = "Kubernetes $VERSION" ] ;;
  *) command -v "$1" >/dev/null 2>&1 ;;
  esac
}

# lacks_some tells whether one of the programs is not there.
lacks_some() {
  for name in "$@"; do
    has "$name" || return 0
  done
  return 1
}

# in_format is the address of a repository that has packages of a format.
in_format() {
  printf '%s' "$2" | sed "s/{format}/$1/g"
}

# preloaded lists the packages of a folder of the host, by what stands between a name and its
# version, and by their ending: those of the programs that are missing, of containerd the
# newest. The others, which the programs need, are listed where they are not installed.
preloaded() {
  between=$1 ending=$2
  shift 2
  for name in "$@"; do
    has "$name" && continue
    pattern=$name$between${VERSION#v}
    if [ "$name" = containerd ]; then
      pattern=$CONTAINERD_PACKAGE$between
    fi
    file=$(printf '%s\n' "$PRELOADED/$pattern"*"$ending" | sort -V | tail -n 1)
    if [ ! -f "$file" ]; then
      fail "$PRELOADED has no $pattern*$ending"
    fi
    printf '%s ' "$file"
  done
  for file in "$PRELOADED"/*"$ending"; do
    case ${file##*/} in
    kubeadm"$between"* | kubelet"$between"* | kubectl"$between"* | "$CONTAINERD_PACKAGE$between"*) ;;
    *) if [ -f "$file" ] && ! is_installed "$file"; then printf '%s ' "$file"; fi ;;
    esac
  done
}

# packages installs those of the programs that are missing.
packages() {
  lacks_some "$@" || return 0
  # shellcheck disable=SC1091 # it is the host's
  id=$(. /etc/os-release && printf '%s %s' "${ID:-}" "${ID_LIKE:-}")
  case " $id " in
  *" flatcar "*) binaries "$@" ;;
  *" debian "* | *" ubuntu "*) apt_packages "$@" ;;
  *" rhel "* | *" centos "* | *" fedora "*) dnf_packages "$@" ;;
  *) fail "this host is of no family that packages are known for (Debian, Ubuntu, RHEL, Fedora, Flatcar), and lacks $* of $VERSION: install them" ;;
  esac
  if lacks_some "$@"; then
    fail "the packages are installed, and one of $* is not as it must be: kubeadm and kubelet of $VERSION, or containerd $CONTAINERD_LEAST.0 and later"
  fi
}

# containers has containerd run, with its configuration.
containers() {
  restart=
  put /etc/containerd/config.toml "$CONTAINERD"
  restart=$restart$CHANGED
  mirrors
  if [ -n "$restart" ] && systemctl is-active --quiet containerd; then
    must systemctl restart containerd
  fi
  must systemctl enable --now containerd
  must systemctl enable kubelet
  put "$KUBELET_PATCH_FILE" "$KUBELET_PATCH"
  api_files
}
