// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/strata-project/strata/hack/controlplane/cache"
	"github.com/strata-project/strata/test/reads"
)

// nodeAnnotation marks the nodes that kwok plays.
const nodeAnnotation = "kwok.x-k8s.io/node"

var crdResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// FluxCRDs returns the folder of the Flux CRDs.
func FluxCRDs() (string, error) { return Binary(cache.CRDs) }

// CreateNamespace creates a namespace; one that exists is fine.
func (c *ControlPlane) CreateNamespace(ctx context.Context, name string) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create namespace %s: %w", name, err)
	}
	return nil
}

// InstallCRDs applies the CustomResourceDefinitions in YAML files, or in the
// files of folders, and returns when they are established. Documents of
// other kinds are ignored.
func (c *ControlPlane) InstallCRDs(ctx context.Context, paths ...string) error {
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	var crds []*unstructured.Unstructured
	reads.Add(paths...)
	for _, path := range paths {
		found, err := readCRDs(path)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("no CustomResourceDefinition in %s", path)
		}
		crds = append(crds, found...)
	}
	resource := client.Resource(crdResource)
	for _, crd := range crds {
		options := metav1.ApplyOptions{FieldManager: admin, Force: true}
		if _, err := resource.Apply(ctx, crd.GetName(), crd, options); err != nil {
			return fmt.Errorf("cannot apply CustomResourceDefinition %s: %w", crd.GetName(), err)
		}
	}
	for _, crd := range crds {
		if err := WaitFor(ctx, time.Minute, func(ctx context.Context) error {
			live, err := resource.Get(ctx, crd.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			return wantCondition(live, "Established")
		}); err != nil {
			return err
		}
	}
	return nil
}

// readCRDs reads the CRDs of a YAML file, or of the YAML files of a folder.
func readCRDs(path string) ([]*unstructured.Unstructured, error) {
	var crds []*unstructured.Unstructured
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("cannot read %s: %w", file, err)
			}
			if object.GetKind() == "CustomResourceDefinition" {
				crds = append(crds, object)
			}
		}
	})
	return crds, err
}

// wantCondition returns nil when a condition of the object is True.
func wantCondition(object *unstructured.Unstructured, name string) error {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return err
	}
	id := object.GetKind() + " " + object.GetName()
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok || condition["type"] != name {
			continue
		}
		if condition["status"] == "True" {
			return nil
		}
		return fmt.Errorf("%s: %s is %v: %v: %v", id, name, condition["status"], condition["reason"], condition["message"])
	}
	return fmt.Errorf("%s has no condition %s", id, name)
}

// installFlux makes what the Flux controllers find at their start.
func (c *ControlPlane) installFlux(ctx context.Context) error {
	if err := c.CreateNamespace(ctx, FluxNamespace); err != nil {
		return err
	}
	crds, err := FluxCRDs()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := c.InstallCRDs(ctx, crds); err != nil {
		return err
	}
	c.logf("installed the Flux CRDs in %s", time.Since(began).Round(100*time.Millisecond))
	return nil
}

// createNodes creates the nodes that kwok plays and waits until pods can be
// scheduled to them.
func (c *ControlPlane) createNodes(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	nodes := client.CoreV1().Nodes()
	for i := range c.opts.Nodes {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{nodeAnnotation: "fake"},
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
		}}
		if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot create node %s: %w", name, err)
		}
	}
	for i := range c.opts.Nodes {
		name := fmt.Sprintf("node-%d", i)
		if err := poll(ctx, func(ctx context.Context) error {
			node, err := nodes.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return schedulable(node, c.opts.runs(ControllerManager))
		}); err != nil {
			return fmt.Errorf("node %s is not ready: %w", name, err)
		}
	}
	return nil
}

// schedulable says what keeps pods from a node. Only the controller manager
// takes away the taint of a node that was not ready.
func schedulable(node *corev1.Node, untainted bool) error {
	if untainted && len(node.Spec.Taints) > 0 {
		return fmt.Errorf("it has taint %s", node.Spec.Taints[0].Key)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return errors.New("it has no condition Ready")
}
