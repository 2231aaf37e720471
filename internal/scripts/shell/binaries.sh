# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# binaries puts programs in place on a system that has no packages, such as Flatcar: each with
# the digest that stands beside it. Such a system brings its own containerd.
binaries() {
  say "fetches the programs of $VERSION"
  case $(uname -m) in
  x86_64) arch=amd64 ;;
  aarch64) arch=arm64 ;;
  *) fail "there are no programs for $(uname -m)" ;;
  esac
  from=$(printf '%s' "$BINARIES" | sed "s/{version}/$VERSION/g; s/{arch}/$arch/g")
  mkdir -p /opt/bin
  for name in "$@"; do
    if has "$name"; then continue; fi
    if [ "$name" = containerd ]; then
      fail "this system brings its own containerd, which is older than $CONTAINERD_LEAST.0, or lacks: update the system"
    fi
    run curl -fsSL --connect-timeout 30 -o "/opt/bin/$name.new" "$from/$name" || fail "cannot fetch $from/$name"
    run curl -fsSL --connect-timeout 30 -o "/opt/bin/$name.sum" "$from/$name.sha256" || fail "cannot fetch $from/$name.sha256"
    read -r wanted _ <"/opt/bin/$name.sum" || true # it may have no end of line
    found=$(sha256sum "/opt/bin/$name.new")
    rm -f "/opt/bin/$name.sum"
    if [ "${found%% *}" != "$wanted" ]; then
      rm -f "/opt/bin/$name.new"
      fail "$from/$name is not what its digest says"
    fi
    chmod 755 "/opt/bin/$name.new"
    sync "/opt/bin/$name.new"
    mv "/opt/bin/$name.new" "/opt/bin/$name"
  done
  binaries_units
}

# binaries_units has systemd run the kubelet as kubeadm's packages do, and containerd with the
# configuration that is written below /etc.
binaries_units() {
  put /etc/systemd/system/kubelet.service '[Unit]
Description=kubelet
Wants=network-online.target
After=network-online.target containerd.service

[Service]
ExecStart=/opt/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target' 600
  # The variables are systemd's and kubeadm's.
  # shellcheck disable=SC2016
  put /etc/systemd/system/kubelet.service.d/10-kubeadm.conf '[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
ExecStart=/opt/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS' 600
  put /etc/systemd/system/containerd.service.d/10-strata.conf '[Service]
Environment=CONTAINERD_CONFIG=/etc/containerd/config.toml' 600
  must systemctl daemon-reload
}
