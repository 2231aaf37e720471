# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# dnf_repository adds one repository, whose key is fetched from it where none is given. What
# it excludes is installed by this script alone.
dnf_repository() {
  name=$1 url=$2 keys=$3 key=$4 excluded=$5
  file=/etc/pki/rpm-gpg/$name.asc
  if [ -n "$key" ]; then
    put "$file" "$key"
  elif [ ! -s "$file" ]; then
    mkdir -p "${file%/*}"
    run curl -fsSL --connect-timeout 30 -o "$file.new" "$keys" || fail "cannot fetch $keys"
    chmod 644 "$file.new"
    mv "$file.new" "$file"
  fi
  put "/etc/yum.repos.d/$name.repo" "[$name]
name=$name
baseurl=$url
enabled=1
gpgcheck=1
gpgkey=file://$file
exclude=$excluded"
}

# is_rpm_installed tells whether the package of a file is installed, in any version.
is_rpm_installed() {
  rpm -q "$(rpm -qp --nosignature --qf '%{NAME}' "$1" 2>/dev/null)" >/dev/null 2>&1
}

# dnf_packages installs programs, and keeps others from upgrading them.
dnf_packages() {
  say "installs the packages of $VERSION"
  wanted=$*
  if [ -n "$PRELOADED" ]; then
    is_installed() { is_rpm_installed "$1"; }
    packages=$(preloaded - .rpm "$@") || fail "${packages#strata: failed: }"
    # shellcheck disable=SC2086 # these are several words
    must dnf -y --disablerepo='*' --setopt=install_weak_deps=False install $packages
    return 0
  fi
  if [ -n "$CONFIGURE_REPOSITORIES" ]; then
    url=$(in_format rpm "$KUBERNETES_REPOSITORY")
    dnf_repository strata-kubernetes "$url/" "$url/repodata/repomd.xml.key" "$KUBERNETES_KEY" "kubelet kubeadm kubectl cri-tools kubernetes-cni"
    # shellcheck disable=SC1091 # it is the host's
    id=$(. /etc/os-release && printf '%s' "${ID:-}")
    case $id in
    fedora | rhel) ;;
    *) id=centos ;; # it has what the others of the family need
    esac
    url=$(in_format rpm "$CONTAINERD_REPOSITORY")/$id
    # shellcheck disable=SC2016 # dnf knows these
    dnf_repository strata-containerd "$url"'/$releasever/$basearch/stable' "$url/gpg" "$CONTAINERD_KEY" "$CONTAINERD_PACKAGE"
  fi
  number=${VERSION#v}
  packages=
  for name in $wanted; do
    case $name in
    containerd) has containerd || packages="$packages $CONTAINERD_PACKAGE" ;;
    *) packages="$packages $name-$number" ;;
    esac
  done
  # shellcheck disable=SC2086 # these are several words
  must dnf -y --refresh --setopt=install_weak_deps=False --setopt=disable_excludes=all install $packages
}
