// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// twin is a kind of which Strata and Flux apply the same objects, each in its own place.
type twin struct {
	apiVersion, kind string
	// clusterScoped objects have the place in their name.
	clusterScoped bool
	// body is what git says beside the metadata, and later what it says afterwards.
	body, later string
	// edits are merge patches that somebody makes by hand; they hold for both bodies.
	edits []string
	// pasts are who may have made the object before; anybody where it is empty.
	pasts []string
}

const (
	groupTwins = "twins.example.dev"

	podOf = `{metadata: {labels: {app: web}}, spec: {restartPolicy: %s, containers: [{name: web, image: "example.invalid/web:1", env: [{name: KEEP, value: "1"}], resources: {requests: {cpu: 10m}}}]}}`
	// Later the environment has another value, and resources have left git.
	laterPodOf = `{metadata: {labels: {app: web}}, spec: {restartPolicy: %s, containers: [{name: web, image: "example.invalid/web:1", env: [{name: KEEP, value: "2"}]}]}}`
)

// podEdits are what people change in the template of a Pod, which is at a path.
func podEdits(path ...string) []string {
	var edits []string
	for _, spec := range []string{
		`{"hostNetwork":true}`, `{"nodeSelector":{"disk":"ssd"}}`, `{"terminationGracePeriodSeconds":5}`,
		`{"tolerations":[{"key":"a","operator":"Exists"}]}`,
		`{"containers":[{"name":"web","image":"example.invalid/web:9","env":[{"name":"KEEP","value":"1"}]}]}`,
		`{"containers":[{"name":"web","image":"example.invalid/web:1","env":[{"name":"HACK","value":"1"},{"name":"KEEP","value":"5"}]}]}`,
		`{"containers":[{"name":"side","image":"example.invalid/side:1"},{"name":"web","image":"example.invalid/web:1"}]}`,
		`{"volumes":[{"name":"tmp","emptyDir":{}}]}`,
	} {
		edits = append(edits, within(spec, append(slices.Clone(path), "spec")...))
	}
	return append(edits, within(`{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-02T03:04:05Z"}}}`, path...))
}

// within puts a patch at a path.
func within(patch string, path ...string) string {
	for _, name := range slices.Backward(path) {
		patch = fmt.Sprintf(`{%q:%s}`, name, patch)
	}
	return patch
}

func twins() []twin {
	workload := func(kind, more string, edits ...string) twin {
		spec := "spec: {selector: {matchLabels: {app: web}}, " + more + "template: "
		return twin{
			apiVersion: "apps/v1", kind: kind, body: spec + fmt.Sprintf(podOf, "Always") + "}", later: spec + fmt.Sprintf(laterPodOf, "Always") + "}",
			edits: append(podEdits("spec", "template"), edits...),
		}
	}
	const job = "spec: {template: %s, backoffLimit: %d}"
	return []twin{
		{
			apiVersion: "v1", kind: "ConfigMap", body: `data: {a: "1", b: "2"}`, later: `data: {a: "1", c: "3"}`,
			edits: []string{`{"data":{"a":"9"}}`, `{"data":{"hack":"1"}}`, `{"data":{"b":null}}`, `{"binaryData":{"x":"AA=="}}`, `{"data":null}`},
		},
		{
			apiVersion: "v1", kind: "Secret", body: `data: {a: MQ==, b: Mg==}`, later: `data: {a: MQ==, c: Mw==}`,
			edits: []string{`{"data":{"a":"OQ=="}}`, `{"data":{"hack":"MQ=="}}`, `{"data":{"b":null}}`, `{"stringData":{"b":"9"}}`},
		},
		{
			apiVersion: "v1", kind: "ServiceAccount", body: "automountServiceAccountToken: false", later: "imagePullSecrets: [{name: pull}]",
			edits: []string{`{"automountServiceAccountToken":true}`, `{"imagePullSecrets":[{"name":"mine"}]}`, `{"secrets":[{"name":"mine"}]}`},
		},
		{
			apiVersion: "v1", kind: "Service",
			body:  "spec: {selector: {app: web}, ports: [{name: http, port: 80}, {name: metrics, port: 9090}]}",
			later: "spec: {selector: {app: web}, ports: [{name: http, port: 80}, {name: grpc, port: 7000}]}",
			edits: []string{
				`{"spec":{"selector":{"app":"other"}}}`, `{"spec":{"selector":{"tier":"front"}}}`, `{"spec":{"sessionAffinity":"ClientIP"}}`,
				`{"spec":{"ports":[{"name":"http","port":80},{"name":"metrics","port":9090},{"name":"more","port":7070}]}}`,
				`{"spec":{"ports":[{"name":"metrics","port":9090},{"name":"http","port":80}]}}`,
				// Another number of a port has kustomize-controller fail, with all that it applies:
				// TestLiveStateIsNotTheManifestsFault has what Strata does.
				`{"spec":{"ports":[{"name":"http","port":80,"targetPort":8080},{"name":"metrics","port":9090}]}}`,
				`{"spec":{"ports":[{"name":"http","port":80}]}}`, `{"spec":{"publishNotReadyAddresses":true}}`,
			},
		},
		workload("Deployment", "", `{"spec":{"replicas":3}}`, `{"spec":{"minReadySeconds":7}}`, `{"spec":{"paused":true}}`, `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":3}}}}`),
		workload("StatefulSet", "serviceName: web, ", `{"spec":{"replicas":3}}`, `{"spec":{"minReadySeconds":7}}`),
		workload("DaemonSet", "", `{"spec":{"minReadySeconds":7}}`, `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`),
		{
			apiVersion: "batch/v1", kind: "CronJob",
			body:  "spec: {schedule: '0 3 * * *', jobTemplate: {" + fmt.Sprintf(job, fmt.Sprintf(podOf, "Never"), 2) + "}}",
			later: "spec: {schedule: '0 4 * * *', jobTemplate: {" + fmt.Sprintf(job, fmt.Sprintf(laterPodOf, "Never"), 2) + "}}",
			edits: append(podEdits("spec", "jobTemplate", "spec", "template"), `{"spec":{"suspend":true}}`, `{"spec":{"schedule":"* * * * *"}}`, `{"spec":{"concurrencyPolicy":"Forbid"}}`),
		},
		{
			apiVersion: "batch/v1", kind: "Job", body: fmt.Sprintf(job, fmt.Sprintf(podOf, "Never"), 2), later: fmt.Sprintf(job, fmt.Sprintf(podOf, "Never"), 3),
			edits: []string{`{"spec":{"activeDeadlineSeconds":600}}`, `{"spec":{"ttlSecondsAfterFinished":600}}`, `{"spec":{"backoffLimit":9}}`},
		},
		{
			apiVersion: "networking.k8s.io/v1", kind: "Ingress",
			body:  "spec: {rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}",
			later: "spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}",
			edits: []string{`{"spec":{"ingressClassName":"mine"}}`, `{"spec":{"tls":[{"hosts":["a.example.com"],"secretName":"tls"}]}}`, `{"spec":{"defaultBackend":{"service":{"name":"other","port":{"number":81}}}}}`},
		},
		{
			apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", body: "spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}",
			later: "spec: {podSelector: {matchLabels: {app: api}}, policyTypes: [Ingress]}",
			edits: []string{`{"spec":{"policyTypes":["Ingress","Egress"]}}`, `{"spec":{"ingress":[{}]}}`, `{"spec":{"podSelector":{"matchLabels":{"hack":"1"}}}}`},
		},
		{
			apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", body: "rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]",
			later: "rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]",
			edits: []string{`{"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","delete"]}]}`, `{"rules":[]}`},
		},
		{
			apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", clusterScoped: true,
			body: "rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]", later: "rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]",
			edits: []string{`{"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","delete"]}]}`, `{"rules":[]}`},
		},
		{
			apiVersion: "policy/v1", kind: "PodDisruptionBudget", body: "spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}",
			later: "spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}",
			// Where minAvailable stays, because it is Helm's or, with Flux, Argo CD's, the API server
			// refuses what comes later, and kustomize-controller fails with all that it applies.
			pasts: []string{"kubectl-client-side-apply", "kubectl"},
			edits: []string{`{"spec":{"minAvailable":2}}`, `{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`, `{"spec":{"selector":{"matchLabels":{"hack":"1"}}}}`},
		},
		{
			apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler",
			body:  "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 5}",
			later: "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 6}",
			edits: []string{`{"spec":{"maxReplicas":50}}`, `{"spec":{"minReplicas":1}}`, `{"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":5}}}}`},
		},
		{
			apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice",
			body:  "addressType: IPv4\nendpoints: [{addresses: [192.0.2.1]}]\nports: [{name: http, port: 80}]",
			later: "addressType: IPv4\nendpoints: [{addresses: [192.0.2.2]}]\nports: [{name: http, port: 80}]",
			edits: []string{
				`{"endpoints":[{"addresses":["192.0.2.9"]}]}`, `{"ports":[{"name":"http","port":81}]}`, `{"ports":[{"name":"hack","port":1},{"name":"http","port":80}]}`,
				`{"endpoints":[{"addresses":["192.0.2.1"],"conditions":{"ready":false}}]}`,
			},
		},
		{
			apiVersion: "v1", kind: "LimitRange", body: "spec: {limits: [{type: Container, defaultRequest: {cpu: 10m}}]}",
			later: "spec: {limits: [{type: Container, defaultRequest: {cpu: 20m}}]}",
			edits: []string{`{"spec":{"limits":[{"type":"Container","defaultRequest":{"cpu":"9m"}}]}}`, `{"spec":{"limits":[{"type":"Container","defaultRequest":{"cpu":"10m"}},{"type":"Pod","max":{"cpu":"9"}}]}}`},
		},
		{
			apiVersion: "coordination.k8s.io/v1", kind: "Lease", body: "spec: {holderIdentity: a, leaseDurationSeconds: 60}", later: "spec: {holderIdentity: b}",
			edits: []string{`{"spec":{"holderIdentity":"x"}}`, `{"spec":{"leaseDurationSeconds":null}}`, `{"spec":{"leaseTransitions":4}}`},
		},
		{
			apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass", clusterScoped: true, body: "value: 10\ndescription: low", later: "value: 10",
			edits: []string{`{"description":"mine"}`, `{"description":null}`},
		},
		{
			apiVersion: "v1", kind: "PodTemplate", body: "template: " + fmt.Sprintf(podOf, "Always"), later: "template: " + fmt.Sprintf(laterPodOf, "Always"),
			edits: podEdits("template"),
		},
		{
			apiVersion: groupTwins + "/v1", kind: "Gear", body: "spec: {size: 1, map: {a: x}, keyed: [{name: a, value: 1}], plain: [a, b], set: [x]}",
			later: "spec: {size: 2, map: {b: z}, keyed: [{name: b, value: 1}], plain: [a]}",
			edits: []string{
				`{"spec":{"size":9}}`, `{"spec":{"map":{"hack":"1"}}}`, `{"spec":{"keyed":[{"name":"a","value":1},{"name":"hack","value":2}]}}`,
				`{"spec":{"plain":["a","b","c"]}}`, `{"spec":{"set":["x","hack"]}}`, `{"spec":{"size":null}}`, `{"spec":{"other":{"a":1}}}`,
			},
		},
	}
}

// gears is the definition of a kind with lists of every sort.
const gears = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.twins.example.dev}
spec:
  group: twins.example.dev
  scope: Namespaced
  names: {plural: gears, singular: gear, kind: Gear, listKind: GearList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 3}
              map: {type: object, additionalProperties: {type: string}}
              keyed:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, value: {type: integer}}}
              plain: {type: array, items: {type: string}}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              other: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// edit is what somebody does to both objects.
type edit struct {
	// manager writes it: with "kubectl" by server-side apply, as kubectl apply --server-side does.
	manager string
	// patch is merged; empty deletes the object.
	patch string
}

func (e edit) String() string {
	if e.patch == "" {
		return "somebody deletes it"
	}
	return e.manager + " " + e.patch
}

// course is what happens to one pair of objects.
type course struct {
	twin
	name string
	// past is who has made the objects before they came into git, with what it writes beside;
	// nobody where it is empty.
	past  edit
	edits []edit
}

func (c course) String() string {
	text := c.kind + " " + c.name
	if c.past.manager != "" {
		text += ", made by " + c.past.String()
	}
	for _, each := range c.edits {
		text += ", then " + each.String()
	}
	return text
}

// of returns the object in a place, with a body.
func (c course) of(t *testing.T, place, body string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(body), &object.Object); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	object.SetAPIVersion(c.apiVersion)
	object.SetKind(c.kind)
	object.SetName(c.name)
	object.SetLabels(map[string]string{"app": "web"})
	if c.clusterScoped {
		object.SetName(place + "-" + c.name)
	} else {
		object.SetNamespace(place)
	}
	return object
}

// drawCourses draws a number of courses for each kind.
func drawCourses(random *rand.Rand, each int) []course {
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	ofMetadata := []string{
		`{"metadata":{"labels":{"app":"other"}}}`, `{"metadata":{"labels":{"app":null}}}`, `{"metadata":{"labels":{"team":"mine"}}}`,
		`{"metadata":{"annotations":{"note":"mine"}}}`,
	}
	managers := []string{"kubectl-edit", "kubectl-edit", "kubectl-client-side-apply", "kubectl", "some-controller"}
	draw := func(of twin) edit {
		switch n := random.IntN(10); {
		case n == 0:
			return edit{}
		case n < 3:
			return edit{manager: pick(managers), patch: pick(ofMetadata)}
		}
		return edit{manager: pick(managers), patch: pick(of.edits)}
	}
	var courses []course
	for _, of := range twins() {
		for i := range each {
			c := course{twin: of, name: fmt.Sprintf("%s-%d", strings.ToLower(of.kind), i)}
			if i%3 == 2 {
				pasts := of.pasts
				if len(pasts) == 0 {
					pasts = []string{"kubectl-client-side-apply", "kubectl", "helm", "argocd-controller"}
				}
				c.past = edit{manager: pick(pasts), patch: pick(of.edits)}
			}
			for range random.IntN(3) + 1 {
				c.edits = append(c.edits, draw(of))
			}
			courses = append(courses, c)
		}
	}
	return courses
}

// besides runs Strata and Flux side by side.
type besides struct {
	*applied
	places  map[string]string // the namespace of each, which is its folder, too
	courses []course
}

// happens does an edit to an object; what the API server refuses is left out.
func (b *besides) happens(e edit, object *unstructured.Unstructured) {
	b.Helper()
	live := object.DeepCopy()
	var err error
	switch {
	case e.patch == "":
		err = stack.client.Delete(b.ctx, live)
	case e.manager == "kubectl" && !strings.Contains(e.patch, "null"):
		applied := &unstructured.Unstructured{}
		b.must(json.Unmarshal([]byte(e.patch), &applied.Object))
		applied.SetGroupVersionKind(live.GroupVersionKind())
		applied.SetNamespace(live.GetNamespace())
		applied.SetName(live.GetName())
		err = stack.client.Apply(b.ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(e.manager), client.ForceOwnership)
	default:
		err = stack.client.Patch(b.ctx, live, client.RawPatch(types.MergePatchType, []byte(e.patch)), client.FieldOwner(e.manager))
	}
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		b.Fatalf("%s of %s: %v", e, object.GetName(), err)
	}
}

// manifests writes what git says, as a file for each place.
func (b *besides) manifests(body func(course) string) map[string]string {
	b.Helper()
	files := map[string]string{}
	for _, place := range b.places {
		var text strings.Builder
		for _, c := range b.courses {
			data, err := yaml.Marshal(c.of(b.T, place, body(c)).Object)
			b.must(err)
			text.WriteString("---\n")
			text.Write(data)
		}
		files[place+"/all.yaml"] = text.String()
	}
	return files
}

// content returns what an object has that Strata, Flux and the API server have not written for
// themselves: values by their paths. It is nil where there is none.
func (b *besides) content(object *unstructured.Unstructured) map[string]any {
	b.Helper()
	live := object.DeepCopy()
	if err := stack.client.Get(b.ctx, client.ObjectKeyFromObject(object), live); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		b.Fatal(err)
	}
	found := map[string]any{}
	for _, key := range []string{"labels", "annotations"} {
		marks, _, _ := unstructured.NestedStringMap(live.Object, "metadata", key)
		for name, value := range marks {
			if !strings.HasPrefix(name, "kraan") && !strings.Contains(name, "fluxcd.io/") && name != "kubectl.kubernetes.io/last-applied-configuration" &&
				!strings.Contains(name, "deprecated.daemonset") && name != "deployment.kubernetes.io/revision" {
				found["metadata."+key+"."+name] = value
			}
		}
	}
	for key, value := range live.Object {
		if !slices.Contains([]string{"metadata", "status", "apiVersion", "kind"}, key) {
			flatten(key, value, found)
		}
	}
	for _, given := range []string{"spec.clusterIP", "spec.clusterIPs.0"} { // by the API server
		delete(found, given)
	}
	maps.DeleteFunc(found, func(path string, _ any) bool {
		return strings.Contains(path, "controller-uid") || strings.Contains(path, "job-name")
	})
	return found
}

func flatten(path string, value any, into map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		for key, each := range value {
			flatten(path+"."+key, each, into)
		}
	case []any:
		for i, each := range value {
			if item, is := each.(map[string]any); is && item["name"] != nil {
				flatten(fmt.Sprintf("%s.%v", path, item["name"]), each, into)
			} else {
				flatten(path+"."+strconv.Itoa(i), each, into)
			}
		}
	default:
		into[path] = value
	}
}

// stated are the ways in which Strata differs from kustomize-controller on purpose, of fields by
// their path, and with none of whether the object is there. docs/layers-reference.md has them
// for users.
var stated = []struct {
	why string
	is  func(c course, path string) bool
}{
	{
		"labels and annotations that people set beside git's stay, but for those that came with kubectl apply",
		func(c course, path string) bool {
			return path == "metadata.labels.team" || path == "metadata.annotations.note"
		},
	},
	{
		"a number of replicas that git does not say is an autoscaler's",
		func(_ course, path string) bool { return path == "spec.replicas" },
	},
	{
		"a restart by kubectl stays",
		func(_ course, path string) bool {
			return strings.HasSuffix(path, "annotations.kubectl.kubernetes.io/restartedAt")
		},
	},
	{
		"kustomize-controller says 0 for a targetPort that git does not say, which the API server takes for the number of the port",
		func(c course, path string) bool {
			return c.kind == "Service" && strings.HasSuffix(path, ".targetPort")
		},
	},
	{
		"a Job that has a TTL and has completed is not run again",
		func(c course, path string) bool {
			return path == "" && c.kind == "Job" && strings.Contains(c.String(), "ttlSecondsAfterFinished")
		},
	},
	{
		"fields of Argo CD are taken over with the object",
		func(c course, _ string) bool { return c.past.manager == "argocd-controller" },
	},
}

// differences are those between what Strata and Flux have made, but for those that are stated.
func (b *besides) differences() (unexplained []string, explained map[string]int) {
	b.Helper()
	explained = map[string]int{}
	for _, c := range b.courses {
		ours := b.content(c.of(b.T, b.places["strata"], c.body))
		theirs := b.content(c.of(b.T, b.places["flux"], c.body))
		paths := map[string]any{}
		if (ours == nil) != (theirs == nil) {
			ours, theirs = map[string]any{"": ours != nil}, map[string]any{"": theirs != nil}
		}
		maps.Copy(paths, ours)
		maps.Copy(paths, theirs)
	next:
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			if equality.Semantic.DeepEqual(ours[path], theirs[path]) {
				continue
			}
			for _, each := range stated {
				if each.is(c, path) {
					explained[each.why]++
					continue next
				}
			}
			unexplained = append(unexplained, fmt.Sprintf("%s: %s is %v with Strata, and %v with Flux", c, path, ours[path], theirs[path]))
		}
	}
	return unexplained, explained
}

// alike waits until nothing differs but what is stated.
func (b *besides) alike(when string) map[string]int {
	b.Helper()
	var explained map[string]int
	b.eventually("Strata and Flux make the same of it "+when, func() error {
		var unexplained []string
		if unexplained, explained = b.differences(); len(unexplained) > 0 {
			own := b.object(b.name("own"))
			b.must(stack.client.Get(b.ctx, client.ObjectKeyFromObject(own), own))
			said, _, _ := unstructured.NestedSlice(own.Object, "status", "conditions")
			return fmt.Errorf("%d differences; Flux says %v:\n%s", len(unexplained), said, strings.Join(unexplained[:min(len(unexplained), 40)], "\n"))
		}
		return nil
	})
	return explained
}

// Strata and kustomize-controller make the same of the same manifests: of objects that others
// had before, after edits by hand of many kinds, and when git changes afterwards. What differs is
// stated. STRATA_SEED draws other courses than those of seed 1.
func TestObjectsAreKeptAsFluxKeepsThem(t *testing.T) {
	f := newFixture(t)
	f.must(kustomizeController())
	seed := uint64(1)
	if text := os.Getenv("STRATA_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		f.must(err)
	}
	t.Logf("STRATA_SEED=%d", seed) // shown where the test fails
	random := rand.New(rand.NewPCG(seed, 0))
	b := &besides{
		applied: &applied{handOver: &handOver{fixture: f}}, courses: drawCourses(random, 10),
		places: map[string]string{"strata": f.name("ours"), "flux": f.name("theirs")},
	}
	definition := &unstructured.Unstructured{}
	f.must(yaml.Unmarshal([]byte(gears), &definition.Object))
	f.must(stack.client.Create(f.ctx, definition))
	t.Cleanup(func() { f.must(stack.client.Delete(f.ctx, definition)) })
	for _, place := range b.places {
		f.must(stack.plane.CreateNamespace(f.ctx, place))
	}
	b.eventually("gears are served", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(course{twin: twin{apiVersion: groupTwins + "/v1", kind: "GearList"}}.of(t, "", "{}").GroupVersionKind())
		return stack.client.List(f.ctx, list)
	})
	for _, c := range b.courses {
		for _, place := range b.places {
			if c.past.manager == "" {
				continue
			}
			object := c.of(t, place, c.body)
			if c.past.manager == "kubectl" {
				f.must(stack.client.Apply(f.ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner(c.past.manager)))
			} else {
				f.must(stack.client.Create(f.ctx, object.DeepCopy(), client.FieldOwner(c.past.manager)))
			}
			b.happens(c.past, object)
		}
	}
	// Both have all rights, so that other tests go on without those for these kinds.
	identity, err := stack.plane.User(f.prefix+"-controller", "system:masters")
	f.must(err)
	f.must(f.controllerAs(identity.Kubeconfig, testedBinary).Start(f.ctx))
	revision := f.push(b.manifests(func(c course) string { return c.body }))
	f.layer("ours", f.own, func(layer *v1alpha1.AddonsLayer) { layer.Spec.Source.Path = "./" + b.places["strata"] })
	own := b.object(f.name("own"))
	own.Object["spec"] = map[string]any{
		"interval": "1h", "retryInterval": "5s", "path": "./" + b.places["flux"], "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "addons"},
	}
	f.must(stack.client.Create(f.ctx, own))
	t.Cleanup(func() { f.letGo(own) })
	b.flux(revision)
	explained := b.alike("when they take it over")

	f.edit("ours", `{"metadata":{"annotations":{"kraan.io/hold":"edits"}}}`)
	f.state("ours", v1alpha1.StateHold)
	for _, c := range b.courses {
		for _, e := range c.edits {
			for _, place := range b.places {
				b.happens(e, c.of(t, place, c.body))
			}
		}
	}
	f.edit("ours", `{"metadata":{"annotations":{"kraan.io/hold":null}}}`)
	b.run(1)
	count(explained, b.alike("after edits"))

	b.flux(f.push(b.manifests(func(c course) string { return c.later })))
	count(explained, b.alike("when git changes"))
	for _, each := range stated {
		if explained[each.why] == 0 {
			t.Logf("no course has shown that %s", each.why)
		}
	}
	t.Logf("%d courses; fields that differ as is stated: %v", len(b.courses), explained)
}

// count adds numbers to others.
func count(to, more map[string]int) {
	for name, n := range more {
		to[name] += n
	}
}

// flux waits until Flux has applied a revision.
func (b *besides) flux(revision string) {
	b.Helper()
	b.within(promptly, "Flux has applied "+revision, func() error {
		own := b.object(b.name("own"))
		if err := stack.client.Get(b.ctx, client.ObjectKeyFromObject(own), own); err != nil {
			return err
		}
		applied, _, _ := unstructured.NestedString(own.Object, "status", "lastAppliedRevision")
		if applied != revision {
			conditions, _, _ := unstructured.NestedSlice(own.Object, "status", "conditions")
			return fmt.Errorf("it is at %s: %v", applied, conditions)
		}
		return nil
	})
}
