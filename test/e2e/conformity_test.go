// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// conformity looks at every status of every layer that any test brings about,
// and holds it against the table of states and conditions.
type conformity struct {
	mu       sync.Mutex
	problems []string
	seen     int
	states   map[v1alpha1.State]int
	stop     context.CancelFunc
	done     chan struct{}
}

// watchConformity watches all layers until report is called.
func watchConformity(c client.WithWatch) (*conformity, error) {
	ctx, cancel := context.WithCancel(context.Background())
	checker := &conformity{states: map[v1alpha1.State]int{}, stop: cancel, done: make(chan struct{})}
	watching, err := c.Watch(ctx, &v1alpha1.AddonsLayerList{})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cannot watch layers: %w", err)
	}
	go checker.follow(ctx, c, watching)
	return checker, nil
}

// follow watches again when the API server was away, as it is in some tests.
func (c *conformity) follow(ctx context.Context, reader client.WithWatch, watching watch.Interface) {
	defer close(c.done)
	for {
		for event := range watching.ResultChan() {
			if layer, ok := event.Object.(*v1alpha1.AddonsLayer); ok && event.Type != watch.Deleted {
				c.check(layer)
			}
		}
		for {
			if ctx.Err() != nil {
				return
			}
			var err error
			if watching, err = reader.Watch(ctx, &v1alpha1.AddonsLayerList{}); err == nil {
				break
			}
		}
	}
}

// report ends the watch and returns what did not conform.
func (c *conformity) report() error {
	if c == nil {
		return nil
	}
	c.stop()
	<-c.done
	fmt.Printf("conformity: %d statuses checked, by state: %v\n", c.seen, c.states)
	if len(c.problems) > 0 {
		return fmt.Errorf("statuses do not conform:\n%s", strings.Join(c.problems, "\n"))
	}
	return nil
}

func (c *conformity) check(layer *v1alpha1.AddonsLayer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen++
	c.states[layer.Status.State]++
	if problem := conformityProblem(layer); problem != "" && len(c.problems) < 50 {
		c.problems = append(c.problems, fmt.Sprintf("layer %s at resourceVersion %s, state %s: %s", layer.Name, layer.ResourceVersion, layer.Status.State, problem))
	}
}

// isOurStatus tells whether Strata has written a layer's status, which may be
// Kraan's until it is taken over.
func isOurStatus(layer *v1alpha1.AddonsLayer) bool {
	return slices.ContainsFunc(layer.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == "strata" && entry.Subresource == "status"
	})
}

// conformityProblem says what is wrong with a layer's status; "" for nothing.
func conformityProblem(layer *v1alpha1.AddonsLayer) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(layer)
	if err != nil {
		return err.Error()
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddonsLayerKind))
	result, err := status.Compute(u)
	if err != nil {
		return "kstatus: " + err.Error()
	}
	if layer.Status.State == "" {
		if layer.Status.ObservedGeneration != -1 || result.Status != status.InProgressStatus {
			return fmt.Sprintf("a new layer must be InProgress with observedGeneration -1, not %s with %d", result.Status, layer.Status.ObservedGeneration)
		}
		return ""
	}
	if !layer.DeletionTimestamp.IsZero() || layer.Status.ObservedGeneration != layer.Generation || !isOurStatus(layer) {
		return ""
	}
	is := func(kind string, want metav1.ConditionStatus) bool {
		return meta.IsStatusConditionPresentAndEqual(layer.Status.Conditions, kind, want)
	}
	want := status.InProgressStatus
	var ok bool
	switch layer.Status.State {
	case v1alpha1.StateDeployed:
		want = status.CurrentStatus
		ok = is("Ready", metav1.ConditionTrue) && is("Deployed", metav1.ConditionTrue)
		if is(v1alpha1.HealthyCondition, metav1.ConditionFalse) {
			want = status.InProgressStatus
			ok = is("Ready", metav1.ConditionFalse) && is("Deployed", metav1.ConditionTrue)
		}
		if layer.Status.Rollback != nil || is("Stalled", metav1.ConditionTrue) && layer.Annotations[v1alpha1.RollbackToAnnotation] != "" {
			want = status.FailedStatus
			ok = is("Ready", metav1.ConditionFalse) && is("Stalled", metav1.ConditionTrue) && is("Deployed", metav1.ConditionTrue)
		}
	case v1alpha1.StateFailed:
		ok = is("Ready", metav1.ConditionFalse) && is("Deployed", metav1.ConditionFalse)
		if is("Stalled", metav1.ConditionTrue) {
			want = status.FailedStatus
		} else {
			ok = ok && is("Reconciling", metav1.ConditionTrue)
		}
	case v1alpha1.StateHold:
		ok = is("Ready", metav1.ConditionUnknown) && is("Held", metav1.ConditionTrue)
	default:
		ok = is("Ready", metav1.ConditionUnknown) && is("Reconciling", metav1.ConditionTrue)
	}
	if !ok {
		return fmt.Sprintf("conditions do not fit the state: %v", layer.Status.Conditions)
	}
	if result.Status != want {
		return fmt.Sprintf("kstatus is %s (%s), want %s", result.Status, result.Message, want)
	}
	for _, condition := range layer.Status.Conditions {
		if condition.ObservedGeneration != layer.Generation {
			return fmt.Sprintf("condition %s is of generation %d, not %d", condition.Type, condition.ObservedGeneration, layer.Generation)
		}
	}
	return ""
}
