// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
)

// uncached reaches the cluster as the flags say, and keeps nothing on disk.
type uncached struct {
	*genericclioptions.ConfigFlags
	client discovery.CachedDiscoveryInterface
}

func newUncached(flags *genericclioptions.ConfigFlags) *uncached {
	return &uncached{ConfigFlags: flags}
}

// ToDiscoveryClient returns what asks the cluster for its kinds.
func (u *uncached) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	if u.client != nil {
		return u.client, nil
	}
	config, err := console.Config(u.ConfigFlags)
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

// Objects returns the objects of manifests.
func Objects(manifest string) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("cannot understand the manifests of the chart: %w", err)
		case len(object.Object) > 0:
			found = append(found, object)
		}
	}
}
