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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/primaries"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/providers"
)

const (
	// pluginRetry is how soon a plug-in is asked again that has failed.
	pluginRetry = 10 * time.Second
	// maxChanges is how often a plug-in may say something else of a claim within changesWithin:
	// one that never says the same twice would have its objects written for ever.
	maxChanges    = 10
	changesWithin = time.Minute
	// answerPatience is when a claim is looked at again whose plug-in has yet to answer, if nobody
	// wakes it before.
	answerPatience = time.Minute
	// maxRounds is how often a plug-in is asked in one look, each time with more that it observes.
	maxRounds = 5
)

// answer is what a plug-in has said of a claim.
type answer struct {
	// request and said identify what was asked and what was said, and parameters those that were
	// checked.
	request, said, parameters [sha256.Size]byte
	filled                    providers.Filled
	// handed is what it has handed out outside of any cluster.
	handed providers.Handed
	// changed is when it has said something else than before.
	changed []time.Time
}

// plugins are what is known of plug-ins.
type plugins struct {
	// inquiries are what each serves, and answers what it has said of claims.
	inquiries inquiries
	answers   memo[types.UID, answer]
	flights   flights
	// handed is what each has handed out to claims, and outside are the questions about that.
	handed  memo[types.UID, answer]
	outside flights
	// needed are the names of what runs for each provider when the rest was last removed.
	needed memo[types.UID, string]
}

// noPlugins says that there is nobody who would run a plug-in.
const noPlugins = "is a plug-in, and this controller runs none"

// promise returns what a provider says of its capability; lacks says why that is not known. While
// a plug-in has not described itself, the one before it serves new claims.
func (k *Keeper) promise(ctx context.Context, provider *v1alpha1.CapabilityProvider) (promised v1alpha1.CapabilityProviderSpec, lacks string) {
	spec := *provider.Spec.DeepCopy()
	if spec.Plugin == nil {
		return spec, ""
	}
	promised, _, lacks = k.promised(ctx, provider.Name, spec)
	if last := k.before(provider); lacks != "" && last != nil {
		if earlier, _, lacksToo := k.promised(ctx, provider.Name, *last); lacksToo == "" {
			return earlier, ""
		}
	}
	return promised, lacks
}

// promised returns what one plug-in says of the capability of a provider.
func (k *Keeper) promised(
	ctx context.Context,
	provider string,
	spec v1alpha1.CapabilityProviderSpec,
) (v1alpha1.CapabilityProviderSpec, *pluginv1.DescribeResponse, string) {
	if k.Plugins == nil {
		return spec, nil, noPlugins
	}
	described := k.plugins.inquiries.get(k.reference(ctx, provider, spec).Key()).described
	if described == nil {
		return spec, nil, "is a plug-in that has not said yet what it serves: its status says why"
	}
	promised, err := providers.Promise(spec, described)
	if err == nil {
		if known, wrong := k.understand(promised); wrong != nil || known.blueprint == nil {
			err = errors.New("describes what cannot be offered: " + strings.Join(known.problems, "; "))
		}
	}
	if err != nil {
		return spec, described, "is a plug-in that " + err.Error()
	}
	return promised, described, ""
}

// offer is what a provider's plug-in offers.
type offer struct {
	// problem says what is wrong with it; empty for nothing.
	problem string
	// serves is the program that serves new claims; nil for none.
	serves *v1alpha1.CapabilityPluginStatus
	// served is the one that served last; nil for none.
	served *v1alpha1.CapabilityPluginStatus
	// again is when it is looked at again; zero for no time of its own.
	again time.Duration
	// unknown is true until it has answered, or failed, once.
	unknown bool
}

// offers looks after a provider's plug-in, and, once that has answered or failed, after the one
// that serves in its place. Which one that is only a record says that the controller has signed.
func (k *Keeper) offers(ctx context.Context, provider *v1alpha1.CapabilityProvider) offer {
	if k.Plugins == nil {
		return offer{problem: noPlugins}
	}
	made := k.offersBy(ctx, provider, provider.Spec)
	last := k.before(provider)
	if made.serves != nil || made.unknown || last == nil {
		return made
	}
	if of := k.offersBy(ctx, provider, *last); of.serves != nil {
		made.serves = of.serves
		if made.problem != "" {
			made.problem += "; the one of before serves new claims meanwhile: " + of.serves.Digest
		}
	}
	return made
}

// offersBy looks after one plug-in of a provider.
func (k *Keeper) offersBy(ctx context.Context, provider *v1alpha1.CapabilityProvider, spec v1alpha1.CapabilityProviderSpec) offer {
	known := k.inquire(ctx, k.reference(ctx, provider.Name, spec), spec.Capability)
	made := offer{again: max(known.next.Sub(k.now()), time.Second), unknown: !known.known}
	if known.asking {
		made.again = 0 // its end has the provider looked at
	}
	_, described, lacks := k.promised(ctx, provider.Name, spec)
	switch {
	case known.err != nil:
		made.problem = known.err.Error()
	case described == nil:
		made.problem = "its plug-in " + short(spec.Plugin.Digest) + " is being started"
	case lacks != "":
		made.problem = lacks
	}
	if described != nil && lacks == "" {
		made.serves = &v1alpha1.CapabilityPluginStatus{
			Image: spec.Plugin.Image, Digest: spec.Plugin.Digest,
			Name: printable.Line(described.GetName(), maxName), Version: printable.Line(described.GetVersion(), maxName),
		}
	}
	return made
}

// maxName bounds the name of a plug-in, in bytes.
const maxName = 128

// short names a plug-in for people.
func short(digest string) string { return digest[:min(len(digest), len("sha256:")+12)] }

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

// errAsking says that a plug-in has yet to answer, which has the claim looked at again. Nobody
// waits for that meanwhile: one that hangs would have all other claims wait, too.
var errAsking = errors.New("the plug-in has yet to answer")

// ask has a claim's plug-in say of what the instance is made, unless it has said so of the very
// same. Templates say that by themselves. The error is errAsking until the plug-in has answered.
func (v *visit) ask(ctx context.Context, look *primaries.Look, instance *capabilities.Instance) (*capabilities.Problem, error) {
	spec := v.record.bound.Spec
	if spec.Plugin == nil {
		return nil, nil
	}
	request, err := v.asked(instance).Request()
	if err != nil {
		return nil, err
	}
	key, err := keyOf(request, spec.Plugin.Digest)
	if err != nil {
		return nil, err
	}
	asked := question{key: key, provider: v.record.bound.Provider, spec: spec, request: request}
	said, known := v.k.plugins.answers.get(v.claim.UID)
	if !known || said.request != asked.key {
		if known {
			asked.last = &said
		}
		ended := v.k.fly(ctx, &v.k.plugins.flights, v.claim, key, func(ctx context.Context) flight {
			answer, problem, again := v.k.answer(ctx, asked)
			return flight{answer: answer, problem: problem, again: again}
		})
		switch {
		case ended == nil:
			return nil, errAsking
		case ended.problem != nil:
			if !ended.again.IsZero() {
				v.again = max(ended.again.Sub(v.now), time.Second)
			}
			return ended.problem, nil
		}
		said = ended.answer
		v.k.plugins.answers.set(v.claim.UID, said)
	}
	understood := v.k.plans.understand(said.said, said.filled.Spec)
	if understood.blueprint == nil {
		return invalidPlan(v.record.bound.Provider, understood.problems[0]), nil
	}
	v.outside = said.filled.Ensure
	instance.Blueprint, instance.Waits, instance.Lacks, instance.Confined = understood.blueprint, said.filled.Waits, said.filled.Lacks, true
	instance.Scopes, err = v.watch(ctx, look, instance.Cluster, understood.blueprint.Kinds())
	return nil, err
}

// question is what a plug-in is asked about a claim.
type question struct {
	// key identifies the request.
	key      [sha256.Size]byte
	provider string
	spec     v1alpha1.CapabilityProviderSpec
	request  *pluginv1.PlanRequest
	// last is what it has said before; nil for nothing.
	last *answer
}

// flights are questions that are on their way, and how they have ended, by the UIDs of claims.
type flights struct {
	mu sync.Mutex
	of map[types.UID]*flight
}

// flight is one question.
type flight struct {
	key     [sha256.Size]byte
	done    bool
	answer  answer
	problem *capabilities.Problem
	// again is when it is asked again after a problem; zero where that hangs on the question.
	again time.Time
}

func (f *flights) forget(claim types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, claim)
}

// fly returns how a question about a claim has ended, or nil while it is on its way: it has the
// claim looked at again then. Of one claim there is one question of a kind at a time.
func (k *Keeper) fly(
	ctx context.Context,
	f *flights,
	claim *v1alpha1.CapabilityClaim,
	key [sha256.Size]byte,
	ask func(context.Context) flight,
) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.of[claim.UID]
	switch {
	case last != nil && !last.done:
		return nil
	case last != nil && last.key == key && (last.again.IsZero() || k.now().Before(last.again)):
		return last
	}
	if f.of == nil {
		f.of = map[types.UID]*flight{}
	}
	begun := &flight{key: key}
	f.of[claim.UID] = begun
	ctx = context.WithoutCancel(ctx) // a question ends by itself
	reader := claimReader(client.ObjectKeyFromObject(claim))
	go func() {
		ended := ask(ctx)
		f.mu.Lock()
		begun.done, begun.answer, begun.problem, begun.again = true, ended.answer, ended.problem, ended.again
		f.mu.Unlock()
		k.wakeUps.wake([]informers.Follower{reader})
	}()
	return nil
}

// answer asks a plug-in, and checks what it says. It returns what is wrong with that, and when it
// is asked again.
func (k *Keeper) answer(ctx context.Context, of question) (answer, *capabilities.Problem, time.Time) {
	next := answer{request: of.key, parameters: sha256.Sum256(of.request.Parameters)}
	if k.Plugins == nil {
		return next, pluginFailed(of.provider, errors.New(noPlugins)), time.Time{}
	}
	failed := func(err error) (answer, *capabilities.Problem, time.Time) {
		now := k.now()
		return next, pluginFailed(of.provider, err), now.Add(retryOf(err, now))
	}
	plugin := k.reference(ctx, of.provider, of.spec)
	isSame := of.last != nil && of.last.parameters == next.parameters
	if !isSame {
		checked, err := k.Plugins.Validate(ctx, plugin, &pluginv1.ValidateRequest{Claim: of.request.Claim, Parameters: of.request.Parameters})
		if err != nil {
			return failed(err)
		}
		if wrong := providers.Refusal(checked); wrong != "" {
			message := "CapabilityProvider " + of.provider + " " + wrong
			return next, &capabilities.Problem{Reason: v1alpha1.ReasonInvalidParameters, Message: message, Stalled: true}, time.Time{}
		}
	}
	response, err := k.Plugins.Plan(ctx, plugin, of.request)
	if err != nil {
		return failed(err)
	}
	if next.filled, err = providers.Fill(of.spec, of.request.Claim.Namespace, response); err != nil {
		return next, invalidPlan(of.provider, err.Error()), time.Time{}
	}
	data, err := json.Marshal(next.filled)
	if err != nil {
		return next, invalidPlan(of.provider, "cannot be written"), time.Time{}
	}
	next.said = sha256.Sum256(data)
	now := k.now()
	if isSame {
		next.changed = recent(of.last.changed, now)
		if of.last.said != next.said {
			next.changed = append(next.changed, now)
		}
	}
	if len(next.changed) > maxChanges {
		wrong := fmt.Sprintf("has said something else %d times within %s of the same parameters", maxChanges, changesWithin)
		return next, invalidPlan(of.provider, wrong), now.Add(changesWithin)
	}
	return next, nil, time.Time{}
}

// recent returns which of some moments count for how often a plug-in has changed its mind.
func recent(all []time.Time, now time.Time) []time.Time {
	var found []time.Time
	for _, at := range all {
		if now.Sub(at) < changesWithin {
			found = append(found, at)
		}
	}
	return found
}

// pluginFailed says that the plug-in of a provider has not answered. What is there stays.
func pluginFailed(provider string, err error) *capabilities.Problem {
	return &capabilities.Problem{Reason: v1alpha1.ReasonPluginFailed, Message: "CapabilityProvider " + provider + ": " + err.Error()}
}

// invalidPlan says what is wrong with what the plug-in of a provider says.
func invalidPlan(provider, wrong string) *capabilities.Problem {
	return &capabilities.Problem{
		Reason: v1alpha1.ReasonInvalidPlan, Stalled: true, Message: fmt.Sprintf("CapabilityProvider %s: its plug-in %s", provider, wrong),
	}
}
