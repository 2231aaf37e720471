// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/moments"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// give returns what objects of the layer read beside them, as it is now and as far
// as it is given to them. What does not exist is left out.
func (o *observer) give(ctx context.Context, place placement.Place, origins []objects.ID) (map[objects.ID]placement.Given, error) {
	given := make(map[objects.ID]placement.Given, len(origins))
	for _, origin := range origins {
		found, err := o.giveOne(ctx, place, origin)
		if err != nil {
			return nil, err
		}
		if found != (placement.Given{}) {
			given[origin] = found
		}
	}
	return given, nil
}

// giveOne looks into one place after the other. Of the cluster that Strata runs in
// it reads metadata first, and the rest of what is given alone; of another one it
// reads what the layer's account may get.
func (o *observer) giveOne(ctx context.Context, place placement.Place, origin objects.ID) (placement.Given, error) {
	refusals := &placement.Refusals{}
	for _, at := range place.Places(origin) {
		verdict, seen, err := o.judge(ctx, place, origin, at, refusals.Looked())
		if err != nil {
			return placement.Given{}, err
		}
		if verdict.Given && at.Cluster == "" {
			if seen.Object, err = o.reads.followed(ctx, at); err != nil {
				return placement.Given{}, err
			}
			verdict = place.Judge(origin, at, seen) // now that all of it is known
		}
		if verdict.Given {
			return placement.Given{Object: seen.Object, By: verdict.By, Ending: verdict.Ending}, nil
		}
		refusals.Add(verdict)
	}
	return refusals.Given(), nil
}

// judge says whether what lies in a place is given, by what can be known of it
// without what it holds.
func (o *observer) judge(
	ctx context.Context,
	place placement.Place,
	origin, at objects.ID,
	seen placement.Looked,
) (placement.Verdict, placement.Looked, error) {
	if placement.IsReserved(at) {
		return place.Judge(origin, at, seen), seen, nil
	}
	var err error
	if at.Cluster != "" {
		if verdict, err := o.ruled(ctx, place, origin, at, &seen); err != nil || verdict.Barred != "" {
			return verdict, seen, err
		}
		seen.Object, err = o.origin(ctx, at)
	} else {
		seen.Object, err = o.reads.noticed(ctx, at)
	}
	if err != nil {
		return placement.Verdict{}, seen, err
	}
	if at.Kind == "Secret" {
		if err := o.kept(ctx, place, at, &seen); err != nil {
			return placement.Verdict{}, seen, err
		}
	}
	verdict, err := o.ruled(ctx, place, origin, at, &seen)
	if err != nil || !verdict.Unshared || at.Kind != "Secret" || at.Namespace != place.Cluster.Namespace {
		return verdict, seen, err
	}
	copied, err := o.reads.noticed(ctx, place.CopyOf(origin))
	if err != nil {
		return placement.Verdict{}, seen, err
	}
	seen.Copied = place.WasGiven(origin, copied)
	return place.Judge(origin, at, seen), seen, nil
}

// ruled returns the verdict on what is seen in a place, and asks for the rights of the
// layer's account where that hangs on them.
func (o *observer) ruled(ctx context.Context, place placement.Place, origin, at objects.ID, seen *placement.Looked) (placement.Verdict, error) {
	verdict := place.Judge(origin, at, *seen)
	if !verdict.Ask {
		return verdict, nil
	}
	answers := o.r.reviews
	if at.Cluster != "" {
		connected := o.r.remotes.Get(at.Cluster)
		if connected == nil {
			return placement.Verdict{}, fmt.Errorf("cannot read %s: %w", at, informers.ErrNotConnected)
		}
		answers = connected.Reviews
	}
	answer, err := answers.MayGet(ctx, place.ReadsAs(), at, o.Now, o.r.reviewKept())
	if err != nil {
		return placement.Verdict{}, err
	}
	seen.Allowed, seen.Unasked = &answer.Allowed, answer.Unasked
	o.AskAgain = moments.Earlier(o.AskAgain, answer.Until)
	return place.Judge(origin, at, *seen), nil
}

// reviewKept returns how long it is taken for true what an account may.
func (r *AddonsLayerReconciler) reviewKept() time.Duration {
	if r.reviewed != 0 {
		return r.reviewed
	}
	return informers.ReviewKept
}

// origin returns an object of another cluster that others read, or nil. Where the
// controller has no right to read it there is none: many a kubeconfig reaches no
// Secrets. Of a cluster that does not answer it is what was there last, and nobody
// waits for it.
func (o *observer) origin(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	if _, err := o.r.follows.Version(id); err != nil {
		if _, err := o.r.writesTo(id.Cluster); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", id, err)
		}
	}
	return o.reads.followedIfAllowed(ctx, id)
}
