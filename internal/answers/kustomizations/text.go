// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/kyaml/comments"
	"sigs.k8s.io/kustomize/kyaml/order"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// Text writes a layer as the document of a file, with the comments, and in the order, of
// the fields that it has from the document of the Kustomization; nil where there is none.
func Text(layer *unstructured.Unstructured, from []byte) ([]byte, error) {
	data, err := yaml.Marshal(layer.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot write layer %s: %w", layer.GetName(), err)
	}
	if len(bytes.TrimSpace(from)) == 0 {
		return data, nil
	}
	source, err := kyaml.Parse(string(from))
	if err != nil {
		return data, nil //nolint:nilerr // what cannot be read has no comments
	}
	written, err := kyaml.Parse(string(data))
	if err != nil {
		return nil, fmt.Errorf("cannot read what was written: %w", err)
	}
	if err := comments.CopyComments(source, written); err != nil {
		return nil, fmt.Errorf("cannot keep the comments of layer %s: %w", layer.GetName(), err)
	}
	if err := order.SyncOrder(source, written); err != nil {
		return nil, fmt.Errorf("cannot keep the order of layer %s: %w", layer.GetName(), err)
	}
	text, err := written.String()
	if err != nil {
		return nil, fmt.Errorf("cannot write layer %s: %w", layer.GetName(), err)
	}
	return []byte(text), nil
}
