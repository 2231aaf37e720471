// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/probes"
	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/internal/ssh/sshtest"
	"github.com/strata-project/strata/internal/sshsig"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/hostile"
	"github.com/strata-project/strata/test/hostile/root"
)

// nextVersion is one that a cluster of root.HostVersion can be upgraded to.
const nextVersion = "v1.37.0"

// enoughForHosts is the memory, in MiB, that the controller of hosts of these tests may take: some
// lists of 32 MiB are read at once, and the chart's limit is twice that.
const enoughForHosts = 512

// accessKey and secretKey open each bucket, and nobody is told them.
const accessKey, secretKey = "AKIDTENANT", "hunter2-of-the-bucket"

// hostCluster makes a HostCluster of one host that somebody has made, and the Secrets that it
// names; a platform team does that. change alters what is wanted of it now.
func (m *team) hostCluster(name string, host *root.Host, change ...func(*v1alpha1.HostCluster)) {
	m.Helper()
	at, port, err := net.SplitHostPort(host.Address)
	m.must(err)
	number, err := strconv.Atoi(port)
	m.must(err)
	home := &corev1.Namespace{}
	m.must(stack.client.Get(m.ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, home))
	object := &v1alpha1.HostCluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name}}
	object.Spec.Version = root.HostVersion
	object.Spec.SSH.SecretRef = &v1alpha1.HostSecretReference{Name: name + "-ssh"}
	object.Spec.ControlPlane = []v1alpha1.ClusterHost{{Name: root.HostName, Address: root.HostAddress, SSHAddress: at, SSHPort: int32(number)}}
	applied := object.DeepCopy()
	hostclusters.Default(applied)
	host.Change(func() {
		if host.Spec.Version == "" {
			host.Spec = applied.Spec
		}
		if host.ID == "" {
			host.ID = m.namespace + "/" + name + "/0a1b2c3d"
		}
		if host.Manager == "" {
			host.Manager = fmt.Sprintf("HostCluster %s/%s of the management cluster %s", m.namespace, name, home.UID)
		}
	})
	for _, alter := range change {
		alter(object)
	}
	m.must(stack.client.Create(m.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name + "-ssh"},
		Data:       map[string][]byte{"identity": host.Identity, "known_hosts": host.KnownHosts()},
	}))
	m.must(stack.client.Create(m.ctx, object))
	m.Cleanup(func() { // a deletion takes nothing away of the hosts
		_ = client.IgnoreNotFound(stack.client.Delete(context.Background(), object))
	})
}

// upgrades wants the next version, with a snapshot in a bucket before that.
func (m *team) upgrades(name, endpoint string) func(*v1alpha1.HostCluster) {
	m.Helper()
	credentials := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name + "-s3"},
		Data:       map[string][]byte{"accesskey": []byte(accessKey), "secretkey": []byte(secretKey)},
	}
	m.must(stack.client.Create(m.ctx, credentials))
	return func(object *v1alpha1.HostCluster) {
		object.Spec.Version = nextVersion
		object.Spec.Snapshots.Keep = 1
		object.Spec.Snapshots.S3 = &v1alpha1.HostSnapshotBucket{
			Bucket: "saved", Endpoint: endpoint, SecretRef: &v1alpha1.HostSecretReference{Name: name + "-s3"},
		}
	}
}

// hostClusterSays waits until a HostCluster says of its condition Ready what it is to say.
func (m *team) hostClusterSays(name, word string) *v1alpha1.HostCluster {
	m.Helper()
	object := &v1alpha1.HostCluster{}
	m.eventually("HostCluster "+name+" says "+word, func() error {
		m.must(stack.client.Get(m.ctx, types.NamespacedName{Namespace: m.namespace, Name: name}, object))
		said := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ReadyCondition)
		if said == nil || !strings.Contains(said.Message, word) {
			return fmt.Errorf("it is %+v of %+v", said, object.Status.Hosts)
		}
		return nil
	})
	return object
}

// looks has a HostCluster looked at again, and waits until that was done.
func (m *team) looks(name, token string) {
	m.Helper()
	object := &v1alpha1.HostCluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name}}
	m.must(stack.client.Patch(m.ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ReconcileRequestAnnotation, token))))
	m.eventually("HostCluster "+name+" is looked at", func() error {
		m.must(stack.client.Get(m.ctx, types.NamespacedName{Namespace: m.namespace, Name: name}, object))
		said := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ReadyCondition)
		if object.Status.LastHandledReconcileAt != token || said == nil || said.Status != metav1.ConditionTrue {
			return fmt.Errorf("it is %+v", said)
		}
		return nil
	})
}

// printableStatus fails the test where a status has what speaks to a terminal, or a secret.
func printableStatus(t *testing.T, object *v1alpha1.HostCluster) {
	t.Helper()
	said := fmt.Sprintf("%+v", object.Status)
	if strings.ContainsAny(said, "\x1b\n\x00") || strings.Contains(said, secretKey) || strings.Contains(said, "PRIVATE KEY") {
		t.Errorf("HostCluster %s says %q", object.Name, said)
	}
	if len(said) > 8<<10 {
		t.Errorf("HostCluster %s says %d bytes", object.Name, len(said))
	}
}

// hostsGoOn fails the test where the controller of hosts was ended, or has had more memory than
// enough.
func hostsGoOn(t *testing.T, pid int) {
	t.Helper()
	if now := stack.hosts.PID(); now != pid || stack.hosts.ExitCode() >= 0 {
		t.Errorf("the controller of hosts was ended: %d is %d", pid, now)
	}
	if used := peakOf(t, pid); used > enoughForHosts {
		t.Errorf("the controller of hosts has had %d MiB, and %d are enough", used, enoughForHosts)
	} else {
		t.Logf("the controller of hosts has had %d MiB at most", used)
	}
}

// Whoever is root on a host says what they like, in answers without an end, in the name of
// others, and with data that end whoever opens them. It is said which host that was, the others
// go on, and nothing of theirs is touched.
func TestHostWithAHostileRoot(t *testing.T) {
	t.Parallel()
	evil, good := join(t, tenant, "hosts"), join(t, victim, "hosts")
	pid := stack.hosts.PID()
	honest := root.NewHost(t)
	good.hostCluster("honest", honest)
	good.hostClusterSays("honest", "1 host is healthy at "+root.HostVersion)
	const keys = 20
	db, revision := root.Database(t, keys)
	server, err := controlplane.NewS3Server()
	evil.must(err)
	t.Cleanup(func() { _ = server.Close() })
	evil.must(server.NewBucket("saved"))

	answers := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, text)
		}
	}
	flood := func(begin string) http.HandlerFunc { return hostile.Flood(begin, " ", 1<<30) }
	at := func(path string, answer http.HandlerFunc) func(*root.Host) {
		return func(h *root.Host) { h.Do(path, answer) }
	}
	says := func(of []byte, how func(honest string) (string, bool)) func(*root.Host) {
		return func(h *root.Host) {
			h.Say(func(script []byte, honest string) (string, bool) {
				if !bytes.Contains(script, bytes.TrimSpace(of)) {
					return honest, false
				}
				return how(honest)
			})
		}
	}
	hands := func(db []byte) func(*root.Host) {
		return func(h *root.Host) { h.Etcd = &root.Member{Keys: keys, Revision: revision, Stream: root.Hands(db)} }
	}
	streams := func(states uint64) func(*root.Host) {
		return func(h *root.Host) {
			h.Etcd = &root.Member{Keys: 1, Revision: 2, Stream: root.Endless(states, make([]byte, 1<<20))}
		}
	}
	attacks := map[string]struct {
		does func(*root.Host)
		// upgrade has etcd saved, which takes what it hands out.
		upgrade bool
		says    string
	}{
		"nodes":     {does: at("/api/v1/nodes", flood(`{"kind":"NodeList","items":[`)), says: "of more than 32768 KiB"},
		"object":    {does: at("/api/v1/namespaces/kube-system/configmaps/kubeadm-config", flood(`{"kind":"ConfigMap","data":{`)), says: "of more than 3072 KiB"},
		"pages":     {does: at("/api/v1/nodes", answers(`{"kind":"NodeList","apiVersion":"v1","metadata":{"continue":"again"},"items":[{"metadata":{"name":"h-0"}}]}`)), says: "lists more than 5000 Nodes"},
		"redirect":  {does: at("/api/v1/nodes", hostile.Redirect(http.StatusTemporaryRedirect, stack.outside.URL())), says: "redirect"},
		"gateway":   {does: at("/v3/cluster/member/list", flood(`{"members":[`)), says: "of more than 1024 KiB"},
		"endless":   {does: says(probes.Script, func(string) (string, bool) { return strings.Repeat("x=y\n", 1<<10), true }), says: "h-0"},
		"cut":       {does: says(probes.Script, func(string) (string, bool) { return "user=0\n", false }), says: "its answer is cut off"},
		"keys":      {does: says(probes.CredentialsScript, func(string) (string, bool) { return "admin=\x1b[31m\nend=1\n", false }), says: "admin.conf"},
		"namesake":  {does: func(h *root.Host) { h.ID = victim + "/honest/0a1b2c3d" }, says: "not that of this namespace and name"},
		"manager":   {does: func(h *root.Host) { h.Manager = "\x1b[31mHostCluster\n" + strings.Repeat("x", 4000) }, says: "the cluster is managed by"},
		"held":      {does: func(h *root.Host) { h.Locked = "held \x1b[31mthe king\n" }, upgrade: true, says: "the king"},
		"value":     {does: func(h *root.Host) { hands(root.WithValue(t, db))(h) }, upgrade: true, says: "failed to unmarshal"},
		"lease":     {does: func(h *root.Host) { hands(root.WithLease(t, db))(h) }, upgrade: true, says: "lease"},
		"broken":    {does: hands(root.BrokenPages(db)), upgrade: true, says: "the snapshot of the member of etcd on h-0 does not count"},
		"states":    {does: streams(1<<64 - 1), upgrade: true, says: "spec.snapshots.quota leaves 64 MiB"},
		"overflows": {does: streams(3 << 20), upgrade: true, says: "and sends more"},
	}
	for name, attack := range attacks {
		host := root.NewHost(t)
		attack.does(host)
		if attack.upgrade {
			evil.hostCluster(name, host, evil.upgrades(name, "http://"+server.Endpoint()))
		} else {
			evil.hostCluster(name, host)
		}
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) { printableStatus(t, evil.within(t).hostClusterSays(name, attack.says)) })
	}
	good.looks("honest", "after the attacks")
	given := &corev1.SecretList{}
	good.must(stack.client.List(t.Context(), given, client.HasLabels{v1alpha1.HostClusterLabel}))
	for i := range given.Items {
		secret := &given.Items[i]
		if id := secret.Annotations[v1alpha1.HostClusterIDAnnotation]; !strings.HasPrefix(id, secret.Namespace+"/"+secret.Labels[v1alpha1.HostClusterLabel]+"/") {
			t.Errorf("the kubeconfig %s/%s is said to be of %s", secret.Namespace, secret.Name, id)
		}
	}
	if dials := stack.outside.dials.Load(); dials > 0 {
		t.Errorf("%d connections were opened to where hosts lead", dials)
	}
	hostsGoOn(t, pid)
}

// bucketOf returns the address of a server of S3 that takes what is put there and then answers
// so.
func bucketOf(t *testing.T, puts, lists, reads http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && puts != nil:
			puts(w, r)
		case r.Method != http.MethodGet:
			w.WriteHeader(http.StatusOK)
		case r.URL.Query().Has("list-type"):
			lists(w, r)
		default:
			reads(w, r)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// Whoever runs the bucket of a HostCluster's snapshots answers without an end, sends elsewhere,
// says what they like, and puts snapshots of their own there. It is said which bucket that was,
// no key is told, what is signed goes nowhere else, and what the controller has saved stays.
func TestHostileBucket(t *testing.T) {
	t.Parallel()
	evil, good := join(t, tenant, "buckets"), join(t, victim, "buckets")
	pid := stack.hosts.PID()
	good.hostCluster("beside", root.NewHost(t))
	const keys = 20
	db, revision := root.Database(t, keys)
	refused := func(begin string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			hostile.Flood(begin, " ", 1<<30)(w, r)
		}
	}
	lists := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, text) }
	}
	const one = "<ListBucketResult><Contents><Key>team-b-bucket-facts-20260301T000000Z-1.json</Key></Contents></ListBucketResult>"
	attacks := map[string]struct{ endpoint, says string }{
		"refuses":   {bucketOf(t, refused("<Error><Code>AccessDenied</Code><Message>"), nil, nil), "s3://saved answers with an error of more than 256 KiB, which is not read"},
		"elsewhere": {bucketOf(t, hostile.Redirect(http.StatusTemporaryRedirect, stack.outside.URL()), nil, nil), "cannot keep the snapshot in s3://saved"},
		"outside":   {stack.outside.URL(), "--allowed-host-ranges"},
		"words": {bucketOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, "<Error><Code>No</Code><Message>&#10;kubectl delete ns "+victim+"</Message></Error>")
		}, nil, nil), "cannot keep the snapshot in s3://saved: No"},
		"lists":   {bucketOf(t, nil, hostile.Flood("<ListBucketResult>", " ", 1<<30), nil), "s3://saved answers with data of more than 16384 KiB"},
		"endless": {bucketOf(t, nil, lists("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken></ListBucketResult>"), nil), "on more than 100 pages"},
		"facts":   {bucketOf(t, nil, lists(one), hostile.Flood("{", " ", 1<<30)), "s3://saved"},
	}
	for name, attack := range attacks {
		host := root.NewHost(t)
		host.Etcd = &root.Member{Keys: keys, Revision: revision, Stream: root.Hands(db)}
		evil.hostCluster("bucket-"+name, host, evil.upgrades("bucket-"+name, attack.endpoint))
	}
	forged := evil.forgedBucket("forged", &root.Member{Keys: keys, Revision: revision, Stream: root.Hands(db)})
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) { printableStatus(t, evil.within(t).hostClusterSays("bucket-"+name, attack.says)) })
	}
	forged()
	good.looks("beside", "after the attacks")
	if dials := stack.outside.dials.Load(); dials > 0 {
		t.Errorf("%d connections were opened to where buckets lead", dials)
	}
	hostsGoOn(t, pid)
}

// forgedBucket makes a HostCluster that keeps one snapshot, in a bucket with newer ones that
// somebody else has put there, and returns what checks that those have taken nothing away and
// that none of them would be restored.
func (m *team) forgedBucket(name string, etcd *root.Member) func() {
	m.Helper()
	server, err := controlplane.NewS3Server()
	m.must(err)
	m.Cleanup(func() { _ = server.Close() })
	m.must(server.NewBucket("saved"))
	facts := fmt.Sprintf(`{"cluster": %q, "clusterID": %q, "time": "2036-03-01T00:00:00Z", "revision": 9999, "keys": 20, "version": %q, "file": "FILE.db",
		"digest": "sha256:%064d", "size": 1}`, m.namespace+"/"+name, m.namespace+"/"+name+"/0a1b2c3d", root.HostVersion, 1)
	for i, by := range []string{"nobody", "theirs", "broken"} {
		file := fmt.Sprintf("%s-%s-20360301T00000%dZ-9999", m.namespace, name, i)
		said := strings.ReplaceAll(facts, "FILE", file)
		signature, err := sshsig.Sign(sshtest.NewKey(m), snapshots.SignatureNamespace, []byte(said))
		m.must(err)
		files := map[string]string{file + ".json": said, file + ".db": "x"}
		switch by {
		case "theirs":
			files[file+".json.sig"] = string(signature)
		case "broken":
			files[file+".json.sig"] = "yes"
		}
		m.must(server.Put("saved", files))
	}
	host := root.NewHost(m)
	host.Etcd = etcd
	m.hostCluster(name, host, m.upgrades(name, "http://"+server.Endpoint()))
	return func() {
		m.Helper()
		m.hostClusterSays(name, "nothing is done here") // by the host, which is asked once etcd is saved
		bucket, err := snapshots.OpenBucket(m.ctx, snapshots.BucketOptions{Endpoint: "http://" + server.Endpoint(), Bucket: "saved", AccessKey: "x", SecretKey: "x"})
		m.must(err)
		found, err := bucket.List(m.ctx, m.namespace+"/"+name)
		m.must(err)
		trust := snapshots.Trust{Keys: []string{sshsig.Fingerprint(host.User.PublicKey())}}
		newest, _ := trust.Newest(found)
		if newest == nil {
			m.Fatal(errors.New("what the controller has saved has gone: " + fmt.Sprintf("%+v", found)))
		}
		if newest.Time.Year() > 2030 {
			m.Errorf("%+v would be restored", newest)
		}
	}
}
