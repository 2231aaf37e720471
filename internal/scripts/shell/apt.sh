# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# fetch writes what is at an address into a file.
fetch() {
  /usr/lib/apt/apt-helper download-file "$1" "$2.new" >>"$STATE/log" 2>&1 </dev/null || fail "cannot fetch $1"
  chmod 644 "$2.new"
  mv "$2.new" "$2"
}

# repository adds one repository, whose key is fetched from it where none is given.
repository() {
  name=$1 line=$2 keys=$3 key=$4
  mkdir -p /etc/apt/keyrings
  chmod 755 /etc/apt/keyrings
  if [ -n "$key" ]; then
    put "/etc/apt/keyrings/$name.asc" "$key"
  elif [ ! -s "/etc/apt/keyrings/$name.asc" ]; then
    fetch "$keys" "/etc/apt/keyrings/$name.asc"
  fi
  put "/etc/apt/sources.list.d/$name.list" "deb [signed-by=/etc/apt/keyrings/$name.asc] $line"
}

# is_installed tells whether the package of a file is installed, in any version.
is_installed() {
  dpkg-query -W -f '${db:Status-Status}\n' "$(dpkg-deb -f "$1" Package)" 2>/dev/null | grep -qx installed
}

# apt_packages installs programs, and keeps others from upgrading them.
apt_packages() {
  say "installs the packages of $VERSION"
  wanted=$*
  export DEBIAN_FRONTEND=noninteractive
  if [ -n "$PRELOADED" ]; then
    packages=$(preloaded _ .deb "$@") || fail "${packages#strata: failed: }"
    # shellcheck disable=SC2086 # these are several words
    must apt-get -q -y -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=/dev/null --no-install-recommends \
      --allow-change-held-packages -o Dpkg::Options::=--force-confold install $packages
    run apt-mark hold kubeadm kubelet "$CONTAINERD_PACKAGE" || true # containerd may come from elsewhere
    return 0
  fi
  if [ -n "$CONFIGURE_REPOSITORIES" ]; then
    url=$(in_format deb "$KUBERNETES_REPOSITORY")
    repository kubernetes "$url /" "$url/Release.key" "$KUBERNETES_KEY"
    # shellcheck disable=SC1091 # it is the host's
    codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    # shellcheck disable=SC1091 # it is the host's
    id=$(. /etc/os-release && printf '%s' "${ID:-}")
    url=$(in_format deb "$CONTAINERD_REPOSITORY")/$id
    repository containerd "$url $codename stable" "$url/gpg" "$CONTAINERD_KEY"
  fi
  must apt-get -q update
  number=${VERSION#v}
  packages=
  for name in $wanted; do
    case $name in
    containerd) has containerd || packages="$packages $CONTAINERD_PACKAGE" ;;
    *) packages="$packages $name=$number-*" ;;
    esac
  done
  # shellcheck disable=SC2086 # these are several words
  must apt-get -q -y --no-install-recommends --allow-change-held-packages -o Dpkg::Options::=--force-confold install $packages
  run apt-mark hold kubeadm kubelet "$CONTAINERD_PACKAGE" || true # containerd may come from elsewhere
}
