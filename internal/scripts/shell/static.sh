# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# listens tells whether something on the host listens at a port, which is given in hex.
listens() {
  while read -r _ local _ state _; do
    case $local:$state in
    *:"$1":0A) return 0 ;;
    esac
  done <<EOF
$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
EOF
  return 1
}

# port_of is where a component listens, in hex: 2379, 6443, 10257 or 10259.
port_of() {
  case $1 in
  etcd) printf 094B ;;
  kube-apiserver) printf 192B ;;
  kube-controller-manager) printf 2811 ;;
  *) printf 2813 ;;
  esac
}

# runs_some tells whether one of the components listens.
runs_some() {
  for name in "$@"; do
    if listens "$(port_of "$name")"; then return 0; fi
  done
  return 1
}

# stop_static has the kubelet end Pods of the control plane, by taking their manifests away,
# and waits for that.
stop_static() {
  mkdir -p "$STATE/manifests"
  for name in "$@"; do
    if [ -f "/etc/kubernetes/manifests/$name.yaml" ]; then
      mv "/etc/kubernetes/manifests/$name.yaml" "$STATE/manifests/$name.yaml"
    fi
  done
  must systemctl start kubelet
  tries=0
  while runs_some "$@"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ]; then
      fail "$* has not stopped in 5 minutes"
    fi
    sleep 1
  done
}

# start_static brings the manifests back that were taken away, also by a run before. The log
# tells by its time that Pods begin to start.
start_static() {
  printf '+ start_static\n' >>"$STATE/log"
  for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
    if [ -f "$STATE/manifests/$name.yaml" ]; then
      mv "$STATE/manifests/$name.yaml" "/etc/kubernetes/manifests/$name.yaml"
    fi
  done
}
