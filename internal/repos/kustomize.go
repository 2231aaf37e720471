// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kustomize"
)

// build adds what kustomize makes of a kustomization to a set. What it may load is
// judged before, and what it does has no other way than that.
func build(ctx context.Context, files fs.FS, file string, how builds.Build, set *objectSet, with programs) error {
	directory := path.Dir(file)
	needed, ignored, err := load(ctx, files, directory, how.Decryption != nil)
	if err != nil {
		return err
	}
	set.ignored = ignored
	made := making{asFlux: !how.IsZero(), variablesUnknown: how.VariablesUnknown}
	if how.Decryption != nil {
		if made.secret, err = decrypt(ctx, needed, how.Decryption, with.decrypt); err != nil {
			return err
		}
		if made.sealed = how.Decryption.Sealed; made.sealed {
			set.sealed = sealedNames(needed)
		}
	}
	objects, err := with.build(ctx, &kustomize.Request{
		Files: needed, Directory: directory, Substitution: how.Substitution, Labels: how.Labels, Annotations: how.Annotations,
	})
	secrets := append(how.Confidential(), made.secret.values...)
	if err != nil {
		return buildFailed(file, err, needed, secrets)
	}
	for i := range objects {
		if err := addBuilt(file, &objects[i], made, set); err != nil {
			return withoutValues(err, secrets)
		}
	}
	return nil
}

// buildFailed says why kustomize has made nothing. What a Secret gives is hidden as what a
// file keeps secret.
func buildFailed(file string, err error, needed map[string][]byte, secrets []string) error {
	needed[".variables"] = []byte(strings.Join(secrets, " "))
	var refusal *kustomize.Refusal
	var ended *kustomize.Ended
	switch {
	case errors.As(err, &refusal):
		return failed(file, "", "kustomize: %s", buildMessage(err, needed))
	case errors.As(err, &ended):
		return failed(file, "", "its build %s, and is not tried again before a file of it changes: %s", ended.Message, advice)
	default:
		return fmt.Errorf("cannot build %s: %w", file, err)
	}
}

// withoutValues hides values of Secrets in what a mistake says.
func withoutValues(err error, secrets []string) error {
	var mistake *directories.ContentError
	if len(secrets) > 0 && errors.As(err, &mistake) {
		mistake.Message = confidentialOf(map[string][]byte{".variables": []byte(strings.Join(secrets, " "))}).hide(mistake.Message)
	}
	return err
}

// advice is what to do about a build that takes too much.
const advice = "look for patches, replacements and bases that copy the same things again and again, or split the layer; kubectl strata lint builds it in the same way"

// making is how the objects of one directory are made.
type making struct {
	asFlux, variablesUnknown bool
	// sealed takes encrypted objects as they are.
	sealed bool
	// secret says which objects hold what was decrypted.
	secret secretKinds
}

// addBuilt adds one object that kustomize made.
func addBuilt(file string, built *kustomize.Object, made making, set *objectSet) error {
	name := built.Kind + " " + built.Name
	d := &document{file: file, first: 1, text: []byte(built.Text)}
	if err := d.parseNodes(); err != nil {
		return ofObject(err, name)
	}
	if d.root == nil {
		return failed(file, "", "kustomize: %s is empty", name)
	}
	if isEncrypted(d.root) && !made.sealed {
		return encrypted(file)
	}
	var value map[string]any
	if err := json.Unmarshal(built.JSON, &value); err != nil {
		return failed(file, "", "kustomize: cannot read %s: %s", name, jsonMessage(err))
	}
	dropAnnotations(value, made.asFlux)
	if made.sealed {
		delete(value, "sops")
	}
	isDecrypted := made.secret.covers(built.Kind) || made.secret.carries(value)
	from := provenance{
		asFlux: made.asFlux, confidential: built.Confidential, decrypted: isDecrypted, unset: built.Unset, named: built.Named,
		variablesUnknown: made.variablesUnknown,
	}
	if err := addObjects(place{file: file, whole: true, provenance: from}, value, d.root, set, 0); err != nil {
		return ofObject(err, name)
	}
	return nil
}

// ofObject names the object in a mistake: its file, the kustomization, says
// too little, and a line says nothing.
func ofObject(err error, name string) error {
	var mistake *directories.ContentError
	if errors.As(err, &mistake) {
		mistake.Line = 0
		if !strings.HasPrefix(mistake.Message, name+" ") {
			mistake.Message = name + ": " + mistake.Message
		}
	}
	return err
}

// dropAnnotations removes what kustomize notes for itself, and what it notes of origins
// where these are not kept.
func dropAnnotations(value map[string]any, keepOrigins bool) {
	metadata, _ := value["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for key := range annotations {
		switch {
		case strings.HasPrefix(key, "internal.config.kubernetes.io/"),
			key == "config.kubernetes.io/index", key == "config.kubernetes.io/path",
			!keepOrigins && (key == "config.kubernetes.io/origin" || key == "alpha.config.kubernetes.io/transformations"):
			delete(annotations, key)
		}
	}
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

var mountedPath = regexp.MustCompile(regexp.QuoteMeta(kustomize.Mount) + `/?`)

// notFile matches what kustomize says of a resource that is no file it can
// read, nor, which it tries next and nobody meant, a directory.
var notFile = regexp.MustCompile(`accumulating resources: accumulation err='(.*)': must build at directory: .*$`)

// byteList matches a line that kustomize quotes as the numbers of its bytes.
var byteList = regexp.MustCompile(`\[\d{1,3}(?: \d{1,3})+\]`)

// buildMessage shows paths as they are in the artifact, on one line, and nothing of what
// the files that the message is about may keep secret.
func buildMessage(err error, files map[string][]byte) string {
	message := mountedPath.ReplaceAllString(err.Error(), "")
	message = strings.Join(strings.Fields(message), " ")
	message = notFile.ReplaceAllString(message, "$1")
	message = byteList.ReplaceAllString(message, "["+hidden+"]")
	const limit = 1000
	if len(message) > limit {
		message = strings.ToValidUTF8(message[:limit], "") + "..."
	}
	return confidentialOf(files).hide(message)
}
