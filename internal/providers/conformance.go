// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
)

// Check is one promise of the contract, and whether a plug-in keeps it.
type Check struct {
	Name string `json:"name"`
	// Passed is false where it does not.
	Passed bool `json:"passed"`
	// Message says what it does instead; of what it keeps, what was seen.
	Message string `json:"message,omitempty"`
}

// Conformance is what is asked of a plug-in.
type Conformance struct {
	// Host runs the program.
	Host *Host
	// Plugin is the program.
	Plugin Reference
	// Parameters of the claim that is asked about, in JSON; empty for the defaults.
	Parameters []byte
}

// repeats is how often the same is asked, for the same answer.
const repeats = 3

// Run asks a plug-in all that the contract says of it. What fails does not keep the rest from
// being asked, where that hangs on no more than the description.
func (c Conformance) Run(ctx context.Context) []Check {
	described, checks := c.describe(ctx)
	for _, of := range described.GetCapabilities() {
		checks = append(checks, c.capability(ctx, described, of)...)
	}
	return checks
}

func passed(name, format string, args ...any) Check {
	return Check{Name: name, Passed: true, Message: fmt.Sprintf(format, args...)}
}

func failed(name string, err error) Check { return Check{Name: name, Message: err.Error()} }

// describe asks what it serves, of two processes.
func (c Conformance) describe(ctx context.Context) (*pluginv1.DescribeResponse, []Check) {
	const name, again = "describes itself", "describes itself the same after a restart"
	described, err := c.fresh(ctx)
	if err != nil {
		return nil, []Check{failed(name, err)}
	}
	if len(described.GetCapabilities()) == 0 {
		return nil, []Check{failed(name, errors.New("it serves no capability"))}
	}
	var names []string
	for _, of := range described.GetCapabilities() {
		names = append(names, of.GetCapability())
	}
	checks := []Check{passed(name, "%s %s serves %s", described.GetName(), described.GetVersion(), strings.Join(names, ", "))}
	switch other, err := c.fresh(ctx); {
	case err != nil:
		checks = append(checks, failed(again, err))
	case !proto.Equal(described, other):
		checks = append(checks, failed(again, errors.New("it says something else")))
	default:
		checks = append(checks, passed(again, ""))
	}
	return described, checks
}

// fresh asks a process that has just begun what it serves.
func (c Conformance) fresh(ctx context.Context) (*pluginv1.DescribeResponse, error) {
	c.Host.End()
	return c.Host.Describe(ctx, c.Plugin)
}

// capability asks about a claim of one capability, at each version.
func (c Conformance) capability(ctx context.Context, described *pluginv1.DescribeResponse, of *pluginv1.Capability) []Check {
	name := of.GetCapability() + " can be offered"
	spec := v1alpha1.CapabilityProviderSpec{Capability: of.GetCapability(), Plugin: c.Plugin.DeepCopy()}
	promised, err := Promise(spec, described)
	if err != nil {
		return []Check{failed(name, fmt.Errorf("it %w", err))}
	}
	blueprint, problems := capabilities.Understand(promised)
	if len(problems) > 0 {
		return []Check{failed(name, errors.New(strings.Join(problems, "; ")))}
	}
	checks := []Check{passed(name, "%s", counted("version", promised.Versions))}
	versions := promised.Versions
	if len(versions) == 0 {
		versions = []string{""}
	}
	for _, version := range versions {
		trial := &trial{Conformance: c, spec: promised, blueprint: blueprint, version: version, subject: strings.TrimSpace(of.GetCapability() + " " + version)}
		checks = append(checks, trial.run(ctx)...)
	}
	return checks
}

// trial asks about one claim.
type trial struct {
	Conformance
	spec      v1alpha1.CapabilityProviderSpec
	blueprint *capabilities.Blueprint
	version   string
	// subject is what checks are named after.
	subject string
}

// claim returns who asks.
func (t *trial) claim() *v1alpha1.CapabilityClaim {
	claim := &v1alpha1.CapabilityClaim{}
	claim.Name, claim.Namespace, claim.UID = "shop-db", "shop", types.UID("3f0b6c8e-0000-4000-8000-000000000000")
	claim.Spec.Capability = t.spec.Capability
	if len(t.Parameters) > 0 {
		claim.Spec.Parameters = &apiextensionsv1.JSON{Raw: t.Parameters}
	}
	return claim
}

func (t *trial) run(ctx context.Context) []Check {
	name := t.subject + ": the parameters are taken"
	parameters, problem := t.blueprint.Parameters(t.claim().Spec)
	if problem != "" {
		return []Check{failed(name, fmt.Errorf("it %s; give others with --parameters", problem))}
	}
	asked := Asked{Claim: t.claim(), Version: t.version, Namespace: "shop", Parameters: parameters}
	request, err := asked.Request()
	if err != nil {
		return []Check{failed(name, err)}
	}
	checked, err := t.Host.Validate(ctx, t.Plugin, &pluginv1.ValidateRequest{Claim: request.GetClaim(), Parameters: request.GetParameters()})
	if err != nil {
		return []Check{failed(name, err)}
	}
	if wrong := Refusal(checked); wrong != "" {
		return []Check{failed(name, fmt.Errorf("it %s; give others with --parameters", wrong))}
	}
	checks := []Check{passed(name, "")}
	plan, check := t.plans(ctx, t.subject+": plans an instance", request)
	if checks = append(checks, check); plan == nil {
		return checks
	}
	checks = append(checks, t.same(ctx, plan, request), t.afterRestart(ctx, plan, request))
	asked.Objects = t.made(plan)
	if shown, err := asked.Request(); err == nil {
		_, check := t.plans(ctx, t.subject+": plans with objects that have no status yet", shown)
		checks = append(checks, check)
	}
	asked.Rotation, asked.Rotating = 1, true
	if rotating, err := asked.Request(); err == nil {
		_, check := t.plans(ctx, t.subject+": plans a rotation", rotating)
		checks = append(checks, check)
	}
	checks = append(checks, t.survives(ctx, plan, request), t.goesOn(ctx, plan, request), t.inTime(ctx, request))
	if plan.GetEnsure() {
		checks = append(checks, t.outside(ctx, asked)...)
	}
	return checks
}

// plans asks for a plan, and sees to it that Strata would make it.
func (t *trial) plans(ctx context.Context, name string, request *pluginv1.PlanRequest) (*pluginv1.PlanResponse, Check) {
	plan, err := t.Host.Plan(ctx, t.Plugin, request)
	if err != nil {
		return nil, failed(name, err)
	}
	spec := *t.spec.DeepCopy()
	var kinds []string
	for _, object := range plan.GetObjects() {
		is := &unstructured.Unstructured{Object: map[string]any{}}
		_ = json.Unmarshal(object.GetTemplate(), &is.Object) // which is told below
		kind := v1alpha1.CapabilityKind{APIVersion: is.GetAPIVersion(), Kind: is.GetKind()}
		if text := kind.APIVersion + "/" + kind.Kind; !slices.Contains(kinds, text) {
			kinds, spec.Plugin.Kinds = append(kinds, text), append(spec.Plugin.Kinds, kind)
		}
	}
	filled, err := Fill(spec, request.GetClaim().GetNamespace(), plan)
	if err != nil {
		return nil, failed(name, fmt.Errorf("it %w", err))
	}
	if _, problems := capabilities.Understand(filled.Spec); len(problems) > 0 {
		return nil, failed(name, errors.New(strings.Join(problems, "; ")))
	}
	return plan, passed(name, "%s", planned(len(plan.GetObjects()), kinds))
}

// counted names some things of a kind.
func counted(kind string, names []string) string {
	switch len(names) {
	case 0:
		return "no " + kind + "s"
	case 1:
		return kind + " " + names[0]
	}
	return kind + "s " + strings.Join(names, ", ")
}

func planned(objects int, kinds []string) string {
	switch objects {
	case 0:
		return "no objects"
	case 1:
		return "1 object of " + kinds[0]
	}
	return fmt.Sprintf("%d objects of %s", objects, strings.Join(kinds, ", "))
}

// asksAgain asks for a plan once more, which must be the same.
func (t *trial) asksAgain(ctx context.Context, plan *pluginv1.PlanResponse, request *pluginv1.PlanRequest) error {
	other, err := t.Host.Plan(ctx, t.Plugin, request)
	if err == nil && !proto.Equal(plan, other) {
		err = errors.New("it says something else: what it says must hang on the request alone, and not on the time, on chance or on the order of a map")
	}
	return err
}

// same asks the same again.
func (t *trial) same(ctx context.Context, plan *pluginv1.PlanResponse, request *pluginv1.PlanRequest) Check {
	name := t.subject + ": says the same when it is asked the same"
	for range repeats {
		if err := t.asksAgain(ctx, plan, request); err != nil {
			return failed(name, err)
		}
	}
	return passed(name, "%d times", repeats)
}

// afterRestart asks the same of a process that has just begun.
func (t *trial) afterRestart(ctx context.Context, plan *pluginv1.PlanResponse, request *pluginv1.PlanRequest) Check {
	name := t.subject + ": says the same after a restart"
	if _, err := t.fresh(ctx); err != nil {
		return failed(name, err)
	}
	if err := t.asksAgain(ctx, plan, request); err != nil {
		return failed(name, err)
	}
	return passed(name, "")
}

// made returns the objects of a plan as they are right after they were made.
func (t *trial) made(plan *pluginv1.PlanResponse) map[string]*unstructured.Unstructured {
	found := map[string]*unstructured.Unstructured{}
	for _, object := range plan.GetObjects() {
		made := &unstructured.Unstructured{Object: map[string]any{}}
		if json.Unmarshal(object.GetTemplate(), &made.Object) == nil && made.GetKind() != "" {
			made.SetNamespace("shop")
			found[object.GetId()] = made
		}
	}
	return found
}

// survives sends what is no request, and asks for the plan once more.
func (t *trial) survives(ctx context.Context, plan *pluginv1.PlanResponse, request *pluginv1.PlanRequest) Check {
	name := t.subject + ": survives what it cannot read"
	for _, broken := range []*pluginv1.PlanRequest{
		{},
		{Claim: request.GetClaim(), Parameters: []byte("{")},
		{Claim: request.GetClaim(), Parameters: []byte("{}")},
		{Claim: request.GetClaim(), Parameters: request.GetParameters(), Objects: map[string][]byte{"x": []byte("[]")}},
	} {
		_, err := t.Host.Plan(ctx, t.Plugin, broken)
		var gone *FailedError
		if errors.As(err, &gone) && !gone.Again.IsZero() {
			return failed(name, fmt.Errorf("of the request %s it %s", broken, gone.Message))
		}
	}
	if err := t.asksAgain(ctx, plan, request); err != nil {
		return failed(name, err)
	}
	return passed(name, "")
}

// goesOn kills the program at each question, and asks for the plan again.
func (t *trial) goesOn(ctx context.Context, plan *pluginv1.PlanResponse, request *pluginv1.PlanRequest) Check {
	name := t.subject + ": goes on when it is killed at a question"
	for _, question := range []func() error{
		func() error { _, err := t.Host.Describe(ctx, t.Plugin); return err },
		func() error {
			_, err := t.Host.Validate(ctx, t.Plugin, &pluginv1.ValidateRequest{Claim: request.GetClaim(), Parameters: request.GetParameters()})
			return err
		},
		func() error { _, err := t.Host.Plan(ctx, t.Plugin, request); return err },
	} {
		if err := t.killedAt(question); err != nil {
			return failed(name, err)
		}
		if err := t.asksAgain(ctx, plan, request); err != nil {
			return failed(name, err)
		}
	}
	return passed(name, "")
}

// killedAt kills the program while it is asked something, which may have an answer all the same.
func (t *trial) killedAt(question func() error) error {
	asked := make(chan error, 1)
	go func() { asked <- question() }()
	for !t.Host.isAsking(t.Plugin) && len(asked) == 0 {
		runtime.Gosched() // for it is a moment that an answer takes
	}
	t.Host.End()
	var gone *FailedError
	if err := <-asked; err != nil && !errors.As(err, &gone) {
		return err
	}
	return nil
}

// inTime asks as often as a program is asked of by many claims, and says how long the longest
// answer took.
func (t *trial) inTime(ctx context.Context, request *pluginv1.PlanRequest) Check {
	name := t.subject + ": answers in time"
	slowest := time.Duration(0)
	for asked := 0; asked < manyQuestions && slowest <= slowAnswer; asked++ {
		began := time.Now()
		if _, err := t.Host.Plan(ctx, t.Plugin, request); err != nil {
			return failed(name, err)
		}
		slowest = max(slowest, time.Since(began))
	}
	if slowest > slowAnswer {
		return failed(name, fmt.Errorf("an answer took %s, and a question is given up after %s: it must decide from its request alone, and ask nobody",
			slowest.Round(time.Millisecond), callTimeout))
	}
	return passed(name, "within %s, %d times", slowAnswer, manyQuestions)
}

const (
	// manyQuestions are asked after each other, and slowAnswer is when an answer is late: a fifth of
	// what ends the question.
	manyQuestions = 50
	slowAnswer    = callTimeout / 5
)
