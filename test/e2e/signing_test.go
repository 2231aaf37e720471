// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// signingKey is an author's key.
type signingKey struct {
	entity *openpgp.Entity
	// public is the part that a GitRepository trusts.
	public string
}

func (f *fixture) signingKey() signingKey {
	f.Helper()
	entity, err := openpgp.NewEntity("author", "", "author@strata.invalid", nil)
	f.must(err)
	var out bytes.Buffer
	armored, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
	f.must(err)
	f.must(entity.Serialize(armored))
	f.must(armored.Close())
	return signingKey{entity: entity, public: out.String()}
}

// sign returns the signature of a commit.
func (k signingKey) sign(commit string) (string, error) {
	var out bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&out, k.entity, strings.NewReader(commit), nil); err != nil {
		return "", err
	}
	return out.String(), nil
}

// cosignKey is a key as `cosign generate-key-pair` makes it, with the part that
// an OCIRepository trusts.
func (f *fixture) cosignKey() (key *ecdsa.PrivateKey, public string) {
	f.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	f.must(err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	f.must(err)
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// unverified waits until a layer says that its source has something new that
// cannot be verified.
func (f *fixture) unverified(layer, words string) {
	f.Helper()
	f.eventually("layer "+layer+" says that its source is not verified", func() error {
		found := condition(f.get(layer), v1alpha1.SourceReadyCondition)
		if found.Status != metav1.ConditionFalse || !strings.Contains(found.Message, "the last artifact is used: "+words) {
			return fmt.Errorf("the condition is %v", found)
		}
		return nil
	})
}

// A source that cannot be verified has either no artifact, and is waited for,
// or an older one, which stays in use: nothing unverified is ever deployed.
func TestUnverifiedCommitIsNotDeployed(t *testing.T) {
	f := newFixture(t)
	repo, err := stack.git.NewRepo(f.prefix + "-signed")
	f.must(err)
	key := f.signingKey()
	f.must(stack.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "authors"}, StringData: map[string]string{"author.asc": key.public},
	}))
	release := func(value string) map[string]string {
		return map[string]string{"addons/apps/release.yaml": f.configMapRelease("apps", value)}
	}
	source := &origin{fixture: f, kind: "GitRepository", name: "signed"}
	source.object = func() client.Object {
		return &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{
			URL: repo.URL(), Interval: metav1.Duration{Duration: time.Hour}, Reference: &sourcev1.GitRepositoryRef{Branch: controlplane.Branch},
			Verification: &sourcev1.GitRepositoryVerification{Mode: sourcev1.ModeGitHEAD, SecretRef: fluxmeta.LocalObjectReference{Name: "authors"}},
		}}
	}
	_, err = repo.Commit("nobody's", release("unsigned"))
	f.must(err)
	source.create()
	f.layer("apps", source.from)
	f.reason("apps", v1alpha1.ReasonSourceNotReady, "waits for GitRepository", "has no artifact yet", "signature verification of commit")

	_, err = repo.Commit("the author's", release("signed"))
	f.must(err)
	commit, err := repo.Sign(key.sign)
	f.must(err)
	signed := controlplane.Branch + "@sha1:" + commit
	if revision := source.revision(); revision != signed {
		t.Fatalf("%s was fetched, want %s", revision, signed)
	}
	f.deployed("apps", signed)
	before := f.footprints()

	_, err = repo.Commit("nobody's again", release("forged"))
	f.must(err)
	source.revision()
	f.unverified("apps", "signature verification of commit")
	f.deployed("apps", signed)
	f.untouched(before)

	_, err = repo.Commit("the author's again", release("again"))
	f.must(err)
	commit, err = repo.Sign(key.sign)
	f.must(err)
	source.revision()
	f.deployed("apps", controlplane.Branch+"@sha1:"+commit)
	f.must(sourceReady(f.get("apps"), ""))
}

// The same for an OCI artifact that is signed with another key, or not at all.
func TestUnverifiedOCIArtifactIsNotDeployed(t *testing.T) {
	f := newFixture(t)
	key, public := f.cosignKey()
	other, _ := f.cosignKey()
	f.must(stack.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "signers"}, StringData: map[string]string{"team.pub": public},
	}))
	source := f.ociOrigin("signed")
	unsigned := source.object
	source.object = func() client.Object {
		repository := unsigned().(*sourcev1.OCIRepository)
		repository.Spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &fluxmeta.LocalObjectReference{Name: "signers"}}
		return repository
	}
	push := func(value string, signers ...*ecdsa.PrivateKey) string {
		revision, err := stack.oci.Push(f.ctx, f.prefix+"/signed", "latest", map[string]string{"addons/apps/release.yaml": f.configMapRelease("apps", value)})
		f.must(err)
		for _, signer := range signers {
			f.must(stack.oci.Sign(f.ctx, f.prefix+"/signed", revision, signer))
		}
		return revision
	}
	const failed = "failed to verify the signature using provider 'cosign'"
	push("unsigned")
	source.create()
	f.layer("apps", source.from)
	f.reason("apps", v1alpha1.ReasonSourceNotReady, "waits for OCIRepository", "has no artifact yet", failed)

	signed := push("signed", key)
	if revision := source.revision(); revision != signed {
		t.Fatalf("%s was fetched, want %s", revision, signed)
	}
	f.deployed("apps", signed)
	before := f.footprints()

	push("forged", other)
	source.revision()
	f.unverified("apps", failed)
	f.deployed("apps", signed)
	f.untouched(before)

	again := push("again", key)
	source.revision()
	f.deployed("apps", again)
	f.must(sourceReady(f.get("apps"), ""))
}
