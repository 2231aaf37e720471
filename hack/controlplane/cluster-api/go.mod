// The CRDs of sigs.k8s.io/cluster-api, of which nothing is built.
module strata.invalid/hack/controlplane/cluster-api

go 1.26.0

require sigs.k8s.io/cluster-api v1.14.2
