// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/test/lab"
)

// etcd returns a client of the member of etcd on a host.
func (u *user) etcd(host *lab.Host) *clientv3.Client {
	u.Helper()
	const pki = "/etc/kubernetes/pki/etcd/"
	pair, err := tls.X509KeyPair([]byte(host.File(pki+"healthcheck-client.crt")), []byte(host.File(pki+"healthcheck-client.key")))
	if err != nil {
		u.Fatal(err)
	}
	access := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	access.RootCAs.AppendCertsFromPEM([]byte(host.File(pki + "ca.crt")))
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://" + host.IP() + ":2379"}, TLS: access, DialTimeout: 10 * time.Second})
	if err != nil {
		u.Fatal(err)
	}
	return client
}

// writtenWith checks with what every Secret in etcd is written: a key of a generation, or
// none for 0.
func (u *user) writtenWith(host *lab.Host, generation string) {
	u.Helper()
	client := u.etcd(host)
	defer func() { _ = client.Close() }()
	answer, err := client.Get(u.Context(), "/registry/secrets/", clientv3.WithPrefix())
	if err != nil || len(answer.Kvs) == 0 {
		u.Fatalf("%v, %v", answer, err)
	}
	for _, each := range answer.Kvs {
		value := string(each.Value)
		sealed := strings.HasPrefix(value, "k8s:enc:secretbox:v1:strata-"+generation+"-") && !strings.Contains(value, "hunter2")
		if plain := strings.HasPrefix(value, "k8s\x00"); generation == "" && !plain || generation != "" && !sealed {
			u.Errorf("%s is %.60q", each.Key, value)
		}
	}
}

// hide writes a Secret.
func (u *user) hide(name string) {
	u.Helper()
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"password": "hunter2"}}
	if _, err := u.client().CoreV1().Secrets("default").Create(u.Context(), object, metav1.CreateOptions{}); err != nil {
		u.Fatal(err)
	}
}

// readEverywhere reads Secrets through the API server of each host.
func (u *user) readEverywhere(control []*lab.Host, names ...string) {
	u.Helper()
	config := u.config()
	for _, host := range control {
		config.Host = "https://" + host.IP() + ":6443"
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			u.Fatal(err)
		}
		for _, name := range names {
			object, err := client.CoreV1().Secrets("default").Get(u.Context(), name, metav1.GetOptions{})
			if err != nil || string(object.Data["password"]) != "hunter2" {
				u.Errorf("%s does not read %s: %v", host.Name, name, err)
			}
		}
	}
}

// keysOn returns the keys that a host has, by their names, and checks who may read them.
func (u *user) keysOn(host *lab.Host) map[string]string {
	u.Helper()
	found := map[string]string{}
	for file, content := range host.Files(hostclusters.APIFiles + "/encryption-*.yaml") {
		_, keys, err := encryption.Read([]byte(content))
		if err != nil {
			u.Errorf("%s of %s: %v", file, host.Name, err)
		}
		for name, key := range keys {
			found[name] = key
		}
		if mode := strings.TrimSpace(u.run(host, "stat -c %a "+file)); mode != "600" {
			u.Errorf("%s of %s has the mode %s", file, host.Name, mode)
		}
	}
	return found
}

// newest returns the newest snapshot.
func (u *user) newest() snapshots.Snapshot {
	u.Helper()
	list, err := snapshots.List(filepath.Join(u.dir, "snapshots"), "fleet/edge")
	if err != nil || len(list) == 0 {
		u.Fatalf("%v, %v", list, err)
	}
	return list[0]
}

// generation has the manifest ask for another key.
func (u *user) generation(from, to string) {
	u.Helper()
	u.edit("encryption: {keyGeneration: "+from+"}", "encryption: {keyGeneration: "+to+"}")
}

// Secrets are encrypted in etcd as soon as the manifest says so, with another key when it
// asks for one, and in clear again when it says so no more, though apply is killed at every
// step; a host that joins reads them, a snapshot of before comes back as long as its key is
// there, and no key is said or kept anywhere else.
func TestSecretsAreEncryptedInEtcd(t *testing.T) {
	t.Parallel()
	u := newUser(t, 3)
	cp := u.lab.Hosts()
	u.write("edge", cp[:2]...)
	u.add("  snapshots: {directory: snapshots}\n")
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.hide("old")
	u.writtenWith(cp[0], "")
	u.add("  apiServer:\n    encryption: {keyGeneration: 1}\n")
	u.want(hosts.Update, "", "changes settings: apiServer.encryption: identity -> a new key of generation 1", "Update")
	u.must(0, []string{"apply", "--yes"}, "all Secrets in etcd are written with strata-1-", "Done: ")
	u.hide("new")
	u.writtenWith(cp[0], "1")
	u.readEverywhere(cp[:2], "old", "new")
	u.must(0, []string{"etcd", "snapshot"}, " keys at revision ")
	first := u.newest()
	if len(first.Providers) != 1 || !strings.HasPrefix(first.Providers[0], "strata-1-") {
		t.Errorf("the snapshot is written with %v", first.Providers)
	}

	// Another key takes the place of the first one, which stays for what was saved before.
	u.generation("1", "2")
	u.eachStep(0, "apply", "--yes")
	u.must(0, []string{"plan"}, "Done: ")
	u.writtenWith(cp[1], "2")
	u.readEverywhere(cp[:2], "old", "new")

	// A host that joins reads what is there from the start, also after a return to before.
	settings := u.read()
	u.save(strings.Replace(settings, "  snapshots:", listed(cp[2])+"  snapshots:", 1))
	u.must(0, []string{"apply", "--yes"}, "cp-2 has joined", "Done: ")
	u.readEverywhere(cp, "old", "new")
	restore := []string{"etcd", "restore", "--from", first.File, "--confirm", "fleet/edge", "--although-it-answers"}
	u.must(0, restore, "all Secrets in etcd are written with strata-2-", "Done: ")
	u.readEverywhere(cp, "old", "new")
	u.writtenWith(cp[2], "2")

	// With a third one the first one goes, and what was saved with it does not come back.
	all := u.keysOn(cp[0])
	u.generation("2", "3")
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.writtenWith(cp[0], "3")
	u.must(1, restore, "are encrypted with "+first.Providers[0], "restore a later snapshot")
	for _, host := range cp {
		keys := u.keysOn(host)
		if _, is := keys[first.Providers[0]]; is || len(keys) != 2 {
			t.Errorf("%s has the keys of %d", host.Name, len(keys))
		}
		for name, key := range keys {
			all[name] = key
		}
	}
	u.nobodyHas(all)

	u.edit("  apiServer:\n    encryption: {keyGeneration: 3}\n", "")
	u.want(hosts.Update, "", " -> identity", "Update")
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	u.must(0, []string{"plan"}, "Done: ")
	u.writtenWith(cp[0], "")
	u.readEverywhere(cp, "old", "new")
	for _, host := range cp {
		if manifest := host.File("/etc/kubernetes/manifests/kube-apiserver.yaml"); strings.Contains(manifest, "encryption") {
			t.Errorf("%s has %s", host.Name, manifest)
		}
	}
}

// nobodyHas checks that no key is in a log, in what was applied, or beside the manifest.
func (u *user) nobodyHas(keys map[string]string) {
	u.Helper()
	texts := map[string]string{"the logs": u.logs()}
	for _, host := range u.lab.Hosts() {
		for file, content := range host.Files("/var/lib/strata/*") {
			texts[host.Name+" "+file] = content
		}
	}
	config, err := u.client().CoreV1().ConfigMaps("kube-system").List(u.Context(), metav1.ListOptions{})
	if err != nil {
		u.Fatal(err)
	}
	data, err := json.Marshal(config.Items)
	if err != nil {
		u.Fatal(err)
	}
	texts["the ConfigMaps"] = string(data)
	err = filepath.WalkDir(u.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		texts[path] = string(content)
		return err
	})
	if err != nil || len(keys) < 3 {
		u.Fatalf("%v, %d keys", err, len(keys))
	}
	for where, text := range texts {
		for name, key := range keys {
			if strings.Contains(text, key) {
				u.Errorf("%s has the key %s", where, name)
			}
		}
	}
}
