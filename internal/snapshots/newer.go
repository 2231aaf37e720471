// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/strata-project/strata/internal/printable"
)

// maxKinds is how many kinds are told apart.
const maxKinds = 500

// page is how many keys are asked for at once.
const page = 1000

// Newer returns the revision of a member of etcd, and how many of its keys have changed after
// another revision, by the kinds of their objects. The member may have no majority: it says
// what it has itself.
func Newer(ctx context.Context, etcd *clientv3.Client, after int64) (revision int64, kinds map[string]int, err error) {
	kinds = map[string]int{}
	for from := Prefix; ; {
		answer, err := etcd.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(Prefix)), clientv3.WithKeysOnly(), clientv3.WithSerializable(),
			clientv3.WithMinModRev(after+1), clientv3.WithLimit(page))
		if err != nil {
			return 0, nil, fmt.Errorf("cannot ask what is newer: %w", err)
		}
		revision = answer.Header.Revision
		for _, each := range answer.Kvs {
			kind := kindOf(string(each.Key))
			if _, known := kinds[kind]; !known && len(kinds) >= maxKinds {
				kind = "others"
			}
			kinds[kind]++
		}
		if !answer.More || len(answer.Kvs) == 0 {
			return revision, kinds, nil
		}
		from = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}

// kindOf returns the kind of an object by its key: /registry/pods/NAMESPACE/NAME, and for
// most other groups /registry/GROUP/RESOURCE/...
func kindOf(key string) string {
	parts := strings.Split(strings.TrimPrefix(key, Prefix), "/")
	kind := parts[0]
	if kind == "minions" {
		kind = "nodes" // as they were called when the key was chosen
	}
	if strings.Contains(kind, ".") && len(parts) > 1 {
		kind = parts[1] + "." + kind
	}
	return printable.Line(kind, 100)
}
