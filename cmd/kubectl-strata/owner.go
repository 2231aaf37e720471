// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/owner"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
)

const ownerLong = `Say who has an object: from the object up through what owns it, such as ReplicaSet
and Deployment, to the HelmRelease that made it, the layer that lists that, and the
file, source and revision from which the layer comes.

Where no layer has it, whoever else seems to have it is named: another release of
Helm's, a Kustomization of Flux, an Application of Argo CD. Of the object itself
only its metadata is read. The line in the file is not known.

Exit codes:
  0  a layer has the object
  1  it cannot be said
  2  no layer has the object`

const ownerExamples = `  # Who has installed this?
  kubectl strata owner deploy/metrics-server --namespace kube-system

  # Of any kind
  kubectl strata owner crd certificates.cert-manager.io

  # The file, for other programs
  kubectl strata owner helmrelease/web -n apps -o json`

// newOwner returns the command that says who has an object.
func newOwner(t *tool) *cobra.Command {
	var namespace, output string
	command := &cobra.Command{
		Use: "owner KIND/NAME", Short: "Say which layer, file and revision an object comes from", Long: ownerLong, Example: ownerExamples, Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			kind, name, err := kindAndName(args)
			if err != nil {
				return err
			}
			return t.owner(command.Context(), kind, name, namespace, output)
		},
	}
	command.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the object; defaults to that of the context")
	outputFlag(command, &output, "json", "yaml")
	return command
}

func kindAndName(args []string) (kind, name string, err error) {
	kind, name, _ = strings.Cut(args[0], "/")
	if len(args) == 2 {
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") || strings.Contains(kind, "/") {
		return "", "", errors.New("name one object, as KIND/NAME or KIND NAME: for example deploy/web")
	}
	return kind, name, nil
}

func (t *tool) owner(ctx context.Context, kind, name, namespace, output string) error {
	c, err := t.climber(namespace)
	if err != nil {
		return err
	}
	objects, err := c.climb(ctx, kind, name)
	if err != nil {
		return explain(err, t.flags, objectKind)
	}
	s, err := t.cluster.Read(ctx, snapshot.Layers, snapshot.Releases)
	if err != nil {
		return err
	}
	t.warnUnread(s, "what HelmReleases have made is known by labels alone")
	answer := owner.Of(s, objects)
	if output != "" {
		err = t.printAs(output, answer)
	} else {
		_, err = io.WriteString(t.out, printing.Owner(t.screen, answer))
	}
	if err == nil && !answer.Owned {
		return errDiffers
	}
	return err
}

// objectKind is any kind, for messages.
var objectKind = kind{noun: "object", plural: "objects", unknown: "the cluster does not serve that", resource: schema.GroupVersionResource{Resource: "the object's kind"}}

// climber goes from an object to what owns it.
type climber struct {
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
	request.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	return o.RoundTripper.RoundTrip(request)
}

func (t *tool) climber(namespace string) (*climber, error) {
	served, err := t.cluster.Discovery()
	if err != nil {
		return nil, err
	}
	config, err := t.cluster.Config()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return onlyMetadata{next} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	if namespace == "" {
		if namespace, _, err = t.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
		}
	}
	cached := memory.NewMemCacheClient(served)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	return &climber{client: client, mapper: mapper, namespace: namespace}, nil
}

// most bounds how many owners are followed, for owners may go in a circle.
const most = 10

// climb returns an object, and what owns it, as far as that can be read.
func (c *climber) climb(ctx context.Context, kind, name string) ([]*unstructured.Unstructured, error) {
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
	for len(objects) < most {
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
func (c *climber) mapping(written string) (*meta.RESTMapping, error) {
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

func (c *climber) objects(mapping *meta.RESTMapping) dynamic.ResourceInterface {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.client.Resource(mapping.Resource)
	}
	return c.client.Resource(mapping.Resource).Namespace(c.namespace)
}

func (c *climber) get(ctx context.Context, mapping *meta.RESTMapping, name string) (*unstructured.Unstructured, error) {
	object, err := c.objects(mapping).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	// What is sent as metadata alone does not say what it is of.
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	return object, nil
}

// missing says which object may have been meant.
func (c *climber) missing(ctx context.Context, mapping *meta.RESTMapping, name string) error {
	where, near := "", ""
	if mapping.Scope.Name() != meta.RESTScopeNameRoot {
		where = " in namespace " + c.namespace + " (--namespace chooses another)"
	}
	if list, err := c.objects(mapping).List(ctx, metav1.ListOptions{}); err == nil {
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].GetName())
		}
		if found := summary.Near(name, names); len(found) > 0 {
			near = "; did you mean " + strings.Join(found, " or ") + "?"
		}
	}
	return fmt.Errorf("there is no %s %s%s%s", mapping.GroupVersionKind.Kind, name, where, near)
}
