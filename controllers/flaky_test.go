// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/strata-project/strata/api/v1alpha1"
)

// flaky has the API server answer a share of all calls with an error: of some,
// it has never heard, and of others it says so although they have taken effect.
type flaky struct {
	percent int

	mu     sync.Mutex
	random *rand.Rand
	on     bool
	calls  int
	faults map[int]int
}

// refusals are what an API server says that is busy, or not well.
var refusals = map[int]metav1.StatusReason{
	http.StatusConflict: metav1.StatusReasonConflict, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
}

// draw says what becomes of a call: 0 for nothing, or the code it is refused
// with; done, where it is carried out all the same.
func (f *flaky) draw(req *http.Request) (code int, done, wait bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.on {
		return 0, false, false
	}
	f.calls++
	if f.random.IntN(100) >= f.percent {
		return 0, false, false
	}
	codes := []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusConflict}
	if req.Method == http.MethodGet {
		codes = codes[:2] // no read conflicts
	}
	code = codes[f.random.IntN(len(codes))]
	f.faults[code]++
	done = code == http.StatusInternalServerError && f.random.IntN(2) == 0
	return code, done, f.random.IntN(4) == 0
}

func (f *flaky) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		code, done, wait := f.draw(req)
		if code == 0 {
			return next.RoundTrip(req)
		}
		if done && req.Method != http.MethodGet {
			resp, err := next.RoundTrip(req)
			if err != nil {
				return nil, err
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		body, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Reason: refusals[code], Code: int32(code), Message: "this is not a good moment",
		})
		if err != nil {
			return nil, err
		}
		header := http.Header{"Content-Type": {"application/json"}}
		if code == http.StatusTooManyRequests && wait {
			header.Set("Retry-After", "1")
		}
		return &http.Response{
			Status: fmt.Sprint(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
		}, nil
	})
}

// An API server that refuses every fourth call, at random, delays a roll-out
// and changes nothing of what comes of it: no object is leaked, none deleted
// twice, no status lies, and nothing is tried again and again at once.
func TestAPIServerThatRefusesAtRandom(t *testing.T) {
	o := newOnlooker(t)
	seed := seedOf(t)
	runs := 4
	if testAll() {
		runs = 60
	}
	var names []string
	for i := range runs {
		names = append(names, fmt.Sprintf("seed %d", seed+uint64(i)))
	}
	sideBySide(t, crashWorkers, names, func(t *testing.T, i int) {
		r := newRollout(t, o)
		faulty := &flaky{percent: 25, random: rand.New(rand.NewPCG(seed+uint64(i), 0)), faults: map[int]int{}}
		m := &mortal{ended: make(chan struct{})}
		ctx, cancel := context.WithCancel(r.ctx)
		m.kill = cancel
		config := plane.Config()
		config.Wrap(m.wrap)
		config.Wrap(faulty.wrap)
		r.run(ctx, m, func() (ctrl.Manager, *AddonsLayerReconciler) {
			mgr, reconciler := r.assemble(config, r.narrowOptions(), time.Hour)
			// A layer that is refused ten times in a row would be looked at again
			// after minutes.
			reconciler.patience = 2 * time.Second
			return mgr, reconciler
		})
		r.Cleanup(func() {
			cancel()
			<-m.ended
		})
		faulty.mu.Lock()
		faulty.on = true
		faulty.mu.Unlock()
		began := time.Now()
		r.carryOut()
		faulty.mu.Lock()
		calls, faults := faulty.calls, fmt.Sprint(faulty.faults)
		faulty.mu.Unlock()
		t.Logf("%d calls in %s, refused: %s", calls, time.Since(began).Round(time.Second), faults)
		if most := 1500; calls > most {
			t.Errorf("%d calls, more than %d", calls, most)
		}
		for _, problem := range append(repeated([]*mortal{m}), r.lies()...) {
			t.Error(problem)
		}
	})
}

// lies returns what statuses have said that is not so, or not in the form of
// docs/layers-reference.md.
func (w *world) lies() []string {
	var problems []string
	for _, h := range w.all() {
		if h.id.GroupKind() != layerVersion.GroupKind() {
			continue
		}
		layer := &v1alpha1.AddonsLayer{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(h.object.Object, layer); err != nil {
			problems = append(problems, err.Error())
			continue
		}
		if problem := lieOf(layer); problem != "" {
			problems = append(problems, fmt.Sprintf("revision %d: layer %s is %s: %s", h.revision, layer.Name, layer.Status.State, problem))
		}
	}
	return problems
}

func lieOf(layer *v1alpha1.AddonsLayer) string {
	is := func(kind string, want metav1.ConditionStatus) bool {
		return meta.IsStatusConditionPresentAndEqual(layer.Status.Conditions, kind, want)
	}
	ready := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition)
	switch {
	case layer.Status.State == "":
		return ""
	case ready == nil:
		return "it has no condition Ready"
	case is(v1alpha1.StalledCondition, metav1.ConditionTrue):
		return "there is nothing for an author to mend: " + ready.Message
	case strings.Contains(ready.Message, "has been modified") || strings.Contains(ready.Message, "onflict"):
		return "a conflict is nobody's failure: " + ready.Message
	}
	var ok bool
	switch layer.Status.State {
	case v1alpha1.StateDeployed:
		ok = is(v1alpha1.ReadyCondition, metav1.ConditionTrue) && is(v1alpha1.DeployedCondition, metav1.ConditionTrue)
	case v1alpha1.StateFailed:
		ok = is(v1alpha1.ReadyCondition, metav1.ConditionFalse) && is(v1alpha1.ReconcilingCondition, metav1.ConditionTrue) && ready.Message != ""
	default:
		ok = is(v1alpha1.ReadyCondition, metav1.ConditionUnknown) && is(v1alpha1.ReconcilingCondition, metav1.ConditionTrue)
	}
	if !ok {
		return fmt.Sprintf("its conditions are %v", layer.Status.Conditions)
	}
	return ""
}
