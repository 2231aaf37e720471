// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/sources"
)

const reconcileLong = `Have layers looked at now. Changes wake layers by themselves; this is for what
nobody can watch, and for the sources of layers, which Flux asks at intervals.

With --with-source the sources of the layers are fetched first. With --wait the
command waits until the layers are deployed, and shows what changes.`

const reconcileExamples = `  # One layer
  kubectl strata reconcile base

  # Fetch its source first, and wait until it is deployed
  kubectl strata reconcile base --with-source --wait`

// reconcileOptions are the flags of the command.
type reconcileOptions struct {
	choice
	withSource, wait bool
	namespace        string
	timeout          time.Duration
}

// newReconcile returns the command that has layers looked at.
func newReconcile(t *tool, out io.Writer) *cobra.Command {
	o := &reconcileOptions{choice: choice{Console: t.Console}}
	command := &cobra.Command{
		Use: "reconcile LAYER...", Short: "Have layers looked at now", Long: reconcileLong, Example: reconcileExamples,
		RunE: func(command *cobra.Command, names []string) error { return o.run(command.Context(), out, names) },
	}
	o.addFlags(command)
	command.Flags().BoolVar(&o.withSource, "with-source", false, "fetch the sources of the layers first")
	command.Flags().BoolVar(&o.wait, "wait", false, "wait until the layers are deployed")
	command.Flags().StringVar(&o.namespace, "source-namespace", "strata-system", "namespace of sources whose layers name none: that of the controller")
	command.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait for sources and layers")
	return command
}

func (o *reconcileOptions) run(ctx context.Context, out io.Writer, names []string) error {
	objects, found, err := o.layers(ctx, names)
	if err != nil {
		return err
	}
	if o.withSource {
		if err := o.fetch(ctx, out, found); err != nil {
			return err
		}
	}
	annotations := acts.ReconcileOf(time.Now())
	for i := range found {
		if err := o.annotate(ctx, found[i].GetName(), annotations); err != nil {
			return err
		}
		console.Say(out, "layer %s is looked at", found[i].GetName())
	}
	if !o.wait {
		return nil
	}
	deployed := goals[0]
	return o.await(ctx, out, objects, namesOf(found), goal{name: deployed.name, met: func(layer *v1alpha1.AddonsLayer) bool {
		return layer.Status.LastHandledReconcileAt == annotations[fluxmeta.ReconcileRequestAnnotation] && deployed.met(layer)
	}}, o.timeout)
}

// fetch has Flux fetch the sources of layers, each once, and waits for that.
func (o *reconcileOptions) fetch(ctx context.Context, out io.Writer, found []unstructured.Unstructured) error {
	client, err := o.Cluster.Dynamic()
	if err != nil {
		return err
	}
	done := map[sources.Ref]bool{}
	for i := range found {
		layer := &v1alpha1.AddonsLayer{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[i].Object, layer); err != nil {
			return fmt.Errorf("cannot understand layer %s: %w", found[i].GetName(), err)
		}
		ref := sources.Of(layer, o.namespace)
		part, fetched := acts.Fetched(ref.Kind)
		switch {
		case done[ref]:
			continue
		case !fetched:
			console.Say(out, "%s is not fetched: nobody has to", ref)
			done[ref] = true
			continue
		}
		done[ref] = true
		if err := o.fetchOne(ctx, out, client, part, ref); err != nil {
			return err
		}
	}
	return nil
}

func (o *reconcileOptions) fetchOne(ctx context.Context, out io.Writer, client dynamic.Interface, part snapshot.Part, ref sources.Ref) error {
	annotations := acts.ReconcileOf(time.Now())
	err := o.Cluster.Annotate(ctx, acts.Patch{Resource: part.GroupVersionResource, Namespace: ref.Namespace, Name: ref.Name, Annotations: annotations})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no %s; where its layer names no namespace, --source-namespace gives the controller's", ref)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not have %s fetched; ask for the right to patch it: %w", ref, err)
	case err != nil:
		return o.Explain(err, snapshot.Layers)
	}
	console.Say(out, "%s is fetched", ref)
	var last string
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, o.timeout, true, func(ctx context.Context) (bool, error) {
		source, err := client.Resource(part.GroupVersionResource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		handled, _, _ := unstructured.NestedString(source.Object, "status", "lastHandledReconcileAt")
		revision, _, _ := unstructured.NestedString(source.Object, "status", "artifact", "revision")
		ready, message := readyOf(source)
		if last = message; handled != annotations[fluxmeta.ReconcileRequestAnnotation] || ready == "Unknown" {
			return false, nil
		}
		if ready == "False" {
			return false, fmt.Errorf("%s cannot be fetched: %s", ref, message)
		}
		console.Say(out, "%s is at %s", ref, revision)
		return true, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s was not fetched within %s: %s", ref, o.timeout, last)
	}
	return err
}

// readyOf returns the status of an object's condition Ready, and what it says.
func readyOf(obj *unstructured.Unstructured) (status, message string) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		fields, _ := item.(map[string]any)
		if fields["type"] == "Ready" {
			status, _ = fields["status"].(string)
			message, _ = fields["message"].(string)
		}
	}
	return status, message
}
