// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/providers"
	"github.com/strata-project/strata/internal/providers/providerstest"
)

// envHost has this program be a host that asks a plug-in once, and is killed then: FOLDER DIGEST.
const envHost = "STRATA_TEST_HOST"

func TestMain(m *testing.M) {
	folder, digest, is := strings.Cut(os.Getenv(envHost), " ")
	if !is {
		os.Exit(m.Run())
	}
	host := providers.NewHost(providers.Options{Folder: folder, Log: logr.Discard()})
	plan, err := host.Plan(context.Background(), process(digest), &pluginv1.PlanRequest{Claim: &pluginv1.Claim{Name: "db"}, Parameters: []byte(`{"do": "pid"}`)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(plan.GetObjects()[0].GetTemplate()))
	select {}
}

// A program ends with its host, also where that is killed.
func TestProgramsEndWithAKilledHost(t *testing.T) {
	f := newFixture(t)
	self, err := os.Executable()
	f.must(err)
	host := exec.Command(self)
	host.Env = append(os.Environ(), envHost+"="+f.folder+" "+f.digest)
	host.Stderr = os.Stderr
	out, err := host.StdoutPipe()
	f.must(err)
	f.must(host.Start())
	t.Cleanup(func() { _ = host.Process.Kill() })
	said := struct {
		Data struct {
			PID string `json:"pid"`
		} `json:"data"`
	}{}
	f.must(json.NewDecoder(out).Decode(&said))
	running := func() bool {
		_, err := os.Stat("/proc/" + said.Data.PID + "/exe")
		return err == nil
	}
	if !running() {
		t.Fatalf("the program %q does not run", said.Data.PID)
	}
	f.must(host.Process.Kill())
	_ = host.Wait()
	for deadline := time.Now().Add(time.Minute); running(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the program runs on")
		}
	}
}

// process refers to the program of a file.
func process(digest string) providers.Reference {
	return providers.Reference{Provider: "databases", CapabilityPlugin: v1alpha1.CapabilityPlugin{Digest: digest, Run: v1alpha1.PluginProcess}}
}

// fixture is a host with one program.
type fixture struct {
	*testing.T
	*providers.Host
	folder, digest string
	mu             sync.Mutex
	now            time.Time
	logged         []string
	// patience bounds a question.
	patience time.Duration
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	f := &fixture{T: t, folder: t.TempDir(), now: time.Now(), patience: time.Minute}
	f.digest = providerstest.Naughty(t, f.folder)
	log := funcr.New(func(_, args string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logged = append(f.logged, args)
	}, funcr.Options{})
	f.host(log)
	return f
}

func (f *fixture) host(log logr.Logger) {
	f.Host = providers.NewHost(providers.Options{Folder: f.folder, Log: log, CallTimeout: f.patience, Now: func() time.Time {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.now
	}})
	f.Cleanup(func() { f.End() })
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// later puts the clock forward.
func (f *fixture) later(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(by)
}

// plan asks for a plan that does something.
func (f *fixture) plan(do string) (*pluginv1.PlanResponse, error) {
	parameters, err := json.Marshal(map[string]any{"do": do})
	f.must(err)
	return f.Plan(f.Context(), process(f.digest), &pluginv1.PlanRequest{Claim: &pluginv1.Claim{Name: "db", Version: "1.0"}, Parameters: parameters})
}

// fails asks for a plan, and checks what is said of the answer.
func (f *fixture) fails(do, want string) {
	f.Helper()
	_, err := f.plan(do)
	var failed *providers.FailedError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), want) {
		f.Errorf("of %s it says %v, and not %q", do, err, want)
	}
}

// A program says what it serves and of what instances are made. Passwords and what looks like a
// template come over as what they are.
func TestPlans(t *testing.T) {
	f := newFixture(t)
	described, err := f.Describe(t.Context(), process(f.digest))
	f.must(err)
	if got := described.GetCapabilities(); len(got) != 1 || got[0].GetCapability() != "database/naughty" || got[0].GetPasswords()[0].GetName() != "app" {
		t.Errorf("it serves %v", got)
	}
	plan, err := f.plan("")
	f.must(err)
	var texts []string
	for _, object := range plan.GetObjects() {
		texts = append(texts, object.GetId()+" "+string(object.GetTemplate()))
	}
	want := []string{
		`server {"apiVersion":"v1","data":{"script":"echo $${HOME}","version":"1.0"},"kind":"ConfigMap","metadata":{"name":"db-server"}}`,
		`users {"apiVersion":"v1","kind":"Secret","metadata":{"name":"db-users"},"stringData":{"app":"${passwords.app}"}}`,
	}
	if !slices.Equal(texts, want) {
		t.Errorf("it makes %q", texts)
	}
	if got := plan.GetPublishes()[0].GetText(); got != "db://app:${passwords.app}@db-server" {
		t.Errorf("it publishes %q", got)
	}
	answer, err := f.Validate(t.Context(), process(f.digest), &pluginv1.ValidateRequest{Parameters: []byte(`{"do": "wrong"}`)})
	f.must(err)
	if got := answer.GetProblems(); len(got) != 1 || got[0].GetField() != "do" {
		t.Errorf("it refuses %v", got)
	}
}

// What a program does wrong is told, and the next one that asks has its answer. A program that
// has gone is started again after a pause, which grows.
func TestNaughtyPrograms(t *testing.T) {
	f := newFixture(t)
	f.fails("fail", "says: it cannot be planned")
	f.fails("panic", "says: panic: it fell over")
	f.fails("flood", "answers with more than 4 MiB")
	f.fails("exit", "has ended")
	f.fails("", "has ended")
	f.later(2 * time.Second)
	if _, err := f.plan(""); err != nil {
		t.Errorf("after the pause it says %v", err)
	}
	f.fails("exit", "has ended")
	f.later(time.Second)
	f.fails("memory", "has ended")
	f.later(time.Second)
	f.fails("", "has ended")
	f.later(time.Second)
	if _, err := f.plan(""); err != nil {
		t.Errorf("after the next pause it says %v", err)
	}
}

// A program that hangs answers others meanwhile, and is ended when it does so again and again.
func TestProgramThatHangs(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			_, err := f.Plan(ctx, process(f.digest), &pluginv1.PlanRequest{Claim: &pluginv1.Claim{Name: "db"}, Parameters: []byte(`{"do": "hang"}`)})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("one that hangs ends with %v", err)
			}
		})
	}
	if _, err := f.plan(""); err != nil {
		t.Errorf("beside those that hang it says %v", err)
	}
	cancel()
	group.Wait()

	f.patience = time.Second
	f.host(logr.Discard())
	for range 3 {
		f.fails("hang", "does not answer within 1s")
	}
	f.fails("", "does not answer within 1s")
}

// A program has nothing of the controller's environment, and its log is taken over with its name,
// in lines that can be printed, and not more than so many.
func TestWhatAProgramGets(t *testing.T) {
	t.Setenv("PRECIOUS", "precious")
	f := &fixture{T: t, folder: t.TempDir(), now: time.Now(), patience: time.Minute}
	f.digest = providerstest.Naughty(t, f.folder)
	f.host(funcr.New(func(_, args string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logged = append(f.logged, args)
	}, funcr.Options{}))
	plan, err := f.plan("environment")
	f.must(err)
	if text := string(plan.GetObjects()[0].GetTemplate()); strings.Contains(text, "precious") || strings.Contains(text, "KUBECONFIG") || !strings.Contains(text, "TMPDIR=") {
		t.Errorf("its environment is %s", text)
	}
	if _, err := f.plan("log"); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.logged) == 0 || len(f.logged) > 300 {
		t.Errorf("there are %d lines of 5000", len(f.logged))
	}
	for _, line := range f.logged {
		if strings.Contains(line, "\x1b") || len(line) > 1500 || !strings.Contains(line, f.digest[:19]) {
			t.Fatalf("it logs %q", line)
		}
	}
}

// Nothing is run but a file whose content has the digest.
func TestForeignPrograms(t *testing.T) {
	f := newFixture(t)
	other := "sha256:" + strings.Repeat("0", 64)
	f.must(os.WriteFile(filepath.Join(f.folder, providers.FileOf(other)), []byte("#!/bin/sh\ntouch "+filepath.Join(f.folder, "ran")+"\n"), 0o500))
	missing := "sha256:" + strings.Repeat("1", 64)
	for digest, want := range map[string]string{
		other: "cannot be started: checksums did not match", missing: "there is no file sha256-1111", "sha256:../x": "is no digest",
		"../" + f.digest: "is no digest",
	} {
		if _, err := f.Describe(t.Context(), process(digest)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %s it says %v", digest, err)
		}
	}
	if _, err := os.Stat(filepath.Join(f.folder, "ran")); err == nil {
		t.Error("a program with another digest has run")
	}
}

// A program that nobody asks ends, and starts again with the next question.
func TestProgramsRest(t *testing.T) {
	f := newFixture(t)
	pid := func() string {
		t.Helper()
		plan, err := f.plan("pid")
		f.must(err)
		return string(plan.GetObjects()[0].GetTemplate())
	}
	was := pid()
	f.later(9 * time.Minute)
	f.Rest()
	if pid() != was {
		t.Error("a program that was asked a while ago has ended")
	}
	f.later(11 * time.Minute)
	f.Rest()
	if pid() == was {
		t.Error("a program that nobody has asked for a while runs on")
	}
}

// With the host its programs end, and their folders go.
func TestProgramsEnd(t *testing.T) {
	f := newFixture(t)
	plan, err := f.plan("environment")
	f.must(err)
	_, text, _ := strings.Cut(string(plan.GetObjects()[0].GetTemplate()), "TMPDIR=")
	folder, _, _ := strings.Cut(text, `\n`)
	if _, err := os.Stat(folder); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.must(f.UntilDone(ctx))
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("its folder %s is there: %v", folder, err)
	}
	if _, err := f.plan(""); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
}
