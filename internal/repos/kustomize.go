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
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/strata-project/strata/internal/layers"
)

// kustomizing holds the one build that may run: kustomize keeps the schema of
// its objects in a global variable.
var kustomizing = make(chan struct{}, 1)

// build adds what kustomize makes of a kustomization to a set. Nothing is
// loaded but files of the artifact, and only plug-ins that are part of
// kustomize, and need no program, run.
func build(ctx context.Context, files fs.FS, file string, set *objectSet) error {
	if err := acquire(ctx, kustomizing); err != nil {
		return fmt.Errorf("cannot build %s: %w", file, err)
	}
	guard := &guardedFS{ctx: ctx, reader: reader{files: files}, plugins: map[string]bool{}}
	type outcome struct {
		objects resmap.ResMap
		err     error
	}
	// The build cannot be interrupted. One that takes too long is left behind:
	// its next look at a file ends it, and lets the next one begin.
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-kustomizing }()
		objects, err := run(guard, path.Dir(file))
		done <- outcome{objects, err}
	}()
	var built outcome
	select {
	case <-ctx.Done():
		return fmt.Errorf("cannot build %s: %w", file, ctx.Err())
	case built = <-done:
	}
	if guard.violation != nil {
		return guard.violation
	}
	if built.err != nil {
		return failed(file, "", "kustomize: %s", buildMessage(built.err))
	}
	for _, object := range built.objects.Resources() {
		if err := addBuilt(file, object, set); err != nil {
			return err
		}
	}
	return nil
}

func run(guard *guardedFS, directory string) (_ resmap.ResMap, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panicked: %v", r)
		}
	}()
	options := krusty.MakeDefaultOptions()
	// guardedFS restricts what is loaded to the artifact. kustomize's own
	// restriction would also forbid a file of a directory beside the layer's.
	options.LoadRestrictions = types.LoadRestrictionsNone
	options.PluginConfig = types.DisabledPluginConfig()
	options.Reorder = krusty.ReorderOptionNone
	return krusty.MakeKustomizer(options).Run(guard, path.Join(mount, directory))
}

// addBuilt adds one object that kustomize made.
func addBuilt(file string, built *resource.Resource, set *objectSet) error {
	node := built.YNode()
	name := built.GetKind() + " " + built.GetName()
	if err := checkNodes(file, 0, node); err != nil {
		return ofObject(err, name)
	}
	if isEncrypted(node) {
		return encrypted(file)
	}
	data, err := built.MarshalJSON()
	if err != nil {
		return failed(file, "", "kustomize: cannot read %s: %s", name, buildMessage(err))
	}
	var value map[string]any
	if err := json.Unmarshal(data, &value); err != nil {
		return failed(file, "", "kustomize: cannot read %s: %s", name, jsonMessage(err))
	}
	dropAnnotations(value)
	if err := addObjects(place{file: file, whole: true}, value, node, set, 0); err != nil {
		return ofObject(err, name)
	}
	return nil
}

// ofObject names the object in a mistake: its file, the kustomization, says
// too little, and a line says nothing.
func ofObject(err error, name string) error {
	var mistake *layers.ContentError
	if errors.As(err, &mistake) {
		mistake.Line = 0
		if !strings.HasPrefix(mistake.Message, name+" ") {
			mistake.Message = name + ": " + mistake.Message
		}
	}
	return err
}

// dropAnnotations removes what kustomize notes for itself.
func dropAnnotations(value map[string]any) {
	metadata, _ := value["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for key := range annotations {
		switch {
		case strings.HasPrefix(key, "internal.config.kubernetes.io/"),
			key == "config.kubernetes.io/index", key == "config.kubernetes.io/path",
			key == "config.kubernetes.io/origin", key == "alpha.config.kubernetes.io/transformations":
			delete(annotations, key)
		}
	}
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

var mountedPath = regexp.MustCompile(regexp.QuoteMeta(mount) + `/?`)

// notFile matches what kustomize says of a resource that is no file it can
// read, nor, which it tries next and nobody meant, a directory.
var notFile = regexp.MustCompile(`accumulating resources: accumulation err='(.*)': must build at directory: .*$`)

// buildMessage shows paths as they are in the artifact, on one line.
func buildMessage(err error) string {
	message := mountedPath.ReplaceAllString(err.Error(), "")
	message = strings.Join(strings.Fields(message), " ")
	message = notFile.ReplaceAllString(message, "$1")
	const limit = 1000
	if len(message) > limit {
		message = strings.ToValidUTF8(message[:limit], "") + "..."
	}
	return message
}
