// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package firstlayers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/setup"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/provision"
)

// lookEvery is how often what is waited for is looked at.
const lookEvery = time.Second

// Options say what a cluster is filled with.
type Options struct {
	Console *console.Console
	// Folder with the layers, as of a checkout; Source that it stands for, where there are
	// several, and LayersIn the files and folders of it that hold the layers of this cluster.
	Folder, Source string
	LayersIn       []string
	// Cluster with its defaults. It names the layers that come first.
	Cluster *v1alpha1.HostCluster
	// Install has Flux and Strata be brought, with Flux's manifests in a file or at an
	// address, and Strata as Setup says.
	Install bool
	Flux    string
	Setup   setup.Request
	// Timeout is how long nodes and layers are waited for.
	Timeout time.Duration
	Now     func() time.Time
}

// Filling fills a cluster.
type Filling struct {
	options Options
	reader  reader
	wanted  Wanted
	flux    []*unstructured.Unstructured
	// tasks are what Steps has said last, of the target that it has seen.
	tasks  []Task
	target *target
}

// Open reads what a cluster is to be filled with, with the charts of the first layers.
func Open(ctx context.Context, o Options) (*Filling, error) {
	f := &Filling{options: o}
	if o.Install && !takesPods(o.Cluster.Spec) {
		return nil, errNoPods
	}
	var err error
	if o.Flux != "" {
		if f.flux, err = setup.ReadFlux(ctx, o.Flux); err != nil {
			return nil, err
		}
	}
	f.reader.plan, err = o.Console.Cluster.Plan(ctx, gather.PlanOptions{
		FromDir: o.Folder, Source: o.Source, LayersIn: o.LayersIn, Offline: true, Kubernetes: o.Cluster.Spec.Version,
	})
	if err != nil {
		return nil, err
	}
	if f.reader.renderer, err = gather.NewRenderer(""); err == nil {
		f.wanted, err = f.reader.read(ctx, o.Cluster.Spec.Bootstrap.Layers, o.Install)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// errNoPods says that Flux and Strata would have no host to run on.
var errNoPods = errors.New("every host has a taint that keeps Pods off it, so that neither Flux nor Strata would run: list workers, or give a host of spec.controlPlane taints: []")

// takesPods tells whether a host takes Pods that tolerate nothing.
func takesPods(spec v1alpha1.HostClusterSpec) bool {
	return slices.ContainsFunc(hostclusters.Hosts(spec), func(host v1alpha1.ClusterHost) bool {
		return !slices.ContainsFunc(host.Taints, func(taint v1alpha1.HostTaint) bool { return taint.Effect != "PreferNoSchedule" })
	})
}

// Close ends the use of the folder.
func (f *Filling) Close() { f.reader.plan.Close() }

// Steps returns what is to be done in a cluster, which Fill then does.
func (f *Filling) Steps(ctx context.Context, sight *observe.Sight) (steps []hostplans.Step, err error) {
	var seen Seen
	f.target, f.tasks = nil, nil
	if sight.Cluster != nil {
		if f.target, err = newTarget(f.options.Console, sight.Cluster.Config); err != nil {
			return nil, err
		}
		if seen, err = f.target.see(ctx, f.wanted, f.reader.charts); err != nil {
			return nil, err
		}
	}
	if f.wanted.Install && !seen.Flux && len(f.flux) == 0 {
		return nil, errNeedsFlux
	}
	f.tasks = Decide(f.wanted, seen)
	return StepsOf(f.tasks), nil
}

// Fill does what Steps has said last, one step after the other. The error names the step.
func (f *Filling) Fill(ctx context.Context, report func(provision.Event)) error {
	if f.target == nil {
		return errors.New("there is no cluster that answers")
	}
	for _, task := range f.tasks {
		if task.Verb != hostplans.Await {
			report(provision.Event{Message: task.String()})
		}
		if err := f.do(ctx, f.target, task, report); err != nil {
			return fmt.Errorf("%s: %w", task.Step, err)
		}
	}
	return nil
}

func (f *Filling) do(ctx context.Context, t *target, task Task, report func(provision.Event)) error {
	switch task.work {
	case writeObject:
		return t.create(ctx, task.object.Created(task.Layer, layers.Keys), dependents.FieldManager)
	case installRelease:
		return t.install(ctx, f.reader.charts[task.object.ID], f.isNeeded(task.object.ID))
	case awaitNodes:
		return f.await(ctx, "the nodes", report, t.nodesReady)
	case bringFlux:
		return setup.BringFlux(ctx, t.console, f.flux)
	case handOver:
		return t.handOver(ctx, task.object, f.reader.charts[task.object.ID])
	case awaitFlux:
		return f.await(ctx, "Flux", report, t.fluxReady)
	case bringStrata:
		return setup.Install(ctx, t.console, f.options.Setup)
	case createObject:
		return t.createWithNamespace(ctx, task.create)
	case awaitLayers:
		return f.await(ctx, "the layers", report, func(ctx context.Context) (bool, string, error) { return t.layersDeployed(ctx, f.wanted.Objects) })
	}
	return nil
}

// isNeeded tells whether another release of the first layers waits for this one.
func (f *Filling) isNeeded(id objects.ID) bool {
	for _, layer := range f.wanted.Layers {
		if slices.ContainsFunc(layer.Objects, func(d dependents.Dependent) bool { return slices.Contains(d.DependsOn, id) }) {
			return true
		}
	}
	return false
}

// await waits until something holds, and says what is missing whenever that changes.
func (f *Filling) await(ctx context.Context, what string, report func(provision.Event), holds func(context.Context) (bool, string, error)) error {
	until := f.options.Now().Add(f.options.Timeout)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	said := ""
	for {
		done, note, err := holds(ctx)
		switch {
		case done:
			return nil
		case apierrors.IsForbidden(err):
			return err
		case err != nil:
			// An API server may be away for a moment.
			note = err.Error()
		}
		if f.options.Now().After(until) {
			return fmt.Errorf("it takes longer than %s (--timeout): %s", f.options.Timeout, note)
		}
		if note != said {
			said = note
			report(provision.Event{Message: "waits for " + what + ": " + note, Until: until})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// create creates an object that is not there.
func (t *target) create(ctx context.Context, object *unstructured.Unstructured, manager string) error {
	resource, err := t.fresh(objects.IDOf(object))
	if err != nil {
		return err
	}
	_, err = resource.Create(ctx, object, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// createWithNamespace creates an object, and its namespace where that is not there.
func (t *target) createWithNamespace(ctx context.Context, object *unstructured.Unstructured) error {
	err := t.create(ctx, object, console.FieldManager)
	if !apierrors.IsNotFound(err) || object.GetNamespace() == "" {
		return t.console.Explain(err, snapshot.Layers)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.GetNamespace()}}
	_, err = t.typed.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: console.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return t.create(ctx, object, console.FieldManager)
}

// layersDeployed tells whether all layers among objects are deployed; note says how the
// others are.
func (t *target) layersDeployed(ctx context.Context, wanted []*unstructured.Unstructured) (done bool, note string, err error) {
	var notes []string
	for _, object := range wanted {
		id := objects.IDOf(object)
		if id != layerID(id.Name) {
			continue
		}
		live, err := t.get(ctx, id)
		switch {
		case err != nil:
			return false, "", err
		case live == nil:
			notes = append(notes, id.Name+" is not there")
		case !isDeployed(live):
			state, _, _ := unstructured.NestedString(live.Object, "status", "state")
			notes = append(notes, strings.TrimSpace(id.Name+" "+state+" "+readyMessage(live)))
		}
	}
	return len(notes) == 0, strings.Join(notes, "; "), nil
}

func readyMessage(live *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, each := range conditions {
		if condition, is := each.(map[string]any); is && condition["type"] == "Ready" {
			message, _ := condition["message"].(string)
			return message
		}
	}
	return ""
}
