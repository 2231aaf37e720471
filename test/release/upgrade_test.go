// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// stillLayers stay as they are during the upgrade, and movingLayers get a commit as soon
// as the one before it is deployed.
const stillLayers, movingLayers = 10, 2

// An installation of the first release, with objects of all kinds and commits that come
// all the time, is upgraded to this tree and taken back, CRDs and all. What nobody has
// changed is not touched, and each commit is deployed once.
func TestUpgradeFromTheFirstReleaseAndBack(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	ctx := t.Context()
	version, first := firstRelease(t)
	identity, err := strata.InstallFrom(ctx, stack.plane, first, map[string]any{"remoteClusters": map[string]any{"enabled": true}})
	must(t, err)
	t.Cleanup(func() { must(t, strata.Uninstall(stack.plane)) })
	before := controllerOf(t, first, version, identity)
	after := controllerOf(t, stack.root, "v"+number, identity)
	must(t, before.Start(ctx))

	p := newPlatform(t, "upgraded")
	files := map[string]string{}
	for i := range stillLayers {
		name := fmt.Sprintf("still%d", i)
		files[name+"/release.yaml"] = p.release(name, "1.0.0", name)
	}
	for i := range movingLayers {
		name := fmt.Sprintf("moving%d", i)
		files[name+"/release.yaml"] = p.release(name, "1.0.0", "0")
	}
	p.commit(files)
	for i := range stillLayers {
		p.layer(fmt.Sprintf("still%d", i))
	}
	for i := range movingLayers {
		p.layer(fmt.Sprintf("moving%d", i), fmt.Sprintf("still%d", i))
	}
	kept := applyFixture(t, version)
	for i := range stillLayers {
		p.deployed(fmt.Sprintf("still%d", i), "1.0.0")
	}
	for i := range movingLayers {
		p.deployed(fmt.Sprintf("moving%d", i), "1.0.0")
	}
	was := settled(t, p, kept)

	commits, end := p.load()
	handOver(t, commits, before, after, stack.root)
	still(t, p, kept, was)
	handOver(t, commits, after, before, first)
	still(t, p, kept, was)
	count := end()
	for i := range movingLayers {
		release, err := p.releaseNamed(ctx, fmt.Sprintf("moving%d", i))
		must(t, err)
		if got := release.Status.History.Latest().Version; got != count+1 {
			t.Errorf("after %d commits Helm has deployed %s %d times", count, release.Name, got)
		}
	}
	t.Logf("%d commits were deployed meanwhile", count)
	for _, each := range kept {
		must(t, client.IgnoreNotFound(stack.client.Delete(ctx, each)))
	}
	p.gone()
	must(t, before.Stop(time.Minute))
}

// firstRelease returns the version of the first release, and a folder with its tree.
func firstRelease(t *testing.T) (version, root string) {
	t.Helper()
	file, err := os.Open(filepath.Join(stack.root, "hack", "release", "releases.txt"))
	must(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		root = filepath.Join(t.TempDir(), "first")
		if _, err := command(t.Context(), "git", "worktree", "add", "--detach", root, fields[1]); err != nil {
			t.Fatalf("the commit of %s cannot be had (a shallow clone needs git fetch --unshallow): %v", fields[0], err)
		}
		t.Cleanup(func() {
			if _, err := command(context.Background(), "git", "worktree", "remove", "--force", root); err != nil {
				t.Error(err)
			}
		})
		return fields[0], root
	}
	t.Fatal("hack/release/releases.txt names no release")
	return "", ""
}

// controllerOf builds the controller of a tree, which runs as one of the replicas of the
// chart's Deployment does.
func controllerOf(t *testing.T, root, version string, identity controlplane.Identity) *strata.Controller {
	t.Helper()
	dir := filepath.Join(stack.dir, version)
	must(t, os.MkdirAll(dir, 0o755))
	binary, err := strata.BuildFrom(t.Context(), root, dir, "-ldflags", "-s -w -buildid= -X main.version="+version)
	must(t, err)
	controller, err := strata.Prepare(strata.Options{
		Binary: binary, Kubeconfig: identity.Kubeconfig, Dir: dir,
		Args: []string{"--enable-leader-election", "--leader-election-namespace", strata.Namespace, "--log-level", "debug"},
	})
	must(t, err)
	t.Cleanup(func() {
		must(t, controller.Kill())
		controller.Close()
	})
	return controller
}

// applyFixture applies objects of all kinds as people have written them for a release.
func applyFixture(t *testing.T, version string) []*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", version, "objects.yaml"))
	must(t, err)
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	var kept []*unstructured.Unstructured
	kinds := map[string]bool{}
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); err != nil {
			break
		}
		must(t, stack.client.Create(t.Context(), object))
		if object.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
			kinds[object.GetKind()] = true
			kept = append(kept, object)
		}
	}
	if len(kinds) != 6 {
		t.Fatalf("the fixture has the kinds %v, want all of %s", kinds, v1alpha1.GroupVersion.Group)
	}
	slices.Reverse(kept)
	return kept
}

// trace is what would differ if something had been reconciled again.
type trace map[string]string

// settled waits until nothing moves any more, and returns the trace of everything.
func settled(t *testing.T, p *platform, kept []*unstructured.Unstructured) trace {
	t.Helper()
	var last trace
	eventually(t, "nothing moves", func(ctx context.Context) error {
		now, err := traced(ctx, p, kept)
		if err != nil {
			return err
		}
		before := last
		last = now
		if difference := before.differs(now); difference != "" {
			return fmt.Errorf("%w: %s", errNotYet, difference)
		}
		return nil
	})
	return last
}

// traced reads the trace of what nobody changes: of releases the generation, what Helm
// has done and when Strata last wrote; of Strata's own objects the specification and the
// status, but for the times at which it was looked at.
func traced(ctx context.Context, p *platform, kept []*unstructured.Unstructured) (trace, error) {
	found := trace{}
	releases := &helmv2.HelmReleaseList{}
	if err := stack.client.List(ctx, releases); err != nil {
		return nil, err
	}
	for _, release := range releases.Items {
		if strings.HasPrefix(release.Name, "moving") || release.Namespace == strata.Namespace {
			continue
		}
		var written string
		for _, entry := range release.ManagedFields {
			if entry.Subresource == "" && strings.HasPrefix(entry.Manager, "strata") {
				written += entry.Time.String()
			}
		}
		latest := release.Status.History.Latest()
		if latest == nil {
			return nil, fmt.Errorf("%w: %s is not installed", errNotYet, release.Name)
		}
		found["HelmRelease "+release.Name] = fmt.Sprint(release.UID, release.Generation, latest.Version, latest.LastDeployed, written)
	}
	for i := range stillLayers {
		layer, err := p.got(ctx, fmt.Sprintf("still%d", i))
		if err != nil {
			return nil, err
		}
		s := layer.Status
		found["layer "+layer.Name] = fmt.Sprint(layer.UID, layer.Generation, s.State, s.Version, s.Digest, len(s.History))
	}
	for _, each := range kept {
		object := each.DeepCopy()
		if err := stack.client.Get(ctx, client.ObjectKeyFromObject(each), object); err != nil {
			return nil, err
		}
		state, _, _ := unstructured.NestedString(object.Object, "status", "state")
		found[object.GetKind()+" "+object.GetName()] = fmt.Sprint(object.GetUID(), object.GetGeneration(), object.Object["spec"], state)
	}
	return found, nil
}

// differs names what is not the same in both.
func (a trace) differs(b trace) string {
	var found []string
	for name, was := range a {
		if is, there := b[name]; !there || is != was {
			found = append(found, fmt.Sprintf("%s: %s, then %s", name, was, is))
		}
	}
	if len(a) != len(b) {
		found = append(found, fmt.Sprintf("%d things, then %d", len(a), len(b)))
	}
	slices.Sort(found)
	return strings.Join(found, "\n")
}

func still(t *testing.T, p *platform, kept []*unstructured.Unstructured, was trace) {
	t.Helper()
	now, err := traced(t.Context(), p, kept)
	must(t, err)
	if difference := was.differs(now); difference != "" {
		t.Errorf("what nobody has changed has changed:\n%s", difference)
	}
}

// load commits to the moving layers, again as soon as they have deployed what was
// committed. It returns how many commits were deployed so far, and what ends it.
func (p *platform) load() (done *atomic.Int32, end func() int) {
	done = &atomic.Int32{}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for count := 1; ; count++ {
			select {
			case <-stop:
				return
			default:
			}
			files := map[string]string{}
			for i := range movingLayers {
				name := fmt.Sprintf("moving%d", i)
				files[name+"/release.yaml"] = p.release(name, "1.0.0", fmt.Sprint(count))
			}
			commit, err := p.repo.Commit("change", files)
			if err == nil {
				err = controlplane.WaitFor(context.Background(), patience, func(ctx context.Context) error { return p.movedTo(ctx, commit) })
			}
			if err != nil {
				p.Errorf("commit %d: %v", count, err)
				return
			}
			done.Store(int32(count))
		}
	}()
	return done, func() int {
		close(stop)
		<-ended
		return int(done.Load())
	}
}

// movedTo is an error as long as not all moving layers have deployed a commit.
func (p *platform) movedTo(ctx context.Context, commit string) error {
	for i := range movingLayers {
		layer, err := p.got(ctx, fmt.Sprintf("moving%d", i))
		if err != nil {
			return err
		}
		if layer.Status.State != v1alpha1.StateDeployed || !strings.HasSuffix(layer.Status.Revision, commit) {
			return fmt.Errorf("%w: %s is %s at %s", errNotYet, layer.Name, layer.Status.State, layer.Status.Revision)
		}
	}
	return nil
}

// handOver upgrades as a Deployment does: the chart, then the new replica beside the old
// one, which goes when the new one is ready. Commits are deployed before, meanwhile and
// after.
func handOver(t *testing.T, commits *atomic.Int32, from, to *strata.Controller, root string) {
	t.Helper()
	more(t, commits, 1)
	must(t, strata.UpgradeFrom(t.Context(), stack.plane, root))
	must(t, to.Start(t.Context()))
	more(t, commits, 1)
	led := leader(t)
	must(t, from.Stop(time.Minute))
	eventually(t, "the new replica leads", func(context.Context) error {
		if now := leader(t); now == led || now == "" {
			return fmt.Errorf("%w: %s leads", errNotYet, now)
		}
		return nil
	})
	more(t, commits, 2)
}

// more waits until that many further commits are deployed.
func more(t *testing.T, commits *atomic.Int32, further int32) {
	t.Helper()
	until := commits.Load() + further
	eventually(t, "commits are deployed", func(context.Context) error {
		if t.Failed() {
			t.FailNow()
		}
		if now := commits.Load(); now < until {
			return fmt.Errorf("%w: %d of %d", errNotYet, now, until)
		}
		return nil
	})
}

func leader(t *testing.T) string {
	t.Helper()
	leases := &coordinationv1.LeaseList{}
	must(t, stack.client.List(t.Context(), leases, client.InNamespace(strata.Namespace)))
	for _, lease := range leases.Items {
		if lease.Spec.HolderIdentity != nil {
			return *lease.Spec.HolderIdentity
		}
	}
	return ""
}
