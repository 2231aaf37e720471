// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"strings"

	"github.com/strata-project/strata/internal/sops"
	"github.com/strata-project/strata/internal/sops/sopstest"
)

const (
	// deployer is the account by which what is built is applied.
	deployer = "deployer"
	// keySecret holds the key of encrypted files.
	keySecret = "sops-age"
	// componentPath leads from the directory of a layer to the component of all of them.
	componentPath = "../../components/limits"
)

// variables are those that the directory of a layer that is built reads.
func (l layer) variables() map[string]string {
	return map[string]string{"APP": l.Name, "DOMAIN": "example.com"}
}

// build has the directories of all layers built: each has a kustomization, releases
// without a namespace and with variables, and an encrypted Secret, and all of them the
// same component.
func (w *workload) build() error {
	recipient, err := sopstest.NewAge()
	if err != nil {
		return fmt.Errorf("cannot make a key: %w", err)
	}
	w.key = map[string]string{recipient.Name: recipient.Private}
	w.built = map[string]string{
		"components/limits/kustomization.yaml": `apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: HelmRelease}
  patch: |-
    - {op: add, path: /spec/values/resources/limits, value: {memory: 128Mi}}
`,
	}
	for i := range w.layers {
		l := &w.layers[i]
		l.Built = true
		files, err := l.built(recipient)
		if err != nil {
			return fmt.Errorf("cannot encrypt a file of %s: %w", l.Name, err)
		}
		maps.Copy(w.built, files)
	}
	return nil
}

// built returns the files of a layer beside its releases.
func (l layer) built(recipient sopstest.Recipient) (map[string]string, error) {
	var list strings.Builder
	list.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- secret.yaml\n")
	for _, release := range l.Releases {
		fmt.Fprintf(&list, "- %s.yaml\n", release)
	}
	sealed, err := sopstest.Seal(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n    name: %s\nstringData:\n    token: ${APP}-token\n", l.Name),
		sops.YAML, "^(data|stringData)$", recipient)
	return map[string]string{l.file("kustomization"): list.String(), l.file("secret"): sealed}, err
}

// unbuilt returns a release as a directory has it that is built.
func unbuilt(manifest string) string {
	return strings.NewReplacer(
		"  namespace: "+namespace+"\nspec", "\nspec", ".example.com", ".${DOMAIN}", "logLevel: info", "logLevel: ${LEVEL:=info}",
	).Replace(manifest)
}
