// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
)

// The passwords of the claim that is asked about.
const (
	trialPassword = "trial-0123456789-abcdefghijklmnop"
	nextPassword  = "trial-9876543210-ponmlkjihgfedcba"
)

// outside has a plug-in hand out what is outside of any cluster, rotate it and take it back, each
// more than once. Without credentials it is not asked.
func (t *trial) outside(ctx context.Context, asked Asked) []Check {
	if t.Host.options.Credentials == "" {
		return []Check{passed(t.subject+": hands out what is outside of clusters", "not asked: give --credentials")}
	}
	asked.Rotation, asked.Rotating = 0, false
	passwords := func(value string) map[string]string {
		made := map[string]string{}
		for _, password := range t.spec.Passwords {
			made[password.Name] = value
		}
		return made
	}
	var checks []Check
	steps := []struct {
		name string
		do   func() (string, error)
	}{
		{"hands it out", func() (string, error) { return t.ensures(ctx, asked, passwords(trialPassword), nil, false) }},
		{"hands it out again after a restart", func() (string, error) { return t.ensures(ctx, asked, passwords(trialPassword), nil, true) }},
		{"hands it out after it was killed at that", func() (string, error) {
			if request, err := asked.EnsureRequest(passwords(trialPassword), nil); err == nil {
				if err := t.killedAt(func() error { _, err := t.Host.Ensure(ctx, t.Plugin, request); return err }); err != nil {
					return "", err
				}
			}
			return t.ensures(ctx, asked, passwords(trialPassword), nil, false)
		}},
		{"rotates", func() (string, error) {
			asked.Rotation, asked.Rotating = 1, true
			return t.ensures(ctx, asked, passwords(nextPassword), passwords(trialPassword), false)
		}},
		{"ends the passwords of before", func() (string, error) {
			asked.Rotating = false
			return t.ensures(ctx, asked, passwords(nextPassword), nil, false)
		}},
		{"takes it back, and keeps data", func() (string, error) { return "", t.releases(ctx, asked, false) }},
		{"takes it back after a restart", func() (string, error) {
			t.Host.End()
			return "", t.releases(ctx, asked, false)
		}},
		{"takes it back with its data", func() (string, error) { return "", t.releases(ctx, asked, true) }},
	}
	for _, step := range steps {
		name := t.subject + ": " + step.name
		said, err := step.do()
		if err != nil {
			return append(checks, failed(name, err))
		}
		checks = append(checks, passed(name, "%s", said))
	}
	return checks
}

// ensures has something handed out twice, which must be the same.
func (t *trial) ensures(ctx context.Context, asked Asked, passwords, previous map[string]string, restart bool) (string, error) {
	request, err := asked.EnsureRequest(passwords, previous)
	if err != nil {
		return "", err
	}
	if restart {
		t.Host.End()
	}
	var first *pluginv1.EnsureResponse
	for range 2 {
		response, err := t.Host.Ensure(ctx, t.Plugin, request)
		if err != nil {
			return "", Mask(err, passwords, previous)
		}
		if _, err := Hand(nil, response); err != nil {
			return "", fmt.Errorf("it %w", err)
		}
		if waits := response.GetWaits(); waits != "" {
			return "", fmt.Errorf("it waits: %s", MaskText(waits, passwords, previous))
		}
		if first == nil {
			first = response
		}
		if !proto.Equal(first, response) {
			return "", errors.New("it says something else when it is asked the same")
		}
	}
	var keys []string
	for _, value := range first.GetPublishes() {
		if text := value.GetText(); strings.Contains(text, trialPassword) || strings.Contains(text, nextPassword) {
			return "", fmt.Errorf("it publishes a password in %s: Password stands for one", value.GetKey())
		}
		keys = append(keys, value.GetKey())
	}
	return "publishes " + strings.Join(keys, ", "), nil
}

// releases has something taken back twice, the second time where nothing is left.
func (t *trial) releases(ctx context.Context, asked Asked, deleteData bool) error {
	request, err := asked.ReleaseRequest(deleteData)
	if err != nil {
		return err
	}
	for range 2 {
		response, err := t.Host.Release(ctx, t.Plugin, request)
		if err != nil {
			return err
		}
		if waits := response.GetWaits(); waits != "" {
			return fmt.Errorf("it waits: %s", waits)
		}
	}
	return nil
}
