// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

// actAs has the fixture's executor act as an account with rights on ConfigMaps
// of the fixture's namespace.
func (f *fixture) actAs(name string, verbs ...string) {
	f.Helper()
	f.actWith(name, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs})
}

// actWith has the fixture's executor act as an account with rights in the fixture's namespace.
func (f *fixture) actWith(name string, rules ...rbacv1.PolicyRule) {
	f.Helper()
	scheme := runtime.NewScheme()
	f.must(clientgoscheme.AddToScheme(scheme))
	admin, err := client.New(server.plane.Config(), client.Options{Scheme: scheme})
	f.must(err)
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: name}
	f.must(admin.Create(f.ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
	f.must(admin.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: name}},
	}))
	user := "system:serviceaccount:" + f.namespace + ":" + name
	identity, err := server.plane.User(user)
	f.must(err)
	last := rules[len(rules)-1]
	// The API server judges by a cache, which may not have the binding yet.
	f.must(wait.PollUntilContextTimeout(f.ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: f.namespace, Verb: last.Verbs[len(last.Verbs)-1], Group: last.APIGroups[0], Resource: last.Resources[0],
			},
		}}
		err := admin.Create(ctx, review)
		return review.Status.Allowed, err
	}))
	f.executor = f.executor.OnClusters(f.executor.ActingAs(f.client(identity.Config, nil)), nil)
}

// A role that grants more than its layer's account has is taken over, and corrected, by what
// git says of it, which grants no more. What git says beyond the account's rights is refused.
func TestRoleThatGrantsMoreThanTheAccountHas(t *testing.T) {
	role := func(f *fixture, verbs ...string) *unstructured.Unstructured {
		var granted []any
		for _, verb := range verbs {
			granted = append(granted, verb)
		}
		obj := parse("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n")
		obj.SetNamespace(f.namespace)
		obj.SetName("readers")
		set(obj, []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": granted}}, "rules")
		return obj
	}
	for name, maker := range map[string]string{"made by a controller": "some-controller", "made by kubectl": "kubectl-client-side-apply"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			all := role(f, "get", "delete")
			all.SetLabels(map[string]string{"from": "before"})
			f.create(all, maker)
			f.actWith("deployer",
				rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
				rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"get", "create", "patch"}},
			)
			got := f.rewritten(role(f, "get"))
			if diff := cmp.Diff(role(f, "get").Object["rules"], got.Object["rules"]); diff != "" || got.GetLabels()["kraan/layer"] != owner {
				t.Errorf("adopted, its labels are %v, and its rules differ (-want +got):\n%s", got.GetLabels(), diff)
			}
			if stays := got.GetLabels()["from"] != ""; stays != (maker == "some-controller") {
				t.Errorf("the label that git does not say stays is %t", stays)
			}
			f.patch(got, "kubectl-edit", `{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`)
			if result := f.correction(role(f, "get")); !result.Changed {
				t.Errorf("the correction is %+v", result)
			}
			if diff := cmp.Diff(role(f, "get").Object["rules"], f.live(got).Object["rules"]); diff != "" {
				t.Errorf("corrected, its rules differ (-want +got):\n%s", diff)
			}
			result := f.run(seen(writeOf(owner, role(f, "get", "delete")), f.live(got)))[0]
			if !dependents.IsEscalation(result.Err) {
				t.Errorf("more than the account has ends with %v", result.Err)
			}
		})
	}
}

// denials says in words which rights results say are missing.
func denials(results []dependents.Result) []string {
	var words []string
	for _, result := range results {
		word := string(result.Action.Verb) + " "
		denial, denied := dependents.DenialOf(result.Err)
		switch {
		case result.Err == nil && result.Outdated:
			word += "is outdated"
		case result.Err == nil:
			word += "is done"
		case denied:
			word += "may not " + denial.Verb + " " + denial.Resource
		default:
			word += "fails: " + result.Err.Error()
		}
		words = append(words, word)
	}
	return words
}

// Every request of an executor, also what it reads, is one of whom it acts as:
// the rights of whoever runs the process help with none of them.
func TestExecutorActsAsAnother(t *testing.T) {
	tests := map[string]struct {
		reason string
		verbs  []string
		want   []string
	}{
		"nothing": {
			reason: "the first thing that each action does is refused", verbs: []string{"list"},
			want: []string{
				"Disown may not get configmaps", "Unmark may not patch configmaps", "Write may not create configmaps", "Write may not get configmaps",
				"Mark may not patch configmaps", "Release may not patch configmaps", "Delete may not delete configmaps",
			},
		},
		"reading": {
			reason: "what may be read may not be claimed", verbs: []string{"get"},
			want: []string{
				"Disown may not patch configmaps", "Unmark may not patch configmaps", "Write may not create configmaps", "Write may not patch configmaps",
				"Mark may not patch configmaps", "Release may not patch configmaps", "Delete may not delete configmaps",
			},
		},
		"everything": {
			reason: "the rights that the documentation names are enough", verbs: []string{"get", "create", "patch", "delete"},
			want: []string{"Disown is done", "Unmark is done", "Write is done", "Write is done", "Mark is done", "Release is done", "Delete is done"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			live := func(name string) dependents.Action {
				obj := ownedBy(owner, f.configMap(name, "a", "b"))
				obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kraan.io/v1alpha1", Kind: "AddonsLayer", Name: "base", UID: "1"}})
				return seen(dependents.Action{}, f.create(obj, "somebody"))
			}
			action := func(verb dependents.Verb, name string) dependents.Plan {
				action := live(name)
				action.Verb, action.ID = verb, objects.IDOf(f.configMap(name))
				return dependents.Plan{Actions: []dependents.Action{action}}
			}
			plans := []dependents.Plan{
				action(dependents.VerbDisown, "disowned"),
				action(dependents.VerbUnmark, "unmarked"),
				{Actions: []dependents.Action{writeOf(owner, f.configMap("created", "a", "b"))}},
				{Actions: []dependents.Action{seen(writeOf(owner, f.configMap("written", "a", "c")), f.create(f.configMap("written"), "somebody"))}},
				action(dependents.VerbMark, "marked"),
				action(dependents.VerbRelease, "released"),
				action(dependents.VerbDelete, "deleted"),
			}
			f.actAs("deployer", test.verbs...)
			var got []string
			for _, plan := range plans {
				got = append(got, denials(f.executor.Run(f.ctx, owner, plan))...)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

// As leaves the executor that it comes from as it is.
func TestAsChangesNobodyElse(t *testing.T) {
	f := newFixture(t)
	before := f.executor
	f.actAs("nobody", "list")
	if f.executor == before || f.executor.Client == before.Client || f.executor.Reader == before.Reader {
		t.Fatal("it is the same executor")
	}
	f.executor = before
	f.done(writeOf(owner, f.configMap("created")))
}

func TestSecretsAreNotQuoted(t *testing.T) {
	const content = "hunter2"
	secrets := schema.GroupResource{Resource: "secrets"}
	denied := `User "a" cannot patch resource "secrets" in API group "" in the namespace "b"`
	webhook := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 403, Message: `admission webhook "policy" denied the request: ` + content + ` is too short`,
	}}
	tests := map[string]struct {
		reason string
		kind   string
		wanted *dependents.Dependent
		err    error
		kept   bool
	}{
		"invalid":          {reason: "validation quotes values", kind: "Secret", err: apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, content, nil)},
		"bad request":      {reason: "so does a decoder", kind: "Secret", err: apierrors.NewBadRequest(content)},
		"webhook":          {reason: "so may whoever has an opinion on it", kind: "Secret", err: webhook},
		"forbidden":        {reason: "so may an admission plug-in", kind: "Secret", err: apierrors.NewForbidden(secrets, "a", errors.New(content))},
		"right is missing": {reason: "the authorizer never sees the content, and a right that is missing must be named", kind: "Secret", err: apierrors.NewForbidden(secrets, "a", errors.New(denied)), kept: true},
		"too many":         {reason: "a server that is busy has not looked", kind: "Secret", err: apierrors.NewTooManyRequests(content, 1), kept: true},
		"broken":           {reason: "a server that is broken says how", kind: "Secret", err: apierrors.NewInternalError(errors.New(content)), kept: true},
		"network":          {reason: "no server has said it", kind: "Secret", err: errors.New(content), kept: true},
		"made with a Secret": {
			reason: "it holds a value of a Secret", kind: "ConfigMap", wanted: &dependents.Dependent{Confidential: true}, err: apierrors.NewBadRequest(content),
		},
		"ConfigMap": {reason: "other kinds hold no secrets", kind: "ConfigMap", err: apierrors.NewBadRequest(content), kept: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := withoutSecrets(dependents.Action{ID: objects.ID{Kind: test.kind, Namespace: "b", Name: "a"}, Wanted: test.wanted}, test.err).Error()
			if kept := got == test.err.Error(); kept != test.kept {
				t.Errorf("%s: it says %s", test.reason, got)
			}
			if !test.kept && strings.Contains(got, content) {
				t.Errorf("%s: it quotes the content: %s", test.reason, got)
			}
		})
	}
}
