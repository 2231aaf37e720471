// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release_test makes a release, puts it into a registry of its own, and does with
// it what people do: Flux installs it, its image runs, signatures are checked, and an
// installation of the first release is upgraded to it and taken back.
package release_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/reads"
	"github.com/strata-project/strata/test/strata"
)

// patience bounds every wait for something that must happen.
const patience = 2 * time.Minute

// number is the version of the release that is made here: newer than every one that there
// will be for long.
const number = "99.0.0"

// stack is what all tests of the package share.
var stack struct {
	root, dir string
	plane     *controlplane.ControlPlane
	client    client.WithWatch
	git       *controlplane.GitServer
	charts    *controlplane.ChartServer
	registry  *controlplane.OCIServer
	// tools is the folder of cosign and krew, and key the start of the names of keys.
	tools, key string
	made       made
}

// made is what hack/release says that it has made.
type made struct {
	Version, Commit, Image, HostsImage, Chart string
	Files                                     []string
	Pushed                                    bool
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "strata-release-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stack.dir = dir
	code := controlplane.Main(m, controlplane.Options{}, setUp)
	if code == 0 {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func setUp(plane *controlplane.ControlPlane) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	stack.plane = plane
	ctrl.SetLogger(logr.Discard())
	scheme, err := strata.Scheme(apiextensionsv1.AddToScheme)
	if err != nil {
		return err
	}
	if stack.client, err = client.NewWithWatch(plane.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	if stack.git, err = controlplane.NewGitServer(); err != nil {
		return err
	}
	if stack.charts, err = controlplane.NewChartServer(); err != nil {
		return err
	}
	if err := stack.charts.AddBuiltin("configmap", "1.0.0", "2.0.0"); err != nil {
		return err
	}
	if stack.registry, err = controlplane.NewOCIServer(); err != nil {
		return err
	}
	if stack.root, err = reads.Root(); err != nil {
		return err
	}
	if _, err := command(ctx, "hack/tools.sh", "cosign", "krew"); err != nil {
		return err
	}
	tools, err := command(ctx, "hack/tools.sh", "--dir")
	if err != nil {
		return err
	}
	stack.tools, stack.key = strings.TrimSpace(tools), filepath.Join(stack.dir, "cosign")
	if err := newKey(ctx, stack.key); err != nil {
		return err
	}
	return makeRelease(ctx)
}

// makeRelease makes a release of this tree as make release does, for this machine alone.
func makeRelease(ctx context.Context) error {
	out := filepath.Join(stack.dir, "dist")
	reads.AddPrograms(stack.root, ".", "./cmd/...", "./hack/release")
	reads.AddFromRoot("chart", "config", "contrib", "examples", "hack/release", "hack/tools/cosign", "hack/tools/krew", "CHANGELOG.md", "LICENSE")
	_, err := command(ctx, "go", "run", "-trimpath", "./hack/release", "--version", "v"+number, "--out", out, "--platforms", "linux/"+runtime.GOARCH,
		"--allow-dirty", "--push", "--registry", repository(""), "--key", stack.key+".key", "--cosign", cosign())
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(out, "release.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &stack.made)
}

func cosign() string { return filepath.Join(stack.tools, "cosign") }

// newKey makes a pair of keys for cosign without a password.
func newKey(ctx context.Context, prefix string) error {
	_, err := command(ctx, cosign(), "generate-key-pair", "--output-key-prefix", prefix)
	return err
}

// repository is one of the registry, without a scheme.
func repository(path string) string {
	return strings.TrimSuffix(strings.TrimPrefix(stack.registry.URL("strata-project/"+path), "oci://"), "/")
}

// command runs a program in the source tree and returns what it prints. cosign keeps what
// it has of its own in the folder of the tests.
func command(ctx context.Context, name string, args ...string) (string, error) {
	if strings.HasPrefix(name, "hack/") {
		name = filepath.Join(stack.root, name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = stack.root
	cmd.Env = append(os.Environ(), "COSIGN_PASSWORD=", "TUF_ROOT="+filepath.Join(stack.dir, "tuf"))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, errOut.String())
	}
	return out.String(), nil
}

// must ends a test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a check holds, and says at last why it does not.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	if err := controlplane.WaitFor(t.Context(), patience, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

var errNotYet = errors.New("not yet")
