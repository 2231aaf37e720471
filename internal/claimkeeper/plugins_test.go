// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/providers/providerstest"
)

// plugged has the keeper run the naughty plug-in, and returns what a provider says of it.
func (f *fixture) plugged() string {
	f.Helper()
	f.plugins = f.TempDir()
	digest := providerstest.Naughty(f, f.plugins)
	return fmt.Sprintf("  plugin: {digest: %q, run: Process, kinds: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}]}\n", digest)
}

// offered creates a provider of what the naughty plug-in serves, for the claims of the test.
func (f *fixture) offered(name, spec string) client.Object {
	f.Helper()
	return f.create(fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: CapabilityProvider\nmetadata: {name: SHOP-%s, labels: {test: SHOP}}\nspec:\n"+
		"  capability: Database/Naughty\n  serviceAccountName: databases\n  allowedNamespaces: {matchLabels: {kubernetes.io/metadata.name: SHOP}}\n%s", name, spec))
}

// wants creates a claim of what the naughty plug-in serves.
func (f *fixture) wants(name, spec string) client.Object {
	f.Helper()
	return f.create(fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: CapabilityClaim\nmetadata: {name: %s, namespace: SHOP, labels: {test: SHOP}}\nspec:\n"+
		"  capability: database/naughty\n%s", name, spec))
}

// A claim that a plug-in serves has what the plug-in says, made and read as templates have it; and
// once it has, nobody is asked for anything.
func TestPluginServesAClaim(t *testing.T) {
	f := newFixture(t)
	f.offered("a", f.plugged())
	f.start(0)
	claim := f.wants("db", "  version: '1.0'\n")
	f.says("db", v1alpha1.ReasonBound, f.shop+"-a 1.0")
	password := string(f.secret("db-passwords").Data["app"])
	binding, users := f.secret("db-binding"), f.secret("db-users")
	if len(password) != 32 || string(users.Data["app"]) != password || string(binding.Data["password"]) != password ||
		string(binding.Data["uri"]) != "db://app:"+password+"@db-server" || users.Annotations[v1alpha1.HoldsDataAnnotation] != "true" {
		t.Errorf("the binding has %d keys, and the Secret %v", len(binding.Data), users.Annotations)
	}
	server := &corev1.ConfigMap{}
	f.must(f.client.Get(f.ctx, f.key("db-server"), server))
	if server.Data["script"] != "echo ${HOME}" || server.Data["version"] != "1.0" {
		t.Errorf("the server has %v", server.Data)
	}
	provider := &v1alpha1.CapabilityProvider{}
	f.eventually("the provider counts its claim", func() error {
		if provider = f.providerSays("a"); provider.Status.Claims != 1 {
			return errors.New("it does not")
		}
		return nil
	})
	f.settled()
	asked := f.host.Calls()
	f.annotate(claim, "look", "again")
	if requests := f.settled(); len(requests) > 0 || f.host.Calls() != asked {
		t.Errorf("a claim that is served asks for %v, and its plug-in %d times", requests, f.host.Calls()-asked)
	}
	if got := provider.Status.Versions; len(got) != 1 || got[0] != "1.0" || provider.Status.Parameters == nil {
		t.Errorf("the provider offers %v", got)
	}

	t.Log("a controller that begins says nothing else of it")
	f.end()
	f.start(0)
	f.settled()
	again := &v1alpha1.CapabilityProvider{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.shop + "-a"}, again))
	if again.ResourceVersion != provider.ResourceVersion {
		t.Errorf("the provider says %+v, and said %+v", again.Status, provider.Status)
	}

	t.Log("what holds data goes where that is confirmed")
	f.must(f.client.Delete(f.ctx, claim))
	f.says("db", v1alpha1.ReasonDeletionBlocked, "data would go with Secret "+f.shop+"/db-users")
	f.annotate(f.get("db"), v1alpha1.ConfirmDeletionAnnotation, "true")
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	f.has("here", f.client)
}

// A plug-in that fails, or wants what it may not have, keeps its claims from what they need and
// says so; nothing of that is made, and what runs is left alone.
func TestNaughtyPlugins(t *testing.T) {
	f := newFixture(t)
	f.create("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: precious, namespace: SHOP}\ndata: {version: precious}\n")
	f.offered("a", f.plugged())
	f.start(0)
	runs := f.wants("runs", "")
	f.says("runs", v1alpha1.ReasonBound)
	for _, each := range []struct{ do, more, reason, words string }{
		{"wrong", "", v1alpha1.ReasonInvalidParameters, "does not take the parameters: parameters.do is wrong"},
		{"fail", "", v1alpha1.ReasonPluginFailed, "says: it cannot be planned"},
		{"flood", "", v1alpha1.ReasonPluginFailed, "answers with more than 4 MiB"},
		{"kind", "", v1alpha1.ReasonInvalidPlan, `wants an object "server" that is of the kind v1/ServiceAccount, which spec.plugin.kinds does not have`},
		{"named", "name: precious", v1alpha1.ReasonObjectFailed, "ConfigMap " + f.shop + "/precious is there already, and somebody else's"},
		{"named", "name: x, namespace: " + f.system, v1alpha1.ReasonInvalidPlan, "is in the namespace " + f.system + ", and not in " + f.shop},
		{"named", "name: a/b", v1alpha1.ReasonInvalidPlan, "is no name"},
		{"waits", "", v1alpha1.ReasonProgressing, "waits for the moon"},
		{"unready", "", v1alpha1.ReasonProgressing, "has no disk yet"},
		{"unsteady", "", v1alpha1.ReasonInvalidPlan, "has said something else 10 times within 1m0s of the same parameters"},
		{"exit", "", v1alpha1.ReasonPluginFailed, "has ended"},
	} {
		name := fmt.Sprintf("%s%d", each.do, len(each.more))
		claim := f.wants(name, fmt.Sprintf("  parameters: {do: %s, %s}\n", each.do, each.more))
		f.says(name, each.reason, each.words)
		if each.do != "unsteady" && (each.reason == v1alpha1.ReasonPluginFailed || each.reason == v1alpha1.ReasonInvalidPlan) {
			if err := f.client.Get(f.ctx, f.key(name+"-users"), &corev1.Secret{}); !apierrors.IsNotFound(err) {
				t.Errorf("%s: something was made: %v", name, err)
			}
		}
		f.annotate(claim, v1alpha1.ConfirmDeletionAnnotation, "true")
		f.must(f.client.Delete(f.ctx, claim)) // it would have the plug-in end again and again
		f.gone(&v1alpha1.CapabilityClaim{}, name)
	}
	f.eventually("others are served once the plug-in runs again", func() error { return f.isReady("runs") })
	f.patch(runs, `{"spec":{"parameters":{"do":"fail"}}}`)
	f.says("runs", v1alpha1.ReasonPluginFailed)
	if f.secret("runs-binding").Data["uri"] == nil {
		t.Error("a claim whose plug-in fails has lost what it had")
	}
	precious := &corev1.ConfigMap{}
	f.must(f.client.Get(f.ctx, f.key("precious"), precious))
	if precious.Data["version"] != "precious" || len(precious.Labels) > 0 {
		t.Errorf("what is somebody else's is %v", precious.Data)
	}
}

// A plug-in that hangs for good keeps nobody waiting but its own claims, however many those are,
// and these may go.
func TestPluginThatHangs(t *testing.T) {
	f := newFixture(t)
	f.offered("a", f.plugged())
	f.provider("b", instance)
	f.patience = time.Hour
	f.start(0)
	var hang []client.Object
	for i := range 3 * workers {
		hang = append(hang, f.wants(fmt.Sprintf("hang%d", i), "  parameters: {do: hang}\n"))
	}
	f.eventually("the plug-in is asked", func() error {
		if f.host.Calls() < workers {
			return errors.New("it is not")
		}
		return nil
	})
	f.claims("beside", "")
	f.says("beside", v1alpha1.ReasonBound)
	for _, claim := range hang {
		f.must(f.client.Delete(f.ctx, claim))
		f.gone(&v1alpha1.CapabilityClaim{}, claim.GetName())
	}
	f.end()
}

// A claim whose plug-in is not there says so, and keeps what it has; it goes without it, too.
func TestPluginThatIsNotThere(t *testing.T) {
	f := newFixture(t)
	f.offered("a", f.plugged())
	f.start(0)
	claim := f.wants("db", "  provider: SHOP-a\n")
	f.says("db", v1alpha1.ReasonBound)
	f.end()

	f.plugins = ""
	f.start(0)
	f.wants("late", "")
	f.says("late", v1alpha1.ReasonNoProvider, "is a plug-in that has not said yet what it serves: its status says why")
	f.providerSays("a", "this controller runs no programs: start it with --plugin-processes")
	f.eventually("the claim says that its plug-in does not run", func() error {
		if f.isReady("db") == nil {
			return errors.New("it says nothing")
		}
		return nil
	})
	f.has("here", f.client, "db-binding", "db-passwords", "db-server", "db-users")
	f.annotate(claim, v1alpha1.ConfirmDeletionAnnotation, "true")
	f.must(f.client.Delete(f.ctx, claim))
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	f.has("here", f.client)
}
