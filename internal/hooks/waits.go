// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/templates"
)

// Wait is an object that must be as it is to be before a layer counts as deployed.
type Wait struct {
	// Field of the layer's spec that says so.
	Field string
	// APIVersion and Kind of the object, whatever they hold.
	APIVersion, Kind string
	Namespace, Name  string
	// Defaulted is true where the namespace is the layer's, which the layer does not
	// say: an object of a kind without namespaces has none.
	Defaulted bool
	// Condition of the object; empty where it must exist, or be healthy.
	Condition string
	// Healthy wants the object to be ready.
	Healthy bool
	// exprs say when objects are ready, by their kinds.
	exprs Checks
}

// Waits returns what a layer waits for beside its own objects: waitFor and healthChecks.
// The namespace given is that of the controller.
func Waits(layer *v1alpha1.AddonsLayer, namespace string) []Wait {
	waits := make([]Wait, 0, len(layer.Spec.WaitFor)+len(layer.Spec.HealthChecks))
	for i, hook := range layer.Spec.WaitFor {
		waits = append(waits, Wait{
			Field: fmt.Sprintf("spec.waitFor[%d]", i), APIVersion: hook.APIVersion, Kind: hook.Kind,
			Namespace: hook.Namespace, Name: hook.Name, Condition: hook.ReadyExpr,
		})
	}
	if len(layer.Spec.HealthChecks) == 0 {
		return waits
	}
	exprs, _ := ChecksOf(layer) // a gate says what is wrong
	for i, check := range layer.Spec.HealthChecks {
		waits = append(waits, Wait{
			Field: fmt.Sprintf("spec.healthChecks[%d]", i), APIVersion: cmp.Or(check.APIVersion, "apps/v1"), Kind: check.Kind,
			Namespace: cmp.Or(check.Namespace, accounts.NamespaceOf(layer, namespace)), Name: check.Name,
			Defaulted: check.Namespace == "", Healthy: true, exprs: exprs,
		})
	}
	return waits
}

// ID returns the object on a cluster, and the version of its API. The error says that
// APIVersion is none.
func (w Wait) ID(cluster string) (objects.ID, string, error) {
	gv, err := schema.ParseGroupVersion(w.APIVersion)
	return objects.ID{Cluster: cluster, Group: gv.Group, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name}, gv.Version, err
}

// Wanted says how the object is to be.
func (w Wait) Wanted() string {
	if w.Healthy {
		return "is ready"
	}
	return cmp.Or(w.Condition, "exists")
}

// Unmet says what keeps a live object from being as it is to be; empty where it is.
func (w Wait) Unmet(live *unstructured.Unstructured) string {
	if w.Healthy {
		standing := w.exprs.Standing(live)
		if standing.Health <= objects.Ignored {
			return ""
		}
		return cmp.Or(standing.Message, "is "+standing.Status)
	}
	met, err := Meets(w.Condition, live)
	switch {
	case err != nil && isSecret(live):
		return fmt.Sprintf("is waited for until %s: %v; conditions do not see the data of Secrets", w.Condition, err)
	case err != nil:
		return fmt.Sprintf("is waited for until %s: %v", w.Condition, err)
	case !met:
		return "is waited for until " + w.Condition
	default:
		return ""
	}
}

// Checks say when objects of a kind are ready, where the kind has rules of a
// layer's own.
type Checks map[schema.GroupKind]check

// check holds conditions in the order in which they count.
type check []rule

// rule is a condition, and how an object fares that meets it.
type rule struct {
	is       *templates.Predicate
	standing objects.Standing
}

// notReadyYet is how an object fares that no condition is true for.
var notReadyYet = objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "is not ready, as spec.healthCheckExprs has it"}

// ChecksOf understands those of a layer. The error begins with the field.
func ChecksOf(layer *v1alpha1.AddonsLayer) (Checks, error) {
	checks := Checks{}
	for i, expr := range layer.Spec.HealthCheckExprs {
		gv, err := schema.ParseGroupVersion(expr.APIVersion)
		if err != nil {
			return nil, fmt.Errorf(
				"spec.healthCheckExprs[%d].apiVersion: must be a version such as v1, or a group and a version such as apps/v1, not %q",
				i, expr.APIVersion,
			)
		}
		var of check
		for _, each := range []struct {
			field, text string
			standing    objects.Standing
		}{
			{"inProgress", expr.InProgress, notReadyYet},
			{"failed", expr.Failed, objects.Standing{Health: objects.Failed, Status: objects.StatusFailed, Message: "has failed, as spec.healthCheckExprs has it"}},
			{"current", expr.Current, objects.Standing{Health: objects.Ready, Status: objects.StatusReady}},
		} {
			if each.text == "" {
				continue
			}
			is, err := templates.ParsePredicate(each.text)
			if err != nil {
				return nil, fmt.Errorf("spec.healthCheckExprs[%d].%s: %w", i, each.field, err)
			}
			of = append(of, rule{is, each.standing})
		}
		checks[schema.GroupKind{Group: gv.Group, Kind: expr.Kind}] = of
	}
	return checks, nil
}

// Standing says how a live object fares, by the layer's rules or those of its kind.
func (c Checks) Standing(live *unstructured.Unstructured) objects.Standing {
	check := c[live.GroupVersionKind().GroupKind()]
	if check == nil {
		return objects.AssessObject(kinds.AssessOf(live), live)
	}
	// Flux's RFC 0009: an older generation says nothing of this one.
	observed, known, err := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	if err == nil && known && observed != live.GetGeneration() {
		return notReadyYet
	}
	fields := Shown(live)
	for _, rule := range check {
		holds, err := rule.is.Holds(fields)
		if err != nil {
			return objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: fmt.Sprintf("is not known to be ready: %v", err)}
		}
		if holds {
			return rule.standing
		}
	}
	return notReadyYet
}
