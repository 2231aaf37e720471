// The CRDs of github.com/cloudnative-pg/cloudnative-pg, of which nothing is built.
module strata.invalid/hack/controlplane/cloudnative-pg

go 1.26.0

require github.com/cloudnative-pg/cloudnative-pg v1.28.0
