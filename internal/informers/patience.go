// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// SetError notes whether the cluster answers. What waits for its answer goes on when it does.
func (c *Connection) SetError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	switch {
	case err != nil && c.answering == nil:
		c.answering = make(chan struct{})
	case err == nil && c.answering != nil:
		close(c.answering)
		c.answering = nil
	}
}

// Answers returns why the cluster does not answer; nil where it does, as far as is
// known. Nobody waits for a cluster of which it is known, but its watches.
func (c *Connection) Answers() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return fmt.Errorf("the cluster does not answer: %w", c.err)
	}
	return nil
}

// away is Answers of a connection that there may not be.
func (c *Connection) away() error {
	if c == nil {
		return nil
	}
	return c.Answers()
}

// untilAnswers waits while the cluster is known not to answer. A watch that asked it
// meanwhile would be told to wait longer each time, and would still wait when the cluster is
// back. No connection answers at once.
func (c *Connection) untilAnswers(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	answering := c.answering
	c.mu.Unlock()
	if answering == nil {
		return nil
	}
	select {
	case <-answering:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// doubt has the cluster be asked whether it answers, where an error of a watch says that it may
// not. Without that it would be asked at its interval, and its watches would have given up for
// longer by then.
func (c *Connection) doubt(err error) {
	if c == nil || !isNoAnswer(err) || c.Answers() != nil {
		return
	}
	select {
	case c.doubts() <- struct{}{}:
	default: // it is about to be asked
	}
}

// doubts returns the channel of doubts, which holds one.
func (c *Connection) doubts() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doubted == nil {
		c.doubted = make(chan struct{}, 1)
	}
	return c.doubted
}

// isNoAnswer tells whether an error is not what an API server that is well would say.
func isNoAnswer(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

// patiently returns what lists and watches the cluster and waits while that does not answer.
func (c *Connection) patiently(of toolscache.ListerWatcher) toolscache.ListerWatcher {
	over := toolscache.ToListerWatcherWithContext(of)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if err := c.untilAnswers(ctx); err != nil {
				return nil, err
			}
			list, err := over.ListWithContext(ctx, options)
			c.doubt(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if err := c.untilAnswers(ctx); err != nil {
				return nil, err
			}
			watching, err := over.WatchWithContext(ctx, options)
			c.doubt(err)
			return watching, err
		},
	}
}
