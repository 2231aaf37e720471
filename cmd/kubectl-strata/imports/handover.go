// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/objects"
)

// pollPeriod is how often it is looked whether a controller has seen something.
const pollPeriod = 300 * time.Millisecond

// handOver hands Kustomizations over to layers, or gives them back.
type handOver struct {
	*fluxImport
	client dynamic.Interface
	mapper meta.RESTMapper
}

func (i *fluxImport) handOver() (*handOver, error) {
	client, err := i.Cluster.Dynamic()
	if err != nil {
		return nil, err
	}
	mapper, err := i.Flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	return &handOver{i, client, mapper}, nil
}

// inventory returns a Kustomization, and the objects that it has applied.
func (h *handOver) inventory(ctx context.Context, of types.NamespacedName) (*unstructured.Unstructured, []objects.ID, error) {
	live, err := h.kustomization(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	read, err := kustomizations.Read(live)
	if err != nil {
		return nil, nil, err
	}
	ids, err := kustomizations.InventoryOf(read.Status.Inventory)
	return live, ids, err
}

func (h *handOver) kustomization(ctx context.Context, of types.NamespacedName) (*unstructured.Unstructured, error) {
	return h.client.Resource(snapshot.Kustomizations.GroupVersionResource).Namespace(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
}

// layer returns a layer; nil where there is none.
func (h *handOver) layer(ctx context.Context, name string) (*v1alpha1.AddonsLayer, error) {
	live, err := h.client.Resource(snapshot.Layers.GroupVersionResource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, h.Explain(err, snapshot.Layers)
	}
	layer := &v1alpha1.AddonsLayer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, layer); err != nil {
		return nil, fmt.Errorf("cannot understand layer %s: %w", name, err)
	}
	return layer, nil
}

// patch patches a Kustomization.
func (h *handOver) patch(
	ctx context.Context,
	live *unstructured.Unstructured,
	patch map[string]any,
	subresources ...string,
) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("cannot write the patch: %w", err)
	}
	_, err = h.client.Resource(snapshot.Kustomizations.GroupVersionResource).Namespace(live.GetNamespace()).
		Patch(ctx, live.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: console.ActManager}, subresources...)
	if err != nil {
		return h.Explain(err, snapshot.Kustomizations)
	}
	return nil
}

// resource returns what reads and writes an object.
func (h *handOver) resource(id objects.ID) (dynamic.ResourceInterface, error) {
	mapping, err := h.mapper.RESTMapping(id.GroupKind())
	if err != nil {
		return nil, fmt.Errorf("cannot find the kind of %s: %w", id, err)
	}
	if id.Namespace == "" {
		return h.client.Resource(mapping.Resource), nil
	}
	return h.client.Resource(mapping.Resource).Namespace(id.Namespace), nil
}

// await waits until something is so.
func (h *handOver) await(ctx context.Context, what string, is func() (bool, error)) error {
	limit, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	ticker := time.NewTicker(pollPeriod)
	defer ticker.Stop()
	for {
		done, err := is()
		if err != nil || done {
			return err
		}
		select {
		case <-limit.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("it was not seen within %s that %s", h.timeout, what)
		case <-ticker.C:
		}
	}
}
