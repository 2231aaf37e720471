// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"context"
	"fmt"
	"maps"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/strata-project/strata/internal/encryption"
)

// secrets is where Kubernetes keeps Secrets.
const secrets = Prefix + "secrets/"

// valuesAtOnce is how many Secrets are read at once, as long as they are small.
const valuesAtOnce = 256

// Providers returns with what the Secrets in etcd are written, in order. The error says that
// some are written by a key of somebody else.
func Providers(ctx context.Context, etcd clientv3.KV) ([]string, error) {
	found := map[string]bool{}
	limit := int64(valuesAtOnce)
	for from := secrets; ; {
		answer, err := etcd.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(secrets)), clientv3.WithLimit(limit))
		if status.Code(err) == codes.ResourceExhausted && limit > 1 {
			limit /= 4 // those are large
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read with what Secrets are encrypted in etcd: %w", err)
		}
		for _, each := range answer.Kvs {
			provider, err := encryption.ProviderOf(each.Value)
			if err != nil {
				return nil, err
			}
			found[provider] = true
		}
		if !answer.More || len(answer.Kvs) == 0 {
			return slices.Sorted(maps.Keys(found)), nil
		}
		from = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}
