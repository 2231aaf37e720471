// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/answers/kustomizations"
)

const kustomizeController = "kustomize-controller"

// fluxAccount returns the account of Kustomizations that name none, as the Deployments of
// kustomize-controller say it.
func (c *Cluster) fluxAccount(ctx context.Context) (kustomizations.DefaultAccount, error) {
	client, err := c.Typed()
	if err != nil {
		return kustomizations.DefaultAccount{}, err
	}
	list, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return kustomizations.DefaultAccount{
			Unknown: fmt.Sprintf("kustomize-controller's --%s is not known, because Deployments cannot be listed", kustomizations.AccountFlag),
		}, nil
	}
	var names []string
	for i := range list.Items {
		if arguments, is := argumentsOfFlux(&list.Items[i]); is {
			names = append(names, kustomizations.DefaultAccountIn(arguments))
		}
	}
	if len(names) == 0 {
		return kustomizations.DefaultAccount{
			Unknown: fmt.Sprintf("kustomize-controller's --%s is not known, because no Deployment of it is seen", kustomizations.AccountFlag),
		}, nil
	}
	return kustomizations.DefaultAccountOf(names), nil
}

// argumentsOfFlux returns how a Deployment starts kustomize-controller; is is false for
// the Deployment of something else.
func argumentsOfFlux(of *appsv1.Deployment) (arguments []string, is bool) {
	is = of.Name == kustomizeController || of.Labels["app.kubernetes.io/component"] == kustomizeController
	for _, container := range of.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(path.Base(container.Image), "@")
		image, _, _ = strings.Cut(image, ":")
		is = is || image == kustomizeController
		arguments = slices.Concat(arguments, container.Command, container.Args)
	}
	return arguments, is
}

// accountArgument is the flag as a manifest, or a patch of one, has it.
var accountArgument = regexp.MustCompile(`--` + kustomizations.AccountFlag + `=([^\s"'\],}]*)`)

// fluxAccountIn returns the account of Kustomizations that name none, as a repository says
// it in a document about kustomize-controller. A repository need not say it.
func fluxAccountIn(artifact fs.FS) (kustomizations.DefaultAccount, error) {
	var names []string
	err := fs.WalkDir(artifact, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return err
		}
		data, err := fs.ReadFile(artifact, name)
		for _, document := range bytes.Split(data, []byte("\n---")) {
			if !bytes.Contains(document, []byte(kustomizeController)) {
				continue
			}
			for _, found := range accountArgument.FindAllSubmatch(document, -1) {
				names = append(names, string(found[1]))
			}
		}
		return err
	})
	return kustomizations.DefaultAccountOf(names), err
}
