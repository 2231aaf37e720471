// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"sync"
)

// locks has one lock for each image that is asked for: a registry that takes its time holds up
// its own images alone. The zero value has none.
type locks struct {
	mu sync.Mutex
	of map[string]*lock
}

// lock is the lock of one image.
type lock struct {
	// held has one value while the image is asked for.
	held chan struct{}
	// users counts the holder and those that wait. The last one forgets the lock.
	users int
}

// take waits for the lock of an image, no longer than ctx lasts, and returns how it is given back.
func (l *locks) take(ctx context.Context, image Image) (release func(), err error) {
	key := image.String()
	l.mu.Lock()
	one := l.of[key]
	if one == nil {
		if l.of == nil {
			l.of = map[string]*lock{}
		}
		one = &lock{held: make(chan struct{}, 1)}
		l.of[key] = one
	}
	one.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		one.users--
		if one.users == 0 {
			delete(l.of, key)
		}
	}
	select {
	case one.held <- struct{}{}:
		return func() { <-one.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, fmt.Errorf("image %s is being asked for: %w", image, ctx.Err())
	}
}
