// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
)

// What the API server refuses fails its layer in a plan, and nothing of it is written.
func TestObjectThatIsRefused(t *testing.T) {
	p := newPlatform(t)
	p.layer("base", "1.0.0")
	p.files["base/a.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: apps}\ndata: {port: 8080}\n")}
	p.world.Refuses = func(object *unstructured.Unstructured) error {
		if object.GetKind() == "ConfigMap" {
			return errors.New("data[port]: must be a text")
		}
		return nil
	}
	f := p.make()
	check(t, "nothing is written", f)
	e := end(t, f, "base")
	if e.State != v1alpha1.StateFailed || e.Reason != v1alpha1.ReasonInvalidManifest || !strings.Contains(e.Message, "cannot apply ConfigMap apps/a (base/a.yaml): data[port]: must be a text") {
		t.Errorf("base ends %+v", e)
	}
}
