module github.com/strata-project/strata/hack/tools/protogen

go 1.26.0

tool github.com/strata-project/strata/hack/tools/protogen

require (
	github.com/bufbuild/protocompile v0.14.1
	google.golang.org/protobuf v1.36.11
)

require golang.org/x/sync v0.8.0 // indirect
