// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/images"
)

const capabilityPushLong = `Make an image of the programs of a plug-in, each for another architecture of Linux,
push it to a registry, and print its digest, which a CapabilityProvider names. No
container engine is needed. Programs must need no libraries: Go's are built with
CGO_ENABLED=0. The login of the registry is that of docker login.

Exit codes:
  0  it was pushed
  1  it was not`

const capabilityPushExamples = `  kubectl strata capability push oci://registry.example.com/plugins/greeting:1.0.0 ./greeting

  # For two architectures
  kubectl strata capability push oci://registry.example.com/plugins/greeting:1.0.0 ./greeting-amd64 ./greeting-arm64`

func newCapabilityPush(t *tool) *cobra.Command {
	output := ""
	command := &cobra.Command{
		Use: "push oci://HOST/PATH:TAG PROGRAM...", Short: "Push a plug-in to a registry", Long: capabilityPushLong, Example: capabilityPushExamples,
		Args: cobra.MinimumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return t.capabilityPush(command.Context(), args[0], args[1:], output)
		},
	}
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func (t *tool) capabilityPush(ctx context.Context, address string, paths []string, output string) error {
	var programs []images.Built
	var platforms []string
	for _, path := range paths {
		content, err := os.ReadFile(path) //nolint:gosec // the user names it
		if err != nil {
			return fmt.Errorf("cannot read the plug-in: %w", err)
		}
		program, err := images.BuiltFrom(content)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		programs, platforms = append(programs, program), append(platforms, "linux/"+program.Architecture)
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return errors.New("cannot read the credentials of docker login")
	}
	digest, err := images.Push(ctx, address, programs, credentials.Credential(store))
	if err != nil {
		return err
	}
	if output != "" {
		return t.PrintAs(output, map[string]any{"image": address, "digest": digest, "platforms": platforms})
	}
	t.Field("Image", address)
	t.Field("Digest", digest)
	t.Field("Platforms", strings.Join(platforms, ", "))
	return nil
}
