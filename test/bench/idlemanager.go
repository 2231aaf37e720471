// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/bench/report"
	"github.com/strata-project/strata/test/strata"
)

// idleManagerFlag has the process of a plain client hold what an idle controller holds.
const idleManagerFlag = "--idle-manager"

// idleManager is the limit of a controller at rest: a plain client whose process holds the
// caches of Strata's kinds and of those that it writes, and a lease, and does nothing with
// them.
type idleManager struct{ *plain }

func newIdleManager(*options) System {
	p := newPlain(report.IdleManager, methodApply)
	p.more = []string{idleManagerFlag}
	return &idleManager{p}
}

// Report returns what it is.
func (i *idleManager) Report() report.System {
	return report.System{
		Name: report.IdleManager, Flags: i.plain.Report().Flags,
		About: "plain-apply, whose process holds the caches and the lease of a controller that does nothing",
	}
}

// Start installs the chart for its kinds, and runs the process.
func (i *idleManager) Start(ctx context.Context, b *bed) error {
	if _, err := strata.Install(ctx, b.plane, nil); err != nil {
		return err
	}
	return i.plain.Start(ctx, b)
}

// heldKinds are those whose objects a controller of layers holds.
var heldKinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind(v1alpha1.AddonsLayerKind),
	v1alpha1.GroupVersion.WithKind("RemoteCluster"),
	v1alpha1.GroupVersion.WithKind("HelmApplication"),
	v1alpha1.GroupVersion.WithKind("ApplicationBundle"),
	v1alpha1.GroupVersion.WithKind("Platform"),
	v1alpha1.GroupVersion.WithKind("ClusterDiscovery"),
	v1alpha1.GroupVersion.WithKind(v1alpha1.CapabilityProviderKind),
	v1alpha1.GroupVersion.WithKind(v1alpha1.CapabilityClaimKind),
	{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
	{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "OCIRepository"},
	{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "Bucket"},
	{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
}

// holdCaches runs a manager that does nothing, until the context ends.
func holdCaches(ctx context.Context, kubeconfig string) error {
	ctrl.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	// The lease of Flux's controllers, which is Strata's, too.
	lease, renew, retry := 35*time.Second, 30*time.Second, 5*time.Second
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:        metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionNamespace: namespace, LeaderElectionID: report.IdleManager,
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry,
	})
	if err != nil {
		return fmt.Errorf("cannot make the manager: %w", err)
	}
	for _, kind := range heldKinds {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		if _, err := mgr.GetCache().GetInformer(ctx, object); err != nil {
			return fmt.Errorf("cannot hold %s: %w", kind.Kind, err)
		}
	}
	return mgr.Start(ctx)
}
