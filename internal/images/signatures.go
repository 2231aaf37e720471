// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	sigstore "github.com/sigstore/sigstore/pkg/signature"
	oras "oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
)

// The media types of what cosign makes, and what it calls a signature of an image.
const (
	simpleSigning   = "application/vnd.dev.cosign.simplesigning.v1+json"
	simpleSignature = "dev.cosignproject.cosign/signature"
	simpleType      = "cosign container image signature"
	bundleType      = "application/vnd.dev.sigstore.bundle.v0.3+json"
	statementType   = "application/vnd.in-toto+json"
	signPredicate   = "https://sigstore.dev/cosign/sign/v1"
)

const (
	// maxSignatures bounds how many signatures of an image are read, and maxSignature each of
	// them, in bytes.
	maxSignatures = 50
	maxSignature  = 64 << 10
)

// signature is one of an image: a text, and who has signed that.
type signature struct {
	// Payload is what was signed: it names the image.
	Payload []byte `json:"payload"`
	// Type of the payload where an envelope has it; empty where the payload alone was signed.
	Type string `json:"type,omitempty"`
	// Signatures of the payload.
	Signatures [][]byte `json:"signatures"`
}

// signaturesOf fetches the signatures of an image, in both forms of cosign. None are no error.
func signaturesOf(ctx context.Context, repository *remote.Repository, image string) ([]signature, error) {
	simple, err := simpleSignatures(ctx, repository, image)
	if err != nil {
		return nil, fmt.Errorf("cannot fetch the signatures of image %s: %w", image, err)
	}
	bundled, err := bundledSignatures(ctx, repository, image)
	if err != nil {
		return nil, fmt.Errorf("cannot fetch the signatures of image %s: %w", image, err)
	}
	return append(simple, bundled...), nil
}

// simpleSignatures are those of the tag that is named after the image.
func simpleSignatures(ctx context.Context, repository *remote.Repository, image string) ([]signature, error) {
	manifest, err := manifestOf(ctx, repository, strings.Replace(image, ":", "-", 1)+".sig")
	if errors.Is(err, errdef.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []signature
	for _, layer := range manifest.Layers[:min(len(manifest.Layers), maxSignatures)] {
		if layer.MediaType != simpleSigning || layer.Size > maxSignature {
			continue
		}
		signed, err := base64.StdEncoding.DecodeString(layer.Annotations[simpleSignature])
		if err != nil {
			continue // it is nobody's signature
		}
		payload, err := content.FetchAll(ctx, repository, layer)
		if err != nil {
			return nil, err
		}
		found = append(found, signature{Payload: payload, Signatures: [][]byte{signed}})
	}
	return found, nil
}

// bundledSignatures are those that refer to the image.
func bundledSignatures(ctx context.Context, repository *remote.Repository, image string) ([]signature, error) {
	subject, err := repository.Resolve(ctx, image)
	if err != nil {
		return nil, err
	}
	var referring []ocispec.Descriptor
	err = repository.Referrers(ctx, subject, bundleType, func(page []ocispec.Descriptor) error {
		if referring = append(referring, page...); len(referring) > maxSignatures {
			return fmt.Errorf("there are more than %d", maxSignatures)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var found []signature
	for _, of := range referring {
		manifest, err := manifestOf(ctx, repository, of.Digest.String())
		if err != nil {
			return nil, err
		}
		for _, layer := range manifest.Layers[:min(len(manifest.Layers), 1)] {
			if layer.Size > maxSignature {
				continue
			}
			data, err := content.FetchAll(ctx, repository, layer)
			if err != nil {
				return nil, err
			}
			if read, is := bundled(data); is {
				found = append(found, read)
			}
		}
	}
	return found, nil
}

func manifestOf(ctx context.Context, repository *remote.Repository, reference string) (ocispec.Manifest, error) {
	var manifest ocispec.Manifest
	options := oras.DefaultFetchBytesOptions
	options.MaxBytes = maxManifest
	_, data, err := oras.FetchBytes(ctx, repository, reference, options)
	if err != nil {
		return manifest, err
	}
	return manifest, json.Unmarshal(data, &manifest)
}

// bundled reads a bundle that has an envelope.
func bundled(data []byte) (signature, bool) {
	var bundle struct {
		Envelope *dsse.Envelope `json:"dsseEnvelope"`
	}
	if json.Unmarshal(data, &bundle) != nil || bundle.Envelope == nil {
		return signature{}, false
	}
	payload, err := bundle.Envelope.DecodeB64Payload()
	if err != nil {
		return signature{}, false
	}
	read := signature{Payload: payload, Type: bundle.Envelope.PayloadType}
	for _, each := range bundle.Envelope.Signatures {
		if signed, err := base64.StdEncoding.DecodeString(each.Sig); err == nil {
			read.Signatures = append(read.Signatures, signed)
		}
	}
	return read, true
}

// CheckKeys says what is wrong with public keys.
func CheckKeys(keys []string) error {
	_, err := verifiers(keys)
	return err
}

func verifiers(keys []string) ([]sigstore.Verifier, error) {
	var found []sigstore.Verifier
	for i, text := range keys {
		key, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("key %d is no public key in PEM", i+1)
		}
		verifier, err := sigstore.LoadVerifier(key, crypto.SHA256)
		if err != nil {
			return nil, fmt.Errorf("key %d cannot be used: %w", i+1, err)
		}
		found = append(found, verifier)
	}
	return found, nil
}

// UnsignedError says that no key has signed an image that must be signed.
type UnsignedError struct {
	Image string
	// Signatures is how many there are.
	Signatures int
}

// Error says why.
func (e *UnsignedError) Error() string {
	if e.Signatures == 0 {
		return "image " + e.Image + " is not signed"
	}
	return fmt.Sprintf("none of the %d signatures of image %s is by one of the keys", e.Signatures, e.Image)
}

// checkSignatures says why an image does not count as signed.
func checkSignatures(image Image, signatures []signature) error {
	if len(image.Keys) == 0 {
		return nil
	}
	keys, err := verifiers(image.Keys)
	if err != nil {
		return err
	}
	for _, each := range signatures {
		if !each.names(image.Digest) {
			continue
		}
		for _, signed := range each.Signatures {
			for _, key := range keys {
				if key.VerifySignature(bytes.NewReader(signed), bytes.NewReader(each.signed())) == nil {
					return nil
				}
			}
		}
	}
	return &UnsignedError{Image: image.String(), Signatures: len(signatures)}
}

// signed returns the bytes that were signed.
func (s signature) signed() []byte {
	if s.Type == "" {
		return s.Payload
	}
	return dsse.PAE(s.Type, s.Payload)
}

// names tells whether what was signed says that an image is.
func (s signature) names(image string) bool {
	if s.Type == "" {
		var said struct {
			Critical struct {
				Type  string `json:"type"`
				Image struct {
					Digest string `json:"docker-manifest-digest"`
				} `json:"image"`
			} `json:"critical"`
		}
		return json.Unmarshal(s.Payload, &said) == nil && said.Critical.Type == simpleType && said.Critical.Image.Digest == image
	}
	var said struct {
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if s.Type != statementType || json.Unmarshal(s.Payload, &said) != nil || said.PredicateType != signPredicate {
		return false
	}
	for _, subject := range said.Subject {
		if subject.Digest["sha256"] == digest.Digest(image).Encoded() {
			return true
		}
	}
	return false
}

func sameSignatures(a, b []signature) bool {
	return slices.EqualFunc(a, b, func(a, b signature) bool {
		return bytes.Equal(a.Payload, b.Payload) && a.Type == b.Type && slices.EqualFunc(a.Signatures, b.Signatures, bytes.Equal)
	})
}
