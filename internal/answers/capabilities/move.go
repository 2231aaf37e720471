// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

// Move is what becomes of a claim that is bound to a provider anew.
type Move struct {
	Claim string `json:"claim"`
	From  string `json:"from"`
	To    string `json:"to"`
	// Refused says why it cannot be; empty where it can.
	Refused string `json:"refused"`
	Steps   []Step `json:"steps"`
}

// Conflicts tells whether an object is in the way.
func (m Move) Conflicts() bool {
	return slices.ContainsFunc(m.Steps, func(step Step) bool { return step.Verb == InTheWay })
}

// What becomes of an object of a claim that moves.
const (
	// Makes has the object made.
	Makes = "make"
	// Applies has it as the template is now.
	Applies = "apply"
	// Keeps leaves it as it is, until the claim goes.
	Keeps = "keep"
	// Observes waits for what somebody else has.
	Observes = "observe"
	// InTheWay leaves it as it is, and the claim without what it needs.
	InTheWay = "conflict"
)

// Step is what becomes of one object.
type Step struct {
	Verb string `json:"verb"`
	ID   string `json:"id"`
	Of   string `json:"of"`
	// Object as it is called; empty where that hangs on what another one says.
	Object string `json:"object"`
	Note   string `json:"note"`
}

// Moved says what a move of a claim to a provider would do, by the controller's own rules.
func Moved(s *snapshot.Snapshot, of *v1alpha1.CapabilityClaim, to, controller string) Move {
	move := Move{Claim: of.Namespace + "/" + of.Name, From: of.Status.Provider, To: to, Steps: []Step{}}
	if from, is := capabilities.BoundTo(of); is {
		bound, problem := seekerOf(s, of, controller).Borrow(client.ObjectKeyFromObject(of), from, lenderOf(s, from))
		switch {
		case problem != nil:
			move.Refused = problem.Message
		case bound.Provider != to:
			move.Refused = bound.Elsewhere()
		default:
			move.Steps = steps(of.Status.Objects, nil, capabilities.Instance{Provider: bound.Provider})
		}
		return move
	}
	bound, refused := capabilities.Move(seekerOf(s, of, controller), to, &capabilities.Bound{Claim: move.Claim}, providersOf(s))
	if move.Refused = refused; bound == nil {
		return move
	}
	blueprint, problems := capabilities.Understand(bound.Spec)
	if len(problems) > 0 {
		move.Refused = problems[0]
		return move
	}
	parameters, problem := blueprint.Parameters(of.Spec)
	if problem != "" {
		move.Refused = problem
		return move
	}
	instance := capabilities.Instance{
		Claim: of, Blueprint: blueprint, Provider: bound.Provider, Version: bound.Version, Parameters: parameters,
		Scopes: map[schema.GroupKind]objects.Scope{}, Live: map[string]*unstructured.Unstructured{}, Passwords: instancePasswords(bound.Spec),
		Rotation: of.Status.Rotation,
	}
	instance.Cluster, instance.Namespace = capabilities.Place(bound.Spec, of, controller)
	made, err := instance.Objects()
	if err != nil {
		move.Refused = err.Error()
		return move
	}
	move.Steps = steps(of.Status.Objects, made, instance)
	if bound.Spec.Plugin != nil {
		move.Steps = append(move.Steps, Step{Verb: Applies, Of: bound.Provider, Note: "what the provider's plug-in says, which is not asked for this"})
	}
	return move
}

// instancePasswords stands for passwords, which nobody is told: names are made of none.
func instancePasswords(spec v1alpha1.CapabilityProviderSpec) map[string]string {
	found := map[string]string{}
	for _, password := range spec.Passwords {
		found[password.Name] = "-"
	}
	return found
}

// steps compares what a claim has with what it is to have.
func steps(has []v1alpha1.Dependent, made []primaries.Object, instance capabilities.Instance) []Step {
	var found []Step
	wanted := map[int]bool{}
	for _, object := range made {
		step := Step{Verb: Makes, ID: object.ID, Of: instance.Provider, Note: object.Waits}
		if object.Mode == dependents.ModeObserve {
			step.Verb = Observes
		}
		if object.Object != nil {
			at := slices.IndexFunc(has, func(d v1alpha1.Dependent) bool { return isSame(d, object.Identity(), instance.Namespace) })
			step.Object = object.Identity().String()
			if at >= 0 {
				wanted[at], step.Object = true, primaries.IdentityOf(has[at]).String()
			}
			switch {
			case at < 0 || object.Mode == dependents.ModeObserve:
			case has[at].Of != instance.Provider:
				step.Verb, step.Note = InTheWay, "is there already, made by "+has[at].Of
			default:
				step.Verb = Applies
			}
		} else if at := slices.IndexFunc(has, func(d v1alpha1.Dependent) bool { return d.ID == object.ID && d.Of == instance.Provider }); at >= 0 {
			wanted[at], step.Object = true, primaries.IdentityOf(has[at]).String()
			if object.Mode != dependents.ModeObserve {
				step.Verb = Applies
			}
		}
		found = append(found, step)
	}
	for at, each := range has {
		step := Step{Verb: Keeps, ID: each.ID, Of: each.Of, Object: primaries.IdentityOf(each).String()}
		switch {
		case wanted[at]:
			continue
		case each.ID == capabilities.BindingID, each.ID == capabilities.ClusterBindingID:
			step.Verb, step.Of, step.Note = Applies, instance.Provider, "once all else is ready"
		case each.Of != instance.Provider:
			step.Note = "until the claim goes"
		}
		found = append(found, step)
	}
	slices.SortStableFunc(found, func(a, b Step) int { return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.ID, b.ID)) })
	return found
}

// isSame tells whether an object of a status is one that is wanted, which may not say yet in
// which namespace it is.
func isSame(known v1alpha1.Dependent, wanted objects.ID, namespace string) bool {
	id := primaries.IdentityOf(known)
	if wanted.Namespace == "" && (id.Namespace == "" || id.Namespace == namespace) {
		id.Namespace = ""
	}
	return id == wanted
}

// lenderOf returns a claim with to whom it is bound, as its status says.
func lenderOf(s *snapshot.Snapshot, key types.NamespacedName) capabilities.Lender {
	for _, claim := range s.Claims {
		if client.ObjectKeyFromObject(claim) != key {
			continue
		}
		lender := capabilities.Lender{Claim: claim}
		if claim.Status.Provider != "" {
			lender.Bound = &capabilities.Bound{Provider: claim.Status.Provider, Version: claim.Status.Version}
		}
		if to := claim.Status.BoundTo; to != nil && lender.Bound != nil {
			lender.Bound.Shared = &capabilities.Shared{Namespace: to.Namespace, Name: to.Name}
		}
		return lender
	}
	return capabilities.Lender{}
}

// seekerOf returns who claims.
func seekerOf(s *snapshot.Snapshot, of *v1alpha1.CapabilityClaim, controller string) capabilities.Seeker {
	seeker := capabilities.Seeker{Claim: of.Spec, Namespace: of.Namespace, Controller: controller}
	for _, namespace := range s.Of(snapshot.Namespaces) {
		if namespace.GetName() == of.Namespace {
			seeker.NamespaceLabels = namespace.GetLabels()
		}
	}
	return seeker
}

// providersOf returns the providers of a cluster as the rules have them.
func providersOf(s *snapshot.Snapshot) []capabilities.Provider {
	found := make([]capabilities.Provider, 0, len(s.Providers))
	for _, provider := range s.Providers {
		spec := capabilities.Offered(provider)
		blueprint, _ := capabilities.Understand(spec)
		found = append(found, capabilities.Provider{Name: provider.Name, Labels: provider.Labels, Spec: spec, Blueprint: blueprint})
	}
	return found
}
