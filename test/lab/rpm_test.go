// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/strata-project/strata/test/lab"
)

// dnfPackages of Debian are dnf, and what makes packages and repositories for it.
var dnfPackages = strings.Fields(`createrepo-c dnf dnf-data gpg gpg-agent gpgconf libarchive13 libassuan0 libaudit1 libcap-ng0 libcomps0
	libcreaterepo-c0 libcurl3-gnutls libcurl4 libdnf2 libdrpm0 libdw1 libelf1 libexpat1 libffi8 libfsverity0 libglib2.0-0 libgpg-error0
	libgpgme11 libicu72 libjson-c5 libksba8 liblua5.3-0 libmagic-mgc libmagic1 libmodulemd2 libnpth0 libpopt0 libpython3-stdlib libpython3.11
	libpython3.11-minimal libpython3.11-stdlib libreadline8 librepo0 librpm9 librpmbuild9 librpmio9 librpmsign9 libsmartcols1 libsolv1
	libsolvext1 libsqlite3-0 libxml2 libyaml-0-2 libzck1 python3 python3-dnf python3-gpg python3-hawkey python3-libcomps python3-libdnf
	python3-minimal python3-rpm python3.11 python3.11-minimal rpm rpm-common`)

// becomeRocky has a host say that it is of the family of RHEL, with Debian's dnf. What that
// family has by its packages, the release and where rpm keeps its own, is told.
const becomeRocky = `set -eu
cp -a %[1]s/usr/. /usr/
cp -a %[1]s/lib/. /usr/lib/
cp -a %[1]s/etc/. /etc/
ldconfig
rm -f /etc/os-release
printf 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n' >/etc/os-release
mkdir -p /etc/dnf/vars /etc/rpm
echo 9 >/etc/dnf/vars/releasever
printf '%%%%_dbpath /var/lib/rpm\n%%%%__gpg /usr/bin/gpg\n' >/etc/rpm/macros
`

// pack is a function for scripts on a host: it makes a signed package of programs in
// /usr/bin, in a folder, by the key that is named KEY.
const pack = `set -eu
export GNUPGHOME=/var/lib/packer
pack() { # FOLDER NAME VERSION PROGRAM...
  folder=$1 name=$2 version=$3
  shift 3
  mkdir -p "$folder"
  {
    printf 'Name: %s\nVersion: %s\nRelease: 1\nSummary: %s\nLicense: none\nAutoReqProv: no\n' "$name" "$version" "$name"
    printf '%%description\n%%install\nmkdir -p %%{buildroot}/usr/bin\n'
    for program in "$@"; do printf 'cp %s %%{buildroot}/usr/bin/\n' "$program"; done
    printf '%%files\n'
    for program in "$@"; do printf '/usr/bin/%s\n' "$(basename "$program")"; done
  } >"/run/$name.spec"
  rpmbuild -bb --quiet --define '_topdir /run/packing' --define "_rpmdir $folder" --define '_rpmfilename %{NAME}-%{VERSION}.rpm' \
    --define '__os_install_post %{nil}' --define 'debug_package %{nil}' --define '_build_id_links none' --define '_binary_payload w1.zstdio' "/run/$name.spec"
  rpmsign --addsign --define "_gpg_name $KEY" "$folder/$name-$version.rpm" >/dev/null
  createrepo_c --quiet "$folder"
}
`

// A host of the family of RHEL without anything of Kubernetes gets its packages by the real
// dnf, and then becomes a cluster. Packages that somebody else has signed are not installed,
// and nobody upgrades them by accident.
func TestPackagesAreInstalledByDNF(t *testing.T) {
	t.Parallel()
	l := lab.NewBare(t, 1)
	u, host := userOf(t, l), l.Hosts()[0]
	root, err := lab.Debian(t.Context(), "dnf", dnfPackages...)
	if err != nil {
		t.Skipf("it needs Debian's dnf: %v", err)
	}
	u.run(host, fmt.Sprintf(becomeRocky, root))
	program := func(names ...string) string {
		var paths []string
		for _, name := range names {
			path, err := lab.Program(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			// What plays several programs is one file.
			paths = append(paths, fmt.Sprintf("/run/from/%s", name))
			u.run(host, fmt.Sprintf("mkdir -p /run/from; cp %s /run/from/%s", path, name))
		}
		return strings.Join(paths, " ")
	}
	u.run(host, pack+`mkdir -m 700 "$GNUPGHOME"
for KEY in Kubernetes Containerd; do
  gpg --batch --quiet --passphrase '' --quick-generate-key "$KEY" rsa3072 sign never
done
pack /var/lib/served/docker/centos/9/x86_64/stable containerd.io 2.2.0 `+program("containerd")+`
gpg --armor --export Containerd >/var/lib/served/docker/centos/gpg
KEY=Kubernetes
pack /var/lib/served/core/v1.36/rpm kubeadm 1.36.3 `+program("kubeadm", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")+`
pack /var/lib/served/core/v1.36/rpm kubelet 1.36.3 `+program("kubelet")+`
cd /var/lib/served
setsid python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 </dev/null &`)
	key := u.run(host, "GNUPGHOME=/var/lib/packer gpg --armor --export Kubernetes")

	stranger, err := openpgp.NewEntity("Somebody", "", "else@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	packages := func(key string) string {
		return "  packages:\n    containerd: {url: http://127.0.0.1:8000/docker}\n    kubernetes:\n      url: http://127.0.0.1:8000/core/{minor}/{format}\n      key: |\n        " +
			strings.ReplaceAll(strings.TrimSpace(key), "\n", "\n        ") + "\n"
	}
	u.add(packages((&repository{t: t, key: stranger}).armored()))
	u.must(2, []string{"plan"}, "Init cp-0", "rocky 9.6")
	u.must(1, []string{"apply", "--yes"}, "cp-0: dnf has failed: kubectl strata hosts logs has what it said")
	u.must(0, []string{"logs", "cp-0"}, "GPG check FAILED")
	if u.run(host, "command -v kubeadm || echo none") != "none\n" {
		t.Error("packages of a stranger were installed")
	}
	u.write("edge", host)
	u.add(packages(key))
	u.must(0, []string{"apply", "--yes"}, "cp-0 installs the packages of v1.36.3", "Done: ")

	u.run(host, "KEY=Kubernetes\n"+pack+"pack /var/lib/served/core/v1.36/rpm kubelet 1.36.4 /run/from/kubelet")
	if out := u.run(host, "dnf -y --refresh upgrade >&2; rpm -q kubelet containerd.io"); out != "kubelet-1.36.3-1.x86_64\ncontainerd.io-2.2.0-1.x86_64\n" {
		t.Errorf("packages are not held:\n%s", out)
	}
}
