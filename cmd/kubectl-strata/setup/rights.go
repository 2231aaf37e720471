// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/checks"
	"github.com/strata-project/strata/internal/answers/gather"
)

// rights ends with an error that names all rights that whoever installs lacks,
// before anything is written.
func (i *installation) rights(ctx context.Context, facts checks.Facts, chart *chartv2.Chart, values map[string]any) error {
	rendered, err := i.render(facts, chart, values)
	if err != nil {
		return err
	}
	objects, err := Objects(rendered.Manifest)
	if err != nil {
		return err
	}
	client, err := i.Cluster.Typed()
	if err != nil {
		return err
	}
	wanted := i.wantedRights(objects)
	may, err := gather.MayDo(ctx, client, wanted)
	if err != nil {
		return fmt.Errorf("cannot ask for your rights: %w", err)
	}
	var missing []string
	for _, right := range wanted {
		if !may[right] {
			missing = append(missing, right.String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf(
			"nothing was done, for you lack rights in the namespace %s or in the cluster: %s; ask for them, or have an administrator install Strata",
			i.namespace,
			strings.Join(missing, ", "),
		)
	}
	roles, err := i.Cluster.Dynamic()
	if err != nil {
		return err
	}
	return i.grants(ctx, roles, objects)
}

// wantedRights returns what Helm does, each right once, sorted.
func (i *installation) wantedRights(objects []*unstructured.Unstructured) []checks.Right {
	var wanted []checks.Right
	add := func(group, resource, namespace string, verbs ...string) {
		for _, verb := range verbs {
			wanted = append(wanted, checks.Right{Verb: verb, Group: group, Resource: resource, Namespace: namespace})
		}
	}
	// Where Helm keeps what it has installed.
	add("", "secrets", i.namespace, "get", "list", "create", "update", "delete")
	if i.createNamespace {
		add("", "namespaces", "", "create")
	}
	for _, object := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		add(resource.Group, resource.Resource, object.GetNamespace(), "get", "create", "patch")
	}
	slices.SortFunc(wanted, func(a, b checks.Right) int { return strings.Compare(a.String()+a.Namespace, b.String()+b.Namespace) })
	return slices.Compact(wanted)
}

// grants has the API server say whether whoever installs may grant what the
// controller needs, which takes more than the right to write roles.
func (i *installation) grants(ctx context.Context, client dynamic.Interface, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() != "ClusterRole" {
			continue
		}
		data, err := object.MarshalJSON()
		if err != nil {
			return fmt.Errorf("cannot write ClusterRole %s: %w", object.GetName(), err)
		}
		force := true
		_, err = client.Resource(rbacv1.SchemeGroupVersion.WithResource("clusterroles")).Patch(ctx, object.GetName(), types.ApplyPatchType, data,
			metav1.PatchOptions{FieldManager: console.FieldManager, Force: &force, DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("nothing was done, for you may not grant the controller what you may not do yourself; have an administrator install Strata: %w", err)
		}
		if err != nil {
			return fmt.Errorf("cannot ask for ClusterRole %s: %w", object.GetName(), err)
		}
	}
	return nil
}
