// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"maps"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// keyed is a layer with a Secret that a controller has deployed whose key is not known
// here.
func keyed(t *testing.T, secret string) *platform {
	t.Helper()
	p := newPlatform(t)
	p.world.Scopes[objects.ServedKind{GroupKind: schema.GroupKind{Kind: "Secret"}}] = objects.ScopeNamespaced
	p.layer("base", "1.0.0")
	p.release("base", "mesh", "1.0.0")
	p.secret(secret)
	check(t, "all is new", p.happens(), "1 base Write pin", "1 base Write mesh")
	data := make([]byte, 32)
	for i := range data {
		data[i] = byte(i)
	}
	key, err := digests.NewKey(data)
	if err != nil {
		t.Fatal(err)
	}
	directory := p.contents(t)["base"].Directory
	layer := p.at("base")
	digest := key.OfDirectory(directory.Manifests)
	layer.Status.Digest, layer.Status.Attempt.Digest = digest, digest
	for i := range layer.Status.History {
		layer.Status.History[i].Digest = digest
	}
	resources := layers.Inventory(layer.Status.Resources, nil)
	wanted, err := layers.Content(directory, "base", "1.0.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range resources {
		for _, d := range wanted {
			if d.ID == resources[i].ID && digests.IsSecret(d.Manifest()) {
				resources[i].Digest = key.OfObject(d.Manifest(), false)
			}
		}
	}
	layer.Status.Resources = layers.Resources(resources)
	return p
}

// secret writes the Secret of the layer base.
func (p *platform) secret(fields string) {
	p.files["base/pin.yaml"] = &fstest.MapFile{Data: []byte(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: pin, namespace: apps}\n%s\n", fields))}
}

// What the API server made of a Secret is compared with the directory, where the
// digests of the status cannot be.
func TestSecretsAreComparedByWhatTheyHold(t *testing.T) {
	p := keyed(t, "data: {pin: NDcxMA==}")
	check(t, "nothing has changed", p.make())
	if e := end(t, p.make(), "base"); e.State != v1alpha1.StateDeployed {
		t.Errorf("the layer ends as %s: %s", e.State, e.Message)
	}
	for what, fields := range map[string]string{
		"the same in other words":  "stringData: {pin: '4710'}",
		"the same, in both fields": "data: {pin: MQ==}\nstringData: {pin: '4710'}",
	} {
		p.secret(fields)
		check(t, what, p.make())
	}
	for what, fields := range map[string]string{
		"another value": "data: {pin: NDcxMQ==}",
		"another key":   "data: {pin: NDcxMA==, more: NDcxMA==}",
		"another type":  "type: example.com/pin\ndata: {pin: NDcxMA==}",
	} {
		p.secret(fields)
		check(t, what, p.make(), "1 base Write pin")
	}
	p.secret("data: {pin: NDcxMA==}")
	p.release("base", "mesh", "1.1.0")
	check(t, "only what has changed is written", p.make(), "1 base Write mesh")
}

// What is not there, or was changed by somebody, is written.
func TestSecretThatIsNotAsItWasIsWritten(t *testing.T) {
	p := keyed(t, "data: {pin: NDcxMA==}")
	objs := maps.Clone(p.world.Objects)
	for id, obj := range objs {
		if id.Name == "pin" {
			changed := obj.DeepCopy()
			changed.Object["data"] = map[string]any{"pin": "NDcxMg=="}
			changed.SetResourceVersion("99")
			p.world.Objects[id] = changed
		}
	}
	check(t, "a changed Secret is put back", p.make(), "1 base Write pin")
	for id := range objs {
		if id.Name == "pin" {
			delete(p.world.Objects, id)
		}
	}
	check(t, "a Secret that is gone is written again", p.make(), "1 base Write pin")
}
