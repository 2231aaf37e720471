// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/strata-project/strata/internal/dependents"
)

// outcomes says in words what became of actions.
func outcomes(results []dependents.Result) []string {
	var words []string
	for _, result := range results {
		word := "done"
		switch {
		case result.Err != nil:
			word = "failed"
		case result.Outdated:
			word = "outdated"
		}
		words = append(words, fmt.Sprintf("%s %s %s", result.Action.Verb, result.Action.ID.Name, word))
	}
	return words
}

func TestStages(t *testing.T) {
	// Each step is an action in the words VERB NAME STAGE. Objects whose names
	// begin with bad are refused by the API server, those that begin with
	// changed are not as they were seen, and those that begin with loose are
	// detached.
	tests := map[string]struct {
		reason string
		steps  []string
		want   []string
	}{
		"in order": {
			reason: "stages follow each other",
			steps:  []string{"Write a 0", "Write b 0", "Write c 1"},
			want:   []string{"Write a done", "Write b done", "Write c done"},
		},
		"a stage fails": {
			reason: "the same stage is finished, later ones are not tried",
			steps:  []string{"Write a 0", "Write bad 0", "Write b 0", "Write c 1", "Write d 2"},
			want:   []string{"Write a done", "Write bad failed", "Write b done"},
		},
		"a stage is outdated": {
			reason: "what depends on it must not be written over it",
			steps:  []string{"Write changed 0", "Write c 1"},
			want:   []string{"Write changed outdated"},
		},
		"a detached object fails": {
			reason: "what serves it may come in a later stage",
			steps:  []string{"Write loose-bad 0", "Write a 1"},
			want:   []string{"Write loose-bad failed", "Write a done"},
		},
		"removals run all the same": {
			reason: "a layer that cannot be written is still pruned",
			steps:  []string{"Write bad 0", "Write a 1", "Mark seen 0", "Delete seen-too 0"},
			want:   []string{"Write bad failed", "Mark seen done", "Delete seen-too done"},
		},
		"a removal fails": {
			reason: "removals do not wait for each other",
			steps:  []string{"Delete changed 0", "Delete seen 0"},
			want:   []string{"Delete changed outdated", "Delete seen done"},
		},
		"a preparation is outdated": {
			reason: "nothing is safe before what makes room is done",
			steps:  []string{"Unmark changed 0", "Write a 0", "Delete seen 0"},
			want:   []string{"Unmark changed outdated"},
		},
		"preparations of two stages": {
			reason: "all of them come before the first write",
			steps:  []string{"Unmark seen 0", "Unmark seen-too 3", "Write a 0"},
			want:   []string{"Unmark seen done", "Unmark seen-too done", "Write a done"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var actions []dependents.Action
			for _, step := range test.steps {
				actions = append(actions, f.step(step))
			}
			if diff := cmp.Diff(test.want, outcomes(f.run(actions...))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

// step returns the action of a step; see TestStages.
func (f *fixture) step(step string) dependents.Action {
	f.Helper()
	var verb, name string
	var stage int
	if _, err := fmt.Sscan(step, &verb, &name, &stage); err != nil {
		f.Fatal(err)
	}
	obj := f.configMap(name, "a", "1")
	if strings.Contains(name, "bad") {
		obj = f.configMap(name, "not a key", "1")
	}
	action := writeOf(owner, obj)
	action.Verb, action.Stage = dependents.Verb(verb), stage
	action.Wanted.Detached = strings.HasPrefix(name, "loose")
	if action.Verb != dependents.VerbWrite {
		action.Wanted = nil
	}
	switch {
	case name == "changed" && action.Verb == dependents.VerbWrite:
		f.create(ownedBy(other, obj), "somebody")
	case name == "changed":
		action = seen(action, f.create(ownedBy(owner, obj), "somebody"))
		f.patch(obj, "somebody", `{"data":{"a":"2"}}`)
	case strings.HasPrefix(name, "seen"):
		action = seen(action, f.create(ownedBy(owner, obj), "somebody"))
	}
	return action
}

// A process that was stopped between two actions, for longer than others wait
// before they take the lead, begins none that is left.
func TestPlanThatIsTooOldIsNotActedOn(t *testing.T) {
	f := newFixture(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.executor = f.newExecutor(interceptor.NewClient(f.client(server.plane.Config(), nil), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if obj.GetName() == "stop" {
				now = now.Add(time.Minute)
			}
			return c.Create(ctx, obj, opts...)
		},
	}))
	f.executor.now = func() time.Time { return now }
	f.executor.Valid = time.Minute - 1
	f.executor.Workers = 1
	results := f.run(f.step("Write stop 0"), f.step("Write late 0"), f.step("Write later 1"), f.step("Delete seen 0"))
	want := []string{"Write stop done", "Write late outdated", "Delete seen outdated"}
	if diff := cmp.Diff(want, outcomes(results)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A run always has one turn of its own to write, and beside it as many as are
// spare, whoever holds the others.
func TestSpareTurns(t *testing.T) {
	const turns = 3
	for held, want := range []int{1 + turns, turns, turns - 1, 1} {
		t.Run(fmt.Sprintf("%d of %d are held", held, turns), func(t *testing.T) {
			f := newFixture(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var mu sync.Mutex
			writing, most, all := 0, 0, make(chan struct{})
			f.executor = f.newExecutor(interceptor.NewClient(f.client(server.plane.Config(), nil), interceptor.Funcs{
				Create: func(_ context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					mu.Lock()
					writing++
					most = max(most, writing)
					if most == want && writing == want {
						select {
						case <-all:
						default:
							close(all)
						}
					}
					mu.Unlock()
					select {
					case <-all: // as many write side by side as may
					case <-ctx.Done():
					}
					err := c.Create(ctx, obj, opts...)
					mu.Lock()
					writing--
					mu.Unlock()
					return err
				},
			}))
			f.executor.ExtraWorkers = semaphore.NewWeighted(turns)
			f.must(f.executor.ExtraWorkers.Acquire(ctx, int64(held)))
			var steps []dependents.Action
			var done []string
			for _, name := range strings.Split("abcdefghi", "") {
				steps, done = append(steps, f.step("Write "+name+" 0")), append(done, "Write "+name+" done")
			}
			if diff := cmp.Diff(done, outcomes(f.run(steps...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if most != want || writing != 0 {
				t.Errorf("%d objects were written side by side, want %d; %d still are", most, want, writing)
			}
			if !f.executor.ExtraWorkers.TryAcquire(int64(turns - held)) {
				t.Error("a turn was not given back")
			}
		})
	}
}

func TestForbiddenNamesVerbAndResource(t *testing.T) {
	f := newFixture(t)
	nobody, err := server.plane.User("nobody")
	f.must(err)
	f.executor = f.newExecutor(f.client(nobody.Config, nil))
	live := f.create(ownedBy(owner, f.configMap("live")), "somebody")
	for _, test := range []struct {
		action dependents.Action
		want   string
	}{
		{writeOf(owner, f.configMap("settings")), `cannot create resource "configmaps"`},
		{writeOf(owner, f.release("podinfo")), `cannot create resource "helmreleases" in API group "helm.toolkit.fluxcd.io"`},
		{seen(writeOf(owner, f.configMap("live")), live), `cannot get resource "configmaps"`},
		{on(dependents.VerbMark, live), `cannot patch resource "configmaps"`},
		{on(dependents.VerbDelete, live), `cannot delete resource "configmaps"`},
	} {
		results := f.run(test.action)
		if len(results) != 1 || !apierrors.IsForbidden(results[0].Err) || !strings.Contains(results[0].Err.Error(), test.want) {
			t.Errorf("%s %s: got %+v, want a refusal with %s", test.action.Verb, test.action.ID, results, test.want)
		}
	}
}

func TestMissingNamespaceIsAnError(t *testing.T) {
	f := newFixture(t)
	results := f.run(writeOf(owner, newConfigMap("nowhere", "settings")))
	if len(results) != 1 || !apierrors.IsNotFound(results[0].Err) || !strings.Contains(results[0].Err.Error(), "nowhere") {
		t.Errorf("got %+v, want an error that names the namespace", results)
	}
}

func TestSecretsStayOutOfErrors(t *testing.T) {
	const hush = "hunter2hunter2"
	for name, refused := range map[string]struct{ content, as string }{
		"not base64":        {`data: {password: "` + hush + `!"}`, "BadRequest"},
		"a mapping":         {`data: {password: {` + hush + `: "` + hush + `"}}`, "BadRequest"},
		"a list":            {`stringData: {password: [` + hush + `]}`, "BadRequest"},
		"a bad key":         {`stringData: {"bad key ` + hush + `": x}`, "Invalid"},
		"data in its place": {`data: ` + hush, "BadRequest"},
		"of another type":   {"type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '" + hush + "'}", "Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			secret := parse("apiVersion: v1\nkind: Secret\nmetadata: {name: credentials}\n" + refused.content)
			secret.SetNamespace(f.namespace)
			empty := parse("apiVersion: v1\nkind: Secret\nmetadata: {name: credentials}\n")
			empty.SetNamespace(f.namespace)
			for _, existing := range []bool{false, true} {
				if existing {
					f.create(empty, "somebody")
				}
				results := f.run(writeOf(owner, secret))
				if len(results) != 1 || results[0].Err == nil || !strings.Contains(results[0].Err.Error(), "the API server refuses it as "+refused.as+";") {
					t.Fatalf("the object exists: %t; got %+v, want it refused as %s", existing, results, refused.as)
				}
				if text := fmt.Sprintf("%v %+v", results[0].Err, results[0].Err); strings.Contains(text, hush) {
					t.Errorf("the object exists: %t; the error quotes the Secret: %s", existing, text)
				}
			}
		})
	}
}

// What has begun when the controller is told to stop is finished, and nothing
// else begins.
func TestCancellation(t *testing.T) {
	tests := map[string]func(cancel func()) interceptor.Funcs{
		"while creating": func(cancel func()) interceptor.Funcs {
			return interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					cancel()
					return c.Create(ctx, obj, opts...)
				},
			}
		},
		"while claiming": func(cancel func()) interceptor.Funcs {
			return interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					cancel()
					return c.Patch(ctx, obj, patch, opts...)
				},
			}
		},
		"while applying": func(cancel func()) interceptor.Funcs {
			return interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					cancel()
					return c.Apply(ctx, obj, opts...)
				},
			}
		},
	}
	for name, intercept := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if name != "while creating" {
				f.create(f.configMap("first", "a", "theirs"), "somebody")
			}
			ctx, cancel := context.WithCancel(f.ctx)
			f.executor = f.newExecutor(interceptor.NewClient(f.others, intercept(cancel)))
			second := writeOf(owner, f.configMap("second"))
			second.Stage = 1
			removed := f.create(ownedBy(owner, f.configMap("removed")), "somebody")
			results := f.executor.Run(ctx, owner, dependents.Plan{Actions: []dependents.Action{
				writeOf(owner, f.configMap("first", "a", "ours")), second, on(dependents.VerbDelete, removed),
			}})
			if diff := cmp.Diff([]string{"Write first done"}, outcomes(results)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if live := f.live(f.configMap("first")); field(live, "data", "a") != `"ours"` || live.GetLabels()[testKeys.Owner] != owner {
				t.Errorf("the first object is half written: %v", live.Object)
			}
			if !f.gone(f.configMap("second")) || f.gone(removed) {
				t.Error("something began after the end")
			}
		})
	}
}

func TestCancelledBeforeTheFirstAction(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	results := f.executor.Run(ctx, owner, dependents.Plan{Actions: []dependents.Action{writeOf(owner, f.configMap("settings"))}})
	if len(results) != 0 || len(f.requests.taken()) != 0 {
		t.Errorf("got %+v, want nothing to be tried", results)
	}
}

// A server that never answers holds nobody up for ever.
func TestCallsEnd(t *testing.T) {
	f := newFixture(t)
	var left time.Duration
	f.executor = f.newExecutor(interceptor.NewClient(f.others, interceptor.Funcs{
		Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return context.DeadlineExceeded
		},
	}))
	if diff := cmp.Diff([]string{"Write settings failed"}, outcomes(f.run(writeOf(owner, f.configMap("settings"))))); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if left <= 0 || left > callTimeout {
		t.Errorf("the call may take %s, want at most %s", left, callTimeout)
	}
}
