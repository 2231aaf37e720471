// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/images"
)

// Reference says which program serves a provider, and how that is run.
type Reference struct {
	// Provider that it serves, and the Namespace and the Account of that.
	Provider, Namespace, Account string
	// Credentials is the Secret of that namespace with what the program needs outside of the
	// cluster; empty for none. Nobody reads it but the program.
	Credentials string
	v1alpha1.CapabilityPlugin
}

// RunOf returns how a program is run.
func RunOf(plugin v1alpha1.CapabilityPlugin) v1alpha1.PluginRun {
	return cmp.Or(plugin.Run, v1alpha1.PluginDeployment)
}

// Key identifies what is started once: by all that says how it is run. Each provider has programs
// of its own, as they may have other credentials, and other keys.
func (r Reference) Key() string {
	runs := *r.DeepCopy()
	runs.Kinds = nil // what it may want is not how it is run
	data, err := json.Marshal(runs)
	if err != nil {
		panic(err) // of a type of the API, which can be written
	}
	return strings.Join([]string{r.Provider, r.Namespace, r.Account, r.Credentials, string(data)}, "\x00")
}

// check says what is wrong with a reference.
func (r Reference) check() error {
	if !isDigest(r.Digest) { // it becomes the name of a file
		return fmt.Errorf("%q is no digest such as sha256:0123", r.Digest)
	}
	if r.Image == "" {
		return nil
	}
	return images.CheckAddress(r.Image)
}

// image returns the image, with what its registry asks for.
func (r Reference) image(ctx context.Context, cluster Cluster) (images.Image, error) {
	image := images.Image{Address: r.Image, Digest: r.Digest}
	if r.Verify != nil {
		image.Keys = r.Verify.Keys
	}
	if r.PullSecretRef == nil {
		return image, nil
	}
	if cluster == nil {
		return image, fmt.Errorf("the Secret %s of the registry cannot be read without a cluster", r.PullSecretRef.Name)
	}
	var err error
	image.Login, err = cluster.Login(ctx, r)
	return image, err
}

// fetches tells whether programs of an image may be fetched: its address begins with one of
// those that are allowed, up to a slash.
func (o Options) fetches(address string) bool {
	for _, allowed := range o.ImagesFrom {
		allowed = strings.TrimSuffix(strings.TrimPrefix(allowed, "oci://"), "/")
		rest, is := strings.CutPrefix(strings.TrimPrefix(address, "oci://"), allowed)
		if is && (rest == "" || rest[0] == '/' || rest[0] == ':' && strings.Contains(allowed, "/")) {
			return true
		}
	}
	return false
}
