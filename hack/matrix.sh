#!/usr/bin/env bash
# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the short end-to-end path on every supported version of Kubernetes with every
# supported version of Flux, and writes what was run into the table of docs/support.md.
# A combination that fails is in no row, and the exit code is 1.
set -euo pipefail
cd "$(dirname "$0")/.."

# The short path: layers in order, an upgrade, a prune, a drift, a deletion, gates, sources
# that are not git, the way back, and the plug-in.
short='^(TestSampleDeploysInOrder|TestEachLayerOfAChainFollowsAtOnce|TestUpgradeOfReleasesThatDependOnEachOtherKeepsTheOrder|TestRemovedReleaseIsUninstalledAfterItsGrace|TestMassPruneIsRefused|TestReleaseMovedBetweenLayersIsAdopted|TestDriftIsCorrectedAtOnce|TestDeletionWaitsForDependantsAndGoesInReverseOrder|TestKubernetesVersionThatIsMetPasses|TestFailedRevisionIsTakenBackAsAWhole|TestKindsOfSources|TestLayerHasTheRightsOfItsAccount|TestLayerOnRemoteCluster|TestPlatformStages|TestThePluginActs|TestThePluginInstalls)$'
short=${MATRIX_TESTS:-$short}
# What the earlier Flux does not do; docs/support.md says why.
older_flux_lacks='^(TestFailedRevisionIsTakenBackAsAWhole|TestPlatformStages)$'

go run ./hack/controlplane
go run ./hack/controlplane --older
newest=$(go run ./hack/controlplane --print-dir)
older=$newest-older
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The version of a program, as its pins have it.
pinned() { awk -v module="$2" '$1 == "require" {sub(/^require /, "")} $1 == module && $2 ~ /^v/ {print $2; exit}' "hack/controlplane/$1/go.mod"; }

rows=() failed=0
for kubernetes in newest older; do
  for flux in newest older; do
    folder=$work/$kubernetes-$flux
    mkdir "$folder"
    ln -s "$newest"/* "$folder"
    # Folders of definitions are copies: a link to one is not walked through.
    rm "$folder"/crds*
    cp -r "$newest"/crds* "$folder"
    if [[ $kubernetes == older ]]; then
      for name in kube-apiserver kube-controller-manager kube-scheduler; do ln -sf "$older/$name" "$folder"; done
    fi
    if [[ $flux == older ]]; then
      for name in source-controller helm-controller; do ln -sf "$older/$name" "$folder"; done
      rm "$folder"/crds/{source,helm}*
      cp "$older"/crds/* "$folder/crds"
    fi
    skip='^$'
    if [[ $flux == older ]]; then skip=$older_flux_lacks; fi
    at=${kubernetes/newest/} at=${at:+older/}
    of=${flux/newest/} of=${of:+older/}
    run="Kubernetes $(pinned "${at}kubernetes" k8s.io/kubernetes), source-controller $(pinned "${of}source-controller" github.com/fluxcd/source-controller), helm-controller $(pinned "${of}helm-controller" github.com/fluxcd/helm-controller)"
    echo "==> $run"
    if STRATA_CONTROLPLANE=$folder KUBEBUILDER_ASSETS=$folder GOGC=400 "$(hack/tools.sh --dir)/gotestsum" --format pkgname --jsonfile "$work/tests.json" -- \
      -trimpath -ldflags=-w -vet=off -count=1 -parallel 10 -timeout 20m -run "$short" -skip "$skip" ./test/e2e; then
      tests=$(grep -c '"Action":"pass","Package":"[^"]*","Test":"[^"/]*"' "$work/tests.json" || true)
      rows+=("| ${run//, / | } | $tests |")
    else
      failed=1
      echo "matrix: it fails with $run" >&2
    fi
  done
done
rows=("${rows[@]//| Kubernetes /| }")
rows=("${rows[@]//source-controller /}")
rows=("${rows[@]//helm-controller /}")
{
  sed '/<!-- matrix -->/q' docs/support.md
  printf '| Kubernetes | source-controller | helm-controller | tests that passed |\n|---|---|---|---|\n'
  printf '%s\n' "${rows[@]}"
  sed -n '/<!-- end of matrix -->/,$p' docs/support.md
} >"$work/support.md"
cp "$work/support.md" docs/support.md
exit "$failed"
