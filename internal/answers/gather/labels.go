// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/strata-project/strata/internal/objects"
)

// mostLabels bounds how many objects are asked for their labels.
const mostLabels = 20

// Labels reads the labels of some ConfigMaps and Secrets, and nothing else of them. What
// does not exist or may not be read is left out.
func (c *Cluster) Labels(ctx context.Context, all []objects.ID) (map[objects.ID]map[string]string, error) {
	if len(all) == 0 {
		return nil, nil
	}
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot read labels: %w", err)
	}
	resources := map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"}
	found := map[objects.ID]map[string]string{}
	for _, id := range all[:min(len(all), mostLabels)] {
		resource := schema.GroupVersionResource{Version: "v1", Resource: resources[id.Kind]}
		read, err := client.Resource(resource).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue // Nothing is said of what may not be read.
		}
		found[id] = read.Labels
	}
	return found, nil
}
