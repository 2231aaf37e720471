// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/reserved"
)

// hostsBeside makes a HostCluster in the RemoteCluster's namespace, with the Secrets that it
// logs in with and the one that is made for it.
func (f *fleet) hostsBeside() {
	f.Helper()
	hosts := &v1alpha1.HostCluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "edge"}}
	hosts.Spec.Version = "v1.36.3"
	hosts.Spec.SSH = v1alpha1.HostSSH{
		User: "root", SecretRef: &v1alpha1.HostSecretReference{Name: "ssh"},
		Bastion: &v1alpha1.HostBastion{Address: "192.0.2.1", SecretRef: &v1alpha1.HostSecretReference{Name: "bastion"}},
	}
	hosts.Spec.ControlPlane = []v1alpha1.ClusterHost{{Name: "cp-1", Address: "192.0.2.2"}}
	f.must(f.client.Create(f.ctx, hosts))
	f.Cleanup(func() { f.must(f.client.Delete(f.ctx, hosts)) })
	for _, name := range []string{"ssh", "bastion", "edge-kubeconfig"} {
		f.secret(f.client, f.namespace, name, "stolen", v1alpha1.ShareWithAnnotation, v1alpha1.ShareWithClusters)
	}
}

// What lies beside a RemoteCluster is not given because of that: SSH keys of hosts, logins
// of plug-ins, private keys of layers and whatever else Strata keeps never are, whatever
// leave somebody has given, and an ordinary Secret is with leave alone.
func TestSecretsBesideAClusterNeedLeave(t *testing.T) {
	f := newFleet(t)
	f.hostsBeside()
	provider := &v1alpha1.CapabilityProvider{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	provider.Spec.Namespace, provider.Spec.Capability, provider.Spec.ServiceAccountName = f.namespace, "database/mysql", "deployer"
	provider.Spec.CredentialsRef = &v1alpha1.LocalSecretReference{Name: "server-admin"}
	provider.Spec.Plugin = &v1alpha1.CapabilityPlugin{Kinds: []v1alpha1.CapabilityKind{{APIVersion: "v1", Kind: "Secret"}}, Image: "oci://registry.example/mysql", Digest: "sha256:" + strings.Repeat("a", 64)}
	f.must(f.client.Create(f.ctx, provider))
	f.Cleanup(func() { f.must(f.client.Delete(f.ctx, provider)) })
	claim := &v1alpha1.CapabilityClaim{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "db"}}
	claim.Spec.Capability = "database/mysql"
	f.must(f.client.Create(f.ctx, claim))
	f.Cleanup(func() { f.must(f.client.Delete(f.ctx, claim)) })
	f.layerWith("decrypts", func(layer *v1alpha1.AddonsLayer) {
		layer.Spec.Hold = true
		layer.Spec.Source.Namespace = f.namespace
		layer.Spec.Decryption = &v1alpha1.Decryption{Provider: "sops", SecretRef: v1alpha1.SecretName{Name: "age"}}
	})
	plugin := reserved.PluginName(provider.Name, provider.Spec.Plugin.Digest)
	never := []string{"ssh", "bastion", "edge-kubeconfig", "server-admin", "age", "db-passwords", plugin}
	for _, name := range never {
		f.secret(f.client, f.namespace, name, "stolen", v1alpha1.ShareWithAnnotation, v1alpha1.ShareWithClusters)
	}
	f.secret(f.client, f.namespace, "unshared", "stolen")
	f.secret(f.client, f.namespace, "shared", "shared", v1alpha1.ShareWithAnnotation, v1alpha1.ShareWithClusters)
	f.must(f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "open"}, Data: map[string]string{"values.yaml": "open"}}))

	for _, on := range []client.Client{f.client, f.far} {
		f.must(client.IgnoreAlreadyExists(on.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})))
		f.must(on.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "nobody"}}))
	}
	files := map[string]string{"thief/shared.yaml": f.release("shared") + "  valuesFrom: [{kind: Secret, name: shared}, {kind: ConfigMap, name: open}]\n"}
	for _, name := range append(never, "unshared") {
		files["thief/"+name+".yaml"] = f.release("thief-"+name) + "  valuesFrom: [{kind: Secret, name: " + name + ", valuesKey: values.yaml, targetPath: stolen}]\n"
	}
	f.publish("main@sha1:1", files)
	f.onFleet("thief", "nobody")
	f.appears("thief", "shared")
	f.settle()
	if got := f.copies(); len(got) != 2 || got[f.namespace+"/shared"] != "shared" || got["ConfigMap/"+f.namespace+"/open"] != "open" {
		t.Errorf("copied are %v", got)
	}
	told := map[string]string{}
	for _, resource := range f.get("thief").Status.Resources {
		told[resource.Name] = resource.Status
	}
	for _, name := range append(never, "unshared") {
		if f.released("thief-"+name) != "" {
			t.Errorf("the release that asks for %s is written", name)
		}
	}
}

// A copy that was made before a Secret beside a RemoteCluster needed leave goes on, and the
// layer says which command keeps it. With leave it is an ordinary one, that goes when leave
// ends.
func TestCopiesOfBeforeGoOnAndSaySo(t *testing.T) {
	f := newIdleFleet(t)
	f.secret(f.client, f.namespace, "db", "one")
	f.must(f.far.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}))
	place := placement.Place{Layer: f.name("base"), Cluster: client.ObjectKey{Namespace: f.namespace, Name: "prod"}}
	copied := place.CopyOf(objects.ID{Kind: "Secret", Namespace: f.namespace, Name: "db"})
	f.must(f.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: copied.Namespace, Name: copied.Name, Labels: map[string]string{v1alpha1.LayerLabel: f.name("base")},
			Annotations: map[string]string{v1alpha1.CopyOfAnnotation: "Secret/" + f.namespace + "/db", v1alpha1.PlacedForAnnotation: f.namespace + "/prod"},
		},
		Data: map[string][]byte{"values.yaml": []byte("one")},
	}))
	config := f.asController(rulesOfRemoteClusters)
	mgr, reconciler := f.assemble(config, managerOptions(), time.Second)
	f.startWithClusters(mgr, reconciler)
	f.joinProd()
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a") + "  valuesFrom: [{kind: Secret, name: db}]\n"})
	f.onFleet("base", "")
	f.ready(f.appears("base", "a"))
	f.deployed("base", "main@sha1:1")
	command := "kubectl --namespace " + f.namespace + " annotate --field-manager=strata-cli secret db kraan.io/share-with=remotecluster/" + f.namespace + "/prod"
	says := func(want bool) {
		t.Helper()
		f.eventually("the condition says what is not shared", func() error {
			found := meta.FindStatusCondition(f.get("base").Status.Conditions, v1alpha1.UnsharedSecretsCondition)
			if want != (found != nil && found.Status == metav1.ConditionTrue && strings.Contains(found.Message, command)) {
				return fmt.Errorf("it is %+v", found)
			}
			return nil
		})
	}
	says(true)
	f.secret(f.client, f.namespace, "db", "two")
	holds := func(want map[string]string) {
		t.Helper()
		f.eventually("the copies are as they should be", func() error {
			if got := f.copies(); len(got) != len(want) || got[f.namespace+"/db"] != want[f.namespace+"/db"] {
				return fmt.Errorf("they are %v, and the layer %+v", got, f.get("base").Status.Conditions)
			}
			return nil
		})
	}
	holds(map[string]string{f.namespace + "/db": "two"})
	f.secret(f.client, f.namespace, "db", "three", v1alpha1.ShareWithAnnotation, "remotecluster/"+f.namespace+"/prod")
	holds(map[string]string{f.namespace + "/db": "three"})
	says(false)
	f.secret(f.client, f.namespace, "db", "four")
	f.says("base", command)
	holds(map[string]string{})
}
