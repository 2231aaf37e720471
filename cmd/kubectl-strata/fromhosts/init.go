// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/hostclusters"
)

const initLong = `Write a manifest to begin with: one with a comment on each field, or one made of KubeOne's.

With --from-kubeone, a KubeOneCluster is converted, with the hosts that --tfjson has where
they come from terraform. What is not carried over is said, and stands at the top.`

const initExamples = `  # A manifest to begin with
  kubectl strata hosts init > hosts.yaml

  # From one of KubeOne's
  terraform output -json > tf.json
  kubectl strata hosts init --from-kubeone kubeone.yaml -t tf.json > hosts.yaml`

func newInit(c *console.Console) *cobra.Command {
	var from, terraform string
	command := &cobra.Command{
		Use:     "init",
		Short:   "Write a manifest to begin with",
		Long:    initLong,
		Example: initExamples,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return writeManifest(c, from, terraform) },
	}
	command.Flags().StringVar(&from, "from-kubeone", "", "convert this manifest of KubeOne")
	command.Flags().StringVarP(&terraform, "tfjson", "t", "", "what terraform output -json has written, with the hosts")
	return command
}

func writeManifest(c *console.Console, from, terraform string) error {
	if from == "" {
		if terraform != "" {
			return errors.New("--tfjson goes with --from-kubeone")
		}
		_, err := fmt.Fprint(c.Out, hostclusters.Sample)
		return err
	}
	manifest, err := readBounded(from)
	if err != nil {
		return err
	}
	var output []byte
	if terraform != "" {
		if output, err = readBounded(terraform); err != nil {
			return err
		}
	}
	text, left, err := hostclusters.FromKubeOne(manifest, output)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	for _, each := range left {
		c.Paragraph(c.ErrOut, "- %s", each)
	}
	_, err = fmt.Fprint(c.Out, text)
	return err
}

// readBounded reads a file that is no longer than a manifest may be, and a byte.
func readBounded(file string) ([]byte, error) {
	opened, err := os.Open(file) //nolint:gosec // somebody names their own file
	if err != nil {
		return nil, fmt.Errorf("cannot read: %w", err)
	}
	defer func() { _ = opened.Close() }()
	data, err := io.ReadAll(io.LimitReader(opened, hostclusters.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	return data, nil
}
