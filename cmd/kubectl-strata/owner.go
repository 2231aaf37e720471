// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/owner"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const ownerLong = `Say who has an object: from the object up through what owns it, such as ReplicaSet
and Deployment, to the HelmRelease that made it, the layer that lists that, and the
file, source and revision from which the layer comes.

Where no layer has it, whoever else seems to have it is named: another release of
Helm's, a Kustomization of Flux, an Application of Argo CD. Of the object itself
only its metadata is read. The line in the file is not known.

Exit codes:
  0  a layer has the object
  1  it cannot be said
  2  no layer has the object`

const ownerExamples = `  # Who has installed this?
  kubectl strata owner deploy/metrics-server --namespace kube-system

  # Of any kind
  kubectl strata owner crd certificates.cert-manager.io

  # The file, for other programs
  kubectl strata owner helmrelease/web -n apps -o json`

// newOwner returns the command that says who has an object.
func newOwner(t *tool) *cobra.Command {
	var namespace, output string
	command := &cobra.Command{
		Use:     "owner KIND/NAME",
		Short:   "Say which layer, file and revision an object comes from",
		Long:    ownerLong,
		Example: ownerExamples,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			kind, name, err := kindAndName(args)
			if err != nil {
				return err
			}
			return t.owner(command.Context(), kind, name, namespace, output)
		},
	}
	command.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the object; defaults to that of the context")
	console.OutputFlag(command, &output, "json", "yaml")
	return command
}

func kindAndName(args []string) (kind, name string, err error) {
	kind, name, _ = strings.Cut(args[0], "/")
	if len(args) == 2 {
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") || strings.Contains(kind, "/") {
		return "", "", errors.New("name one object, as KIND/NAME or KIND NAME: for example deploy/web")
	}
	return kind, name, nil
}

func (t *tool) owner(ctx context.Context, kind, name, namespace, output string) error {
	var err error
	if namespace == "" {
		if namespace, _, err = t.Flags.ToRawKubeConfigLoader().Namespace(); err != nil {
			return fmt.Errorf("cannot read the kubeconfig: %w", err)
		}
	}
	climber, err := t.Cluster.Climber(namespace)
	if err != nil {
		return err
	}
	objects, err := climber.Climb(ctx, kind, name)
	if err != nil {
		return t.ExplainKind(err, objectKind)
	}
	s, err := t.Cluster.Read(ctx, snapshot.Layers, snapshot.Releases)
	if err != nil {
		return err
	}
	t.WarnUnread(s, "what HelmReleases have made is known by labels alone")
	answer := owner.Of(s, objects)
	if output != "" {
		err = t.PrintAs(output, answer)
	} else {
		_, err = io.WriteString(t.Out, printing.Owner(t.Screen, answer))
	}
	if err == nil && !answer.Owned {
		return console.ErrDiffers
	}
	return err
}

// objectKind is any kind, for messages.
var objectKind = console.Kind{
	Noun:     "object",
	Plural:   "objects",
	Unknown:  "the cluster does not serve that",
	Resource: schema.GroupVersionResource{Resource: "the object's kind"},
}
