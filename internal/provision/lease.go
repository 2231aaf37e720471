// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	leases "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/reserved"
)

const (
	// leaseName is the Lease in kube-system of who works on the cluster.
	leaseName = reserved.HostsLease
	// leaseTime is how long a Lease holds that is not renewed.
	leaseTime = 30 * time.Second
	// renewEvery is how often it is renewed.
	renewEvery = 5 * time.Second
	// askTime is how long one request may take.
	askTime = 10 * time.Second
)

// lease keeps others from the cluster who do not work over SSH, such as a controller, or
// who have another manifest.
type lease struct {
	client leases.LeaseInterface
	who    string
	now    func() time.Time
	stop   chan struct{}
	ended  sync.WaitGroup
}

// holdLease takes the Lease as soon as there is a cluster that answers, and keeps it until
// the worker releases it. One that somebody holds is waited for, until it is seen that it
// is renewed, or is not renewed in its time: clocks of machines are not compared. One whose
// holder's lock on a host has fallen is not waited for.
func (w *worker) holdLease(ctx context.Context, cancel context.CancelCauseFunc) error {
	if w.lease != nil || w.sight.Cluster == nil {
		return nil
	}
	l := &lease{client: w.sight.Cluster.Client.CoordinationV1().Leases(metav1.NamespaceSystem), who: w.identity, now: w.Now, stop: make(chan struct{})}
	first, err := l.take(ctx, func(found coordinationv1.LeaseSpec) bool {
		return w.restored || slices.Contains(w.fallen, holderOf(found))
	})
	if until := w.Now().Add(leaseTime); err == nil && first != nil {
		w.Report(Event{Message: "waits for " + printable.Line(holderOf(*first), 300) + ", who holds the Lease of the cluster", Until: until})
		for first != nil && err == nil {
			if err := pause(ctx); err != nil {
				return err
			}
			var now *coordinationv1.LeaseSpec
			now, err = l.take(ctx, func(coordinationv1.LeaseSpec) bool { return w.Now().After(until) })
			if now != nil && !now.RenewTime.Equal(first.RenewTime) {
				err = &LockedError{Where: "the cluster", Holder: printable.Line(holderOf(*now), 300)}
			}
			first = now
		}
	}
	if err != nil {
		return err
	}
	l.ended.Go(func() { l.keep(ctx, cancel) })
	w.lease = l
	return nil
}

func holderOf(spec coordinationv1.LeaseSpec) string {
	if spec.HolderIdentity == nil {
		return ""
	}
	return *spec.HolderIdentity
}

// keep renews the Lease until it is released. An API server may be away for a while: its
// cluster is being changed.
func (l *lease) keep(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
		}
		taken, err := l.take(ctx, func(coordinationv1.LeaseSpec) bool { return false })
		if err == nil && taken != nil {
			cancel(&LockedError{Where: "the cluster", Holder: printable.Line(holderOf(*taken), 300)})
			return
		}
	}
}

// take takes the Lease where nobody has it or may says that it may be taken, and renews it
// where we have it. It returns the Lease where somebody else keeps it.
func (l *lease) take(ctx context.Context, may func(coordinationv1.LeaseSpec) bool) (*coordinationv1.LeaseSpec, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	found, err := l.client.Get(ctx, leaseName, metav1.GetOptions{})
	isNew := apierrors.IsNotFound(err)
	if err != nil && !isNew {
		return nil, fmt.Errorf("cannot read the Lease %s in kube-system: %w", leaseName, err)
	}
	if isNew {
		found = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}}
	}
	spec, now := &found.Spec, metav1.NewMicroTime(l.now())
	if holder := holderOf(*spec); holder != l.who {
		if holder != "" && !may(*spec) {
			return spec, nil
		}
		spec.AcquireTime = &now
	}
	seconds := int32(leaseTime / time.Second)
	spec.HolderIdentity, spec.RenewTime, spec.LeaseDurationSeconds = &l.who, &now, &seconds
	if isNew {
		_, err = l.client.Create(ctx, found, metav1.CreateOptions{})
	} else {
		_, err = l.client.Update(ctx, found, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return nil, &LockedError{Where: "the cluster", Holder: "somebody has just begun"}
	case err != nil:
		return nil, fmt.Errorf("cannot write the Lease %s in kube-system: %w", leaseName, err)
	}
	return nil, nil
}

// release gives the Lease up, so that the next one need not wait.
func (l *lease) release() {
	if l == nil {
		return
	}
	close(l.stop)
	l.ended.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	found, err := l.client.Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil || found.Spec.HolderIdentity == nil || *found.Spec.HolderIdentity != l.who {
		return
	}
	found.Spec.HolderIdentity = nil
	_, _ = l.client.Update(ctx, found, metav1.UpdateOptions{}) // it ends by itself
}
