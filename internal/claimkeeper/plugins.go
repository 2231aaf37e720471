// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/primaries"
	"github.com/strata-project/strata/internal/providers"
)

const (
	// pluginRetry is how soon a plug-in is asked again that has failed.
	pluginRetry = 10 * time.Second
	// maxChanges is how often a plug-in may say something else of a claim within changesWithin:
	// one that never says the same twice would have its objects written for ever.
	maxChanges    = 10
	changesWithin = time.Minute
	// maxRounds is how often a plug-in is asked in one look, each time with more that it observes.
	maxRounds = 5
)

// answer is what a plug-in has said of a claim.
type answer struct {
	// request and said identify what was asked and what was said, and parameters those that were
	// checked.
	request, said, parameters [sha256.Size]byte
	filled                    providers.Filled
	// changed is when it has said something else than before.
	changed []time.Time
}

// plugins are what is known of plug-ins.
type plugins struct {
	// described is what each serves, by its digest, and answers what it has said of claims.
	described memo[string, *pluginv1.DescribeResponse]
	answers   memo[types.UID, answer]
}

// noPlugins says that there is nobody who would run a plug-in.
const noPlugins = "is a plug-in, and this controller runs none: start it with --plugin-processes"

// promise returns what a provider says of its capability; lacks says why that is not known.
func (k *Keeper) promise(spec v1alpha1.CapabilityProviderSpec) (promised v1alpha1.CapabilityProviderSpec, lacks string) {
	if spec.Plugin == nil {
		return spec, ""
	}
	if k.Plugins == nil {
		return spec, noPlugins
	}
	described, known := k.plugins.described.get(spec.Plugin.Digest)
	if !known {
		return spec, "is a plug-in that has not said yet what it serves: its status says why"
	}
	promised, err := providers.Promise(spec, described)
	if err != nil {
		return spec, "is a plug-in that " + err.Error()
	}
	return promised, ""
}

// describe asks a provider's plug-in what it serves, and has its claims looked at where that was
// not known. It returns what is wrong with it, and when it is asked again.
func (k *Keeper) describe(ctx context.Context, spec v1alpha1.CapabilityProviderSpec) (problem string, again time.Duration) {
	if k.Plugins == nil {
		return noPlugins, 0
	}
	described, err := k.Plugins.Describe(ctx, spec.Plugin.Digest)
	if err != nil {
		return err.Error(), retryOf(err, k.now())
	}
	was, known := k.plugins.described.get(spec.Plugin.Digest)
	if !known || !proto.Equal(was, described) {
		k.plugins.described.set(spec.Plugin.Digest, described)
		k.wakeUps.wake(k.readersOf(ctx, spec.Capability))
	}
	if _, lacks := k.promise(spec); lacks != "" {
		return lacks, 0
	}
	return "", 0
}

// readersOf returns the claims of a capability.
func (k *Keeper) readersOf(ctx context.Context, capability string) []informers.Follower {
	var found []informers.Follower
	all := func(*v1alpha1.CapabilityClaim) bool { return true }
	for _, request := range k.claims(ctx, all, client.MatchingFields{indexCapability: strings.ToLower(capability)}) {
		found = append(found, claimReader(request.NamespacedName))
	}
	return found
}

// retryOf returns when a plug-in is asked again that has failed.
func retryOf(err error, now time.Time) time.Duration {
	var failed *providers.FailedError
	if errors.As(err, &failed) && failed.Again.After(now) {
		return failed.Again.Sub(now)
	}
	return pluginRetry
}

// ask has a claim's plug-in say of what the instance is made, unless it has said so of the very
// same. Templates say that by themselves.
func (v *visit) ask(ctx context.Context, look *primaries.Look, instance *capabilities.Instance) (*capabilities.Problem, error) {
	spec := v.record.bound.Spec
	if spec.Plugin == nil {
		return nil, nil
	}
	request, err := providers.Asked{
		Claim: v.claim, Version: instance.Version, Cluster: instance.Cluster, Namespace: instance.Namespace, Parameters: instance.Parameters,
		Rotation: instance.Rotation, Rotating: len(instance.Previous) > 0, Objects: instance.Live,
	}.Request()
	if err != nil {
		return nil, err
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("cannot write a request: %w", err)
	}
	said, known := v.k.plugins.answers.get(v.claim.UID)
	if key := sha256.Sum256(data); !known || said.request != key {
		next, problem := v.answer(ctx, said, known, request)
		if problem != nil {
			return problem, nil
		}
		next.request = key
		v.k.plugins.answers.set(v.claim.UID, next)
		said = next
	}
	understood := v.k.plans.understand(said.said, said.filled.Spec)
	if understood.blueprint == nil {
		return v.invalidPlan(understood.problems[0]), nil
	}
	instance.Blueprint, instance.Waits, instance.Lacks, instance.Confined = understood.blueprint, said.filled.Waits, said.filled.Lacks, true
	instance.Scopes, err = v.watch(ctx, look, instance.Cluster, understood.blueprint.Kinds())
	return nil, err
}

// answer asks the plug-in, and checks what it says.
func (v *visit) answer(ctx context.Context, last answer, known bool, request *pluginv1.PlanRequest) (answer, *capabilities.Problem) {
	spec, next := v.record.bound.Spec, answer{parameters: sha256.Sum256(request.Parameters)}
	if v.k.Plugins == nil {
		return next, v.pluginFailed(errors.New(noPlugins))
	}
	if !known || last.parameters != next.parameters {
		checked, err := v.k.Plugins.Validate(ctx, spec.Plugin.Digest, &pluginv1.ValidateRequest{Claim: request.Claim, Parameters: request.Parameters})
		if err != nil {
			return next, v.pluginFailed(err)
		}
		if wrong := providers.Refusal(checked); wrong != "" {
			message := "CapabilityProvider " + v.record.bound.Provider + " " + wrong
			return next, &capabilities.Problem{Reason: v1alpha1.ReasonInvalidParameters, Message: message, Stalled: true}
		}
	}
	response, err := v.k.Plugins.Plan(ctx, spec.Plugin.Digest, request)
	if err != nil {
		return next, v.pluginFailed(err)
	}
	if next.filled, err = providers.Fill(spec, request.Claim.Namespace, response); err != nil {
		return next, v.invalidPlan(err.Error())
	}
	data, err := json.Marshal(next.filled)
	if err != nil {
		return next, v.invalidPlan("cannot be written")
	}
	next.said = sha256.Sum256(data)
	for _, at := range last.changed {
		if v.now.Sub(at) < changesWithin {
			next.changed = append(next.changed, at)
		}
	}
	if known && last.said != next.said && last.parameters == next.parameters {
		next.changed = append(next.changed, v.now)
	}
	if len(next.changed) > maxChanges {
		v.again = changesWithin
		return next, v.invalidPlan(fmt.Sprintf("has said something else %d times within %s of the same parameters", maxChanges, changesWithin))
	}
	return next, nil
}

// pluginFailed says that the plug-in has not answered. What is there stays as it is.
func (v *visit) pluginFailed(err error) *capabilities.Problem {
	v.again = retryOf(err, v.now)
	return &capabilities.Problem{Reason: v1alpha1.ReasonPluginFailed, Message: "CapabilityProvider " + v.record.bound.Provider + ": " + err.Error()}
}

// invalidPlan says what is wrong with what a plug-in says.
func (v *visit) invalidPlan(wrong string) *capabilities.Problem {
	return &capabilities.Problem{
		Reason: v1alpha1.ReasonInvalidPlan, Stalled: true,
		Message: fmt.Sprintf("CapabilityProvider %s: its plug-in %s", v.record.bound.Provider, wrong),
	}
}
