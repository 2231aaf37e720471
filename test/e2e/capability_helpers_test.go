// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/postgres"
)

// databases is the account of the providers of the tests.
const databases = "databases"

// postgresProvider makes a server of a Job, whose password Strata makes. Its capability is the
// test's own, so that tests beside it choose among their own providers.
const postgresProvider = `
metadata: {name: PREFIX-postgres}
spec:
  capability: Database/PostgreSQL-PREFIX
  versions: ["15.8", "15.18", "14.3"]
  namespace: PREFIX
  serviceAccountName: databases
  parameters:
    schema:
      type: object
      required: [port]
      properties:
        port: {type: integer, minimum: 1}
        database: {type: string, default: app}
  passwords: [{name: app}]
  objects:
  - id: credentials
    template:
      apiVersion: v1
      kind: Secret
      metadata: {name: "${claim.name}-server"}
      stringData: {password: "${passwords.app}"}
  - id: server
    dependsOn: [credentials]
    ready: object.?status.?ready.orValue(0) == 1
    template:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: "${claim.name}-server"}
      spec:
        managedBy: example.com/test
        template:
          spec:
            restartPolicy: OnFailure
            containers:
            - name: postgres
              image: docker.io/library/postgres:${claim.version}
              args: ["-p", "${string(parameters.port)}"]
              env:
              - name: POSTGRES_PASSWORD
                valueFrom: {secretKeyRef: {name: "${claim.name}-server", key: password}}
  publishes:
  - {key: host, value: 127.0.0.1}
  - {key: port, value: "${string(parameters.port)}"}
  - {key: username, value: app}
  - {key: password, secretKeyRef: {name: "${claim.name}-server", key: password}}
  - {key: uri, value: "postgresql://app:${passwords.app}@127.0.0.1:${string(parameters.port)}/${parameters.database}"}
`

// rotatingObjects are those by which two roles of the server take turns: one has the password
// that is, and the other one that of before, as long as that is to be valid.
const rotatingObjects = `
  - id: users
    template:
      apiVersion: v1
      kind: Secret
      metadata: {name: "${claim.name}-users"}
      stringData:
        users.sql: |
          DO $$ BEGIN CREATE ROLE app0; CREATE ROLE app1; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
          ALTER ROLE app${string(claim.rotation % 2)} LOGIN PASSWORD '${passwords.app}';
          ALTER ROLE app${string((claim.rotation + 1) % 2)} ${previous.app == '' ? 'NOLOGIN' : 'LOGIN'};
  - id: alter
    dependsOn: [server, users]
    onRename: Delete
    ready: object.?status.?ready.orValue(0) == 1
    template:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: "${claim.name}-users-${string(claim.rotation)}${claim.rotating ? 'both' : 'one'}"}
      spec:
        managedBy: example.com/test
        template:
          spec:
            restartPolicy: OnFailure
            containers:
            - {name: psql, image: docker.io/library/postgres:15, args: ["-f", /users/users.sql], volumeMounts: [{name: users, mountPath: /users}]}
            volumes: [{name: users, secret: {secretName: "${claim.name}-users"}}]
  publishes:
  - {key: uri, value: "postgresql://app${string(claim.rotation % 2)}:${passwords.app}@127.0.0.1:${string(parameters.port)}/${parameters.database}"}
`

// rotatingProvider is as postgresProvider, with users of their own, and with a password of the
// superuser that stays.
func rotatingProvider() string {
	text, _, _ := strings.Cut(postgresProvider, "  publishes:")
	text = strings.Replace(text, "passwords: [{name: app}]", "passwords: [{name: app}, {name: root}]", 1)
	text = strings.Replace(text, "  - id: credentials\n", "  - id: credentials\n    mode: CreateOnce\n", 1)
	return strings.Replace(text, "password: \"${passwords.app}\"", "password: \"${passwords.root}\"", 1) + rotatingObjects[1:]
}

// provider creates a CapabilityProvider, and deletes it with the test.
func (f *fixture) provider(text string) *v1alpha1.CapabilityProvider {
	f.Helper()
	provider := &v1alpha1.CapabilityProvider{}
	f.written(provider, text)
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, provider))) })
	return provider
}

// mayServe is what the account of providers may do.
var mayServe = []rbacv1.PolicyRule{
	mayOn("", "secrets", "get", "create", "patch", "delete"), mayOn("batch", "jobs", "get", "create", "patch", "delete"),
}

// newCapabilityFixture is a fixture with the account of providers, which may do with Secrets
// and Jobs of the fixture's namespace what it likes.
func newCapabilityFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.account(databases)
	f.bind(databases, f.prefix, f.accountKey(databases), mayServe...)
	f.Cleanup(func() {
		claims := &v1alpha1.CapabilityClaimList{}
		f.must(stack.client.List(f.ctx, claims, client.InNamespace(f.prefix)))
		for i := range claims.Items {
			if f.Failed() {
				f.Logf("claim %s: %+v", claims.Items[i].Name, claims.Items[i].Status)
			}
			f.letGo(&claims.Items[i])
		}
	})
	return f
}

// claimSays waits until a claim says something of whether it is ready, in these words.
func (f *fixture) claimSays(name string, status metav1.ConditionStatus, reason string, words ...string) *v1alpha1.CapabilityClaim {
	f.Helper()
	var claim *v1alpha1.CapabilityClaim
	f.eventually(fmt.Sprintf("claim %s is %s: %s %v", name, status, reason, words), func() error {
		claim = &v1alpha1.CapabilityClaim{}
		if err := stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, claim); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Status != status || ready.Reason != reason || ready.ObservedGeneration != claim.Generation || !contains(ready.Message, words...) {
			return fmt.Errorf("it says %+v", ready)
		}
		return nil
	})
	return claim
}

// runServer is the kubelet of a claim's Job: it runs PostgreSQL as the Job says, and says that
// it is ready.
func (f *fixture) runServer(name string) *postgres.Server {
	f.Helper()
	return f.runServerOn(stack.client, name)
}

// runServerOn is as runServer, for a Job of another cluster.
func (f *fixture) runServerOn(on client.Client, name string) *postgres.Server {
	f.Helper()
	job := &batchv1.Job{}
	f.eventually("Job "+name+" is there", func() error {
		return on.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, job)
	})
	container := job.Spec.Template.Spec.Containers[0]
	if !strings.HasPrefix(container.Image, "docker.io/library/postgres:15.") {
		f.Fatalf("the server is to be %s", container.Image)
	}
	ref := container.Env[0].ValueFrom.SecretKeyRef
	secret := &corev1.Secret{}
	f.must(on.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: ref.Name}, secret))
	var port int
	if _, err := fmt.Sscan(container.Args[1], &port); err != nil {
		f.Fatal(err)
	}
	server := postgres.Start(f.T, port, "app", string(secret.Data[ref.Key]))
	f.saysReadyOn(on, job)
	return server
}

// saysReady says that what a Job is to run does.
func (f *fixture) saysReady(job *batchv1.Job) {
	f.Helper()
	f.saysReadyOn(stack.client, job)
}

func (f *fixture) saysReadyOn(on client.Client, job *batchv1.Job) {
	f.Helper()
	one, now := int32(1), metav1.Now()
	patched := job.DeepCopy()
	patched.Status.Active, patched.Status.Ready, patched.Status.StartTime = 1, &one, &now
	f.must(on.Status().Patch(f.ctx, patched, client.MergeFrom(job)))
}

// alterUsers is the kubelet of the Job that tells a server of its users: it runs what that is
// to run, as the superuser, and says that it has.
func (f *fixture) alterUsers(server *postgres.Server, claim, name string, port int) {
	f.Helper()
	job, users, root := &batchv1.Job{}, &corev1.Secret{}, &corev1.Secret{}
	f.eventually("Job "+name+" is there", func() error {
		return stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, job)
	})
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: claim + "-users"}, users))
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: claim + "-server"}, root))
	uri := fmt.Sprintf("postgresql://app:%s@127.0.0.1:%d/app", root.Data["password"], port)
	if _, err := server.Query(uri, string(users.Data["users.sql"])); err != nil {
		f.Fatalf("Job %s: %v", name, err)
	}
	f.saysReady(job)
}

// freePort returns a port of the loopback address that nobody has.
func (f *fixture) freePort() int {
	f.Helper()
	port, release, err := controlplane.FreePort()
	f.must(err)
	f.Cleanup(release)
	return port
}
