// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/lab"
	"github.com/strata-project/strata/test/strata"
)

// builtHosts has the controller of HostClusters, which is built once.
var builtHosts = sync.OnceValues(func() (string, error) {
	program, err := built()
	if err != nil {
		return "", err
	}
	return strata.BuildHosts(context.Background(), filepath.Dir(program))
})

// hub is a management cluster, whose controller keeps the hosts of a lab as the user's
// manifest says, with the rights that the chart gives it.
type hub struct {
	*user
	plane  *controlplane.ControlPlane
	client client.Client
	keeper *controlplane.Runner
	// admin is the account of Strata's own controller.
	admin controlplane.Identity
}

// newHub starts a management cluster with some components, and the chart. The controller of
// hosts is to be started.
func newHub(u *user, with ...controlplane.Component) *hub {
	u.Helper()
	if len(with) == 0 {
		with = controlplane.APIOnly()
	}
	h := &hub{user: u}
	var err error
	if h.plane, err = controlplane.Start(u.Context(), controlplane.Options{With: with}); err != nil {
		u.Fatal(err)
	}
	u.Cleanup(func() { _ = h.plane.Stop() })
	if err := h.plane.CreateNamespace(u.Context(), "fleet"); err != nil {
		u.Fatal(err)
	}
	network := strings.TrimSuffix(u.lab.IP(), "1") + "0/24"
	h.admin, err = strata.Install(u.Context(), h.plane, map[string]any{
		"remoteClusters": map[string]any{"enabled": true},
		"rbac":           map[string]any{"kinds": []any{map[string]any{"apiGroup": v1alpha1.GroupVersion.Group, "resources": []any{"hostclusters"}}}},
		"hosts":          map[string]any{"enabled": true, "namespaces": []any{"fleet"}, "allowedCIDRs": []any{network}},
	})
	if err != nil {
		u.Fatal(err)
	}
	account, err := h.plane.ServiceAccount(u.Context(), strata.Namespace, "strata-hosts")
	if err != nil {
		u.Fatal(err)
	}
	scheme, err := strata.Scheme()
	if err != nil {
		u.Fatal(err)
	}
	if h.client, err = client.New(h.plane.Config(), client.Options{Scheme: scheme}); err != nil {
		u.Fatal(err)
	}
	program, err := builtHosts()
	if err != nil {
		u.Fatal(err)
	}
	snapshots := u.TempDir()
	port, release, err := controlplane.FreePort()
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(release)
	h.keeper, err = controlplane.NewRunner(controlplane.Program{
		Name: "strata-hosts", Path: program, Dir: u.TempDir(),
		Args: []string{
			"--kubeconfig", account.Kubeconfig, "--allowed-host-ranges", network, "--namespaces", "fleet", "--retry-interval", "2s",
			"--metrics-addr", "0", "--health-addr", controlplane.Loopback(port), "--snapshot-dir", snapshots,
		},
		Healthy: func(ctx context.Context) error {
			return controlplane.Healthy(ctx, "http://"+controlplane.Loopback(port)+"/readyz")
		},
	})
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(func() { _ = h.keeper.Kill() })
	// Each host has a key that somebody has compared.
	for _, host := range u.lab.Hosts() {
		u.run(host, "true")
	}
	h.key()
	return h
}

// key puts the key of the lab, and those of its hosts, into the Secret of the manifest.
func (h *hub) key() {
	h.Helper()
	identity, err := os.ReadFile(h.lab.KeyFile())
	if err != nil {
		h.Fatal(err)
	}
	known, err := os.ReadFile(h.known())
	if err != nil {
		h.Fatal(err)
	}
	h.secret(map[string][]byte{"identity": identity, "known_hosts": known})
}

// secret applies the Secret of the manifest.
func (h *hub) secret(data map[string][]byte) {
	h.Helper()
	h.put(&corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "ssh"}, Data: data,
	})
}

// put applies an object.
func (h *hub) put(obj client.Object) {
	h.Helper()
	obj.SetManagedFields(nil)
	if err := h.client.Patch(h.Context(), obj, client.Apply, client.FieldOwner("people"), client.ForceOwnership); err != nil { //nolint:staticcheck // these are typed objects
		h.Fatal(err)
	}
}

// apply applies the manifest, with the Secret of its keys.
func (h *hub) apply(keeping string) {
	h.Helper()
	cluster := &v1alpha1.HostCluster{}
	if err := yaml.UnmarshalStrict([]byte(h.read()+"  ssh: {secretRef: {name: ssh}}\n"+keeping), cluster); err != nil {
		h.Fatal(err)
	}
	h.put(cluster)
}

// cluster returns the HostCluster; nil where there is none.
func (h *hub) cluster() *v1alpha1.HostCluster {
	h.Helper()
	found := &v1alpha1.HostCluster{}
	err := h.client.Get(h.Context(), types.NamespacedName{Namespace: "fleet", Name: "edge"}, found)
	if client.IgnoreNotFound(err) != nil {
		h.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return found
}

// ready is the HostCluster's Ready condition, of what it says now.
func (h *hub) ready() metav1.Condition {
	h.Helper()
	found := h.cluster()
	if found == nil {
		return metav1.Condition{}
	}
	is := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ReadyCondition)
	if is == nil || is.ObservedGeneration != found.Generation {
		return metav1.Condition{}
	}
	return *is
}

// await waits until the HostCluster gives a reason, and says a text.
func (h *hub) await(reason, text string) {
	h.Helper()
	err := controlplane.WaitFor(h.Context(), 2*time.Minute, func(context.Context) error {
		if is := h.ready(); is.Reason != reason || !strings.Contains(is.Message, text) {
			return fmt.Errorf("want %s %q, it is %s: %s", reason, text, is.Reason, is.Message)
		}
		return nil
	})
	if err != nil {
		h.Fatalf("%v\n%s%s", err, h.log(), h.logs())
	}
}

// log is the end of what the controller has logged.
func (h *hub) log() []byte {
	log, err := os.ReadFile(h.keeper.Log())
	if err != nil {
		h.Error(err)
	}
	return log[max(0, len(log)-4000):]
}

// killedUntil starts the controller, and kills it whenever it tells of something new, until
// the HostCluster gives a reason.
func (h *hub) killedUntil(reason string) {
	h.Helper()
	seen, kills := map[string]bool{}, 0
	for {
		if err := h.keeper.Start(h.Context()); err != nil {
			h.Fatal(err)
		}
		var message string
		err := controlplane.WaitFor(h.Context(), 2*time.Minute, func(context.Context) error {
			is := h.ready()
			message, _, _ = strings.Cut(is.Message, " (until")
			if is.Reason == reason || is.Reason == v1alpha1.ReasonProgressing && !seen[message] {
				if is.Reason == reason {
					message = ""
				}
				return nil
			}
			return fmt.Errorf("it is %s: %s", is.Reason, is.Message)
		})
		if err != nil {
			h.Fatalf("%v\n%s%s", err, h.log(), h.logs())
		}
		if message == "" {
			h.Logf("%s after %d kills", reason, kills)
			return
		}
		seen[message] = true
		if err := h.keeper.Kill(); err != nil {
			h.Fatal(err)
		}
		kills++
	}
}

// Nothing is done to hosts whose keys nobody has named, with a key that is none, or at
// addresses that are not allowed; the HostCluster says which.
func TestHostsThatAControllerMustNotUse(t *testing.T) {
	t.Parallel()
	h := newHub(newUser(t, 1))
	host := h.lab.Hosts()[0]
	identity, err := os.ReadFile(h.lab.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	h.secret(map[string][]byte{"identity": identity})
	h.apply("")
	if err := h.keeper.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.await("Refused", "which nobody has named: compare it with that of the machine")
	h.secret(map[string][]byte{"identity": []byte("hunter2")})
	h.await(v1alpha1.ReasonInvalidSpec, "the Secret ssh: the private key is no private key of OpenSSH")
	h.key()
	h.add("  workers:\n  - {name: elsewhere, address: 192.0.2.1}\n")
	h.apply("")
	h.await("Unreachable", "elsewhere cannot be reached, and no other host belongs to a cluster: ")
	if found := h.cluster().Status.Hosts; len(found) != 2 || !strings.Contains(found[1].Note, "192.0.2.1 is in none of the ranges of --allowed-host-ranges") {
		t.Errorf("%+v", found)
	}
	h.write("edge", host)
	h.apply("  snapshots: {s3: {bucket: saved, endpoint: 'http://127.0.0.1:1'}}\n")
	h.await(v1alpha1.ReasonInvalidSpec, "spec.snapshots.s3.secretRef is missing")
	h.apply("  snapshots: {s3: {bucket: saved, endpoint: 'http://127.0.0.1:1', secretRef: {name: ssh}}}\n")
	h.await(v1alpha1.ReasonInvalidSpec, "the Secret ssh lacks accesskey or secretkey")
	h.apply("  hold: true\n")
	h.await(v1alpha1.ReasonHold, "spec.hold is set")
	if host.File("/var/lib/strata/journal") != "" {
		t.Error("something was done to the host")
	}
}

// A cluster that the plug-in manages is taken over by the annotation with its ID, and by no
// other; what the HostCluster wants besides is done then.
func TestControllerTakesAClusterOver(t *testing.T) {
	t.Parallel()
	h := newHub(newUser(t, 1))
	h.must(0, []string{"apply", "--yes"}, "Done: ")
	id := h.plan().ID
	h.edit("kubelet:", "labels: {rack: r1}, kubelet:")
	h.apply("")
	if err := h.keeper.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.await("Refused", "the cluster is managed by kubectl-strata: the annotation kraan.io/take-over-cluster="+id+" takes it from there")
	h.annotate(v1alpha1.TakeOverClusterAnnotation, v1alpha1.AnyCluster)
	h.await(v1alpha1.ReasonInvalidSpec, "is any, and the cluster on the hosts is "+id)
	h.annotate(v1alpha1.TakeOverClusterAnnotation, id)
	h.await(v1alpha1.ReasonHostsHealthy, "1 host is healthy")
	if rack := h.kubectl("", "get", "node", "cp-0", "-o", "jsonpath={.metadata.labels.rack}"); rack != "r1" {
		t.Errorf("the Node has the label %q", rack)
	}
	if left := h.cluster().Annotations[v1alpha1.TakeOverClusterAnnotation]; left != "" {
		t.Errorf("the annotation stays: %s", left)
	}
}

// A HostCluster of a management cluster is made and kept by a controller that is killed
// whenever it does something; it replaces a host, and leaves or resets the hosts when the
// HostCluster goes.
func TestControllerKeepsAHostCluster(t *testing.T) {
	t.Parallel()
	h := newHub(newUser(t, 4))
	cp := h.lab.Hosts()
	h.write("edge", cp[:3]...)
	h.apply("")
	h.killedUntil(v1alpha1.ReasonHostsHealthy)
	found := h.cluster()
	if s := found.Status; s.Healthy != "3/3" || s.Etcd != "3/3" || s.Version != "v1.36.3" || s.ID == "" || s.KubeConfig != "edge-kubeconfig" || s.CertificatesEnd.IsZero() {
		t.Errorf("%+v", s)
	}
	h.must(2, []string{"apply", "--yes"}, "the cluster is managed by HostCluster fleet/edge of the management cluster", "--take-over takes it from there")

	// A host is gone, and another one is in its place.
	cp[2].Kill()
	h.annotate("reconcile.fluxcd.io/requestedAt", "1")
	h.await("HostsDown", "cp-2 cannot be reached")
	h.write("edge", cp[0], cp[1], cp[3])
	h.apply("")
	h.await("SnapshotFirst", "RemoveMember cp-2")
	h.apply("  snapshots: {directory: ../edge}\n")
	h.await(v1alpha1.ReasonInvalidSpec, "spec.snapshots.directory: must be below the place that the controller has for snapshots")
	if err := h.keeper.Kill(); err != nil {
		t.Fatal(err)
	}
	h.apply("  snapshots: {directory: etcd}\n")
	h.killedUntil(v1alpha1.ReasonHostsHealthy)
	if nodes := h.kubectl("", "get", "nodes", "-o", "name"); !strings.Contains(nodes, "cp-3") || strings.Contains(nodes, "cp-2") {
		t.Errorf("Nodes %s", nodes)
	}

	// The HostCluster goes, and the hosts go on; it comes again, and knows them.
	journals := cp[0].File("/var/lib/strata/journal") + cp[1].File("/var/lib/strata/journal")
	h.delete()
	h.kubectl("", "get", "nodes")
	if cp[0].File("/var/lib/strata/journal")+cp[1].File("/var/lib/strata/journal") != journals {
		t.Error("the deletion has touched hosts")
	}
	h.apply("  snapshots: {directory: etcd}\n  deletionPolicy: Reset\n")
	h.await(v1alpha1.ReasonHostsHealthy, "3 hosts are healthy at v1.36.3")

	// With Reset they are reset, once somebody says which cluster is meant.
	id := h.cluster().Status.ID
	if err := h.client.Delete(t.Context(), h.cluster()); err != nil {
		t.Fatal(err)
	}
	h.await(v1alpha1.ReasonDeletionBlocked, "kraan.io/confirm-deletion="+id)
	h.annotate(v1alpha1.ConfirmDeletionAnnotation, "fleet/edge/00000000")
	h.await(v1alpha1.ReasonDeletionBlocked, "kraan.io/confirm-deletion="+id)
	h.kubectl("", "get", "nodes")
	h.annotate(v1alpha1.ConfirmDeletionAnnotation, id)
	h.awaitGone()
	for _, host := range []*lab.Host{cp[0], cp[1], cp[3]} {
		if left := host.File("/etc/kubernetes/admin.conf") + host.File("/var/lib/strata/journal"); left != "" {
			t.Errorf("%s has %s", host.Name, left)
		}
	}
	if err := h.client.Get(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "edge-kubeconfig"}, &corev1.Secret{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the kubeconfig of what is gone: %v", err)
	}
}

// A controller that is killed whenever it does something takes its hosts to the next minor
// version, with another containerd, and renews certificates that end tomorrow.
func TestControllerUpgradesAndRenews(t *testing.T) {
	t.Parallel()
	h := newHub(newUpgradable(t, 2))
	cp := h.lab.Hosts()
	h.serveContainerd("1.7.29")
	h.apply("")
	h.killedUntil(v1alpha1.ReasonHostsHealthy)
	h.kubectl(networkPlugin, "apply", "-f", "-")
	h.kubectl("", "wait", "node", "--all", "--for=condition=Ready", "--timeout=60s")
	h.serveContainerd("2.2.0")
	if err := h.keeper.Kill(); err != nil {
		t.Fatal(err)
	}
	h.edit("version: "+before, "version: "+after)
	h.apply("")
	h.killedUntil(v1alpha1.ReasonHostsHealthy)
	if s := h.cluster().Status; s.Version != after || s.Healthy != "2/2" {
		t.Errorf("%+v", s)
	}
	for _, host := range cp {
		if journal := host.File("/var/lib/strata/journal"); !strings.Contains(journal, `"UpgradeContainerd"`) || !strings.Contains(journal, `"Upgrade","version":"`+after+`","ended":true`) {
			t.Errorf("the journal of %s is %s", host.Name, journal)
		}
	}

	h.lasting(cp[1], "apiserver", "24h")
	h.annotate("reconcile.fluxcd.io/requestedAt", "1")
	h.eventually("the certificates are renewed", func(context.Context) error {
		if end := h.certificate(cp[1], "apiserver.crt").NotAfter; time.Until(end) < 300*24*time.Hour {
			return fmt.Errorf("it ends %s", end)
		}
		return nil
	})
	h.await(v1alpha1.ReasonHostsHealthy, "2 hosts are healthy at "+after)
}

// annotate sets an annotation of the HostCluster.
func (h *hub) annotate(key, value string) {
	h.Helper()
	found := h.cluster()
	before := found.DeepCopy()
	if found.Annotations == nil {
		found.Annotations = map[string]string{}
	}
	found.Annotations[key] = value
	if err := h.client.Patch(h.Context(), found, client.MergeFrom(before)); err != nil {
		h.Fatal(err)
	}
}

// delete deletes the HostCluster, and waits until it is gone.
func (h *hub) delete() {
	h.Helper()
	if err := h.client.Delete(h.Context(), h.cluster()); err != nil {
		h.Fatal(err)
	}
	h.awaitGone()
}

func (h *hub) awaitGone() {
	h.Helper()
	err := controlplane.WaitFor(h.Context(), 2*time.Minute, func(context.Context) error {
		if h.cluster() != nil {
			return fmt.Errorf("it is there: %+v", h.ready())
		}
		return nil
	})
	if err != nil {
		h.Fatalf("%v\n%s", err, h.log())
	}
}
