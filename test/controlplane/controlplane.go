// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/test/reads"
)

// FluxNamespace is the runtime namespace of the Flux controllers.
const FluxNamespace = "flux-system"

// ErrNotManaged is returned for components of a cluster that this package
// did not start.
var ErrNotManaged = errors.New("the cluster's components are not managed by this process")

// Options says what Start starts. Its zero value is everything, in a
// temporary folder, silently.
type Options struct {
	// Dir holds data, keys and logs; it must be empty or absent and is kept.
	// When it is "", a temporary folder is used and Stop removes it.
	Dir string
	// Log receives a line for each step; nil discards them.
	Log io.Writer
	// With lists the components to run beside Etcd and APIServer, which
	// always run. Nil is all of them; APIOnly is none.
	With []Component
	// Args are appended to the arguments of a component.
	Args map[Component][]string
	// Nodes is the number of nodes that kwok plays, 1 when it is 0.
	Nodes int
	// HelmConcurrency is the number of HelmReleases that helm-controller
	// reconciles at a time, 10 when it is 0.
	HelmConcurrency int
	// FluxCRDs installs the Flux CRDs also when no Flux controller runs.
	FluxCRDs bool
	// ExitOnSignal stops the control plane and exits with 130 when this
	// process is interrupted or terminated.
	ExitOnSignal bool
	// After is called by Main when the tests have run and the control plane
	// still does; its error fails the tests.
	After func() error
}

// APIOnly is the value of Options.With for etcd and kube-apiserver alone. The
// aggregated roles view, edit and admin are then empty, because it is the
// controller manager that fills them, and nothing collects garbage.
func APIOnly() []Component { return []Component{} }

// KubernetesOnly is the value of Options.With for Kubernetes without Flux.
func KubernetesOnly() []Component {
	return []Component{ControllerManager, Scheduler, Kwok}
}

// runs says whether the component is started.
func (o Options) runs(name Component) bool {
	return o.With == nil || name == Etcd || name == APIServer || slices.Contains(o.With, name)
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.HelmConcurrency == 0 {
		o.HelmConcurrency = 10
	}
	return o
}

func (o Options) wantsFluxCRDs() bool {
	return o.FluxCRDs || o.runs(SourceController) || o.runs(HelmController) || o.runs(NotificationController)
}

// ControlPlane is a running control plane, or an existing cluster that is
// used as one. Its methods may be called concurrently.
type ControlPlane struct {
	opts       Options
	dir        string
	removeDir  bool
	config     *rest.Config
	kubeconfig string
	events     string
	keys       *pki       // nil for an existing cluster
	processes  []*process // in the order of their start; none of an existing cluster
	ports      []port
	stopOnce   sync.Once
	stopErr    error
}

// startTimeout bounds Start; on an idle machine it takes some ten seconds.
const startTimeout = 3 * time.Minute

// Start starts a control plane and returns when all of it is healthy, the
// Flux CRDs are established and the nodes are ready. The context bounds the
// start only. When it fails nothing is left running and the error carries the
// end of the failing component's log.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	opts = opts.withDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready within %s", startTimeout))
	defer cancel()
	if opts.ExitOnSignal {
		var restore context.CancelFunc
		ctx, restore = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer restore()
	}
	reads.AddFromRoot("hack/controlplane") // the pins of the servers
	c, err := prepare(opts)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare the control plane: %w", err)
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the control plane: %w", err), c.Stop())
	}
	if opts.ExitOnSignal {
		c.exitOnSignal()
	}
	return c, nil
}

// prepare writes keys and kubeconfigs and reserves ports; it starts nothing.
func prepare(opts Options) (c *ControlPlane, err error) {
	c = &ControlPlane{opts: opts}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if err := c.makeDir(); err != nil {
		return nil, err
	}
	keys, err := newPKI(filepath.Join(c.dir, "pki"))
	if err != nil {
		return nil, err
	}
	c.keys = keys
	l := &launcher{dir: c.dir, pki: keys, opts: opts}
	defer func() { c.ports, c.events = l.ports, l.events }()
	for _, name := range []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok, SourceController, HelmController, NotificationController} {
		if !opts.runs(name) {
			continue
		}
		p, err := l.process(name)
		if err != nil {
			return nil, err
		}
		c.processes = append(c.processes, p)
	}
	c.config = l.config(admin)
	c.kubeconfig = filepath.Join(c.dir, "kubeconfig")
	return c, writeKubeconfig(c.kubeconfig, c.config)
}

// makeDir makes the control plane's folder.
func (c *ControlPlane) makeDir() error {
	if c.opts.Dir == "" {
		dir, err := os.MkdirTemp("", "strata-controlplane-")
		if err != nil {
			return err
		}
		c.dir, c.removeDir = dir, true
	} else {
		dir, err := filepath.Abs(c.opts.Dir)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			return errors.Join(err, fmt.Errorf("folder %s is not empty", dir))
		}
		c.dir = dir
	}
	for _, name := range []string{"logs", "tmp", "artifacts"} {
		if err := os.MkdirAll(filepath.Join(c.dir, name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// start starts the processes; those that need nothing of each other together.
func (c *ControlPlane) start(ctx context.Context) error {
	for _, name := range []Component{Etcd, APIServer} {
		if err := c.startProcess(ctx, name); err != nil {
			return err
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, name := range []Component{ControllerManager, Scheduler, Kwok} {
		if c.opts.runs(name) {
			group.Go(func() error { return c.startProcess(groupCtx, name) })
		}
	}
	if c.opts.runs(Kwok) {
		group.Go(func() error { return c.createNodes(groupCtx) })
	}
	group.Go(func() error { return c.startFlux(groupCtx) })
	return group.Wait()
}

// startFlux installs the Flux CRDs and then starts the controllers, which do
// not start without them.
func (c *ControlPlane) startFlux(ctx context.Context) error {
	if !c.opts.wantsFluxCRDs() {
		return nil
	}
	if err := c.installFlux(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range []Component{SourceController, HelmController, NotificationController} {
		if c.opts.runs(name) {
			group.Go(func() error { return c.startProcess(ctx, name) })
		}
	}
	return group.Wait()
}

func (c *ControlPlane) startProcess(ctx context.Context, name Component) error {
	p, err := c.process(name)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := p.start(ctx); err != nil {
		return err
	}
	c.logf("started %s in %s", name, time.Since(began).Round(100*time.Millisecond))
	return nil
}

// Config returns a copy of the configuration of a cluster administrator
// (group system:masters) that is not throttled on the client's side.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns the path of a kubeconfig file that says what Config says.
func (c *ControlPlane) Kubeconfig() string { return c.kubeconfig }

// EventsURL returns where notification-controller takes events, and "" where
// this process did not start one.
func (c *ControlPlane) EventsURL() string { return c.events }

// Dir returns the folder with the control plane's data, keys and logs.
func (c *ControlPlane) Dir() string { return c.dir }

// Managed says whether the components can be stopped and started. It is false
// for an existing cluster.
func (c *ControlPlane) Managed() bool { return len(c.processes) > 0 }

// Logs returns the path of a component's log, which all its runs append to,
// and "" for a component that is not managed.
func (c *ControlPlane) Logs(name Component) string {
	p, err := c.process(name)
	if err != nil {
		return ""
	}
	return p.log
}

// StopComponent asks a component to end and kills it when it has not after
// ten seconds. It returns when the process is gone.
func (c *ControlPlane) StopComponent(name Component) error {
	p, err := c.process(name)
	if err != nil {
		return err
	}
	return p.stop(10 * time.Second)
}

// KillComponent ends a component with SIGKILL, as a crash would, and returns
// when the process is gone.
func (c *ControlPlane) KillComponent(name Component) error {
	p, err := c.process(name)
	if err != nil {
		return err
	}
	return p.kill()
}

// StartComponent starts a stopped component with the ports and data it had,
// and returns when it is healthy. It does nothing to one that runs.
func (c *ControlPlane) StartComponent(ctx context.Context, name Component) error {
	if _, err := c.process(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready within %s", startTimeout))
	defer cancel()
	return c.startProcess(ctx, name)
}

// PIDs returns the process ids of the components that run.
func (c *ControlPlane) PIDs() map[Component]int {
	pids := map[Component]int{}
	for _, p := range c.processes {
		if r := p.current(); r != nil {
			pids[p.name] = r.cmd.Process.Pid
		}
	}
	return pids
}

// process finds a component of a managed control plane.
func (c *ControlPlane) process(name Component) (*process, error) {
	if !c.Managed() {
		return nil, ErrNotManaged
	}
	for _, p := range c.processes {
		if p.name == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("component %s is not part of this control plane", name)
}

// Keep makes Stop leave the temporary folder, to read the logs of a failure.
// It is called before Stop.
func (c *ControlPlane) Keep() { c.removeDir = false }

// Stop ends all components in the reverse order of their start, releases
// their ports and removes a temporary folder. Calling it again does nothing.
// An existing cluster is left as it is.
func (c *ControlPlane) Stop() error {
	c.stopOnce.Do(func() {
		var errs []error
		for _, p := range slices.Backward(c.processes) {
			errs = append(errs, p.stop(stopGrace(p.name)))
		}
		for _, p := range c.ports {
			p.release()
		}
		if c.removeDir {
			errs = append(errs, os.RemoveAll(c.dir))
		}
		c.stopErr = errors.Join(errs...)
	})
	return c.stopErr
}

// stopGrace is how long Stop waits for a component. The data is not used
// again, so only those that end quickly are given the time.
func stopGrace(name Component) time.Duration {
	switch name {
	case Etcd, APIServer:
		return 5 * time.Second
	default:
		return 2 * time.Second
	}
}

// exitOnSignal stops the control plane when the process is told to end.
func (c *ControlPlane) exitOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		c.logf("interrupted, stopping the control plane")
		if err := c.Stop(); err != nil {
			c.logf("cannot stop the control plane: %v", err)
		}
		os.Exit(130)
	}()
}

func (c *ControlPlane) logf(format string, args ...any) {
	fmt.Fprintf(c.opts.Log, format+"\n", args...)
}
