// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/fields"
)

// isRefused tells whether the API server may refuse a change because of what the object is
// now. It says the same of a field that is wrong.
func isRefused(err error) bool {
	text := err.Error()
	return apierrors.IsInvalid(err) || strings.Contains(text, "immutable") || strings.Contains(text, "typed live object")
}

// refused deals with an object that cannot be changed into what is wanted. It first asks
// whether that could be created: the API server looks at what an object holds before it
// looks whether there is one. If not, the manifest is wrong, and deleting the object
// would leave nothing. Otherwise the live object is in the way. Where it may be made again
// it is deleted, so that the next look creates it.
func (r *clusterRun) refused(ctx context.Context, action dependents.Action, live *unstructured.Unstructured, refusal error) error {
	created := action.Wanted.Created(r.owner, r.Keys)
	withoutAllocated(created)
	err := call(ctx, func(ctx context.Context) error {
		return r.Client.Create(ctx, created, client.DryRunAll, strictly, client.FieldOwner(dependents.FieldManager))
	})
	if !apierrors.IsAlreadyExists(err) {
		return refusal
	}
	if !action.Wanted.Recreate {
		return liveState(live, refusal)
	}
	stub := &unstructured.Unstructured{}
	stub.SetGroupVersionKind(action.Wanted.Manifest().GroupVersionKind())
	stub.SetNamespace(action.ID.Namespace)
	stub.SetName(action.ID.Name)
	return call(ctx, func(ctx context.Context) error {
		return r.Client.Delete(ctx, stub, client.Preconditions{UID: &action.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
}

// withoutAllocated takes off what a Service asks for by name and has got already: the API
// server would refuse to give it out twice before it finds that the Service is there.
func withoutAllocated(obj *unstructured.Unstructured) {
	if obj.GetKind() != "Service" || obj.GetAPIVersion() != "v1" {
		return
	}
	spec, _ := obj.Object["spec"].(map[string]any)
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if item, is := port.(map[string]any); is {
			delete(item, "nodePort")
		}
	}
}

// liveState says what of a live object is in the way, and who has written it. live is nil
// where that was not read.
func liveState(live *unstructured.Unstructured, refusal error) error {
	found := &dependents.LiveStateError{Err: refusal}
	var status apierrors.APIStatus
	if !errors.As(refusal, &status) || status.Status().Details == nil || live == nil {
		return found
	}
	for _, cause := range status.Status().Details.Causes {
		path := strings.SplitN(strings.SplitN(cause.Field, "[", 2)[0], ".", 3)
		if len(path) < 2 || path[0] == "metadata" {
			continue
		}
		found.Field = strings.Join(path[:2], ".")
		found.Managers = fields.ManagersOf(live, path[:2]...)
		break
	}
	found.Managers = slices.DeleteFunc(found.Managers, func(manager string) bool { return manager == dependents.FieldManager })
	return found
}
