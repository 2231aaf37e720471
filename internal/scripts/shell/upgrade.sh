# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# The first host takes what the cluster itself has to the version, all others what is
# theirs. What of it is done already is done again, and changes nothing. The kubelet comes
# last: it may be older than its API server, and not newer.
journal ""
say "upgrades to $VERSION"
packages kubeadm
api_files
if [ -n "$LEADS" ]; then
  say "runs kubeadm upgrade apply"
  must kubeadm upgrade apply "$VERSION" --yes --patches "${KUBELET_PATCH_FILE%/*}" --ignore-preflight-errors="$IGNORED"
else
  say "runs kubeadm upgrade node"
  must kubeadm upgrade node --patches "${KUBELET_PATCH_FILE%/*}" --ignore-preflight-errors="$IGNORED"
fi
packages kubelet
must systemctl daemon-reload
must systemctl restart kubelet
address "$VIRTUAL"
modes
journal ',"ended":true'
say "has $VERSION"
