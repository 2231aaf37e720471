// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/strata"
)

// ownController is the label of layers that the suite's controller leaves to
// one that their test runs, so that the test may measure or kill it.
const ownController = "e2e.kraan.io/controller"

// own leaves a layer to the test's own controllers.
func (f *fixture) own(layer *v1alpha1.AddonsLayer) {
	layer.Labels = map[string]string{ownController: f.prefix}
}

// plainBinary is the controller without the race detector, as it ships.
var plainBinary = built("plain")

// testedBinary is the controller that tests run: with the race detector where
// STRATA_RACE is 1, as in make test-all and make nightly.
var testedBinary = func() func() (string, error) {
	if os.Getenv("STRATA_RACE") == "1" {
		return built("raced", "-race")
	}
	return plainBinary
}()

// built returns what builds a controller once.
func built(name string, flags ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir := filepath.Join(stack.plane.Dir(), "strata", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		return strata.Build(context.Background(), dir, flags...)
	})
}

// controller prepares one that looks after the test's own layers. It is yet to
// be started, and ends with the test, whose layers then go to the suite's
// controller to be taken down.
func (f *fixture) controller(binary func() (string, error), args ...string) *strata.Controller {
	f.Helper()
	identity, err := stack.plane.ServiceAccount(f.ctx, strata.Namespace, "strata")
	f.must(err)
	return f.controllerAs(identity.Kubeconfig, binary, args...)
}

// controllerAs is controller with other rights than the chart's.
func (f *fixture) controllerAs(kubeconfig string, binary func() (string, error), args ...string) *strata.Controller {
	f.Helper()
	path, err := binary()
	f.must(err)
	dir, err := os.MkdirTemp(stack.plane.Dir(), "strata-"+f.prefix+"-")
	f.must(err)
	controller, err := strata.Prepare(strata.Options{
		Binary: path, Kubeconfig: kubeconfig, Dir: dir,
		Args: append([]string{"--log-level", "debug", "--watch-label-selector", ownController + "=" + f.prefix}, args...),
	})
	f.must(err)
	f.Cleanup(func() {
		if err := controller.Stop(30 * time.Second); err != nil {
			f.Error(err)
		}
		controller.Close()
		if err := controller.Races(); err != nil {
			f.Error(err)
		}
		f.handBack()
	})
	return controller
}

// handBack gives the test's own layers to the suite's controller.
func (f *fixture) handBack() {
	list := &v1alpha1.AddonsLayerList{}
	f.must(stack.client.List(f.ctx, list, client.MatchingLabels{ownController: f.prefix}))
	for _, layer := range list.Items {
		f.must(client.IgnoreNotFound(f.patchLayer(layer.Name, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, ownController))))
	}
}

// told is one thing that events say of a layer.
type told struct{ layer, reason, note string }

// events counts what events say of the fixture's layers, repetitions that the
// recorder has put together included.
func (f *fixture) events() map[told]int {
	f.Helper()
	list := &eventsv1.EventList{}
	f.must(stack.client.List(f.ctx, list))
	found := map[told]int{}
	for i := range list.Items {
		event := &list.Items[i]
		if event.Regarding.Kind != v1alpha1.AddonsLayerKind || !strings.HasPrefix(event.Regarding.Name, f.prefix+"-") {
			continue
		}
		count := 1
		if event.Series != nil {
			count = int(event.Series.Count)
		}
		found[told{event.Regarding.Name, event.Reason, event.Note}] += count
	}
	return found
}

// toldOnce checks that no event says again what one has said, and that each of
// the layers is told to be deployed.
func (f *fixture) toldOnce(revision string, layers ...string) {
	f.Helper()
	for event, count := range f.events() {
		if count > 1 {
			f.Errorf("%d events say the same: %+v", count, event)
		}
	}
	for _, layer := range layers {
		f.within(promptly, "an event tells that "+layer+" is deployed", func() error {
			for event := range f.events() {
				if event.layer == f.name(layer) && event.reason == string(v1alpha1.StateDeployed) && strings.Contains(event.note, revision) {
					return nil
				}
			}
			return fmt.Errorf("events say %v", f.events())
		})
	}
}
