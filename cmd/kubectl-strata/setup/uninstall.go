// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const uninstallLong = `Take the controller away, and leave what runs. Layers, Platforms and all other
objects of Strata stay as they are, and so do the HelmReleases that they have
made, which Flux goes on with. Strata that is installed again goes on where it
was. To uninstall what runs, delete the layers first, with the controller there.

With --crds the kinds of Strata go, too, with all of their objects, and still
nothing that runs: their finalizers are taken off, so that nobody acts on them.
The labels by which Strata has known its own stay on HelmReleases.

While something of Strata is being deleted, nothing is done: without the
controller that would never end. What that is, is listed.

Exit codes:
  0  it is uninstalled, or is not installed
  1  it cannot be uninstalled, or was not confirmed
  2  something is being deleted`

const uninstallExamples = `  # The controller alone
  kubectl strata uninstall

  # All of Strata, and nothing of what it has deployed
  kubectl strata uninstall --crds --yes

  # What that would be
  kubectl strata uninstall --crds --dry-run`

// removal is what the flags of uninstall say.
type removal struct {
	*installation
	definitions bool
}

func newUninstall(t *setup) *cobra.Command {
	r := &removal{installation: &installation{setup: t}}
	command := &cobra.Command{
		Use: "uninstall", Short: "Take Strata away, and leave what it has deployed", Long: uninstallLong, Example: uninstallExamples, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return r.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringVarP(&r.namespace, "namespace", "n", "strata-system", "the namespace of the controller")
	flags.BoolVar(&r.definitions, "crds", false, "delete Strata's CRDs, too, and all of their objects")
	flags.BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&r.dryRun, "dry-run", false, "say what would be done, and do nothing")
	flags.DurationVar(&r.timeout, "timeout", 5*time.Minute, "how long to wait until all has gone")
	return command
}

// kept is an object of Strata.
type kept struct {
	resource schema.GroupVersionResource
	object   unstructured.Unstructured
}

func (r *removal) run(ctx context.Context) error {
	r.Flags.Namespace = &r.namespace
	helm, err := r.helm()
	if err != nil {
		return err
	}
	last, err := LastRelease(helm, releaseName)
	if err != nil {
		return fmt.Errorf("cannot see what is installed in the namespace %s: %w", r.namespace, r.Explain(err, snapshot.Layers))
	}
	client, err := r.Cluster.Dynamic()
	if err != nil {
		return err
	}
	definitions, err := r.ownDefinitions(ctx, client)
	if err != nil {
		return err
	}
	objects, err := everything(ctx, client, definitions)
	if err != nil {
		return err
	}
	if last == nil && (!r.definitions || len(definitions) == 0) {
		console.Say(r.Out, "nothing was done: Strata is not installed in the namespace %s", r.namespace)
		return nil
	}
	if leaving := leavingNow(objects); len(leaving) > 0 {
		console.Say(r.ErrOut, "these are being deleted, which would never end without the controller: %s", strings.Join(leaving, ", "))
		return console.ErrBlocked
	}
	if err := r.keepsDefinitions(last); err != nil {
		return err
	}
	if err := r.alone(ctx, last); err != nil {
		return err
	}
	r.announce(last, definitions, objects)
	if r.dryRun {
		return nil
	}
	if !r.yes {
		if err := r.Confirm("Go on?", false); err != nil {
			return err
		}
	}
	if last != nil {
		uninstall := action.NewUninstall(helm)
		uninstall.WaitStrategy, uninstall.Timeout = kube.StatusWatcherStrategy, r.timeout
		if _, err := uninstall.Run(releaseName); err != nil {
			return fmt.Errorf("cannot uninstall Strata: %w", err)
		}
		console.Say(r.Out, "Strata %s is uninstalled from the namespace %s", last.Chart.Metadata.Version, r.namespace)
	}
	if !r.definitions {
		return nil
	}
	return r.deleteDefinitions(ctx, client, definitions)
}

// keepsDefinitions ends where Helm would delete the CRDs with the controller, and so all
// layers: a controller that still ends would uninstall what they have deployed, and without
// one they would wait for ever. With --crds, too, they go after the controller.
func (r *removal) keepsDefinitions(last *releasev1.Release) error {
	if last == nil {
		return nil
	}
	objects, err := Objects(last.Manifest)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if isDefinition(object) && object.GetAnnotations()[kube.ResourcePolicyAnno] != kube.KeepPolicy {
			return errors.New("nothing was done, for crds.keep is false, so that Helm would delete the CRDs while their objects are there: " +
				"run kubectl strata install --set crds.keep=true first")
		}
	}
	return nil
}

// alone ends where the CRDs are to go while another controller runs: it would put its
// finalizers back, and take the deletion of its layers for an order.
func (r *removal) alone(ctx context.Context, last *releasev1.Release) error {
	if !r.definitions {
		return nil
	}
	client, err := r.Cluster.Typed()
	if err != nil {
		return err
	}
	list, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: gather.ControllerLabels})
	if err != nil {
		return fmt.Errorf("cannot see whether other controllers of Strata run: %w", err)
	}
	for _, deployment := range list.Items {
		if last == nil || deployment.Namespace != r.namespace {
			return fmt.Errorf("nothing was done, for a controller of Strata runs as Deployment %s/%s, and would act on the deletion of its layers: uninstall it first",
				deployment.Namespace, deployment.Name)
		}
	}
	return nil
}

// announce says what would be done.
func (r *removal) announce(last *releasev1.Release, definitions []string, objects []kept) {
	var all []*unstructured.Unstructured
	for _, each := range objects {
		all = append(all, &each.object)
	}
	if last != nil {
		console.Say(r.ErrOut, "Strata %s goes from the namespace %s.", last.Chart.Metadata.Version, r.namespace)
	}
	switch {
	case r.definitions:
		console.Say(r.ErrOut, "%d CRDs go, with all of their objects: %s. What these have deployed stays.", len(definitions), orNone(counted(all)))
	default:
		console.Say(r.ErrOut, "What there is of Strata stays: %s. So does what these have deployed.", orNone(counted(all)))
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// ownDefinitions returns the names of Strata's CRDs that are there.
func (r *removal) ownDefinitions(ctx context.Context, client dynamic.Interface) ([]string, error) {
	wanted, err := r.build.Wanted()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, crd := range wanted.CRDs {
		_, err := client.Resource(definitionsResource).Get(ctx, crd.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot see whether the CRD %s is there: %w", crd.Name, err)
		}
		found = append(found, crd.Name)
	}
	return found, nil
}

var definitionsResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// everything returns all objects of Strata's kinds.
func everything(ctx context.Context, client dynamic.Interface, definitions []string) ([]kept, error) {
	var found []kept
	for _, definition := range definitions {
		plural, _, _ := strings.Cut(definition, ".")
		resource := v1alpha1.GroupVersion.WithResource(plural)
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", definition, err)
		}
		for _, object := range list.Items {
			found = append(found, kept{resource, object})
		}
	}
	return found, nil
}

// leavingNow names the objects that are being deleted, and wait for the controller.
func leavingNow(objects []kept) []string {
	var found []string
	for _, each := range objects {
		if each.object.GetDeletionTimestamp() != nil && len(each.object.GetFinalizers()) > 0 {
			name := each.object.GetName()
			if namespace := each.object.GetNamespace(); namespace != "" {
				name = namespace + "/" + name
			}
			found = append(found, each.object.GetKind()+" "+name)
		}
	}
	slices.Sort(found)
	return found
}

// deleteDefinitions takes Strata's finalizers off all objects, and deletes the CRDs.
// Objects go with them, and nobody is left who would act on that.
func (r *removal) deleteDefinitions(ctx context.Context, client dynamic.Interface, definitions []string) error {
	if err := r.controllerGone(ctx, client); err != nil {
		return err
	}
	objects, err := everything(ctx, client, definitions)
	if err != nil {
		return err
	}
	for _, each := range objects {
		if err := release(ctx, client, each); err != nil {
			return err
		}
	}
	for _, name := range definitions {
		if err := client.Resource(definitionsResource).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot delete the CRD %s: %w", name, err)
		}
	}
	for _, name := range definitions {
		err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, r.timeout, true, func(ctx context.Context) (bool, error) {
			_, err := client.Resource(definitionsResource).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
		if err != nil {
			return fmt.Errorf("the CRD %s does not go: %w", name, err)
		}
	}
	console.Say(r.Out, "%d CRDs are deleted, and %d objects with them", len(definitions), len(objects))
	return nil
}

// controllerGone waits until no Pod of the controller is left: one that still ended would
// take the deletion of a layer for an order.
func (r *removal) controllerGone(ctx context.Context, client dynamic.Interface) error {
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(r.namespace)
	left := 0
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, r.timeout, true, func(ctx context.Context) (bool, error) {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=strata"})
		if err != nil {
			return false, err
		}
		left = len(list.Items)
		return left == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%d Pods of the controller are still in the namespace %s, so the CRDs stay: %w", left, r.namespace, err)
	}
	return nil
}

// release takes Strata's finalizers off an object; those of others stay.
func release(ctx context.Context, client dynamic.Interface, each kept) error {
	object := each.object
	finalizers := slices.DeleteFunc(object.GetFinalizers(), func(name string) bool {
		return name == v1alpha1.Finalizer || strings.HasPrefix(name, v1alpha1.GroupVersion.Group+"/")
	})
	if len(finalizers) == len(object.GetFinalizers()) {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": object.GetResourceVersion()}})
	if err != nil {
		return fmt.Errorf("cannot write the finalizers of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	_, err = client.Resource(each.resource).Namespace(object.GetNamespace()).
		Patch(ctx, object.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: console.FieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot take the finalizer off %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
