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

# has tells whether a program is there: of Kubernetes in its version, containerd in any.
has() {
  case $1 in
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

# packages installs those of the programs that are missing.
packages() {
  lacks_some "$@" || return 0
  # shellcheck disable=SC1091 # it is the host's
  id=$(. /etc/os-release && printf '%s %s' "${ID:-}" "${ID_LIKE:-}")
  case " $id " in
  *" debian "* | *" ubuntu "*) apt_packages "$@" ;;
  *" rhel "* | *" centos "* | *" fedora "*) dnf_packages "$@" ;;
  *) fail "this host is of no family that packages are known for (Debian, Ubuntu, RHEL, Fedora), and lacks $* of $VERSION: install them" ;;
  esac
  if lacks_some "$@"; then
    fail "the packages are installed, and one of $* is not as it must be"
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
