// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package firstlayers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	releasecommon "helm.sh/helm/v4/pkg/release/common"

	"github.com/strata-project/strata/internal/answers/charts"
)

// helmController is who has the fields of what helm-controller installs. A release whose
// fields are somebody else's keeps those that a later version of its chart leaves out.
const helmController = "helm-controller"

// releaseTime is how long a release may take where it does not say, as with Flux.
const releaseTime = 5 * time.Minute

// install installs a release as helm-controller would, or goes on with one that was begun.
// It waits for what the release brings where another one needs it.
func (t *target) install(ctx context.Context, of *charts.Installable, wait bool) error {
	manager := kube.ManagedFieldsManager
	kube.ManagedFieldsManager = helmController
	defer func() { kube.ManagedFieldsManager = manager }()
	helm, err := t.helm(of)
	if err != nil {
		return err
	}
	last, err := t.release(of)
	if err != nil {
		return err
	}
	if last != nil && last.Info.Status.IsPending() {
		// Whoever holds the hosts and the Lease is alone: this one was killed.
		last.Info.Status, last.Info.Description = releasecommon.StatusFailed, "what installed it has ended"
		if err := helm.Releases.Update(last); err != nil {
			return fmt.Errorf("cannot go on with what was begun: %w", err)
		}
	}
	if last == nil {
		_, err = t.newInstall(ctx, helm, of, wait).RunWithContext(ctx, of.Chart, of.Values)
	} else {
		_, err = t.newUpgrade(ctx, helm, of, wait).RunWithContext(ctx, of.Name, of.Chart, of.Values)
	}
	return err
}

func waitFor(wait bool) kube.WaitStrategy {
	if wait {
		return kube.StatusWatcherStrategy
	}
	return kube.HookOnlyStrategy
}

func (t *target) newInstall(ctx context.Context, helm *action.Configuration, of *charts.Installable, wait bool) *action.Install {
	spec := of.Release.GetInstall()
	install := action.NewInstall(helm)
	install.ReleaseName, install.Namespace = of.Name, of.Namespace
	install.Timeout = cmp.Or(spec.GetTimeout(of.Release.GetTimeout()).Duration, releaseTime)
	install.WaitStrategy = waitFor(wait && !spec.DisableWait)
	install.ServerSideApply = spec.ServerSideApply == nil || *spec.ServerSideApply
	install.ForceConflicts = install.ServerSideApply
	install.TakeOwnership = !spec.DisableTakeOwnership
	install.DisableHooks, install.DisableOpenAPIValidation = spec.DisableHooks, spec.DisableOpenAPIValidation
	install.SkipSchemaValidation, install.SkipCRDs, install.Replace = spec.DisableSchemaValidation, spec.CRDs == helmv2.Skip, true
	install.CreateNamespace = spec.CreateNamespace && of.Release.Spec.TargetNamespace != ""
	install.PostRenderer, install.PostRenderStrategy = of.PostRenderer(ctx), strategyOf(of.Release)
	return install
}

func (t *target) newUpgrade(ctx context.Context, helm *action.Configuration, of *charts.Installable, wait bool) *action.Upgrade {
	spec := of.Release.GetInstall()
	upgrade := action.NewUpgrade(helm)
	upgrade.Namespace, upgrade.ResetValues = of.Namespace, true
	upgrade.Timeout = cmp.Or(spec.GetTimeout(of.Release.GetTimeout()).Duration, releaseTime)
	upgrade.WaitStrategy = waitFor(wait && !spec.DisableWait)
	upgrade.TakeOwnership = !spec.DisableTakeOwnership
	if upgrade.ServerSideApply = "true"; spec.ServerSideApply != nil && !*spec.ServerSideApply {
		upgrade.ServerSideApply = "false"
	}
	upgrade.ForceConflicts = upgrade.ServerSideApply == "true"
	upgrade.DisableHooks, upgrade.DisableOpenAPIValidation = spec.DisableHooks, spec.DisableOpenAPIValidation
	upgrade.SkipSchemaValidation, upgrade.SkipCRDs = spec.DisableSchemaValidation, true
	upgrade.PostRenderer, upgrade.PostRenderStrategy = of.PostRenderer(ctx), strategyOf(of.Release)
	return upgrade
}

// strategyOf says what is post-rendered, in Helm's words.
func strategyOf(release *helmv2.HelmRelease) action.PostRenderStrategy {
	switch release.Spec.PostRenderStrategy {
	case helmv2.PostRenderStrategyNoHooks:
		return action.PostRenderStrategyNoHooks
	case helmv2.PostRenderStrategySeparate:
		return action.PostRenderStrategySeparate
	}
	return action.PostRenderStrategyCombined
}
