# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

say "changes settings"
containers
# kubeadm writes the kubelet's configuration again, with what is different about the host.
must kubeadm upgrade node phase kubelet-config --patches "${KUBELET_PATCH_FILE%/*}"
must systemctl restart kubelet
if [ -n "$KUBEADM" ]; then
  trap 'rm -f "$WORK/kubeadm.yaml"' EXIT
  printf '%s\n' "$KUBEADM" >"$WORK/kubeadm.yaml"
  before=$(cat /etc/kubernetes/manifests/kube-apiserver.yaml 2>/dev/null) || true
  must kubeadm init phase control-plane apiserver --config "$WORK/kubeadm.yaml"
  if [ "$(cat /etc/kubernetes/manifests/kube-apiserver.yaml)" != "$before" ]; then
    say "starts its API server again"
    stop_static kube-apiserver
    start_static
  fi
  # What no API server is given any more has keys that nobody needs here.
  for file in /etc/kubernetes/strata/encryption-*.yaml; do
    case " $ENCRYPTION_KEPT " in *" $file "*) continue ;; esac
    rm -f "$file"
  done
fi
address "$VIRTUAL"
modes
say "has its settings"
