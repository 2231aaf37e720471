// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"errors"
	"os"
	"testing"

	"github.com/strata-project/strata/internal/images"
	"github.com/strata-project/strata/internal/images/imagestest"
)

// What cosign makes of a plug-in's image, in each of its forms, the controller understands; and an
// attestation is no signature.
func TestSignaturesOfPluginImages(t *testing.T) {
	key, err := os.ReadFile(stack.key + ".pub")
	must(t, err)
	store := images.NewStore(t.TempDir())
	for form, args := range map[string][]string{
		"bundle":      {"sign", "--new-bundle-format=true"},
		"simple":      {"sign", "--new-bundle-format=false"},
		"attestation": {"attest", "--type", "spdxjson", "--predicate", ""},
	} {
		image := imagestest.Image(t, imagestest.Layer(t, imagestest.File{Name: "bin/plugin", Content: form}))
		address := repository("plugins/" + form)
		digest := imagestest.Push(t, address+":1.0.0", imagestest.Index(t, image))
		if args[0] == "attest" {
			path := t.TempDir() + "/predicate.json"
			must(t, os.WriteFile(path, []byte(`{"spdxVersion": "SPDX-2.3"}`), 0o600))
			args[len(args)-1] = path
		}
		args = append(args, "--key", stack.key+".key", "--use-signing-config=false", "--tlog-upload=false", "--yes", address+"@"+digest)
		if _, err := command(t.Context(), cosign(), args...); err != nil {
			t.Fatal(err)
		}
		found, err := store.Program(t.Context(), images.Image{Address: "oci://" + address, Digest: digest, Keys: []string{string(key)}})
		var unsigned *images.UnsignedError
		if isSignature := args[0] == "sign"; isSignature != (err == nil) || !isSignature && !errors.As(err, &unsigned) {
			t.Errorf("%s: %v, %v", form, found, err)
		}
	}
}
