// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/objects"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: apps, labels: {app: web, tier: front}, annotations: {}}
spec:
  replicas: 2
  template:
    spec:
      hostNetwork: false
      tolerations: null
      containers:
      - name: web
        image: web:1
        env: [{name: A, value: ""}, {name: B, value: b}]
        resources: {limits: {cpu: 1000m, memory: 1Gi}}
      volumes: [{name: data, emptyDir: {}}]
`

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = object.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// live is the object as an API server has it, changed as a test says.
func live(t *testing.T, change ...string) *unstructured.Unstructured {
	t.Helper()
	text := `
apiVersion: apps/v1
kind: Deployment
metadata:
  {name: web, namespace: apps, uid: u, generation: 3, labels: {app: web, tier: front, helm.toolkit.fluxcd.io/name: web}}
spec:
  replicas: 2
  revisionHistoryLimit: 10
  template:
    spec:
      restartPolicy: Always
      containers:
      - name: sidecar
        image: mesh:1
      - name: web
        image: web:1
        imagePullPolicy: IfNotPresent
        env: [{name: A}, {name: B, value: b}]
        resources: {limits: {cpu: "1", memory: 1Gi}}
      volumes: [{name: data, emptyDir: {}}]
status: {replicas: 2}
`
	return parse(t, strings.NewReplacer(change...).Replace(text))
}

func TestDrift(t *testing.T) {
	for name, c := range map[string]struct {
		live   func(t *testing.T) *unstructured.Unstructured
		want   string
		reason string
	}{
		"as rendered": {func(t *testing.T) *unstructured.Unstructured { return live(t) }, "", "what others add is no drift, nor how a quantity is written"},
		"scaled": {
			func(t *testing.T) *unstructured.Unstructured {
				return live(t, "replicas: 2\n  rev", "replicas: 5\n  rev")
			},
			"~ Deployment apps/web  spec.replicas: 2 -> 5", "from what is wanted to what is there",
		},
		"another image": {
			func(t *testing.T) *unstructured.Unstructured { return live(t, "web:1", "web:2") },
			"~ Deployment apps/web  spec.template.spec.containers[web].image: web:1 -> web:2", "by the name of the container",
		},
		"less memory": {
			func(t *testing.T) *unstructured.Unstructured { return live(t, "1Gi", "512Mi") },
			"~ Deployment apps/web  spec.template.spec.containers[web].resources.limits.memory: 1Gi -> 512Mi", "another quantity",
		},
		"a label taken off": {
			func(t *testing.T) *unstructured.Unstructured { return live(t, "app: web, ", "") },
			"~ Deployment apps/web  metadata.labels.app: removed web", "what was rendered is gone",
		},
		"a variable taken off": {
			func(t *testing.T) *unstructured.Unstructured { return live(t, ", {name: B, value: b}", "") },
			"~ Deployment apps/web  spec.template.spec.containers[web].env[B]: removed", "a named thing is gone",
		},
		"gone": {func(*testing.T) *unstructured.Unstructured { return nil }, "- Deployment apps/web", "the object is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := parse(t, deployment)
			objs := map[objects.ID]*unstructured.Unstructured{}
			if is := c.live(t); is != nil {
				objs[objects.IDOf(is)] = is
			}
			var lines []string
			for _, change := range Of([]*unstructured.Unstructured{rendered}, objs, nil) {
				lines = append(lines, change.Lines(0)...)
			}
			got := strings.Join(lines, "\n")
			if !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") || len(lines) > 1 {
				t.Errorf("%s: %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestDriftOfWhatIsNotKnown(t *testing.T) {
	rendered := parse(t, deployment)
	if got := Of([]*unstructured.Unstructured{rendered}, nil, map[objects.ID]bool{objects.IDOf(rendered): true}); len(got) > 0 {
		t.Errorf("what may not be read is taken for missing: %+v", got)
	}
	job := parse(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once, namespace: apps}\nspec: {ttlSecondsAfterFinished: 60}\n")
	if got := Of([]*unstructured.Unstructured{job}, nil, nil); len(got) > 0 {
		t.Errorf("a Job that was cleaned up is taken for missing: %+v", got)
	}
}
