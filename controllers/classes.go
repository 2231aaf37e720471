// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// observeClasses finds out whether claims for volumes wait for their first consumer. Each
// StorageClass of a cluster is asked for once.
func (o *observer) observeClasses(ctx context.Context) error {
	o.Classes = map[objects.ID]layers.VolumeClass{}
	for _, id := range o.ClassesInQuestion() {
		waits, err := o.readClass(ctx, id)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsNotFound(err):
			o.Classes[id] = layers.VolumeClass{Unread: "does not exist"}
		case apierrors.IsForbidden(err) && id.Cluster != "":
			o.Classes[id] = layers.VolumeClass{Unread: "must not be read: the kubeconfig needs the verb get on storageclasses.storage.k8s.io"}
		case apierrors.IsForbidden(err):
			o.Classes[id] = layers.VolumeClass{Unread: "must not be read: the controller needs the verb get on storageclasses.storage.k8s.io"}
		case err != nil:
			o.Classes[id] = layers.VolumeClass{Unread: fmt.Sprintf("cannot be read: %v", err)}
		default:
			o.Classes[id] = layers.VolumeClass{WaitsForConsumers: waits}
		}
	}
	return nil
}

func (o *observer) readClass(ctx context.Context, id objects.ID) (waits bool, err error) {
	k := o.r.kindsOf(id.Cluster)
	if k == nil {
		return false, informers.ErrNotConnected
	}
	if waits, known := k.KnownClass(id.Name); known {
		return waits, nil
	}
	if unnoted := o.reads.unnoted(); id.Cluster != "" {
		if err := unnoted.remotes.Answers(id.Cluster); err != nil {
			return false, err
		}
	}
	return k.AskClass(ctx, id.Name)
}
