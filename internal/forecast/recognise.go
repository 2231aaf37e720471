// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// recognise finds out which Secrets of a layer are as its directory has them, and
// whether the directory is the one that is deployed. The digests in the status do not
// tell it: they need a key that the controller alone has. What the objects hold does,
// to whoever may read them. It returns the layer and the content with digests that are
// equal where they are the same.
func (f *future) recognise(layer *v1alpha1.AddonsLayer, content Content) (*v1alpha1.AddonsLayer, Content) {
	if content.Directory == nil {
		return layer, content
	}
	wanted, err := layers.Content(content.Directory, layer.Name, layer.Spec.Version, f.scopes)
	if err != nil {
		return layer, content
	}
	known := layer.DeepCopy()
	entries := map[objects.ID]int{}
	for i, entry := range layers.Inventory(known.Status.Resources, nil) {
		entries[entry.ID] = i
	}
	same := len(entries)
	for i := range wanted {
		d := &wanted[i]
		if d.Shared || d.Mode == dependents.ModeObserve {
			continue
		}
		at, listed := entries[d.ID]
		if !listed {
			same = -1
			continue
		}
		entry := &known.Status.Resources[at]
		obj, written := d.Object.Get()
		if live := f.objects[d.ID]; written && live != nil && entry.Digest != "" && (d.Confidential || digests.IsSecret(obj)) && holds(live, obj) {
			entry.Digest = d.Digest
		}
		if entry.Digest == d.Digest {
			same--
		}
	}
	was := ""
	if content.Source != nil {
		was = layers.DigestIn(known.Status, content.Source.Digest, known.Spec.Source.Path)
	}
	if attempt := known.Status.Attempt; was == "" && same == 0 && attempt != nil && attempt.Digest == known.Status.Digest {
		was = attempt.Digest
	}
	if digests.IsKeyed(was) {
		directory := *content.Directory
		directory.Digest = was
		content.Directory = &directory
	}
	return known, content
}

// holds tells whether a live Secret is as it is wanted.
func holds(live, wanted *unstructured.Unstructured) bool {
	wanted = asStored(wanted)
	return equality.Semantic.DeepEqual(Applied(live, wanted, fields.Rule{}).Object, live.Object)
}

// asStored returns a Secret as the API server stores it: all values in data, in the
// one way to write them.
func asStored(secret *unstructured.Unstructured) *unstructured.Unstructured {
	stored := secret.DeepCopy()
	data := map[string]any{}
	given, _, _ := unstructured.NestedMap(stored.Object, "data")
	maps.Copy(data, given)
	for key, value := range data {
		if text, is := value.(string); is {
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
				data[key] = base64.StdEncoding.EncodeToString(plain)
			}
		}
	}
	texts, _, _ := unstructured.NestedStringMap(stored.Object, "stringData")
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(stored.Object, "stringData")
	if len(data) > 0 {
		stored.Object["data"] = data
	}
	return stored
}
