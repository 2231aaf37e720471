# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

ARG GO_VERSION=1.26
FROM --platform=${BUILDPLATFORM} golang:${GO_VERSION} AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
WORKDIR /src
# The modules are a layer of their own, so that a change of code fetches none.
COPY go.mod go.sum ./
RUN go mod download
COPY *.go ./
COPY api/ api/
COPY controllers/ controllers/
COPY internal/ internal/
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /strata .

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /strata /strata
# Numeric, so that runAsNonRoot can be checked without a passwd file.
USER 65532:65532
ENTRYPOINT ["/strata"]
