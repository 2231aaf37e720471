// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/internal/layers"
)

// defaultSettings are those of a controller that was given no flags. Its namespace
// is that of the chart.
var defaultSettings = layers.Settings{Interval: time.Minute, Namespace: "strata-system", MaxPrunePercent: 50}

// settingsOf returns the settings of the controller, from the arguments of its
// Deployment. known is false where there is none, or it may not be read.
func settingsOf(ctx context.Context, client kubernetes.Interface) (settings layers.Settings, known bool) {
	list, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: controllerLabels})
	if err != nil || len(list.Items) == 0 {
		return defaultSettings, false
	}
	return settingsIn(&list.Items[0]), true
}

// settingsIn reads the arguments of the controller's Deployment.
func settingsIn(deployment *appsv1.Deployment) layers.Settings {
	settings := defaultSettings
	settings.Namespace = deployment.Namespace
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
			case "source-namespaces":
				settings.SourceNamespaces = append(settings.SourceNamespaces, strings.Split(value, ",")...)
			case "require-service-account":
				settings.RequireServiceAccount = value != "false"
			}
		}
	}
	return settings
}

// throughServer carries requests for what only the cluster's own network reaches
// through the API server, to those who may: artifacts lie behind a Service.
type throughServer struct {
	direct, api http.RoundTripper
	server      *url.URL
}

func newThroughServer(config *rest.Config) (*throughServer, error) {
	api, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	direct := http.DefaultTransport.(*http.Transport).Clone()
	direct.DisableCompression = true
	return &throughServer{direct: direct, api: api, server: server}, nil
}

// RoundTrip sends a request to where its URL points, or to the API server's proxy
// where that is a Service.
func (t *throughServer) RoundTrip(request *http.Request) (*http.Response, error) {
	service, namespace, found := serviceOf(request.URL.Hostname())
	if !found {
		return t.direct.RoundTrip(request)
	}
	port := cmp.Or(request.URL.Port(), map[string]string{"http": "80", "https": "443"}[request.URL.Scheme])
	name := service + ":" + port
	if request.URL.Scheme == "https" {
		name = "https:" + name
	}
	proxied := request.Clone(request.Context())
	address := *t.server
	address.Path = path.Join("/", t.server.Path, "api/v1/namespaces", namespace, "services", name, "proxy", request.URL.Path)
	address.RawQuery = request.URL.RawQuery
	proxied.URL, proxied.Host = &address, address.Host
	// Archives are verified as they are stored.
	proxied.Header.Set("Accept-Encoding", "identity")
	return t.api.RoundTrip(proxied)
}

// serviceOf returns the Service that a name in the cluster's DNS stands for.
func serviceOf(host string) (service, namespace string, found bool) {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) < 3 || parts[2] != "svc" {
		return "", "", false
	}
	return parts[0], parts[1], true
}
