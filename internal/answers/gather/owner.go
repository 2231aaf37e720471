// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/strata-project/strata/internal/near"
)

// Climber goes from an object to what owns it.
type Climber struct {
	client    dynamic.Interface
	mapper    meta.RESTMapper
	namespace string
}

// onlyMetadata asks for the metadata of objects alone, so that what is in a Secret
// does not even leave the cluster.
type onlyMetadata struct{ http.RoundTripper }

// RoundTrip sends a request.
func (o onlyMetadata) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set(
		"Accept",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
	)
	return o.RoundTripper.RoundTrip(request)
}

// Climber returns what begins at objects of a namespace.
func (c *Cluster) Climber(namespace string) (*Climber, error) {
	served, err := c.Discovery()
	if err != nil {
		return nil, err
	}
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return onlyMetadata{next} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	cached := memory.NewMemCacheClient(served)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	return &Climber{client: client, mapper: mapper, namespace: namespace}, nil
}

// MostOwners bounds how many owners are followed, for owners may go in a circle.
const MostOwners = 10

// Climb returns an object, and what owns it, as far as that can be read.
func (c *Climber) Climb(ctx context.Context, kind, name string) ([]*unstructured.Unstructured, error) {
	mapping, err := c.mapping(kind)
	if err != nil {
		return nil, err
	}
	object, err := c.get(ctx, mapping, name)
	if apierrors.IsNotFound(err) {
		return nil, c.missing(ctx, mapping, name)
	}
	if err != nil {
		return nil, err
	}
	objects := []*unstructured.Unstructured{object}
	for len(objects) < MostOwners {
		ref := metav1.GetControllerOf(object)
		if ref == nil {
			return objects, nil
		}
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil {
			return objects, nil //nolint:nilerr // an owner that cannot be understood is where it ends
		}
		mapping, err := c.mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: ref.Kind}, gv.Version)
		if err != nil {
			return objects, nil //nolint:nilerr // so is one of a kind that is not served
		}
		c.namespace = object.GetNamespace()
		if object, err = c.get(ctx, mapping, ref.Name); err != nil || object.GetUID() != ref.UID {
			return objects, nil //nolint:nilerr // and one that is gone, or may not be read
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// mapping finds a kind by any of its names.
func (c *Climber) mapping(written string) (*meta.RESTMapping, error) {
	full, group := schema.ParseResourceArg(strings.ToLower(written))
	var gvk schema.GroupVersionKind
	err := error(&meta.NoResourceMatchError{})
	if full != nil {
		gvk, err = c.mapper.KindFor(*full)
	}
	if err != nil {
		gvk, err = c.mapper.KindFor(group.WithVersion(""))
	}
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster has no kind %s; kubectl api-resources lists those it has", written)
	}
	if err != nil {
		return nil, err
	}
	return c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

func (c *Climber) objects(mapping *meta.RESTMapping) dynamic.ResourceInterface {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.client.Resource(mapping.Resource)
	}
	return c.client.Resource(mapping.Resource).Namespace(c.namespace)
}

func (c *Climber) get(ctx context.Context, mapping *meta.RESTMapping, name string) (*unstructured.Unstructured, error) {
	object, err := c.objects(mapping).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	// An answer of metadata alone does not name the object's kind.
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	return object, nil
}

// missing says which object may have been meant.
func (c *Climber) missing(ctx context.Context, mapping *meta.RESTMapping, name string) error {
	where, meant := "", ""
	if mapping.Scope.Name() != meta.RESTScopeNameRoot {
		where = " in namespace " + c.namespace + " (--namespace chooses another)"
	}
	if list, err := c.objects(mapping).List(ctx, metav1.ListOptions{}); err == nil {
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].GetName())
		}
		if found := near.Near(name, names); len(found) > 0 {
			meant = "; did you mean " + strings.Join(found, " or ") + "?"
		}
	}
	return fmt.Errorf("there is no %s %s%s%s", mapping.GroupVersionKind.Kind, name, where, meant)
}
