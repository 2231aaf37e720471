// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/images/imagestest"
	"github.com/strata-project/strata/internal/providers/providerstest"
	"github.com/strata-project/strata/test/controlplane"
)

// cluster is what plug-ins of the cluster need in a test.
type cluster struct {
	*fixture
	registry *controlplane.OCIServer
	kubelet  *providerstest.Kubelet
}

// newCluster has a registry, a node that runs Deployments of the providers' namespace, and the
// rights for these.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	f := newFixture(t)
	registry, err := controlplane.NewOCIServer()
	f.must(err)
	t.Cleanup(func() { _ = registry.Close() })
	c := &cluster{fixture: f, registry: registry, kubelet: providerstest.NewKubelet(t, f.client, f.system)}
	f.dial = c.kubelet.Dial
	at := metav1.ObjectMeta{Namespace: f.system, Name: "plugins"}
	// No more than the Role that docs/plugins.md shows.
	applied := []string{"get", "create", "patch", "delete"}
	f.must(f.client.Create(f.ctx, &rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: append([]string{"list"}, applied...)},
		{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"}, Verbs: applied},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: applied},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "update", "delete"}},
	}}))
	f.must(f.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: at.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.system, Name: "databases"}},
	}))
	return c
}

// push pushes an image of the naughty plug-in with further files, and returns its digest.
func (c *cluster) push(more ...imagestest.File) string {
	c.Helper()
	return providerstest.Image(c, strings.TrimPrefix(c.registry.URL("plugins/naughty"), "oci://"), more...)
}

// plugin is what a provider says of an image.
func (c *cluster) plugin(digest, more string) string {
	return fmt.Sprintf("  plugin:\n    image: %s:1.0.0\n    digest: %q\n    kinds: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret}]\n%s",
		c.registry.URL("plugins/naughty"), digest, more)
}

// deployments returns the names of what runs for the providers.
func (c *cluster) deployments() []string {
	c.Helper()
	list := &appsv1.DeploymentList{}
	c.must(c.client.List(c.ctx, list, client.InNamespace(c.system)))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// only waits until there are so many Deployments, and returns their names.
func (c *cluster) only(count int) []string {
	c.Helper()
	var names []string
	c.eventually(fmt.Sprintf("there are %d Deployments", count), func() error {
		if names = c.deployments(); len(names) != count {
			return fmt.Errorf("there are %v", names)
		}
		return nil
	})
	return names
}

// A plug-in that the cluster runs has the rights of nobody, is asked over mutual TLS, and is there
// again when it has gone.
func TestPluginOfTheCluster(t *testing.T) {
	c := newCluster(t)
	c.offered("a", c.plugin(c.push(), "    memory: 64Mi\n    egress: [{cidr: 10.0.0.5/32, port: 5432}, {namespace: databases, port: 5432}]\n"))
	c.start(0)
	c.providerSays("a", "offers database/naughty")
	claim := c.wants("db", "")
	c.says("db", v1alpha1.ReasonBound)
	name := c.only(1)[0]
	provider := c.providerSays("a", "offers database/naughty")
	if of := provider.Status.Plugin; of == nil || of.Digest != provider.Spec.Plugin.Digest || of.Name != "naughty" || of.Version != "1.0.0" {
		t.Errorf("the provider is served by %+v", of)
	}
	// The number of claims is told some seconds late.
	c.eventually("the claim is counted", func() error {
		if claims := c.providerSays("a", "offers database/naughty").Status.Claims; claims != 1 {
			return fmt.Errorf("the provider has %d claims", claims)
		}
		return nil
	})
	c.settled()
	asked := c.host.Calls()
	c.annotate(claim, "look", "again")
	if requests := c.settled(); len(requests) > 0 || c.host.Calls() != asked {
		t.Errorf("a claim that is served asks for %v, and its plug-in %d times", requests, c.host.Calls()-asked)
	}

	t.Log("its Pod may do nothing")
	deployment, policy, secret := &appsv1.Deployment{}, &networkingv1.NetworkPolicy{}, &corev1.Secret{}
	at := types.NamespacedName{Namespace: c.system, Name: name}
	for _, object := range []client.Object{deployment, policy, secret, &corev1.Service{}} {
		c.must(c.client.Get(c.ctx, at, object))
		if owners := object.GetOwnerReferences(); len(owners) != 1 || owners[0].Name != provider.Name || owners[0].UID != provider.UID {
			t.Errorf("%T goes with %v", object, owners)
		}
	}
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks || !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 ||
		!*container.SecurityContext.ReadOnlyRootFilesystem || *container.SecurityContext.AllowPrivilegeEscalation || !slices.Equal(container.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
		pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || container.Resources.Limits.Memory().String() != "64Mi" ||
		!strings.HasSuffix(container.Image, "/plugins/naughty@"+provider.Spec.Plugin.Digest) {
		t.Errorf("the Pod is %+v", pod)
	}
	if in, out := policy.Spec.Ingress, policy.Spec.Egress; len(policy.Spec.PolicyTypes) != 2 || len(in) != 1 || len(in[0].From) != 1 ||
		in[0].From[0].NamespaceSelector.MatchLabels[corev1.LabelMetadataName] != c.system || len(out) != 3 || out[0].To[0].IPBlock.CIDR != "10.0.0.5/32" {
		t.Errorf("the policy is %+v", policy.Spec)
	}
	for _, volume := range pod.Volumes {
		if volume.Secret != nil && slices.ContainsFunc(volume.Secret.Items, func(item corev1.KeyToPath) bool {
			return item.Key != "tls.crt" && item.Key != "tls.key" && item.Key != "ca.crt"
		}) {
			t.Errorf("the Pod has %v", volume.Secret.Items)
		}
	}

	t.Log("nobody else is answered")
	for what, config := range map[string]*tls.Config{
		"no certificate":        {InsecureSkipVerify: true},
		"its own certificate":   {InsecureSkipVerify: true, Certificates: []tls.Certificate{pair(t, secret.Data["tls.crt"], secret.Data["tls.key"])}},
		"a foreign certificate": {InsecureSkipVerify: true, Certificates: []tls.Certificate{foreign(t)}},
	} {
		config.NextProtos = []string{"h2"}
		if err := c.talks(name, config); err == nil {
			t.Errorf("with %s it answers", what)
		}
	}
	ours := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair(t, secret.Data["client.crt"], secret.Data["client.key"])}}
	if err := c.talks(name, ours); err != nil {
		t.Errorf("with the controller's it does not answer: %v", err)
	}

	t.Log("what the provider says of how it runs is changed where it runs")
	c.patch(provider, `{"spec":{"plugin":{"memory":"128Mi"}}}`)
	c.eventually("it has more memory", func() error {
		c.must(c.client.Get(c.ctx, at, deployment))
		if memory := deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Memory(); memory.String() != "128Mi" {
			return fmt.Errorf("it has %s", memory)
		}
		return nil
	})
	c.providerSays("a", "offers database/naughty")

	t.Log("what has gone comes again, and claims go on")
	for round, gone := range []func(){
		func() { c.must(syscall.Kill(c.kubelet.PID(name), syscall.SIGKILL)) },
		func() { c.must(c.client.Delete(c.ctx, deployment)) },
	} {
		gone()
		c.patch(claim, fmt.Sprintf(`{"spec":{"parameters":{"name":"x%d"}}}`, round))
		c.says("db", v1alpha1.ReasonBound)
	}
	c.must(c.client.Delete(c.ctx, provider))
	c.patch(claim, `{"spec":{"parameters":{"do":"waits"}}}`)
	c.condition("db", v1alpha1.BindingOutdatedCondition, v1alpha1.ReasonProviderChanged, "has gone")
	c.has("here", c.client, "db-binding", "db-passwords", "db-server", "db-users")
}

// talks connects with a Deployment, and waits for an answer.
func (c *cluster) talks(name string, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(c.ctx, 10*time.Second)
	defer cancel()
	raw, err := c.kubelet.Dial(ctx, "tcp", name+"."+c.system+".svc:8443")
	if err != nil {
		return err
	}
	over := tls.Client(raw, config)
	defer func() { _ = over.Close() }()
	if err := over.HandshakeContext(ctx); err != nil {
		return err
	}
	if err := over.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := over.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		return err
	}
	_, err = over.Read(make([]byte, 9))
	return err
}

func pair(t testing.TB, certificate, key []byte) tls.Certificate {
	t.Helper()
	made, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// foreign is a certificate of somebody else.
func foreign(t testing.TB) tls.Certificate {
	t.Helper()
	key, _ := imagestest.NewKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"strata"}, NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	data, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{data}, PrivateKey: key}
}

// A new version serves new claims once it has described itself and is healthy; until then, and
// where it never is, the one of before does. What is bound stays with the version that it has, which
// runs for as long.
func TestPluginGoesToAnotherVersion(t *testing.T) {
	c := newCluster(t)
	first := c.push()
	provider := c.offered("a", c.plugin(first, ""))
	c.start(0)
	c.providerSays("a", "offers database/naughty")
	c.wants("old", "")
	c.says("old", v1alpha1.ReasonBound)

	for what, bad := range map[string]string{
		"the server is away": c.push(providerstest.Unhealthy),
		"waits for Deployment": c.push(imagestest.File{
			Name: strings.TrimPrefix(imagestest.Entrypoint, "/"), Content: "no program",
		}),
	} {
		c.patch(provider, fmt.Sprintf(`{"spec":{"plugin":{"digest":%q}}}`, bad))
		status := c.providerSays("a", what, "the one of before serves new claims meanwhile: "+first).Status
		if status.Plugin == nil || status.Plugin.Digest != first {
			t.Errorf("%s: new claims are served by %+v", what, status.Plugin)
		}
		name := "beside-" + fmt.Sprint(len(what))
		c.wants(name, "")
		c.says(name, v1alpha1.ReasonBound)
	}
	c.only(2)

	t.Log("a good one takes over, for new claims")
	second := c.push(imagestest.File{Name: "etc/version", Content: "2"})
	c.patch(provider, fmt.Sprintf(`{"spec":{"plugin":{"digest":%q}}}`, second))
	c.providerSays("a", "offers database/naughty")
	c.eventually("the new one serves", func() error {
		if of := c.providerSays("a").Status.Plugin; of == nil || of.Digest != second {
			return fmt.Errorf("it is %+v", of)
		}
		return nil
	})
	c.wants("new", "")
	c.says("new", v1alpha1.ReasonBound)
	c.condition("old", v1alpha1.BindingOutdatedCondition, v1alpha1.ReasonProviderChanged, "has another plugin")
	both := c.only(2)

	t.Log("the one of before goes with its last claim")
	for _, name := range []string{"old", "beside-18", "beside-20"} {
		claim := c.get(name)
		c.annotate(claim, v1alpha1.RebindAnnotation, c.shop+"-a")
		c.eventually(name+" is moved", func() error {
			if moved := c.get(name); moved.Annotations[v1alpha1.RebindAnnotation] != "" {
				return errors.New("it is not")
			}
			return nil
		})
		c.says(name, v1alpha1.ReasonBound)
	}
	c.annotateProvider("a", "look", "again")
	left := c.only(1)
	if !slices.Contains(both, left[0]) {
		t.Errorf("%v is left of %v", left, both)
	}
	for _, list := range []client.ObjectList{&corev1.ServiceList{}, &networkingv1.NetworkPolicyList{}} {
		c.must(c.client.List(c.ctx, list, client.InNamespace(c.system)))
		if data := fmt.Sprint(list); strings.Count(data, left[0]) == 0 || strings.Contains(data, slices.DeleteFunc(both, func(name string) bool { return name == left[0] })[0]) {
			t.Errorf("%T has %v", list, data)
		}
	}
}

// annotateProvider has a provider looked at again: its specification changes.
func (f *fixture) annotateProvider(name, key, value string) {
	f.Helper()
	provider := &v1alpha1.CapabilityProvider{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.shop + "-" + name}, provider))
	f.patch(provider, fmt.Sprintf(`{"spec":{"description":"%s %s"}}`, key, value))
}

// Programs of images run as processes where the controller was told of their registry, and where
// one of the provider's keys has signed them; that holds without the registry until the key goes.
func TestPluginOfAnImageAsAProcess(t *testing.T) {
	c := newCluster(t)
	key, public := imagestest.NewKey(t)
	digest := c.push()
	verify := "    verify:\n      keys:\n      - |\n        " + strings.ReplaceAll(strings.TrimSpace(public), "\n", "\n        ") + "\n"
	provider := c.offered("a", c.plugin(digest, "    run: Process\n"+verify))
	c.plugins = c.TempDir()
	c.start(0)
	c.providerSays("a", "this controller runs no programs of "+c.registry.URL("plugins/naughty")+":1.0.0: start it with --plugin-process-images")
	c.end()

	c.imagesFrom = []string{strings.TrimSuffix(strings.TrimPrefix(c.registry.URL(""), "oci://"), "/")}
	c.start(0)
	c.providerSays("a", "@"+digest+" is not signed")
	c.must(c.registry.Sign(c.ctx, "plugins/naughty", "x@"+digest, key))
	c.providerSays("a", "offers database/naughty")
	claim := c.wants("db", "")
	c.says("db", v1alpha1.ReasonBound)
	if names := c.deployments(); len(names) > 0 {
		t.Errorf("there are %v", names)
	}
	c.end()

	t.Log("without the registry")
	c.must(c.registry.Stop())
	c.start(0)
	c.wants("later", "")
	c.says("later", v1alpha1.ReasonBound)

	t.Log("with another key")
	_, other := imagestest.NewKey(t)
	c.patch(provider, fmt.Sprintf(`{"spec":{"plugin":{"verify":{"keys":[%q]}}}}`, other))
	c.providerSays("a", "cannot fetch")
	c.must(c.registry.Start())
	c.providerSays("a", "none of the 1 signatures")
	c.patch(claim, `{"spec":{"parameters":{"name":"x"}}}`)
	c.says("db", v1alpha1.ReasonPluginFailed, "none of the 1 signatures")
	c.has("here", c.client, slices.Sorted(maps.Keys(map[string]bool{
		"db-binding": true, "db-passwords": true, "db-server": true, "db-users": true,
		"later-binding": true, "later-passwords": true, "later-server": true, "later-users": true,
	}))...)
}

// The image of a plug-in of the cluster must be signed, too. While the registry is away, what was
// signed when it was deployed goes on, also for a controller that has just begun; and where the key
// goes, so does the Deployment.
func TestSignedPluginOfTheCluster(t *testing.T) {
	c := newCluster(t)
	key, public := imagestest.NewKey(t)
	digest := c.push()
	provider := c.offered("a", c.plugin(digest, fmt.Sprintf("    verify: {keys: [%q]}\n", public)))
	c.start(0)
	c.providerSays("a", "@"+digest+" is not signed")
	if names := c.deployments(); len(names) > 0 {
		t.Errorf("what is not signed runs: %v", names)
	}
	c.must(c.registry.Sign(c.ctx, "plugins/naughty", "x@"+digest, key))
	c.providerSays("a", "offers database/naughty")
	claim := c.wants("db", "")
	c.says("db", v1alpha1.ReasonBound)
	c.end()

	c.must(c.registry.Stop())
	c.programs = t.TempDir()
	c.start(0)
	c.patch(claim, `{"spec":{"parameters":{"do":"waits"}}}`)
	c.says("db", v1alpha1.ReasonProgressing, "waits for the moon")
	c.patch(claim, `{"spec":{"parameters":{"do":"x"}}}`)
	c.says("db", v1alpha1.ReasonBound)

	c.must(c.registry.Start())
	_, other := imagestest.NewKey(t)
	c.patch(provider, fmt.Sprintf(`{"spec":{"plugin":{"verify":{"keys":[%q]}}}}`, other))
	c.providerSays("a", "none of the 1 signatures")
	c.only(0)
	c.patch(claim, `{"spec":{"parameters":{"do":"y"}}}`)
	c.says("db", v1alpha1.ReasonPluginFailed, "none of the 1 signatures")
	c.has("here", c.client, "db-binding", "db-passwords", "db-server", "db-users")

	t.Log("a provider that goes over to templates keeps the Deployment for what is bound to it")
	c.patch(provider, fmt.Sprintf(`{"spec":{"plugin":{"verify":{"keys":[%q]}}}}`, public))
	c.says("db", v1alpha1.ReasonBound)
	c.only(1)
	c.patch(provider, `{"spec":{"plugin":null,"versions":["1.0"],"publishes":[{"key":"host","value":"db"}],"parameters":{"schema":{"type":"object","properties":{"do":{"type":"string"}}}}}}`)
	c.condition("db", v1alpha1.BindingOutdatedCondition, v1alpha1.ReasonProviderChanged)
	c.only(1)
	c.annotate(claim, v1alpha1.ConfirmDeletionAnnotation, "true")
	c.must(c.client.Delete(c.ctx, claim))
	c.gone(&v1alpha1.CapabilityClaim{}, "db")
	c.only(0)
}
