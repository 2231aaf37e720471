# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Other hosts of the control plane find the authorities in a Secret, which is encrypted
# with a key that is in no log, and ends after two hours.
trap 'rm -f "$WORK/upload.yaml"' EXIT
printf '%s\n' "$KUBEADM" >"$WORK/upload.yaml"
say "offers its authorities to the host that joins"
must kubeadm init phase upload-certs --upload-certs --skip-certificate-key-print --config "$WORK/upload.yaml"
