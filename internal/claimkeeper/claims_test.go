// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// instance is a provider of two objects, the second of which reads the first.
const instance = `
  versions: ["1.2", "2.0"]
  parameters: {schema: {type: object, properties: {size: {type: string, default: small, enum: [small, large]}}}}
  passwords: [{name: app}]
  objects:
  - id: server
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-server"}, data: {size: "${parameters.size}", version: "${claim.version}"}}
  - id: users
    holdsData: true
    template: {apiVersion: v1, kind: Secret, metadata: {name: "${claim.name}-users", labels: {on: "${objects.server.metadata.name}"}}, stringData: {app: "${passwords.app}"}}
  publishes:
  - {key: host, value: "${objects.server.metadata.name}"}
  - {key: password, secretKeyRef: {name: "${claim.name}-users", key: app}}
  - {key: uri, value: "db://app:${passwords.app}@${objects.server.metadata.name}"}
`

// serves checks that a claim has all that its provider promises.
func (f *fixture) serves(name string) (password string) {
	f.Helper()
	binding, users, passwords := f.secret(name+"-binding"), f.secret(name+"-users"), f.secret(name+"-passwords")
	password = string(passwords.Data["app"])
	want := map[string]string{
		"type": f.shop, "provider": f.shop + "-a", "host": name + "-server", "password": password, "uri": "db://app:" + password + "@" + name + "-server",
	}
	for key, value := range want {
		if string(binding.Data[key]) != value {
			f.Errorf("%s of the binding is %q", key, binding.Data[key])
		}
	}
	if len(password) != 32 || string(users.Data["app"]) != password || len(binding.Data) != len(want) || string(binding.Type) != "servicebinding.io/"+f.shop {
		f.Errorf("the password has %d characters, and the binding %d keys of type %s", len(password), len(binding.Data), binding.Type)
	}
	return password
}

// A controller that dies of any write leaves nothing that its successor does not find: each
// object is made once, the password stays what it was, and with the claim all goes.
func TestKilledAtEveryWrite(t *testing.T) {
	f := newFixture(t)
	f.provider("a", instance)
	for at := 1; ; at++ {
		name := fmt.Sprintf("db%d", at)
		claim := f.claims(name, "")
		before := ""
		made := f.dies(at, func() { before = f.passwordOf(name) }, name+" is served", func() error { return f.isReady(name) })
		if password := f.serves(name); before != "" && before != password {
			t.Errorf("write %d: the password was another one before", at)
		}
		f.annotate(claim, v1alpha1.ConfirmDeletionAnnotation, "true")
		f.must(f.client.Delete(f.ctx, claim))
		gone := f.dies(at, func() {}, name+" is gone", func() error {
			err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.shop, Name: name}, &v1alpha1.CapabilityClaim{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
		if left := f.count(name); left > 0 {
			t.Errorf("write %d: %d objects are left", at, left)
		}
		records := &appsv1.ControllerRevisionList{}
		f.must(f.client.List(f.ctx, records, client.InNamespace(f.system)))
		if len(records.Items) > 0 {
			t.Errorf("write %d: the record %s is left", at, records.Items[0].Name)
		}
		f.goesHalfMade(at)
		if !made && !gone {
			if at < 6 {
				t.Errorf("it has made %d writes, fewer than there are objects", at)
			}
			return
		}
	}
}

// goesHalfMade has a claim deleted that a keeper has begun, before the next one looks.
func (f *fixture) goesHalfMade(at int) {
	f.Helper()
	name := fmt.Sprintf("half%d", at)
	claim := f.claims(name, "")
	f.annotate(claim, v1alpha1.ConfirmDeletionAnnotation, "true")
	f.start(at)
	f.eventually(name+" has what could be made", func() error {
		select {
		case <-f.killed:
			return nil
		default:
			return f.isReady(name)
		}
	})
	f.end()
	f.must(f.client.Delete(f.ctx, claim))
	f.start(0)
	f.gone(&v1alpha1.CapabilityClaim{}, name)
	f.end()
	if left := f.count(name); left > 0 {
		f.Errorf("write %d, half made: %d objects are left", at, left)
	}
}

// dies runs a keeper that dies of a write, and its successor, until something is done. It
// returns whether it has died.
func (f *fixture) dies(at int, then func(), what string, done func() error) (died bool) {
	f.Helper()
	f.start(at)
	f.eventually(what, func() error {
		if !died && f.isDead() {
			<-f.killed // what it died of takes effect before
			died = true
			f.end()
			then()
			f.start(0)
		}
		if err := done(); err != nil {
			return err
		}
		if !died && f.isDead() { // the last write is done, and it died of that
			return errDead
		}
		return nil
	})
	f.end()
	return died
}

// isReady tells whether a claim is served.
func (f *fixture) isReady(name string) error {
	claim := &v1alpha1.CapabilityClaim{}
	if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.shop, Name: name}, claim); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(claim.Status.Conditions, v1alpha1.ReadyCondition) {
		return fmt.Errorf("it says %+v", claim.Status.Conditions)
	}
	return nil
}

// passwordOf returns the password that was made for a claim; empty where there is none yet.
func (f *fixture) passwordOf(name string) string {
	secret := &corev1.Secret{}
	_ = f.client.Get(f.ctx, types.NamespacedName{Namespace: f.shop, Name: name + "-passwords"}, secret)
	return string(secret.Data["app"])
}

// count returns how many objects there are that claims have made.
func (f *fixture) count(name string) int {
	f.Helper()
	secrets, maps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	f.must(f.client.List(f.ctx, secrets, client.InNamespace(f.shop), client.HasLabels{v1alpha1.ClaimLabel}))
	f.must(f.client.List(f.ctx, maps, client.InNamespace(f.shop), client.HasLabels{v1alpha1.ClaimLabel}))
	count := 0
	for _, obj := range secrets.Items {
		if strings.HasPrefix(obj.Name, name+"-") {
			count++
		}
	}
	for _, obj := range maps.Items {
		if strings.HasPrefix(obj.Name, name+"-") {
			count++
		}
	}
	return count
}

// A claim at rest asks for nothing, takes back what others change, and makes again what they
// delete.
func TestClaimAtRest(t *testing.T) {
	f := newFixture(t)
	f.provider("a", instance)
	f.claims("db", "")
	f.start(0)
	f.says("db", v1alpha1.ReasonBound, "is served by "+f.shop+"-a 2.0")
	password := f.serves("db")
	f.eventually("the provider has counted it", func() error {
		provider := &v1alpha1.CapabilityProvider{}
		f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.shop + "-a"}, provider))
		if provider.Status.Claims != 1 {
			return fmt.Errorf("it has %d claims", provider.Status.Claims)
		}
		return nil
	})
	f.settled()
	if asked := f.settled(); len(asked) > 0 {
		t.Errorf("at rest it has asked for %v", asked)
	}
	f.must(f.client.Delete(f.ctx, f.secret("db-binding")))
	f.patch(f.secret("db-users"), `{"data":{"app":"Zm9yZ2Vk"}}`)
	f.eventually("all is as it was", func() error {
		users, binding := &corev1.Secret{}, &corev1.Secret{}
		for name, obj := range map[string]*corev1.Secret{"db-users": users, "db-binding": binding} {
			if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.shop, Name: name}, obj); err != nil {
				return err
			}
		}
		if string(users.Data["app"]) != password || string(binding.Data["password"]) != password {
			return fmt.Errorf("the password is %q", users.Data["app"])
		}
		return nil
	})
	f.says("db", v1alpha1.ReasonBound)
	f.serves("db")
}

// Whatever becomes of its provider, a bound claim has what it was promised, and can be deleted.
func TestBoundClaimStays(t *testing.T) {
	f := newFixture(t)
	provider := f.provider("a", instance)
	claim := f.claims("db", "  version: \">=1\"\n")
	f.start(0)
	f.says("db", v1alpha1.ReasonBound, "-a 2.0")
	password := f.serves("db")

	t.Log("the provider is edited")
	f.patch(provider, `{"spec":{"versions":["3.0"],"publishes":[{"key":"other","value":"x"}]},"metadata":{"labels":{"tier":"gold"}}}`)
	f.condition("db", v1alpha1.BindingOutdatedCondition, v1alpha1.ReasonProviderChanged, "has another publishes", "it would get version 3.0", v1alpha1.RebindAnnotation)
	if got := f.serves("db"); got != password {
		t.Error("the password is another one")
	}
	if claim := f.get("db"); claim.Status.Version != "2.0" || !meta.IsStatusConditionTrue(claim.Status.Conditions, v1alpha1.ReadyCondition) {
		t.Errorf("its status is %+v", claim.Status)
	}

	t.Log("another one is added, and made the default")
	f.provider("b", "  versions: [\"2.5\"]\n  default: true\n")
	f.patch(f.get("db"), `{"spec":{"parameters":{"size":"large"}}}`)
	f.eventually("the parameters arrive", func() error {
		server := &corev1.ConfigMap{}
		f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.shop, Name: "db-server"}, server))
		if server.Data["size"] != "large" || server.Data["version"] != "2.0" {
			return fmt.Errorf("it has %v", server.Data)
		}
		return nil
	})
	f.says("db", v1alpha1.ReasonBound, "-a 2.0")

	t.Log("the provider goes")
	f.must(f.client.Delete(f.ctx, provider))
	f.condition("db", v1alpha1.BindingOutdatedCondition, v1alpha1.ReasonProviderChanged, "CapabilityProvider "+f.shop+"-a has gone")
	f.must(f.client.Delete(f.ctx, f.secret("db-binding")))
	f.eventually("its binding is made again", func() error {
		return f.client.Get(f.ctx, types.NamespacedName{Namespace: f.shop, Name: "db-binding"}, &corev1.Secret{})
	})
	f.serves("db")
	f.end()
	f.start(0)
	f.says("db", v1alpha1.ReasonBound, "-a 2.0")

	t.Log("its data go where that is confirmed")
	f.must(f.client.Delete(f.ctx, claim))
	f.says("db", v1alpha1.ReasonDeletionBlocked, "data would go with Secret "+f.shop+"/db-users", v1alpha1.ConfirmDeletionAnnotation)
	for _, known := range f.get("db").Status.Objects {
		if known.Message != "stays until the claim may go" {
			t.Errorf("%s of a claim that waits %s", known.ID, known.Message)
		}
	}
	f.serves("db")
	f.annotate(f.get("db"), v1alpha1.ConfirmDeletionAnnotation, "true")
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	if left := f.count("db"); left > 0 {
		t.Errorf("%d objects are left", left)
	}
}

// A claim moves where the annotation says so, and nowhere else: what it had of another
// provider stays until it goes, and nothing of it is taken over.
func TestClaimMoves(t *testing.T) {
	f := newFixture(t)
	f.provider("a", instance)
	f.claims("db", "")
	f.start(0)
	f.says("db", v1alpha1.ReasonBound, "-a 2.0")
	f.serves("db")

	t.Log("to one that does not fit")
	f.provider("old", "  versions: [\"9.0\"]\n  parameters: {schema: {type: object, required: [disk], properties: {disk: {type: string}}}}\n")
	f.annotate(f.get("db"), v1alpha1.RebindAnnotation, f.shop+"-old")
	f.condition("db", v1alpha1.BindingOutdatedCondition, v1alpha1.ReasonMoveRefused, "does not take the parameters: parameters.disk: Required value")
	f.says("db", v1alpha1.ReasonBound, "-a 2.0")

	t.Log("to another one")
	f.provider("b", `
  versions: ["3.1"]
  objects:
  - id: server
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-elsewhere"}, data: {version: "${claim.version}"}}
  publishes: [{key: host, value: "${objects.server.metadata.name}"}]
`)
	f.annotate(f.get("db"), v1alpha1.RebindAnnotation, f.shop+"-b")
	claim := f.says("db", v1alpha1.ReasonBound, "-b 3.1")
	if claim.Annotations[v1alpha1.RebindAnnotation] != "" {
		t.Error("the annotation is still there")
	}
	f.eventually("the binding is that of the other one", func() error {
		if binding := f.secret("db-binding"); string(binding.Data["host"]) != "db-elsewhere" || string(binding.Data["provider"]) != f.shop+"-b" || binding.Data["uri"] != nil {
			return fmt.Errorf("it has %d keys and host %s", len(binding.Data), binding.Data["host"])
		}
		return nil
	})
	f.secret("db-users")
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.shop, Name: "db-server"}, &corev1.ConfigMap{}))

	t.Log("to one that would take over what it had")
	f.provider("c", `
  versions: ["3.2"]
  objects:
  - id: theft
    template: {apiVersion: v1, kind: Secret, metadata: {name: "${claim.name}-users"}, stringData: {app: taken}}
`)
	f.annotate(f.get("db"), v1alpha1.RebindAnnotation, f.shop+"-c")
	f.says("db", v1alpha1.ReasonObjectFailed, "Secret "+f.shop+"/db-users is there already, made by "+f.shop+"-a, and is left alone")
	if string(f.secret("db-users").Data["app"]) == "taken" {
		t.Error("it was taken over")
	}

	t.Log("all of it goes with the claim")
	f.annotate(f.get("db"), v1alpha1.RebindAnnotation, f.shop+"-b")
	f.says("db", v1alpha1.ReasonBound, "-b 3.1")
	claim = f.get("db")
	if !slices.ContainsFunc(claim.Status.Objects, func(d v1alpha1.Dependent) bool { return d.Of == f.shop+"-a" && d.Name == "db-server" }) {
		t.Errorf("it lists %+v", claim.Status.Objects)
	}
	f.annotate(claim, v1alpha1.ConfirmDeletionAnnotation, "true")
	f.must(f.client.Delete(f.ctx, claim))
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	if left := f.count("db"); left > 0 {
		t.Errorf("%d objects are left", left)
	}
}

// release creates a HelmRelease that reads a key of a Secret; name as in get.
func (f *fixture) release(name, secret, key string) *unstructured.Unstructured {
	f.Helper()
	at := f.key(name)
	release := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": map[string]any{"name": at.Name, "namespace": at.Namespace},
		"spec": map[string]any{
			"interval": "1h", "chartRef": map[string]any{"kind": "OCIRepository", "name": "app"},
			"valuesFrom": []any{map[string]any{"kind": "Secret", "name": secret, "valuesKey": key}},
		},
	}}
	f.must(f.client.Create(f.ctx, release))
	return release
}

// A claim that is deleted stays until no release reads its binding.
func TestClaimGoesAfterItsReleases(t *testing.T) {
	f := newFixture(t)
	f.provider("a", "  objects: [{id: map, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}}]\n")
	claim := f.claims("db", "")
	release := f.release("app", "db-binding", "uri")
	f.start(0)
	f.says("db", v1alpha1.ReasonBound)
	f.must(f.client.Delete(f.ctx, claim))
	f.says("db", v1alpha1.ReasonInUse, "is needed by HelmRelease app")
	f.secret("db-binding")
	f.must(f.client.Delete(f.ctx, release))
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	f.gone(&corev1.ConfigMap{}, "kept")
}

// A binding is made of what an operator has made for an object, once that is there, and
// follows it; what is not owned so is not read.
func TestSecretOfAnOperator(t *testing.T) {
	f := newFixture(t)
	f.provider("a", `
  objects: [{id: server, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-server"}}}]
  publishes: [{key: password, secretKeyRef: {name: "${claim.name}-app", key: pw}}]
`)
	f.claims("db", "")
	f.start(0)
	f.says("db", v1alpha1.ReasonProgressing, "waits for Secret "+f.shop+"/db-app, which does not exist yet")
	server := &corev1.ConfigMap{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.shop, Name: "db-server"}, server))
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.shop, Name: "db-app",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: server.Name, UID: server.UID}},
		},
		StringData: map[string]string{"other": "x"},
	}
	f.must(f.client.Create(f.ctx, made))
	f.says("db", v1alpha1.ReasonProgressing, "waits for the key pw of Secret "+f.shop+"/db-app")
	for _, password := range []string{"first", "second"} {
		f.patch(made, fmt.Sprintf(`{"stringData":{"pw":%q}}`, password))
		f.says("db", v1alpha1.ReasonBound)
		f.eventually("the binding has the "+password, func() error {
			if got := f.secret("db-binding").Data["password"]; string(got) != password {
				return fmt.Errorf("it has another of %d characters", len(got))
			}
			return nil
		})
	}
	f.patch(made, `{"metadata":{"ownerReferences":null}}`)
	f.says("db", v1alpha1.ReasonAccessDenied, "is neither an object of the claim nor owned by one")
}

// Objects go where the provider says, are left where it says so, and decide together when an
// instance is ready.
func TestWhatProvidersSayOfObjects(t *testing.T) {
	f := newFixture(t)
	f.grant(f.system, "configmaps", "secrets")
	f.provider("a", `
  placement: Home
  ready: objects.once.metadata.annotations.up == "yes"
  objects:
  - {id: once, mode: CreateOnce, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-once", annotations: {up: "no"}}}}
  - {id: kept, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-kept", annotations: {kraan.io/prune: disabled}}}}
  publishes: [{key: up, value: "${objects.once.metadata.annotations.up}"}]
`)
	claim := f.claims("db", "")
	f.start(0)
	f.says("db", v1alpha1.ReasonProgressing, "waits until the instance is ready, as the provider's ready has it")
	once := &corev1.ConfigMap{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.system, Name: "db-once"}, once))
	f.patch(once, `{"metadata":{"annotations":{"up":"yes"}}}`)
	f.says("db", v1alpha1.ReasonBound)
	if got := f.secret("db-binding").Data["up"]; string(got) != "yes" {
		t.Errorf("what is made once was taken back: the binding has %q", got)
	}
	f.must(f.client.Delete(f.ctx, claim))
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	kept := &corev1.ConfigMap{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.system, Name: "db-kept"}, kept))
	if kept.Labels[v1alpha1.ClaimLabel] != "" {
		t.Error("what is kept is still the claim's")
	}
	if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.system, Name: "db-once"}, once); !apierrors.IsNotFound(err) {
		t.Errorf("what is not kept is there: %v", err)
	}

	t.Log("a claim whose account has gone is let go where somebody gives it up")
	given := f.claims("given", "")
	f.says("given", v1alpha1.ReasonProgressing, "waits until the instance is ready")
	f.accountGoes("")
	f.must(f.client.Delete(f.ctx, given))
	f.says("given", v1alpha1.ReasonServiceAccountNotFound)
	f.annotate(f.get("given"), v1alpha1.AbandonAnnotation, "true")
	f.gone(&v1alpha1.CapabilityClaim{}, "given")
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.system, Name: "given-once"}, &corev1.ConfigMap{}))
}
