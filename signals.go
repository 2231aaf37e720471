// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/strata-project/strata/controllers"
	"github.com/strata-project/strata/internal/signals"
)

// addSignals has the controller tell what happens to layers and RemoteClusters: as
// metrics, and to Flux's notification-controller where its address is given.
func (o *options) addSignals(mgr manager.Manager, process *controllers.Process, collectors ...prometheus.Collector) error {
	collectors = append(collectors,
		signals.NewLayerMetrics(mgr.GetCache(), o.runtimeNamespace), signals.NewClusterMetrics(mgr.GetCache()), signals.NewPlatformMetrics(mgr.GetCache()),
	)
	if o.eventsAddr != "" {
		sender, err := signals.NewSender(signals.SenderOptions{URL: o.eventsAddr, Log: ctrl.Log.WithName("events")})
		if err != nil {
			return fmt.Errorf("cannot send events: %w", err)
		}
		if err := mgr.Add(sender); err != nil {
			return fmt.Errorf("cannot add what sends events: %w", err)
		}
		process.Notifier = sender
		// Without a name the events lack an instance, which nobody has to have.
		process.Instance, _ = os.Hostname()
		collectors = append(collectors, sender)
	}
	for _, collector := range collectors {
		if err := metrics.Registry.Register(collector); err != nil {
			return fmt.Errorf("cannot register metrics: %w", err)
		}
	}
	return nil
}
