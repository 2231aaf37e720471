// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gather reads what answers are made from, with the rights of whoever asks: a
// client goes in, and a snapshot or a world comes out. It is the only package of the
// answers that has a client. It may import every other one, and nothing may import it
// but commands and pages.
package gather

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/internal/answers/snapshot"
)

// ControllerLabels are what the chart and the kustomization put on the controller's
// Deployment, among others.
const ControllerLabels = "app.kubernetes.io/name=strata"

// Options say how a cluster is reached. Config and Now must be set.
type Options struct {
	// Config says where the cluster is, and who asks.
	Config func() (*rest.Config, error)
	// Mapper knows the resources of kinds.
	Mapper func() (meta.RESTMapper, error)
	// Now returns the time.
	Now func() time.Time
	// Web sends the requests of clients; where it is nil, Config says how.
	Web *http.Client
	// Explain says what to do about an answer of the API server, where somebody asks for
	// a part; nil leaves errors as they are.
	Explain func(err error, of snapshot.Part) error
}

// Cluster is a cluster that is read. Its clients are made when something first needs
// them, and once. Its methods may be called at the same time.
type Cluster struct {
	now     func() time.Time
	web     *http.Client
	explain func(err error, of snapshot.Part) error

	config    func() (*rest.Config, error)
	mapper    func() (meta.RESTMapper, error)
	dynamic   func() (dynamic.Interface, error)
	discovery func() (discovery.DiscoveryInterface, error)
	typed     func() (kubernetes.Interface, error)
}

// New returns a cluster. Nothing is asked yet.
func New(o Options) *Cluster {
	c := &Cluster{now: o.Now, web: o.Web, explain: o.Explain, config: sync.OnceValues(o.Config)}
	if c.explain == nil {
		c.explain = func(err error, _ snapshot.Part) error { return err }
	}
	if o.Mapper != nil {
		c.mapper = sync.OnceValues(o.Mapper)
	}
	c.dynamic = sync.OnceValues(func() (dynamic.Interface, error) {
		return made(c, func(config *rest.Config, web *http.Client) (dynamic.Interface, error) {
			return dynamic.NewForConfigAndClient(config, web)
		})
	})
	c.discovery = sync.OnceValues(func() (discovery.DiscoveryInterface, error) {
		return made(c, func(config *rest.Config, web *http.Client) (discovery.DiscoveryInterface, error) {
			return discovery.NewDiscoveryClientForConfigAndClient(config, web)
		})
	})
	c.typed = sync.OnceValues(func() (kubernetes.Interface, error) {
		return made(c, func(config *rest.Config, web *http.Client) (kubernetes.Interface, error) {
			return kubernetes.NewForConfigAndClient(config, web)
		})
	})
	return c
}

// made makes a client.
func made[T any](c *Cluster, with func(*rest.Config, *http.Client) (T, error)) (client T, err error) {
	config, err := c.config()
	if err != nil {
		return client, err
	}
	web := c.web
	if web == nil {
		if web, err = rest.HTTPClientFor(config); err != nil {
			return client, fmt.Errorf("cannot use the kubeconfig: %w", err)
		}
	}
	if client, err = with(config, web); err != nil {
		return client, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	return client, nil
}

// Config returns how the cluster is reached.
func (c *Cluster) Config() (*rest.Config, error) { return c.config() }

// Dynamic returns the client for objects of any kind.
func (c *Cluster) Dynamic() (dynamic.Interface, error) { return c.dynamic() }

// Discovery returns the client that asks what the cluster serves.
func (c *Cluster) Discovery() (discovery.DiscoveryInterface, error) { return c.discovery() }

// Typed returns the client for what Kubernetes itself has.
func (c *Cluster) Typed() (kubernetes.Interface, error) { return c.typed() }
