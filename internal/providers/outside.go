// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/printable"
)

// outsideTimeout bounds one call that hands something out, or takes it back.
const outsideTimeout = 30 * time.Second

// masked stands for a password in what is told.
const masked = "***"

// Ensure has a program hand out what is outside of any cluster.
func (h *Host) Ensure(ctx context.Context, of Reference, request *pluginv1.EnsureRequest) (*pluginv1.EnsureResponse, error) {
	var response *pluginv1.EnsureResponse
	err := h.outside(ctx, of, func(ctx context.Context, api pluginv1.CapabilityPluginClient) error {
		var err error
		response, err = api.Ensure(ctx, request)
		return err
	})
	return response, err
}

// Release has a program take that back.
func (h *Host) Release(ctx context.Context, of Reference, request *pluginv1.ReleaseRequest) (*pluginv1.ReleaseResponse, error) {
	var response *pluginv1.ReleaseResponse
	err := h.outside(ctx, of, func(ctx context.Context, api pluginv1.CapabilityPluginClient) error {
		var err error
		response, err = api.Release(ctx, request)
		return err
	})
	return response, err
}

// outside asks a program that has credentials of its own. As a process it has some only where the
// controller was told so.
func (h *Host) outside(ctx context.Context, of Reference, question func(context.Context, pluginv1.CapabilityPluginClient) error) error {
	p, err := h.program(of)
	if err != nil {
		return err
	}
	if RunOf(of.CapabilityPlugin) == v1alpha1.PluginProcess && h.options.Credentials == "" {
		return p.failed(time.Time{}, "hands out what is outside of clusters, which a process of the controller may not: "+
			"have it run as a Deployment, or start the controller with --plugin-process-credentials")
	}
	return p.askFor(ctx, max(outsideTimeout, h.options.CallTimeout), question)
}

// EnsureRequest returns the request to hand out what a claim asks for.
func (a Asked) EnsureRequest(passwords, previous map[string]string) (*pluginv1.EnsureRequest, error) {
	plan, err := a.Request()
	if err != nil {
		return nil, err
	}
	return &pluginv1.EnsureRequest{Claim: plan.GetClaim(), Parameters: plan.GetParameters(), Passwords: passwords, Previous: previous}, nil
}

// ReleaseRequest returns the request to take back what a claim has.
func (a Asked) ReleaseRequest(deleteData bool) (*pluginv1.ReleaseRequest, error) {
	plan, err := a.Request()
	if err != nil {
		return nil, err
	}
	return &pluginv1.ReleaseRequest{Claim: plan.GetClaim(), Parameters: plan.GetParameters(), DeleteData: deleteData}, nil
}

// Handed is what a plug-in has said of what it hands out, as the rules have it.
type Handed struct {
	// Publishes of the binding, and Waits says why it is not there yet.
	Publishes []v1alpha1.CapabilityValue
	Waits     string
}

// Hand returns what a plug-in has said of what it hands out, or what is wrong with that. has are
// the keys of the binding that the plan publishes.
func Hand(has []v1alpha1.CapabilityValue, ensured *pluginv1.EnsureResponse) (Handed, error) {
	handed := Handed{Waits: printable.Line(ensured.GetWaits(), maxSaid)}
	if count := len(ensured.GetPublishes()) + len(has); count > maxPublishes {
		return handed, fmt.Errorf("publishes %d values, more than %d", count, maxPublishes)
	}
	var err error
	if handed.Publishes, err = published(ensured.GetPublishes()); err != nil {
		return handed, err
	}
	seen := map[string]bool{}
	for _, value := range append(append([]v1alpha1.CapabilityValue{}, has...), handed.Publishes...) {
		if seen[value.Key] {
			return handed, fmt.Errorf("publishes the key %q twice", printable.Line(value.Key, 100))
		}
		seen[value.Key] = true
	}
	return handed, nil
}

// Identity returns what identifies what was handed out.
func (h Handed) Identity() ([]byte, error) { return json.Marshal(h) }

// Mask takes passwords out of what a plug-in has said.
func Mask(err error, passwords ...map[string]string) error {
	var failed *FailedError
	if !errors.As(err, &failed) {
		return err
	}
	told := *failed
	told.Message = MaskText(told.Message, passwords...)
	return &told
}

// MaskText is as Mask, for a text.
func MaskText(text string, passwords ...map[string]string) string {
	for _, of := range passwords {
		for _, password := range of {
			if password != "" {
				text = strings.ReplaceAll(text, password, masked)
			}
		}
	}
	return text
}
