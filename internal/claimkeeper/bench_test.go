// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// benchProvider makes ten objects for each claim, of which one is a Secret.
const benchProvider = `
  passwords: [{name: app}]
  objects:
  - {id: users, template: {apiVersion: v1, kind: Secret, metadata: {name: "${claim.name}-users"}, stringData: {app: "${passwords.app}"}}}
%s  publishes: [{key: password, secretKeyRef: {name: "${claim.name}-users", key: app}}]
`

// claimsOfBench is how many claims are served; STRATA_BENCH_CLAIMS says another number.
const claimsOfBench = 200

// Claims are served beside the same objects applied plainly, as the same account and with as
// many workers: the ratios of time and of writes, and what the keeper holds of each claim.
func BenchmarkClaims(b *testing.B) {
	count := benchCount(b)
	for range b.N {
		f := newFixture(b)
		f.provider("a", templatesOfBench())
		before := heap()
		f.start(0)
		f.settled()
		began := time.Now()
		for i := range count {
			f.claims(fmt.Sprintf("db%d", i), "")
		}
		made := time.Since(began)
		f.allReady(count)
		took := time.Since(began)
		asked := f.settled()
		for what, n := range byKind(asked) {
			b.Logf("%6d %s", n, what)
		}
		held := heap() - before
		if asked := f.settled(); len(asked) > 0 {
			b.Errorf("settled, the keeper asks for %d things, such as %s", len(asked), asked[0])
		}
		plainly, requests := f.applyPlainly(count)
		b.ReportMetric(took.Seconds()/(made+plainly).Seconds(), "time/plain")
		b.ReportMetric(float64(len(asked))/float64(requests), "requests/plain")
		b.ReportMetric(float64(len(asked))/float64(count), "requests/claim")
		b.ReportMetric(float64(held)/float64(count), "B/claim")
		b.Logf("%d claims: made in %s, served after %s; their objects applied plainly in %s", count, made, took, plainly)
		f.end()
	}
}

func benchCount(b *testing.B) int {
	b.Helper()
	text := os.Getenv("STRATA_BENCH_CLAIMS")
	if text == "" {
		return claimsOfBench
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return count
}

func templatesOfBench() string {
	settings := ""
	for i := range 9 {
		settings += fmt.Sprintf("  - {id: s%d, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${claim.name}-%d\"}, data: {of: \"${claim.name}\"}}}\n", i, i)
	}
	return fmt.Sprintf(benchProvider, settings)
}

// Claims are served by a plug-in beside the same by templates: the ratios of time and of what is
// held, and what the plug-in's process has.
func BenchmarkClaimsByPlugin(b *testing.B) {
	count := benchCount(b)
	for range b.N {
		byTemplates := newFixture(b)
		byTemplates.provider("a", templatesOfBench())
		byTemplates.start(0)
		plainTook, plainHeld, plainAsked := byTemplates.serveMany(count, func(i int) { byTemplates.claims(fmt.Sprintf("db%d", i), "") })
		byTemplates.end()

		byPlugin := newFixture(b)
		byPlugin.offered("a", byPlugin.plugged())
		byPlugin.start(0)
		byPlugin.wants("first", "  parameters: {do: many}\n") // the start is apart
		byPlugin.says("first", v1alpha1.ReasonBound)
		took, held, asked := byPlugin.serveMany(count, func(i int) { byPlugin.wants(fmt.Sprintf("db%d", i), "  parameters: {do: many}\n") })
		calls := byPlugin.host.Calls()
		if more := byPlugin.settled(); len(more) > 0 || byPlugin.host.Calls() != calls {
			b.Errorf("settled, the keeper asks for %d things, and the plug-in %d times", len(more), byPlugin.host.Calls()-calls)
		}
		b.ReportMetric(took.Seconds()/plainTook.Seconds(), "time/templates")
		b.ReportMetric(float64(asked)/float64(plainAsked), "requests/templates")
		b.ReportMetric(float64(held)/float64(plainHeld), "held/templates")
		b.ReportMetric(float64(calls)/float64(count), "calls/claim")
		b.ReportMetric(float64(byPlugin.resident()), "B/process")
		b.Logf("%d claims by templates: %s, %d B each; by plug-in: %s, %d B each", count, plainTook, plainHeld/int64(count), took, held/int64(count))
		byPlugin.end()
	}
}

// serveMany has claims made and waits until they are served; it returns how long that took, what
// the process holds of them, and how many requests there were.
func (f *fixture) serveMany(count int, create func(i int)) (took time.Duration, held int64, asked int) {
	f.Helper()
	f.settled()
	before, began := heap(), time.Now()
	have := f.served()
	for i := range count {
		create(i)
	}
	f.allReady(have + count)
	took = time.Since(began)
	asked = len(f.settled())
	return took, heap() - before, asked
}

// served returns how many claims are.
func (f *fixture) served() int {
	f.Helper()
	list := &v1alpha1.CapabilityClaimList{}
	f.must(f.client.List(f.ctx, list, client.InNamespace(f.shop)))
	ready := 0
	for i := range list.Items {
		if list.Items[i].Status.Binding != nil {
			ready++
		}
	}
	return ready
}

// resident returns how much memory the plug-in's process has, in bytes.
func (f *fixture) resident() int64 {
	f.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	f.must(err)
	for _, link := range links {
		if path, err := os.Readlink(link); err != nil || !strings.HasPrefix(path, f.plugins) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(link), "statm"))
		f.must(err)
		var size, pages int64
		if _, err := fmt.Sscan(string(status), &size, &pages); err != nil {
			f.Fatal(err)
		}
		return pages * int64(os.Getpagesize())
	}
	f.Fatal("the plug-in does not run")
	return 0
}

// byKind counts requests by what they do to which kind.
func byKind(asked []string) map[string]int {
	found := map[string]int{}
	for _, request := range asked {
		method, path, _ := strings.Cut(request, " ")
		parts := strings.Split(path, "/")
		what := parts[len(parts)-1]
		if len(parts) > 2 && what != "status" && method != http.MethodPost {
			what = parts[len(parts)-2]
		}
		found[method+" "+what]++
	}
	return found
}

// heap returns how many bytes are in use once garbage is collected.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// allReady waits until so many claims are served.
func (f *fixture) allReady(count int) {
	f.Helper()
	deadline := time.Now().Add(10 * patience)
	for {
		ready := f.served()
		if ready == count {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("%d of %d claims are served", ready, count)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// applyPlainly applies as many objects as so many claims have, in another namespace.
func (f *fixture) applyPlainly(count int) (took time.Duration, requests int) {
	f.Helper()
	namespace := f.shop + "-plain"
	f.must(plane.CreateNamespace(f.ctx, namespace))
	f.grant(namespace, "secrets", "configmaps")
	as := rest.CopyConfig(plane.Config())
	as.Impersonate.UserName = "system:serviceaccount:" + f.system + ":databases"
	server, err := client.New(as, client.Options{Scheme: f.scheme})
	f.must(err)
	todo := make(chan *unstructured.Unstructured)
	var running sync.WaitGroup
	began := time.Now()
	for range workers {
		running.Go(func() {
			for object := range todo {
				if err := server.Apply(f.ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("plain"), client.ForceOwnership); err != nil {
					f.Error(err)
				}
			}
		})
	}
	for i := range count {
		name := fmt.Sprint("db", i)
		for _, secret := range []string{"passwords", "users", "binding"} {
			todo <- plainObject("Secret", namespace, name+"-"+secret, "stringData")
			requests++
		}
		for at := range 9 {
			todo <- plainObject("ConfigMap", namespace, fmt.Sprint(name, "-", at), "data")
			requests++
		}
	}
	close(todo)
	running.Wait()
	return time.Since(began), requests
}

func plainObject(kind, namespace, name, field string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, field: map[string]any{"of": name}}}
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}
