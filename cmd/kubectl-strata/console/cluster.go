// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Through returns a console of another cluster than the one that flags name.
func (c *Console) Through(config *rest.Config) *Console {
	other := *c
	nowhere := os.DevNull
	other.Flags = genericclioptions.NewConfigFlags(true)
	other.Flags.KubeConfig, other.Flags.APIServer, other.Flags.CacheDir = &nowhere, &config.Host, nil
	other.Flags.WrapConfigFn = func(*rest.Config) *rest.Config { return rest.CopyConfig(config) }
	other.Cluster = other.reached()
	return &other
}

// uncached is Uncached.
type uncached struct {
	*genericclioptions.ConfigFlags
	client discovery.CachedDiscoveryInterface
}

// Uncached returns what reaches the cluster of flags, and keeps nothing on disk.
func Uncached(flags *genericclioptions.ConfigFlags) genericclioptions.RESTClientGetter {
	return &uncached{ConfigFlags: flags}
}

// ToDiscoveryClient returns what asks the cluster for its kinds.
func (u *uncached) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	if u.client != nil {
		return u.client, nil
	}
	config, err := Config(u.ConfigFlags)
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	u.client = memory.NewMemCacheClient(client)
	return u.client, nil
}

// ToRESTMapper returns what knows the resource of a kind.
func (u *uncached) ToRESTMapper() (meta.RESTMapper, error) {
	client, err := u.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(client), client, nil), nil
}
