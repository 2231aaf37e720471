// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// plugin is the real plug-in, run as a user.
type plugin struct {
	*fixture
	path, kubeconfig string
}

// builtPlugin builds the plug-in once, and returns its path.
var builtPlugin = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(stack.plane.Dir(), "plugin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return strata.BuildPlugin(context.Background(), dir)
})

// of returns the plug-in as run by a user with some cluster roles.
func (p plugin) of(user string, roles ...string) plugin {
	p.Helper()
	name := p.prefix + "-" + user
	identity, err := stack.plane.User(name)
	p.must(err)
	for _, role := range roles {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		}
		p.must(stack.client.Create(p.ctx, binding))
		p.Cleanup(func() { _ = stack.client.Delete(p.ctx, binding) })
	}
	p.kubeconfig = identity.Kubeconfig
	return p
}

func (p plugin) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.ctx, p.path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "PATH="+filepath.Dir(p.path)+":"+os.Getenv("PATH"))
	return cmd
}

// run returns the exit code and everything that the plug-in prints.
func (p plugin) run(args ...string) (code int, output string) {
	p.Helper()
	cmd := p.command(args...)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// expect runs the plug-in until exit code and output are as wanted.
func (p plugin) expect(code int, words []string, args ...string) {
	p.Helper()
	command := "kubectl strata " + strings.Join(args, " ")
	p.eventually(command, func() error {
		got, output := p.run(args...)
		if got != code {
			return fmt.Errorf("exit code %d: %s", got, output)
		}
		flat := strings.Join(strings.Fields(output), " ")
		for _, word := range words {
			if !strings.Contains(flat, word) {
				return fmt.Errorf("the output lacks %q: %s", word, output)
			}
		}
		return nil
	})
}

// The plug-in answers whoever may view, as kubectl strata too.
func TestThePluginShowsLayersToWhoMayView(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"), "apps/release.yaml": f.configMapRelease("apps", "one"),
	})
	labelled := func(l *v1alpha1.AddonsLayer) { l.Labels = map[string]string{"fixture": f.prefix} }
	f.layer("base", labelled)
	f.layer("apps", labelled, f.dependsOn("base@2.0.0"))
	f.deployed("base", revision)
	f.state("apps", v1alpha1.StateApplyPending)
	base, apps := f.name("base"), f.name("apps")

	viewer := plugin{fixture: f, path: path}.of("viewer", "view")
	viewer.expect(0, []string{"NAME VERSION STATE READY CLUSTER REVISION SINCE", base + " 1.0.0 Deployed 1/1 - main@sha1:"}, "get", base)
	viewer.expect(2, []string{apps + " 1.0.0 ApplyPending", "waits for " + base + "@2.0.0", base + " 1.0.0 Deployed"}, "get", "-l", "fixture="+f.prefix)
	viewer.expect(0, []string{"addonslayer.kraan.io/" + base}, "get", base, "-o", "name")
	viewer.expect(1, []string{"there is no layer " + base + "s; did you mean " + base}, "get", base+"s")
	viewer.expect(0, []string{"strata-project/strata:", "(Deployment " + strata.Namespace + "/strata)"}, "version")
	plugin{fixture: f, path: path}.of("nobody").expect(1, []string{"strata-view"}, "get")

	kubectl, err := controlplane.Binary("kubectl")
	f.must(err)
	byKubectl := viewer.command("strata", "get", apps)
	byKubectl.Path = kubectl
	output, err := byKubectl.CombinedOutput()
	if byKubectl.ProcessState.ExitCode() != 2 || !strings.Contains(string(output), "ApplyPending") {
		t.Errorf("kubectl strata get: %v\n%s", err, output)
	}
}

func TestThePluginWatches(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base")
	f.deployed("base", revision)

	watching := plugin{fixture: f, path: path}.of("watcher", "strata-view").command("get", "--watch", f.name("base"))
	out, err := watching.StdoutPipe()
	f.must(err)
	f.must(watching.Start())
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	f.line(lines, "Deployed")
	f.edit("base", `{"metadata":{"annotations":{"kraan.io/hold":"looking around"}}}`)
	f.line(lines, "Hold")
	f.must(watching.Process.Signal(os.Interrupt))
	for range lines {
		continue // until it has ended
	}
	// A layer that was held when the watch ended is blocked.
	if err := watching.Wait(); watching.ProcessState.ExitCode() != 2 {
		t.Errorf("an interrupted watch ended with %v", err)
	}
}

// line waits for a line with a word.
func (f *fixture) line(lines <-chan string, word string) {
	f.Helper()
	f.eventually("a line says "+word, func() error {
		for {
			select {
			case line, open := <-lines:
				switch {
				case !open:
					f.Fatalf("the output has ended without %s", word)
				case strings.Contains(line, word):
					return nil
				}
			default:
				return errors.New("no line does")
			}
		}
	})
}
