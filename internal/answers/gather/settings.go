// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/layers"
)

// defaultSettings are those of a controller that was given no flags. Its namespace
// is that of the chart.
var defaultSettings = layers.Settings{
	Interval: time.Minute, Namespace: "strata-system", MaxPrunePercent: 50, ReservedAccounts: accounts.OfFlux,
}

// settingsOf returns the settings of the controller, from the arguments of its
// Deployment, and the hosts that it fetches artifacts from; none where it does not
// say. known is false where there is none, or it may not be read.
func settingsOf(ctx context.Context, client kubernetes.Interface) (settings layers.Settings, hosts []string, known bool) {
	list, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: ControllerLabels})
	if err != nil || len(list.Items) == 0 {
		return defaultSettings, nil, false
	}
	return settingsIn(&list.Items[0]), hostsIn(&list.Items[0]), true
}

// hostsIn reads from the arguments of the controller's Deployment which hosts it
// fetches artifacts from.
func hostsIn(deployment *appsv1.Deployment) []string {
	var hosts []string
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, argument := range container.Args {
			if name, value, _ := strings.Cut(strings.TrimLeft(argument, "-"), "="); name == "artifact-hosts" && value != "" {
				hosts = append(hosts, strings.Split(value, ",")...)
			}
		}
	}
	return hosts
}

// fluxNamespace returns the namespace of source-controller: that of its Deployment,
// or the usual one where there is not exactly one that may be seen.
func fluxNamespace(ctx context.Context, client kubernetes.Interface) string {
	list, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=" + sourceController})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != sourceController {
		return "flux-system"
	}
	return list.Items[0].Namespace
}

// settingsIn reads the arguments of the controller's Deployment.
func settingsIn(deployment *appsv1.Deployment) layers.Settings {
	settings := defaultSettings
	settings.Namespace = deployment.Namespace
	if account := deployment.Spec.Template.Spec.ServiceAccountName; account != "" {
		settings.Account = types.NamespacedName{Namespace: deployment.Namespace, Name: account}
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			if variable.Name == "RUNTIME_NAMESPACE" && variable.Value != "" {
				settings.Namespace = variable.Value
			}
		}
		for _, argument := range container.Args {
			name, value, _ := strings.Cut(strings.TrimLeft(argument, "-"), "=")
			switch name {
			case "runtime-namespace":
				settings.Namespace = cmp.Or(value, settings.Namespace)
			case "sync-period":
				if period, err := time.ParseDuration(value); err == nil {
					settings.Interval = period
				}
			case "max-prune-percent":
				if percent, err := strconv.Atoi(value); err == nil {
					settings.MaxPrunePercent = percent
				}
			case "default-service-account":
				settings.DefaultServiceAccount = value
			case "no-cross-namespace-refs":
				settings.NoCrossNamespaceRefs = value != "false"
			case "no-secrets-in-names":
				settings.NoSecretsInNames = value != "false"
			case "source-namespaces":
				settings.SourceNamespaces = append(settings.SourceNamespaces, strings.Split(value, ",")...)
			case "require-service-account":
				settings.RequireServiceAccount = value != "false"
			case "artifact-hosts":
				settings.FluxNamespaces = layers.FluxNamespacesOf(itemsOf(value))
			case "own-name":
				settings.OwnName = value
			case "layer-kinds":
				if kinds, err := layers.ParseLayerKinds(itemsOf(value)); err == nil {
					settings.LayerKinds = kinds
				}
			case "reserved-service-accounts":
				settings.ReservedAccounts = itemsOf(value)
			}
		}
	}
	return settings
}

// itemsOf returns the items of a flag that may be empty.
func itemsOf(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
}
