// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// NewInformer returns an informer that lists in pages, also where an API server
// would answer with everything at once: with what it has in its own cache.
func NewInformer(lw toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	over := toolscache.ToListerWatcherWithContext(lw)
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return listPaged(ctx, options, over.ListWithContext)
		},
		WatchFuncWithContext: over.WatchWithContext,
	}, of, resync, by)
}

// listPaged lists everything, page by page. It asks for the newest version, as API
// servers answer without pages where any or a known one would do; and it never asks
// for everything at once, as a pager does where a page has expired.
func listPaged(ctx context.Context, options metav1.ListOptions, list toolscache.ListWithContextFunc) (runtime.Object, error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	})
	pages.FullListIfExpired = false
	if options.Limit == 0 || options.Limit > pages.PageSize {
		options.Limit = pages.PageSize
	}
	options.Continue, options.ResourceVersion, options.ResourceVersionMatch = "", "", ""
	all, _, err := pages.ListWithAlloc(ctx, options)
	return all, err
}
