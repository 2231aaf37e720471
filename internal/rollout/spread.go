// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"time"
)

// Offset returns how long after the first moment a cluster begins, from 0 up to
// but not including spread: always the same for the same Platform, by its UID, and
// cluster, and evenly distributed over them. It is 0 where spread is not positive.
func Offset(uid, cluster string, spread time.Duration) time.Duration {
	if spread <= 0 {
		return 0
	}
	// A UID has no zero byte, so that no two pairs are the same text.
	sum := sha256.Sum256([]byte(uid + "\x00" + cluster))
	offset, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), uint64(spread))
	return time.Duration(offset) //nolint:gosec // less than spread, which is a Duration
}
