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

# stop_static has the kubelet end the Pods of the control plane, by taking their manifests
# away, and waits for that.
stop_static() {
  mkdir -p "$STATE/manifests"
  for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
    if [ -f "/etc/kubernetes/manifests/$name.yaml" ]; then
      mv "/etc/kubernetes/manifests/$name.yaml" "$STATE/manifests/$name.yaml"
    fi
  done
  must systemctl start kubelet
  tries=0
  # 2379, 6443, 10257 and 10259
  while listens 094B || listens 192B || listens 2811 || listens 2813; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ]; then
      fail "the control plane has not stopped in 5 minutes"
    fi
    sleep 1
  done
}

# start_static brings the manifests back that were taken away, also by a run before.
start_static() {
  for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
    if [ -f "$STATE/manifests/$name.yaml" ]; then
      mv "$STATE/manifests/$name.yaml" "/etc/kubernetes/manifests/$name.yaml"
    fi
  done
}
