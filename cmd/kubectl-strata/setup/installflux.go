// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/checks"
)

// largestManifests is how large Flux's manifests may be: those of all its controllers have
// less than 1 MiB.
const largestManifests = 16 << 20

// lackingFlux returns what is to be applied where the cluster lacks Flux: what --flux
// names, or what somebody at the terminal names.
func (i *installation) lackingFlux(ctx context.Context, facts checks.Facts) ([]*unstructured.Unstructured, error) {
	if !checks.LacksFlux(facts) {
		if i.flux != "" {
			console.Say(i.ErrOut, "Flux is there, and stays as it is: --flux has nothing to do")
		}
		return nil, nil
	}
	if i.flux == "" && !i.dryRun {
		answer, err := i.Ask("The cluster lacks Flux's source-controller and helm-controller.\n" +
			"Where are their manifests, as flux install --export prints them: which file or https address? (nothing leaves them out)")
		if err != nil {
			return nil, err
		}
		i.flux = answer
	}
	if i.flux == "" {
		return nil, nil
	}
	return ReadFlux(ctx, i.flux)
}

// ReadFlux returns Flux's manifests of a file or of an https address, as flux install
// --export prints them.
func ReadFlux(ctx context.Context, from string) ([]*unstructured.Unstructured, error) {
	text, err := manifests(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("cannot read Flux's manifests: %w", err)
	}
	found, err := Objects(text)
	if err != nil {
		return nil, fmt.Errorf("cannot understand Flux's manifests in %s: %w", from, err)
	}
	for _, name := range []string{"gitrepositories.source.toolkit.fluxcd.io", "helmreleases.helm.toolkit.fluxcd.io"} {
		if !slices.ContainsFunc(found, func(o *unstructured.Unstructured) bool { return isDefinition(o) && o.GetName() == name }) {
			return nil, fmt.Errorf("%s holds no Flux that Strata can work with: the CRD %s is not in it", from, name)
		}
	}
	return found, nil
}

// manifests reads a file, or what an address answers.
func manifests(ctx context.Context, from string) (string, error) {
	at, err := url.Parse(from)
	if err != nil || at.Scheme == "" || at.Host == "" {
		file, err := os.Open(from) //nolint:gosec // whoever installs says which file
		if err != nil {
			return "", err
		}
		defer file.Close()
		return bounded(file, from)
	}
	if at.Scheme != "https" {
		return "", fmt.Errorf("%s is no https address: what it answers is applied with your rights", at.Redacted())
	}
	return manifestsBy(ctx, &http.Client{}, from)
}

// manifestsBy asks an address. It follows to others that are https, a few times.
func manifestsBy(ctx context.Context, client *http.Client, from string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", err
	}
	client.CheckRedirect = func(next *http.Request, before []*http.Request) error {
		if next.URL.Scheme != "https" || len(before) > 5 {
			return errors.New("it leads to an address that is not https, or on and on")
		}
		return nil
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", request.URL.Redacted(), response.Status)
	}
	return bounded(response.Body, request.URL.Redacted())
}

func bounded(from io.Reader, name string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(from, largestManifests+1))
	if err != nil {
		return "", err
	}
	if len(data) > largestManifests {
		return "", fmt.Errorf("%s is larger than %d MiB", name, largestManifests>>20)
	}
	return string(data), nil
}

func isDefinition(o *unstructured.Unstructured) bool {
	return o.GetKind() == "CustomResourceDefinition"
}

// BringFlux applies Flux's manifests, what others need first, and waits until its kinds are
// served.
func BringFlux(ctx context.Context, c *console.Console, flux []*unstructured.Unstructured) error {
	if len(flux) == 0 {
		return nil
	}
	client, err := c.Cluster.Dynamic()
	if err != nil {
		return err
	}
	mapper, err := console.Uncached(c.Flags).ToRESTMapper()
	if err != nil {
		return err
	}
	first := func(o *unstructured.Unstructured) bool { return isDefinition(o) || o.GetKind() == "Namespace" }
	for _, object := range append(slices.DeleteFunc(slices.Clone(flux), func(o *unstructured.Unstructured) bool { return !first(o) }),
		slices.DeleteFunc(slices.Clone(flux), first)...) {
		if err := applied(ctx, client, mapper, object); err != nil {
			return fmt.Errorf("cannot bring Flux: %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, object := range flux {
		if isDefinition(object) {
			if err := established(ctx, client, object.GetName()); err != nil {
				return fmt.Errorf("cannot bring Flux: %w", err)
			}
		}
	}
	console.Say(c.Out, "Flux is brought: %s", counted(flux))
	return nil
}

func applied(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	_, err = resource.Patch(ctx, object.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: console.FieldManager})
	return err
}

// established waits until the API server serves a definition.
func established(ctx context.Context, client dynamic.Interface, name string) error {
	resource := client.Resource(definitionsResource)
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		object, err := resource.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			condition, is := c.(map[string]any)
			return is && condition["type"] == string(apiextensionsv1.Established) && condition["status"] == "True"
		}), nil
	})
	if err != nil {
		return fmt.Errorf("the CRD %s is not served: %w", strings.TrimSpace(name), err)
	}
	return nil
}
