// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"bytes"
	"testing"

	"github.com/strata-project/strata/internal/answers/upgrade"
	"github.com/strata-project/strata/internal/terminal"
)

func TestUpgradeIsSafe(t *testing.T) {
	t.Parallel()
	report := upgrade.Report{Kubernetes: "1.37", Upgrade: upgrade.No, Layers: []upgrade.Layer{{Name: "a\x1b[2J", Upgrade: upgrade.No, Reasons: []upgrade.Reason{{Upgrade: upgrade.No, Message: "b\x1b[2J\nc"}}}}}
	var out bytes.Buffer
	if err := Upgrade(&out, terminal.Screen{}, report); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out.Bytes(), []byte{0x1b}) || !bytes.Contains(out.Bytes(), []byte("\n  - b")) {
		t.Errorf("got %q", out.String())
	}
}
