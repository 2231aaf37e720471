// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/providers/providerstest"
	"github.com/strata-project/strata/test/postgres"
)

// databases is a server of PostgreSQL that exists, whose databases a plug-in hands out.
type databases struct {
	*cluster
	server *postgres.Server
}

const adminPassword = "of-the-admin-alone"

// newDatabases starts a server, and offers its databases by a plug-in of the cluster.
func newDatabases(t *testing.T) *databases {
	t.Helper()
	d := &databases{cluster: newCluster(t), server: newServer(t)}
	d.create(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: pg-admin, namespace: SYSTEM}\nstringData: {uri: %q}\n", d.admin("postgres")))
	digest := providerstest.ImageOf(d, strings.TrimPrefix(d.registry.URL("plugins/postgres"), "oci://"), d.program())
	d.handedOut("a", fmt.Sprintf("  plugin:\n    image: %s\n    digest: %q\n    kinds: [{apiVersion: v1, kind: Secret}]\n"+
		"    egress: [{cidr: 127.0.0.1/32, port: 5432}]\n  credentialsRef: {name: pg-admin}\n", d.registry.URL("plugins/postgres"), digest))
	return d
}

func newServer(t *testing.T) *postgres.Server {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	return postgres.Start(t, port, "postgres", adminPassword)
}

func (d *databases) program() []byte {
	d.Helper()
	return providerstest.Build(d, "../../examples/plugins", "./postgres")
}

// admin is the address of a database for whoever keeps the server.
func (d *databases) admin(database string) string {
	return d.server.URI("postgres", adminPassword, database)
}

// handedOut offers what a plug-in hands out.
func (f *fixture) handedOut(name, spec string) {
	f.Helper()
	f.create(fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: CapabilityProvider\nmetadata: {name: SHOP-%s, labels: {test: SHOP}}\nspec:\n"+
		"  capability: database/postgresql\n  serviceAccountName: databases\n  allowedNamespaces: {matchLabels: {kubernetes.io/metadata.name: SHOP}}\n%s", name, spec))
}

// needs creates a claim of a database.
func (d *databases) needs(name, spec string) *v1alpha1.CapabilityClaim {
	d.Helper()
	return d.create(fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: CapabilityClaim\nmetadata: {name: %s, namespace: SHOP, labels: {test: SHOP}}\nspec:\n"+
		"  capability: database/postgresql\n  provider: SHOP-a\n%s", name, spec)).(*v1alpha1.CapabilityClaim)
}

// uri is the address that a claim's binding has.
func (d *databases) uri(claim string) string {
	d.Helper()
	return string(d.secret(claim + "-binding").Data["uri"])
}

// databaseOf is the database that a claim has.
func databaseOf(claim *v1alpha1.CapabilityClaim) string {
	return "claim_" + strings.ReplaceAll(string(claim.UID), "-", "")
}

// rows asks the server something as whoever keeps it.
func (d *databases) rows(statement string) string {
	d.Helper()
	out, err := d.server.Query(d.admin("postgres"), statement)
	d.must(err)
	return out
}

const countDatabases = "SELECT count(*) FROM pg_database WHERE datname LIKE 'claim%'"

// Databases of a server that exists are handed out, each to one claim, with passwords that change
// while the ones of before are valid; and are taken back, with their data where that is confirmed.
func TestDatabasesOfAServerThatExists(t *testing.T) {
	d := newDatabases(t)
	d.start(0)
	shop, other := d.needs("shop", "  parameters: {connectionLimit: 5}\n"), d.needs("other", "")
	for _, name := range []string{shop.Name, other.Name} {
		d.says(name, v1alpha1.ReasonBound)
	}
	first := d.uri("shop")
	if _, err := d.server.Query(first, "CREATE TABLE orders (id int); INSERT INTO orders VALUES (7)"); err != nil {
		t.Fatal(err)
	}
	foreign := strings.TrimSuffix(d.uri("other"), databaseOf(other)) + databaseOf(shop)
	if _, err := d.server.Query(foreign, "SELECT 1"); err == nil || !strings.Contains(err.Error(), "permission denied for database") {
		t.Errorf("somebody else's database says %v", err)
	}
	if limit := d.rows("SELECT rolconnlimit FROM pg_roles WHERE rolname = '" + string(d.secret("shop-binding").Data["username"]) + "'"); limit != "5" {
		t.Errorf("its role may have %s connections", limit)
	}
	requests := d.settled()
	asked := d.host.Calls()
	d.annotate(d.get("shop"), "look", "again")
	if more := d.settled(); len(more) > 0 || d.host.Calls() != asked {
		t.Errorf("a claim that is served asks for %v, and its plug-in %d times", more, d.host.Calls()-asked)
	}
	for _, request := range requests {
		if strings.Contains(request, "pg-admin") {
			t.Errorf("the engine asks for the plug-in's credentials: %s", request)
		}
	}

	t.Log("the next password is valid beside the one of before, which ends in time")
	d.patch(d.get("shop"), `{"spec":{"rotation":{"number":1,"keepPrevious":"20s"}}}`)
	d.condition("shop", v1alpha1.RotatingCondition, v1alpha1.ReasonPreviousValid)
	d.eventually("the binding has the next password", func() error {
		if d.uri("shop") == first {
			return errors.New("it has the one of before")
		}
		return nil
	})
	second := d.uri("shop")
	for _, uri := range []string{first, second} {
		if out, err := d.server.Query(uri, "SELECT id FROM orders"); err != nil || out != "7" {
			t.Errorf("it says %q, %v", out, err)
		}
	}
	d.eventually("the one of before ends", func() error {
		if _, err := d.server.Query(first, "SELECT 1"); err == nil {
			return errors.New("it is valid")
		}
		return nil
	})
	if out, err := d.server.Query(second, "INSERT INTO orders VALUES (8); SELECT count(*) FROM orders"); err != nil || out != "2" {
		t.Errorf("the next one says %q, %v", out, err)
	}

	t.Log("a claim that goes leaves its data, unless somebody confirms that they go")
	d.must(d.client.Delete(d.ctx, d.get("shop")))
	d.gone(&v1alpha1.CapabilityClaim{}, "shop")
	if _, err := d.server.Query(second, "SELECT 1"); err == nil {
		t.Error("the password of a claim that has gone is valid")
	}
	if out, err := d.server.Query(d.admin(databaseOf(shop)), "SELECT count(*) FROM orders"); err != nil || out != "2" {
		t.Errorf("of its data there is %q, %v", out, err)
	}
	d.annotate(d.get("other"), v1alpha1.ConfirmDeletionAnnotation, "true")
	d.must(d.client.Delete(d.ctx, d.get("other")))
	d.gone(&v1alpha1.CapabilityClaim{}, "other")
	if count := d.rows(countDatabases); count != "1" {
		t.Errorf("there are %s databases", count)
	}
	if roles := d.rows("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'claim%' AND rolcanlogin"); roles != "0" {
		t.Errorf("%s roles can log in", roles)
	}
}

// A server that is away keeps claims, and what they have, and lets nothing of it be told: until it
// is back, or somebody lets them go.
func TestServerThatIsAway(t *testing.T) {
	d := newDatabases(t)
	d.start(0)
	d.needs("shop", "")
	d.says("shop", v1alpha1.ReasonBound)
	d.needs("later", "")
	d.says("later", v1alpha1.ReasonBound)
	d.server.Pause()
	d.needs("late", "")
	d.says("late", v1alpha1.ReasonPluginFailed, "cannot connect with 127.0.0.1")
	d.patch(d.get("shop"), `{"spec":{"rotation":{"number":1}}}`)
	d.says("shop", v1alpha1.ReasonPluginFailed)
	if d.uri("shop") == "" {
		t.Error("its binding has gone")
	}
	for _, name := range []string{"shop", "late"} {
		for key, secret := range d.secret(name + "-passwords").Data {
			if key != "rotation.number" && strings.Contains(fmt.Sprint(d.get(name).Status), string(secret)) {
				t.Errorf("the status of %s has the password %s", name, key)
			}
		}
		if strings.Contains(fmt.Sprint(d.get(name).Status), adminPassword) {
			t.Errorf("the status of %s has the plug-in's credentials", name)
		}
	}
	d.must(d.client.Delete(d.ctx, d.get("later")))
	d.says("later", v1alpha1.ReasonPluginFailed, "cannot connect with 127.0.0.1")
	d.must(d.client.Delete(d.ctx, d.get("late")))
	d.annotate(d.get("late"), v1alpha1.AbandonAnnotation, "true")
	d.gone(&v1alpha1.CapabilityClaim{}, "late")
	d.server.Again(t)
	d.gone(&v1alpha1.CapabilityClaim{}, "later")
	d.says("shop", v1alpha1.ReasonBound)
}

// diesOrRests waits until the keeper has died of the write that it was to die of, or has nothing
// left to do and so never comes to it.
func (f *fixture) diesOrRests() {
	f.Helper()
	f.eventually("the keeper dies, or is done", func() error {
		if f.isDead() {
			return nil
		}
		return f.seen.Check(f.ctx)
	})
}

// Whatever is killed at whatever moment, a claim ends with one database, and goes without leaving
// roles. With STRATA_TEST_ALL=1 the controller dies at each of its first writes.
func TestKilledWhileHandingOut(t *testing.T) {
	d := newDatabases(t)
	step := 3
	if os.Getenv("STRATA_TEST_ALL") == "1" {
		step = 1
	}
	died, rounds, claims := 0, 0, 0
	for at := 1; at <= 12; at += step {
		rounds++
		claims++
		name := fmt.Sprintf("shop%d", at)
		d.start(at)
		d.needs(name, "")
		d.diesOrRests()
		d.end()
		if d.dead {
			died++
		}
	}
	d.start(0)
	ended := make(chan struct{})
	go func() { // the plug-in has a hard time, too
		defer close(ended)
		for range 20 {
			d.kubelet.Kill()
			time.Sleep(100 * time.Millisecond)
		}
	}()
	for at := 1; at <= 12; at += step {
		d.says(fmt.Sprintf("shop%d", at), v1alpha1.ReasonBound)
	}
	<-ended
	if count := d.rows(countDatabases); count != fmt.Sprint(claims) {
		t.Errorf("%d claims have %s databases", claims, count)
	}
	d.end()
	for at := 1; at <= 12; at += step {
		d.must(d.client.Delete(d.ctx, d.get(fmt.Sprintf("shop%d", at))))
	}
	for at := 1; at <= 8; at += step {
		rounds++
		d.start(at)
		d.diesOrRests()
		d.end()
		if d.dead {
			died++
		}
	}
	if died < rounds*3/4 {
		t.Errorf("of %d controllers %d were killed", rounds, died)
	}
	d.start(0)
	for at := 1; at <= 12; at += step {
		d.gone(&v1alpha1.CapabilityClaim{}, fmt.Sprintf("shop%d", at))
	}
	if roles := d.rows("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'claim%' AND rolcanlogin"); roles != "0" {
		t.Errorf("%s roles can log in", roles)
	}
}

// A process hands nothing out unless the controller was told where its credentials are.
func TestProcessesHandNothingOut(t *testing.T) {
	f := newFixture(t)
	d := &databases{cluster: &cluster{fixture: f}, server: newServer(t)}
	f.plugins = t.TempDir()
	digest := providerstest.Put(t, f.plugins, d.program())
	f.handedOut("a", fmt.Sprintf("  plugin: {digest: %q, run: Process, kinds: [{apiVersion: v1, kind: Secret}]}\n", digest))
	f.start(0)
	d.needs("shop", "")
	d.says("shop", v1alpha1.ReasonPluginFailed, "hands out what is outside of clusters, which a process of the controller may not")
	f.end()

	f.credentials = t.TempDir()
	f.start(0)
	d.says("shop", v1alpha1.ReasonPluginFailed, "there are no credentials")
	f.end()
	folder := filepath.Join(f.credentials, f.shop+"-a")
	f.must(os.Mkdir(folder, 0o700))
	f.must(os.WriteFile(filepath.Join(folder, "uri"), []byte(d.admin("postgres")), 0o600))
	f.start(0)
	d.says("shop", v1alpha1.ReasonBound)
	if err := f.client.Get(f.ctx, f.key("shop-binding"), &corev1.Secret{}); apierrors.IsNotFound(err) {
		t.Error("there is no binding")
	}
	f.must(f.client.Delete(f.ctx, f.get("shop")))
	f.gone(&v1alpha1.CapabilityClaim{}, "shop")
}

// What a plug-in says of what it hands out has no password in it, whatever it says.
func TestPluginsTellNoPasswords(t *testing.T) {
	f := newFixture(t)
	f.plugins, f.credentials = t.TempDir(), t.TempDir()
	digest := providerstest.Put(t, f.plugins, providerstest.Build(t, ".", "github.com/strata-project/strata/internal/providers/testdata/leaky"))
	f.handedOut("a", fmt.Sprintf("  plugin: {digest: %q, run: Process, kinds: [{apiVersion: v1, kind: Secret}]}\n", digest))
	f.start(0)
	for do, want := range map[string]struct{ reason, words string }{
		"fail":  {v1alpha1.ReasonPluginFailed, "says: the password is ***, and was"},
		"waits": {v1alpha1.ReasonProgressing, "the password is ***, and was"},
		"twice": {v1alpha1.ReasonInvalidPlan, `publishes the key "host" twice`},
		"well":  {v1alpha1.ReasonBound, ""},
	} {
		f.create(fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: CapabilityClaim\nmetadata: {name: %s, namespace: SHOP, labels: {test: SHOP}}\nspec:\n"+
			"  capability: database/postgresql\n  parameters: {do: %s}\n", do, do))
		f.says(do, want.reason, want.words)
		if password := string(f.secret(do + "-passwords").Data["app"]); strings.Contains(fmt.Sprint(f.get(do).Status), password) {
			t.Errorf("%s: the status has the password", do)
		}
	}
	if binding := f.secret("well-binding"); !bytes.Equal(binding.Data["password"], f.secret("well-passwords").Data["app"]) || string(binding.Data["host"]) != "db" {
		t.Errorf("the binding has %d keys", len(binding.Data))
	}
	f.patch(f.get("well"), `{"spec":{"rotation":{"number":1},"parameters":{"do":"fail"}}}`)
	f.says("well", v1alpha1.ReasonPluginFailed, "says: the password is ***, and was ***")
	if moved := f.get("well"); moved.Finalizers == nil {
		t.Error("nothing keeps it")
	}

	t.Log("what only this plug-in takes back keeps a claim from another provider")
	f.create("apiVersion: kraan.io/v1alpha1\nkind: CapabilityProvider\nmetadata: {name: SHOP-b, labels: {test: SHOP}}\nspec:\n  capability: database/postgresql\n" +
		"  allowedNamespaces: {matchLabels: {kubernetes.io/metadata.name: SHOP}}\n  parameters: {schema: {type: object, properties: {do: {type: string}}}}\n  publishes: [{key: host, value: b}]\n")
	f.annotate(f.get("well"), v1alpha1.RebindAnnotation, f.shop+"-b")
	f.condition("well", v1alpha1.BindingOutdatedCondition, v1alpha1.ReasonMoveRefused, "something outside of any cluster that only the plug-in of CapabilityProvider "+f.shop+"-a takes back")
}
