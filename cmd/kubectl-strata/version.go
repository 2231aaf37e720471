// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const versionExamples = `  # The plug-in, and the controller in the cluster
  kubectl strata version

  # The plug-in alone, without a cluster
  kubectl strata version --client`

// versionsShown are what the command version prints.
type versionsShown struct {
	Client      string       `json:"client"`
	Platform    string       `json:"platform"`
	Controllers []controller `json:"controllers,omitempty"`
	// Controller says why none is listed.
	Controller string `json:"controller,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
}

// controller is a Deployment of Strata.
type controller struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Image     string `json:"image"`
}

func newVersion(t *tool, out io.Writer) *cobra.Command {
	var clientOnly bool
	var output string
	command := &cobra.Command{
		Use:     "version",
		Short:   "Show the versions of the plug-in and of the controller",
		Example: versionExamples,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			found := versionsShown{Client: version, Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if !clientOnly {
				if err := found.ask(command.Context(), t.Cluster); err != nil {
					return fmt.Errorf("the plug-in is %s (--client shows only that): %w", version, t.Explain(err, snapshot.Layers))
				}
			}
			return found.print(output, out)
		},
	}
	command.Flags().BoolVar(&clientOnly, "client", false, "show the plug-in's version alone; needs no cluster")
	command.Flags().StringVarP(&output, "output", "o", "", "one of wide, json, yaml, name")
	return command
}

// ask finds out what runs in the cluster, as far as rights allow.
func (v *versionsShown) ask(ctx context.Context, cluster *gather.Cluster) error {
	client, err := cluster.Typed()
	if err != nil {
		return err
	}
	server, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	v.Kubernetes = server.GitVersion
	list, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: gather.ControllerLabels})
	switch {
	case apierrors.IsForbidden(err):
		v.Controller = "unknown: you may not list Deployments"
		return nil
	case err != nil:
		return err
	}
	v.Controllers = controllers(list.Items)
	if len(v.Controllers) == 0 {
		v.Controller = "not found: no Deployment has the label " + gather.ControllerLabels
	}
	return nil
}

// controllers lists Deployments by namespace and name.
func controllers(deployments []appsv1.Deployment) []controller {
	var found []controller
	for _, deployment := range deployments {
		c := controller{Namespace: deployment.Namespace, Name: deployment.Name}
		for _, container := range deployment.Spec.Template.Spec.Containers {
			if c.Image == "" || container.Name == "controller" {
				c.Image = container.Image
			}
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b controller) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// print writes the versions in one of the output formats.
func (v versionsShown) print(format string, out io.Writer) error {
	var text []byte
	var err error
	switch format {
	case "json":
		text, err = json.MarshalIndent(v, "", "    ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(v)
	case "name":
		text = []byte(v.Client + "\n")
	case "", "wide":
		text = v.text(format == "wide")
	default:
		return fmt.Errorf("--output is %q: it must be wide, json, yaml or name", format)
	}
	if err != nil {
		return fmt.Errorf("cannot print the versions: %w", err)
	}
	_, err = out.Write(text)
	return err
}

func (v versionsShown) text(wide bool) []byte {
	client := v.Client
	if wide {
		client += " " + v.Platform
	}
	text := fmt.Appendf(nil, "plug-in     %s\n", client)
	for _, c := range v.Controllers {
		text = fmt.Appendf(text, "controller  %s (Deployment %s/%s)\n", c.Image, c.Namespace, c.Name)
	}
	if v.Controller != "" {
		text = fmt.Appendf(text, "controller  %s\n", v.Controller)
	}
	if v.Kubernetes != "" {
		text = fmt.Appendf(text, "kubernetes  %s\n", v.Kubernetes)
	}
	return text
}
