// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

// Kustomizations are what was found of Flux's Kustomizations.
type Kustomizations struct {
	Found []kustomizations.Found
	// Texts are the documents that they stand in, as files have them.
	Texts map[types.NamespacedName][]byte
	// Handed holds the layers that were made of Kustomizations, by these.
	Handed map[types.NamespacedName]string
	// Account is that of Kustomizations which name none.
	Account kustomizations.DefaultAccount
	// Problems say what could not be looked into.
	Problems []string
}

// Kustomizations reads those of a cluster.
func (c *Cluster) Kustomizations(ctx context.Context) (*Kustomizations, error) {
	client, err := c.Dynamic()
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(snapshot.Kustomizations.GroupVersionResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.explain(err, snapshot.Kustomizations)
	}
	k := &Kustomizations{Handed: map[types.NamespacedName]string{}}
	// A cluster without Strata has no layers.
	if made, err := client.Resource(snapshot.Layers.GroupVersionResource).List(ctx, metav1.ListOptions{}); err == nil {
		for i := range made.Items {
			record, err := kustomizations.ReadRecord(made.Items[i].GetAnnotations()[v1alpha1.TakenOverAnnotation])
			if err == nil {
				k.Handed[record.Key()] = made.Items[i].GetName()
			}
		}
	}
	if k.Account, err = c.fluxAccount(ctx); err != nil {
		return nil, err
	}
	for i := range list.Items {
		found, err := kustomizations.Live(&list.Items[i])
		if err != nil {
			k.Problems = append(k.Problems, fmt.Sprintf("Kustomization %s/%s: %v", list.Items[i].GetNamespace(), list.Items[i].GetName(), err))
			continue
		}
		k.Found = append(k.Found, found)
	}
	return k, nil
}
