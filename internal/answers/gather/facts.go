// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/strata-project/strata/internal/answers/checks"
)

// Facts reads what checks look at. Only a cluster that does not answer, or that
// does not know who asks, is an error.
func (c *Cluster) Facts(ctx context.Context, wanted checks.Wanted) (checks.Facts, error) {
	facts := checks.Facts{}
	client, err := c.Typed()
	if err != nil {
		return facts, err
	}
	objects, err := c.Dynamic()
	if err != nil {
		return facts, err
	}
	server, err := client.Discovery().ServerVersion()
	if err != nil {
		return facts, err
	}
	facts.Kubernetes = server.GitVersion
	if facts.Served, err = served(client, append(checks.FluxResources(), wanted.Resources()...)); err != nil {
		return facts, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		list, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
		if err == nil {
			facts.Deployments = list.Items
		}
		facts.DeploymentsErr, err = lacking(err)
		return err
	})
	group.Go(func() (err error) {
		list, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{LabelSelector: ControllerLabels})
		if err == nil {
			facts.Roles = list.Items
		}
		facts.RolesErr, err = lacking(err)
		return err
	})
	group.Go(func() (err error) {
		facts.CRDs, err = definitionsOf(ctx, objects, wanted)
		facts.CRDsErr, err = lacking(err)
		return err
	})
	group.Go(func() error {
		facts.Unshared, facts.UnsharedErr = c.unshared(ctx, c.ControllerNamespace(ctx))
		return nil // The rest of the check goes on without.
	})
	group.Go(func() (err error) {
		facts.May, err = MayDo(ctx, client, checks.CommandRights)
		facts.MayErr, err = lacking(err)
		return err
	})
	err = group.Wait()
	return facts, err
}

// lacking tells the answer that somebody may not read something, or that it is not
// served, from other errors.
func lacking(err error) (unread, fatal error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return err, nil
	}
	return nil, err
}

// served tells which resources the cluster serves.
func served(client kubernetes.Interface, wanted []schema.GroupVersionResource) (map[schema.GroupVersionResource]bool, error) {
	versions := map[schema.GroupVersion]bool{}
	for _, resource := range wanted {
		versions[resource.GroupVersion()] = true
	}
	found := map[schema.GroupVersionResource]bool{}
	for gv := range versions {
		list, err := client.Discovery().ServerResourcesForGroupVersion(gv.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			found[gv.WithResource(list.APIResources[i].Name)] = true
		}
	}
	return found, nil
}

// definitionsOf returns the CRDs of Strata that exist.
func definitionsOf(ctx context.Context, client dynamic.Interface, wanted checks.Wanted) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	definitions := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range wanted.CRDs {
		object, err := definitions.Get(ctx, crd.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[crd.Name] = &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found[crd.Name]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// MayDo asks which rights whoever runs the plug-in has.
func MayDo(ctx context.Context, client kubernetes.Interface, rights []checks.Right) (map[checks.Right]bool, error) {
	may := map[checks.Right]bool{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for _, right := range rights {
		group.Go(func() error {
			review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: right.Verb, Group: right.Group, Resource: right.Resource, Namespace: right.Namespace,
				}},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			may[right] = review.Status.Allowed
			return nil
		})
	}
	return may, group.Wait()
}
