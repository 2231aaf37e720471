// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import "time"

// WatchEvery watches the machine in periods that a test can wait for.
func (c *Client) WatchEvery(period time.Duration) { go c.watch(period) }
