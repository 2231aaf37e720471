// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// actsAs names a layer's account.
func actsAs(account string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Spec.ServiceAccountName = account }
}

// sourceIn puts a layer's source into a namespace.
func sourceIn(namespace string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Spec.Source.Namespace = namespace }
}

func TestAccountOf(t *testing.T) {
	cases := map[string]struct {
		reason   string
		layer    *v1alpha1.AddonsLayer
		settings Settings
		want     string
	}{
		"none":                 {reason: "without a name the controller writes itself", layer: layer(), settings: Settings{Namespace: "strata"}, want: "/"},
		"named":                {reason: "it is the source's namespace that the account is in", layer: layer(actsAs("deployer"), sourceIn("team-a")), settings: Settings{Namespace: "strata"}, want: "team-a/deployer"},
		"named, no namespace":  {reason: "a source without a namespace is in the controller's", layer: layer(actsAs("deployer")), settings: Settings{Namespace: "strata"}, want: "strata/deployer"},
		"default":              {reason: "the default is a name, in the same namespace", layer: layer(sourceIn("team-a")), settings: Settings{Namespace: "strata", DefaultServiceAccount: "layers"}, want: "team-a/layers"},
		"named, with default":  {reason: "what the layer names comes first", layer: layer(actsAs("deployer")), settings: Settings{Namespace: "strata", DefaultServiceAccount: "layers"}, want: "strata/deployer"},
		"default of no source": {reason: "the default is there for layers of the controller's namespace, too", layer: layer(), settings: Settings{Namespace: "strata", DefaultServiceAccount: "layers"}, want: "strata/layers"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.settings.AccountFor(tc.layer).String(); got != tc.want {
				t.Errorf("%s: it is %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestCheckAccount(t *testing.T) {
	cases := map[string]struct {
		reason          string
		namespace, name string
		problem         string
	}{
		"usual":               {reason: "a name like any other", namespace: "team-a", name: "deployer"},
		"dots":                {reason: "names of accounts are subdomains", namespace: "team-a", name: "deployer.v2"},
		"colon":               {reason: "the user would be an account of another namespace", namespace: "team-a", name: "x:admin", problem: `"x:admin" is no name of a ServiceAccount`},
		"colon in namespace":  {reason: "so would this one", namespace: "kube-system:x", name: "admin", problem: `"kube-system:x" is no namespace`},
		"slash":               {reason: "a name is no path", namespace: "team-a", name: "../admin", problem: "is no name of a ServiceAccount"},
		"capitals":            {reason: "no account has any", namespace: "team-a", name: "Deployer", problem: "is no name of a ServiceAccount"},
		"line break":          {reason: "it would begin another header", namespace: "team-a", name: "a\r\nImpersonate-Group: system:masters", problem: "is no name of a ServiceAccount"},
		"no name":             {reason: "that would be all accounts", namespace: "team-a", problem: "is no name of a ServiceAccount"},
		"no namespace":        {reason: "there is no such account", name: "deployer", problem: `"" is no namespace`},
		"dotted namespace":    {reason: "namespaces are labels", namespace: "team.a", name: "deployer", problem: "is no namespace"},
		"very long":           {reason: "no account has such a name", namespace: "team-a", name: strings.Repeat("a", 254), problem: "is no name of a ServiceAccount"},
		"very long namespace": {reason: "no namespace has such a name", namespace: strings.Repeat("a", 64), name: "a", problem: "is no namespace"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := accounts.Check(types.NamespacedName{Namespace: tc.namespace, Name: tc.name})
			if (err != nil) != (tc.problem != "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%s: the error is %v, want %q in it", tc.reason, err, tc.problem)
			}
		})
	}
}

// No namespace and name that pass make a user other than the account itself:
// the parts of a user's name are found again as they were.
func TestAccountsAreNobodyElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a-zA-Z0-9:./\-\r\n ]{0,12}`)
		account := types.NamespacedName{Namespace: part.Draw(t, "namespace"), Name: part.Draw(t, "name")}
		if accounts.Check(account) != nil {
			return
		}
		user := fmt.Sprintf("system:serviceaccount:%s:%s", account.Namespace, account.Name)
		parts := strings.Split(user, ":")
		if len(parts) != 4 || parts[2] != account.Namespace || parts[3] != account.Name || strings.ContainsAny(user, "\r\n /") {
			t.Fatalf("%q is %q", account, user)
		}
	})
}

// ownNamespaceOnly is the setting of --no-cross-namespace-refs.
func ownNamespaceOnly(o *Observation) { o.Settings.NoCrossNamespaceRefs = true }

// opened is the setting of --source-namespaces, and accountRequired that of
// --require-service-account.
func opened(namespaces ...string) func(*Observation) {
	return func(o *Observation) { o.Settings.SourceNamespaces = namespaces }
}

func accountRequired(o *Observation) { o.Settings.RequireServiceAccount = true }

func chartFrom(namespace string) directories.Manifest {
	source := map[string]any{"kind": "HelmRepository", "name": "charts"}
	if namespace != "" {
		source["namespace"] = namespace
	}
	return directoriestest.HelmRelease("a", "chart", map[string]any{"spec": map[string]any{"chart": "podinfo", "sourceRef": source}})
}

func TestDecideAccess(t *testing.T) {
	foreign := directoriestest.Of(newRevision, chartFrom("elsewhere"))
	const refused = "references across namespaces are refused (--no-cross-namespace-refs)"
	runDecideCases(t, map[string]decideCase{
		"allowed by default": {
			reason: "without the flag sources and charts are where they are", in: observation(layer(sourceIn("team-a")), foreign),
			want: decided{
				state: v1alpha1.StateApplying, actions: "Write a", conditions: waitingFor("Applying"), kstatus: status.InProgressStatus,
				message: "HelmRelease default/a has yet to be applied",
			},
		},
		"source elsewhere": {
			reason: "only the controller's own sources may be used, and nothing is said of others", in: observation(layer(sourceIn("team-a")), newDir, ownNamespaceOnly),
			want: decided{
				state: v1alpha1.StateFailed, conditions: stalledWith("AccessDenied"), kstatus: status.FailedStatus,
				message: "spec.source.namespace: team-a is neither the controller's namespace, gotk-system, nor one of --source-namespaces, and " + refused,
			},
		},
		"source elsewhere that does not exist": {
			reason: "whether it exists is not told",
			in:     observation(layer(sourceIn("team-a")), nil, ownNamespaceOnly, func(o *Observation) { o.Source = nil }),
			want: decided{
				state: v1alpha1.StateFailed, conditions: stalledWith("AccessDenied"), kstatus: status.FailedStatus,
				message: "spec.source.namespace: team-a is neither the controller's namespace, gotk-system, nor one of --source-namespaces, and " + refused,
			},
		},
		"source in a namespace that is open": {
			reason: "a team's source and account are in a namespace of the team's",
			in:     observation(layer(sourceIn("team-a"), actsAs("deployer")), oldDir, ownNamespaceOnly, opened("team-a")),
			want: decided{
				state: v1alpha1.StateApplying, actions: "Write a", conditions: waitingFor("Applying"), kstatus: status.InProgressStatus,
				message: "HelmRelease default/a has yet to be applied",
			},
		},
		"source in another than the one that is open": {
			reason: "a name that begins alike opens nothing", in: observation(layer(sourceIn("team-ab")), newDir, ownNamespaceOnly, opened("team-a")),
			want: decided{
				state: v1alpha1.StateFailed, conditions: stalledWith("AccessDenied"), kstatus: status.FailedStatus,
				message: "spec.source.namespace: team-ab is neither the controller's namespace, gotk-system, nor one of --source-namespaces, and " + refused,
			},
		},
		"cluster of another team": {
			reason: "both namespaces are open, and still the one team has nothing to do with the clusters of the other",
			in: observation(layer(sourceIn("team-a"), func(l *v1alpha1.AddonsLayer) {
				l.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: "team-b", Name: "prod"}
			}), newDir, ownNamespaceOnly, opened("team-a", "team-b")),
			want: decided{
				state: v1alpha1.StateFailed, conditions: stalledWith("AccessDenied"), kstatus: status.FailedStatus,
				message: "spec.cluster.namespace: team-b is not the namespace of the layer's source, team-a, and " + refused,
			},
		},
		"cluster of a layer of a bundle": {
			reason: "a bundle is of no namespace, and the cluster is in none that is open",
			in: observation(layer(func(l *v1alpha1.AddonsLayer) {
				l.Spec.Source = v1alpha1.SourceSpec{Kind: v1alpha1.ApplicationBundleKind, Name: "shop-1.0.0", Path: "./base"}
				l.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: "team-b", Name: "prod"}
			}), newDir, ownNamespaceOnly, opened("team-a")),
			want: decided{
				state: v1alpha1.StateFailed, conditions: stalledWith("AccessDenied"), kstatus: status.FailedStatus,
				message: "spec.cluster.namespace: team-b is neither the controller's namespace, gotk-system, nor one of --source-namespaces, and " + refused,
			},
		},
		"no account where one is required": {
			reason: "the controller's own rights are for no layer", in: observation(layer(), newDir, accountRequired),
			want: decided{
				state: v1alpha1.StateFailed, conditions: stalledWith("AccessDenied"), kstatus: status.FailedStatus,
				message: "spec.serviceAccountName: the layer names no account, and the controller writes no layer with its own rights (--require-service-account): " +
					"name one of the namespace of the layer's source or, for another cluster, of the RemoteCluster's",
			},
		},
		"account where one is required": {
			reason: "the account's rights bound the layer", in: observation(layer(actsAs("deployer")), oldDir, accountRequired),
			want: decided{
				state: v1alpha1.StateApplying, actions: "Write a", conditions: waitingFor("Applying"), kstatus: status.InProgressStatus,
				message: "HelmRelease default/a has yet to be applied",
			},
		},
		"own source, written out": {
			reason: "naming the controller's namespace crosses nothing", in: observation(layer(sourceIn("gotk-system")), oldDir, ownNamespaceOnly),
			want: decided{
				state: v1alpha1.StateApplying, actions: "Write a", conditions: waitingFor("Applying"), kstatus: status.InProgressStatus,
				message: "HelmRelease default/a has yet to be applied",
			},
		},
		"deployed before": {
			reason: "nothing is written, repaired or removed for a layer that may not use its source; what it has stays",
			in:     observation(layer(sourceIn("team-a"), isDeployed(newDir)), newDir, ownNamespaceOnly, lives(live("a", drifted), live("b"))),
			want: decided{
				state: v1alpha1.StateFailed, conditions: stalledWith("AccessDenied"), kstatus: status.FailedStatus,
				message: "spec.source.namespace: team-a is neither the controller's namespace, gotk-system, nor one of --source-namespaces, and " + refused,
			},
		},
		"chart elsewhere": {
			reason: "the file and the field are named", in: observation(layer(), foreign, ownNamespaceOnly),
			want: decided{
				state: v1alpha1.StateFailed, conditions: stalledWith("AccessDenied"), kstatus: status.FailedStatus,
				message: "base/a.yaml:1: spec.chart.spec.sourceRef.namespace: HelmRelease default/a refers to the namespace elsewhere, and " + refused,
			},
		},
		"own chart": {
			reason: "the namespace of the release, written out or not", in: observation(layer(), directoriestest.Of(newRevision, chartFrom("default")), ownNamespaceOnly),
			want: decided{
				state: v1alpha1.StateApplying, actions: "Write a", conditions: waitingFor("Applying"), kstatus: status.InProgressStatus,
				message: "HelmRelease default/a has yet to be applied",
			},
		},
		"account that cannot be one": {
			reason: "of a CRD that did not check it, or a namespace with a colon", in: observation(layer(actsAs("deployer"), sourceIn("kube-system:x")), newDir),
			want: decided{
				state: v1alpha1.StateFailed, conditions: stalledWith("InvalidSpec"), kstatus: status.FailedStatus,
				message: `cannot act as the layer's ServiceAccount: "kube-system:x" is no namespace: ` +
					`a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character ` +
					`(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			},
		},
		"kind that the controller cannot watch": {
			reason: "the account's rights do not help the controller's watch, and both are named",
			in: observation(layer(actsAs("deployer"), sourceIn("team-a")), oldDir, func(o *Observation) {
				o.KindError = errors.New("cannot list issuers")
			}),
			want: decided{
				state: v1alpha1.StateFailed, conditions: failedWith("ApplyFailed"), kstatus: status.InProgressStatus,
				message: "the controller lacks rights: cannot list issuers; add the kind to rbac.kinds of the chart, with the verbs get, list and watch, since ServiceAccount team-a/deployer writes it",
			},
		},
	})
}

// A layer that may not use its source can still be deleted.
func TestRefusedLayerIsDeleted(t *testing.T) {
	in := observation(layer(sourceIn("team-a"), isDeployed(oldDir), deleted), nil, ownNamespaceOnly, lives(live("a")))
	if got := verbs(Decide(in).Plan); got != "Mark a" {
		t.Errorf("the plan is %q, want the first step of the deletion", got)
	}
}

func TestForeignReference(t *testing.T) {
	cases := map[string]struct {
		reason, apiVersion, kind string
		spec                     map[string]any
		field, namespace         string
	}{
		"chartRef": {
			reason: "the other way to name a chart", apiVersion: "helm.toolkit.fluxcd.io/v2", kind: "HelmRelease",
			spec:  map[string]any{"chartRef": map[string]any{"kind": "OCIRepository", "name": "a", "namespace": "b"}},
			field: "spec.chartRef.namespace", namespace: "b",
		},
		"values": {
			reason: "values are nobody's references, whatever they look like", apiVersion: "helm.toolkit.fluxcd.io/v2", kind: "HelmRelease",
			spec: map[string]any{"values": map[string]any{"sourceRef": map[string]any{"namespace": "b"}}},
		},
		"Kustomization": {
			reason: "it has a source, too", apiVersion: "kustomize.toolkit.fluxcd.io/v1", kind: "Kustomization",
			spec:  map[string]any{"sourceRef": map[string]any{"name": "a", "namespace": "b"}},
			field: "spec.sourceRef.namespace", namespace: "b",
		},
		"Alert": {
			reason: "of a list, the item is named", apiVersion: "notification.toolkit.fluxcd.io/v1beta3", kind: "Alert",
			spec:  map[string]any{"eventSources": []any{map[string]any{"name": "*"}, map[string]any{"name": "*", "namespace": "b"}}},
			field: "spec.eventSources[1].namespace", namespace: "b",
		},
		"Receiver": {
			reason: "a webhook of one namespace could wake what is in another", apiVersion: "notification.toolkit.fluxcd.io/v1", kind: "Receiver",
			spec:  map[string]any{"resources": []any{map[string]any{"name": "a", "namespace": "b"}}},
			field: "spec.resources[0].namespace", namespace: "b",
		},
		"same": {
			reason: "its own namespace, written out", apiVersion: "kustomize.toolkit.fluxcd.io/v1", kind: "Kustomization",
			spec: map[string]any{"sourceRef": map[string]any{"name": "a", "namespace": "default"}},
		},
		"odd": {
			reason: "what is of another type is for the API server to refuse", apiVersion: "helm.toolkit.fluxcd.io/v2", kind: "HelmRelease",
			spec: map[string]any{"chartRef": "b", "chart": []any{"spec"}},
		},
		"other kind": {
			reason: "only Flux's own references are known", apiVersion: "v1", kind: "ConfigMap",
			spec: map[string]any{"sourceRef": map[string]any{"namespace": "b"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := directoriestest.Any(tc.apiVersion, tc.kind, "default", "a")
			m.Object.Object["spec"] = tc.spec
			field, namespace := placement.ForeignReference(m.Object)
			if field != tc.field || namespace != tc.namespace {
				t.Errorf("%s: it is %q in %q, want %q in %q", tc.reason, field, namespace, tc.field, tc.namespace)
			}
		})
	}
}

func TestReportFailuresOfAnAccount(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	refuse := func(user, verb string) error {
		return apierrors.NewForbidden(releases, "podinfo", fmt.Errorf(
			"User %q cannot %s resource \"helmreleases\" in API group \"helm.toolkit.fluxcd.io\" in the namespace \"default\"", user, verb))
	}
	const account, controller = "system:serviceaccount:team-a:deployer", "system:serviceaccount:strata-system:strata"
	cases := map[string]struct {
		reason  string
		account string
		verb    dependents.Verb
		err     error
		want    string
		message string
	}{
		"write": {
			reason: "verb, resource, namespace and account are named, with the file", account: "deployer", verb: dependents.VerbWrite, err: refuse(account, "patch"), want: "ApplyFailed",
			message: `cannot apply HelmRelease default/podinfo (file) as ServiceAccount team-a/deployer: it may not patch resource "helmreleases" in API group "helm.toolkit.fluxcd.io" in the namespace "default"`,
		},
		"delete": {
			reason: "a removal fails in the same words, and stays one that failed", account: "deployer", verb: dependents.VerbDelete, err: refuse(account, "delete"), want: "PruneFailed",
			message: `cannot remove HelmRelease default/podinfo as ServiceAccount team-a/deployer: it may not delete resource "helmreleases" in API group "helm.toolkit.fluxcd.io" in the namespace "default"`,
		},
		"impersonation": {
			reason: "not the account lacks a right, but the controller", account: "deployer", verb: dependents.VerbWrite, err: refuse(controller, "impersonate"), want: "ImpersonationDenied",
			message: `cannot apply HelmRelease default/podinfo (file) as ServiceAccount team-a/deployer: the controller may not impersonate that account; add it to rbac.impersonate of the chart`,
		},
		"constrained impersonation": {
			reason: "so says a newer API server the same", account: "deployer", verb: dependents.VerbSuspend, err: refuse(controller, "impersonate-on:serviceaccount:patch"), want: "ImpersonationDenied",
			message: `cannot apply HelmRelease default/podinfo as ServiceAccount team-a/deployer: the controller may not impersonate that account; add it to rbac.impersonate of the chart`,
		},
		"missing": {
			reason: "an account that is not there has no rights to be named", account: "deployer", verb: dependents.VerbWrite,
			err: &accounts.MissingError{Account: types.NamespacedName{Namespace: "team-a", Name: "deployer"}}, want: "ServiceAccountNotFound",
			message: `cannot apply HelmRelease default/podinfo (file) as ServiceAccount team-a/deployer: that account does not exist`,
		},
		"missing at deletion": {
			reason: "nothing is given up because nobody may remove it", account: "deployer", verb: dependents.VerbMark,
			err: &accounts.MissingError{Account: types.NamespacedName{Namespace: "team-a", Name: "deployer"}}, want: "PruneFailed",
			message: `cannot remove HelmRelease default/podinfo as ServiceAccount team-a/deployer: that account does not exist`,
		},
		"quota": {
			reason: "what is no matter of rights keeps its words", account: "deployer", verb: dependents.VerbWrite,
			err: apierrors.NewForbidden(configMaps, "a", errors.New("exceeded quota: small")), want: "ApplyFailed",
			message: `cannot apply HelmRelease default/podinfo (file) as ServiceAccount team-a/deployer: configmaps "a" is forbidden: exceeded quota: small`,
		},
		"controller": {
			reason: "without an account the API server's own words name the controller", verb: dependents.VerbWrite, err: refuse(controller, "patch"), want: "ApplyFailed",
			message: `cannot apply HelmRelease default/podinfo (file): helmreleases.helm.toolkit.fluxcd.io "podinfo" is forbidden: ` +
				`User "system:serviceaccount:strata-system:strata" cannot patch resource "helmreleases" in API group "helm.toolkit.fluxcd.io" in the namespace "default"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			action := dependents.Action{Verb: tc.verb, ID: releaseID("podinfo")}
			if tc.verb == dependents.VerbWrite {
				action.Wanted = &dependents.Dependent{ID: action.ID, Origin: "file"}
			}
			o := observation(layer(actsAs(tc.account), sourceIn("team-a")), directoriestest.Of(newRevision, directoriestest.HelmRelease("podinfo")))
			_, got := Report(o, Decide(o), []dependents.Result{{Action: action, Err: tc.err}})
			if diff := cmp.Diff(decided{state: v1alpha1.StateFailed, message: tc.message, conditions: tc.want},
				decided{state: got.State, message: got.Message, conditions: got.Reason}, cmp.AllowUnexported(decided{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got.Stalled || !errors.Is(got.Retry, tc.err) {
				t.Errorf("%s: it is not tried again: stalled %t, retry %v", tc.reason, got.Stalled, got.Retry)
			}
		})
	}
}

// Where references across namespaces are refused, no plan writes for a source
// of another namespace, whatever state the layer is in; only a deletion goes on.
func TestNoPlanWritesForAForeignSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := drawDirectory(t, oldRevision, "old")
		l := drawLayer(t, was)
		l.Spec.Source.Namespace = rapid.SampledFrom([]string{"", "gotk-system", "team-a"}).Draw(t, "namespace")
		o := observation(l, drawDirectory(t, newRevision, "new"), ownNamespaceOnly)
		o.Live = map[objects.ID]*unstructured.Unstructured{}
		for _, m := range was.Manifests {
			lives(live(m.Object.GetName(), drifted))(&o)
		}
		refused := l.Spec.Source.Namespace == "team-a"
		decision := Decide(o)
		if refused && !isDeleting(l) && !HoldOf(l, o.Now).Active && (decision.Reason != v1alpha1.ReasonAccessDenied || decision.Plan.Writes()) {
			t.Fatalf("%s with %s", decision.Reason, verbs(decision.Plan))
		}
		if !refused && decision.Reason == v1alpha1.ReasonAccessDenied {
			t.Fatalf("the controller's own source is refused: %s", decision.Message)
		}
	})
}
