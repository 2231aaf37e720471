// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/answers/kustomizations"
)

// takeArtifacts notes the artifacts that an ArtifactGenerator makes of folders of the
// repository. Those that are made in another way are not known.
func (r *reaching) takeArtifacts(object *unstructured.Unstructured) error {
	for _, artifact := range kustomizations.ArtifactsOf(object, r.f.own) {
		key := types.NamespacedName{Namespace: cmp.Or(object.GetNamespace(), kustomizations.DefaultNamespace), Name: artifact.Name}
		files, err := r.f.layOut(artifact)
		if err != nil {
			return fmt.Errorf("cannot make artifact %s: %w", key, err)
		}
		if files != nil {
			r.artifacts[key] = files
		}
	}
	return nil
}

// layOut copies the folders that an artifact is made of; nil where one of them is not there.
// The same artifact is made once.
func (f *FluxRepository) layOut(artifact kustomizations.Artifact) (*filesOfSource, error) {
	for _, folder := range artifact.Folders {
		if info, err := fs.Stat(f.artifact, folder.From); err != nil || !info.IsDir() {
			return nil, nil //nolint:nilnil,nilerr // what it holds is not known
		}
	}
	key := fmt.Sprint(artifact)
	if made := f.made[key]; made != nil {
		return made, nil
	}
	if f.laidOut == "" {
		var err error
		if f.laidOut, err = os.MkdirTemp("", "strata-artifacts-"); err != nil {
			return nil, err
		}
	}
	into := filepath.Join(f.laidOut, strconv.Itoa(len(f.made)))
	for _, folder := range artifact.Folders {
		from, err := fs.Sub(f.artifact, folder.From)
		if err != nil {
			return nil, err
		}
		if err := os.CopyFS(filepath.Join(into, filepath.FromSlash(folder.To)), from); err != nil {
			return nil, err
		}
	}
	f.made[key] = &filesOfSource{FS: os.DirFS(into), name: into}
	return f.made[key], nil
}
