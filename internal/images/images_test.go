// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/strata-project/strata/internal/images"
	"github.com/strata-project/strata/internal/images/imagestest"
	"github.com/strata-project/strata/test/controlplane"
)

// fixture is a registry, and a store that fetches from it.
type fixture struct {
	testing.TB
	registry *controlplane.OCIServer
	store    *images.Store
	folder   string
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	registry, err := controlplane.NewOCIServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() })
	f := &fixture{TB: t, registry: registry, folder: t.TempDir()}
	f.again()
	return f
}

// again has the store be that of a process that has just begun.
func (f *fixture) again() {
	f.Helper()
	f.store = images.NewStore(f.folder)
}

func (f *fixture) address() string { return f.registry.URL("plugins/database") }

// host is the registry's own address.
func (f *fixture) host() string { return strings.TrimPrefix(f.registry.URL(""), "oci://") }

// push pushes an image of layers, or an index of that.
func (f *fixture) push(index bool, layers ...v1.Layer) images.Image {
	f.Helper()
	image := imagestest.Image(f, layers...)
	reference := f.host() + "plugins/database:1.0.0"
	if index {
		return images.Image{Address: f.address(), Digest: imagestest.Push(f, reference, imagestest.Index(f, image))}
	}
	return images.Image{Address: f.address(), Digest: imagestest.Push(f, reference, image)}
}

func program(t testing.TB, content string) v1.Layer {
	return imagestest.Layer(t, imagestest.File{Name: "bin/plugin", Content: content})
}

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// The program of an image is the file of its topmost layer that has it, for this platform; and it
// needs the registry once.
func TestProgramOfAnImage(t *testing.T) {
	for _, index := range []bool{false, true} {
		f := newFixture(t)
		image := f.push(index, program(t, "of below"), program(t, "of above"), imagestest.Layer(t, imagestest.File{Name: "etc/passwd", Content: "x"}))
		found, err := f.store.Program(t.Context(), image)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(found.Path)
		if err != nil || string(content) != "of above" || found.Digest != digestOf("of above") || filepath.Base(found.Path) != "sha256-"+strings.TrimPrefix(found.Digest, "sha256:") {
			t.Errorf("%q, %v, %v", content, found, err)
		}
		if err := f.registry.Stop(); err != nil {
			t.Fatal(err)
		}
		f.again()
		if again, err := f.store.Program(t.Context(), image); err != nil || again != found {
			t.Errorf("without the registry: %v, %v", again, err)
		}
		other := image
		other.Digest = digestOf("nothing")
		if _, err := f.store.Program(t.Context(), other); err == nil {
			t.Error("there is a program of an image that was never fetched")
		}
		left, err := filepath.Glob(filepath.Join(f.folder, "fetched-*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%v are left, %v", left, err)
		}
	}
}

// A registry that takes its time, and never answers, holds up neither the programs nor the
// signatures of another one, not even of an image that has the same digest there.
func TestSlowRegistryHoldsUpNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	image := f.push(false, program(t, "of here"))
	asked := make(chan struct{}, 1)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-req.Context().Done()
	}))
	t.Cleanup(slow.Close)
	_, key := imagestest.NewKey(t)
	elsewhere := images.Image{Address: "oci://" + strings.TrimPrefix(slow.URL, "http://") + "/plugins/database", Digest: image.Digest, Keys: []string{key}}
	holdsUp := map[string]func(context.Context) error{
		"its program":    func(ctx context.Context) error { _, err := f.store.Program(ctx, elsewhere); return err },
		"its signatures": func(ctx context.Context) error { return f.store.Check(ctx, elsewhere) },
	}
	for name, hang := range holdsUp {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- hang(ctx) }()
		<-asked
		fetched := make(chan error, 1)
		go func() {
			_, err := f.store.Program(ctx, image)
			signed := image
			signed.Keys = []string{key}
			var unsigned *images.UnsignedError
			if checked := f.store.Check(ctx, signed); !errors.As(checked, &unsigned) {
				err = errors.Join(err, fmt.Errorf("its signatures: %w", checked))
			}
			fetched <- err
		}()
		select {
		case err := <-fetched:
			if err != nil {
				t.Errorf("while the other registry is asked for %s: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("the image waits while the other registry is asked for %s", name)
		}
		cancel()
		if err := <-ended; err == nil {
			t.Errorf("there is an answer to %s", name)
		}
	}
}

// Of one image there is one fetch at a time, and whoever waits for it does so no longer than it
// wants to.
func TestOneFetchOfAnImage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	image := f.push(false, program(t, "of here"))
	var asked atomic.Int32
	began, goOn := make(chan struct{}, 1), make(chan struct{})
	address, err := url.Parse("http://" + strings.TrimSuffix(f.host(), "/"))
	if err != nil {
		t.Fatal(err)
	}
	registry := httputil.NewSingleHostReverseProxy(address)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if asked.Add(1) == 1 {
			began <- struct{}{}
			<-goOn
		}
		registry.ServeHTTP(w, req)
	}))
	t.Cleanup(slow.Close)
	image.Address = "oci://" + strings.TrimPrefix(slow.URL, "http://") + "/plugins/database"
	const fetches = 3
	ended := make(chan error, fetches)
	fetch := func() { _, err := f.store.Program(t.Context(), image); ended <- err }
	go fetch()
	<-began
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.store.Program(impatient, image); !errors.Is(err, context.Canceled) {
		t.Errorf("a fetch that nobody waits for any more: %v", err)
	}
	for range fetches - 1 {
		go fetch()
	}
	close(goOn)
	for range fetches {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	once := asked.Load()
	if _, err := f.store.Program(t.Context(), image); err != nil || asked.Load() != once {
		t.Errorf("%d requests are %d, %v", once, asked.Load(), err)
	}
	if one := int32(4); once != one { // where its manifest is, that, its configuration, and a layer
		t.Errorf("there were %d requests for one fetch, and not %d", once, one)
	}
}

// An image that has no program, or hides it, is refused, and nothing is left of it.
func TestImagesWithoutAProgram(t *testing.T) {
	f := newFixture(t)
	file := func(name, content, link string) v1.Layer {
		return imagestest.Layer(t, imagestest.File{Name: name, Content: content, Link: link})
	}
	for name, c := range map[string]struct {
		layers []v1.Layer
		want   string
	}{
		"none":           {[]v1.Layer{file("bin/other", "x", "")}, "has no file /bin/plugin"},
		"a link":         {[]v1.Layer{file("bin/plugin", "", "/etc/shadow")}, "may be no link"},
		"removed":        {[]v1.Layer{program(t, "x"), file("bin/.wh.plugin", "", "")}, "removes bin/plugin"},
		"folder removed": {[]v1.Layer{program(t, "x"), file("bin/.wh..wh..opq", "", "")}, "removes bin/plugin"},
		"twice": {
			[]v1.Layer{imagestest.Layer(t, imagestest.File{Name: "bin/plugin", Content: "a"}, imagestest.File{Name: "./bin/plugin", Content: "b"})},
			"is in it twice",
		},
		"outside": {[]v1.Layer{file("../../bin/../plugin", "x", "")}, "has no file /bin/plugin"},
	} {
		_, err := f.store.Program(t.Context(), f.push(false, c.layers...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	relative := imagestest.Image(t, program(t, "x"))
	config, err := relative.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.Entrypoint = []string{"sh", "-c", "plugin"}
	if relative, err = mutate.ConfigFile(relative, config); err != nil {
		t.Fatal(err)
	}
	image := images.Image{Address: f.address(), Digest: imagestest.Push(t, f.host()+"plugins/database:2", relative)}
	if _, err := f.store.Program(t.Context(), image); err == nil || !strings.Contains(err.Error(), "runs no program by its path") {
		t.Errorf("a program without a path: %v", err)
	}
	for _, address := range []string{"", "https://127.0.0.1/x", "oci://", "oci://127.0.0.1:5000/x@" + image.Digest, f.host() + "x"} {
		if _, err := f.store.Program(t.Context(), images.Image{Address: address, Digest: image.Digest}); err == nil || !strings.Contains(err.Error(), "no address of an image") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, digest := range []string{"", "latest", "sha256:12", "../" + image.Digest} {
		if _, err := f.store.Program(t.Context(), images.Image{Address: f.address(), Digest: digest}); err == nil || !strings.Contains(err.Error(), "no digest") {
			t.Errorf("%s: %v", digest, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(f.folder, "*-*")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// A registry that says something else than what was asked for is found out.
func TestForgedImages(t *testing.T) {
	f := newFixture(t)
	image := f.push(false, program(t, strings.Repeat("honest", 1000)))
	behind, err := url.Parse("http://" + strings.TrimSuffix(f.host(), "/"))
	if err != nil {
		t.Fatal(err)
	}
	for name, forge := range map[string]func(path string, body []byte) []byte{
		"manifest": func(path string, body []byte) []byte {
			if strings.Contains(path, "/manifests/") {
				return bytes.Replace(body, []byte(`"schemaVersion":2`), []byte(`"schemaVersion":3`), 1)
			}
			return body
		},
		"blobs": func(path string, body []byte) []byte {
			if strings.Contains(path, "/blobs/") {
				body = bytes.Clone(body)
				body[len(body)-1] ^= 1
			}
			return body
		},
		"short": func(path string, body []byte) []byte {
			if strings.Contains(path, "/blobs/") {
				return body[:len(body)/2]
			}
			return body
		},
		"long": func(path string, body []byte) []byte {
			if strings.Contains(path, "/blobs/") {
				return append(bytes.Clone(body), 0)
			}
			return body
		},
	} {
		proxy := httputil.NewSingleHostReverseProxy(behind)
		proxy.ModifyResponse = func(response *http.Response) error {
			body, err := io.ReadAll(response.Body)
			if err != nil || response.Request.Method != http.MethodGet {
				return err
			}
			body = forge(response.Request.URL.Path, body)
			response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			response.Header.Set("Content-Length", fmt.Sprint(len(body)))
			return nil
		}
		server := httptest.NewServer(proxy)
		forged := images.Image{Address: "oci://" + strings.TrimPrefix(server.URL, "http://") + "/plugins/database", Digest: image.Digest}
		if found, err := f.store.Program(t.Context(), forged); err == nil {
			t.Errorf("%s: %v", name, found)
		}
		server.Close()
	}
	if left, err := filepath.Glob(filepath.Join(f.folder, "*-*")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// An image with keys counts where one of them has signed it; once it has, that holds without the
// registry, until the key goes.
func TestSignedImages(t *testing.T) {
	f := newFixture(t)
	key, public := imagestest.NewKey(t)
	foreign, other := imagestest.NewKey(t)
	image := f.push(true, program(t, "signed"))
	image.Keys = []string{other, public}
	refused := func(image images.Image, want string) {
		t.Helper()
		_, err := f.store.Program(t.Context(), image)
		var unsigned *images.UnsignedError
		if !errors.As(err, &unsigned) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and not %q", err, want)
		}
	}
	refused(image, "is not signed")
	sign := func(digest string, by *ecdsa.PrivateKey) {
		t.Helper()
		if err := f.registry.Sign(t.Context(), "plugins/database", "1.0.0@"+digest, by); err != nil {
			t.Fatal(err)
		}
	}
	onlyOurs := image
	onlyOurs.Keys = []string{public}
	sign(image.Digest, foreign)
	refused(onlyOurs, "none of the 1 signatures")
	sign(image.Digest, key)
	if _, err := f.store.Program(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	elsewhere := image // where nobody has signed it, which says nothing of it here
	elsewhere.Address = f.registry.URL("plugins/other")
	elsewhere.Digest = imagestest.Push(f, f.host()+"plugins/other:1.0.0", imagestest.Index(f, imagestest.Image(f, program(t, "signed"))))
	if elsewhere.Digest != image.Digest {
		t.Fatalf("%s and %s are not the same image", elsewhere.Digest, image.Digest)
	}
	var unsigned *images.UnsignedError
	if err := f.store.Check(t.Context(), elsewhere); !errors.As(err, &unsigned) {
		t.Errorf("in another repository: %v", err)
	}
	if err := f.registry.Stop(); err != nil {
		t.Fatal(err)
	}
	f.again()
	if _, err := f.store.Program(t.Context(), image); err != nil {
		t.Errorf("without the registry: %v", err)
	}
	if err := f.store.Check(t.Context(), image); err != nil {
		t.Errorf("without the registry: %v", err)
	}
	revoked := image
	revoked.Keys = []string{other}
	if _, err := f.store.Program(t.Context(), revoked); err == nil {
		t.Error("the key has gone, and its signature counts")
	}
	if err := f.store.Check(t.Context(), revoked); err == nil {
		t.Error("the key has gone, and its signature counts")
	}

	t.Log("a signature that is taken back counts no more once the registry has said so")
	if err := f.registry.Start(); err != nil {
		t.Fatal(err)
	}
	sign(image.Digest, foreign) // in the place of ours
	if err := f.store.Check(t.Context(), onlyOurs); err == nil {
		t.Error("a signature that has gone counts")
	}
	f.again()
	refused(onlyOurs, "none of the 1 signatures")

	t.Log("the signature of one image is none of another one")
	sign(image.Digest, key)
	forged := f.push(true, program(t, "forged"))
	forged.Keys = []string{public}
	f.copySignature(image.Digest, forged.Digest)
	refused(forged, "none of the 1 signatures")
	forged.Keys = []string{"no key"}
	if _, err := f.store.Program(t.Context(), forged); err == nil || !strings.Contains(err.Error(), "no public key in PEM") {
		t.Errorf("no key: %v", err)
	}
}

// copySignature has the signatures of one image be those of another one.
func (f *fixture) copySignature(from, to string) {
	f.Helper()
	at := "http://" + f.host() + "v2/plugins/database/manifests/"
	tag := func(digest string) string { return strings.Replace(digest, ":", "-", 1) + ".sig" }
	response, err := http.Get(at + tag(from))
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	request, err := http.NewRequestWithContext(f.Context(), http.MethodPut, at+tag(to), response.Body)
	if err != nil {
		f.Fatal(err)
	}
	request.Header.Set("Content-Type", response.Header.Get("Content-Type"))
	put, err := http.DefaultClient.Do(request)
	if err != nil || put.StatusCode != http.StatusCreated {
		f.Fatalf("%v, %v", put, err)
	}
	_ = put.Body.Close()
}
