// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/strata-project/strata/internal/printable"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const (
	// mostAsked is how many bytes an act may have, and longestReason how many characters its
	// reason.
	mostAsked     = 16 << 10
	longestReason = 1000
	// acted is how long the API server may take for an act.
	acted = 20 * time.Second
)

// Actor does what somebody asks for on the page. live.Cluster is one.
type Actor interface {
	// May tells whether something may be done to a layer or a Platform.
	May(kind acts.Kind, name string) bool
	// Intend says what an act comes to, and Do does it.
	Intend(s *snapshot.Snapshot, act acts.Act) (acts.Intent, error)
	Do(ctx context.Context, intent acts.Intent) error
}

// asked is what the page asks for.
type asked struct {
	acts.Act
	// Dry asks what it would do.
	Dry bool `json:"dry,omitempty"`
}

// intention is what an act does, before it is done and after.
type intention struct {
	Says []string `json:"says"`
	Done string   `json:"done,omitempty"`
	// Preview is what to ask for to see what it changes, object by object; empty for nothing.
	Preview string `json:"preview,omitempty"`
	Command string `json:"command"`
}

// act answers a request to do something. Whoever guards the server has made sure that the
// page itself asks.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "an act is written as JSON", http.StatusUnsupportedMediaType)
		return
	}
	var wanted asked
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostAsked))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&wanted); err != nil {
		http.Error(w, "the act cannot be understood: "+err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := s.boards.o.act(r.Context(), wanted)
	if err != nil {
		http.Error(w, clip(err.Error()), http.StatusUnprocessableEntity)
		return
	}
	text, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // The tab may be gone; the stream shows what was done.
}

func (o Options) act(ctx context.Context, wanted asked) (intention, error) {
	if len([]rune(wanted.Reason)) > longestReason {
		return intention{}, fmt.Errorf("the reason has more than %d characters", longestReason)
	}
	intent, err := o.Actor.Intend(o.Cluster.Snapshot(), wanted.Act)
	if err != nil {
		return intention{}, err
	}
	answer := intention{Says: intent.Says, Command: o.commandFor(wanted.Act), Preview: previewFor(wanted.Act)}
	if wanted.Dry {
		return answer, nil
	}
	if !o.Actor.May(wanted.Kind, wanted.name()) {
		return answer, errors.New("you may not change it, or the API server has not said yet that you may")
	}
	// An act is done as a whole, whether somebody waits for it or not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acted)
	defer cancel()
	if err := o.Actor.Do(ctx, intent); err != nil {
		return answer, err
	}
	answer.Done = intent.Done
	if o.Told != nil {
		o.Told(intent.Done)
	}
	return answer, nil
}

func (a asked) name() string {
	if a.Kind == acts.Approve {
		return a.Platform
	}
	return a.Layer
}

// previewFor returns what to ask for to see what an act changes.
func previewFor(act acts.Act) string {
	switch act.Kind {
	case acts.Rollback:
		return string(live.OfRollback) + ":" + act.Layer + "@" + act.To
	case acts.Resume:
		return string(live.OfResume) + ":" + act.Layer
	default:
		return ""
	}
}

// commandFor returns the command that does the same.
func (o Options) commandFor(act acts.Act) string {
	words := []string{string(act.Kind), act.Layer}
	switch act.Kind {
	case acts.Hold:
		words = append(words, "--reason", act.Reason)
		if act.Until != "" {
			words = append(words, "--until", act.Until)
		}
		if act.Releases {
			words = append(words, "--releases")
		}
	case acts.Reconcile:
		if act.Source {
			words = append(words, "--with-source")
		}
	case acts.Rollback:
		words = append(words, "--to", act.To)
	case acts.Approve:
		words = []string{"platform", "approve", act.Platform, "--stage", act.Stage}
		if act.Reason != "" {
			words = append(words, "--reason", act.Reason)
		}
	default:
	}
	return printable.Command(o.Program, words...)
}

// actsOf returns what may be done to a layer.
func actsOf(o Options, layer *v1alpha1.AddonsLayer) []acts.Kind {
	if o.Actor == nil {
		return nil
	}
	kinds := []acts.Kind{acts.Hold, acts.Reconcile}
	if _, held := layer.Annotations[v1alpha1.HoldAnnotation]; held {
		kinds[0] = acts.Resume
	}
	if slices.ContainsFunc(layer.Status.History, func(entry v1alpha1.HistoryEntry) bool { return entry.Result == v1alpha1.ResultDeployed }) {
		kinds = append(kinds, acts.Rollback)
	}
	return slices.DeleteFunc(kinds, func(kind acts.Kind) bool { return !o.Actor.May(kind, layer.Name) })
}
