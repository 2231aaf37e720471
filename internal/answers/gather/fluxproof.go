// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/reserved"
)

// Proof is what the layers of a cluster hold together.
type Proof struct {
	// Layers that were built, and how many objects they hold.
	Layers  int `json:"layers"`
	Objects int `json:"objects"`
	// Elsewhere is how many layers are of other repositories, or of directories that cannot
	// be built: what they hold is not known here.
	Elsewhere int `json:"elsewhere"`
	// Problems name each object that two layers hold, each Kustomization that a layer holds
	// and that has a layer of its own, and what the controller refuses.
	Problems []string `json:"-"`
}

// Prove builds the directory of every layer that is made, and says whether each object has
// one owner when the layers take over.
func (f *FluxRepository) Prove(ctx context.Context, cluster *FluxCluster, all []kustomizations.Conversion) (Proof, error) {
	var proof Proof
	own := map[types.NamespacedName]bool{}
	for _, c := range all {
		own[c.Of] = c.Layer != nil || c.Empty
	}
	holders := map[string]string{}
	for _, c := range all {
		if c.Layer == nil {
			continue
		}
		source := c.Layer.Spec.Source
		files := f.filesOf(cluster.artifacts, source.Kind, source.Namespace, source.Name)
		var built *builtDirectory
		if files != nil {
			var err error
			if built, err = f.build(ctx, files, c.Layer, c.Of.Namespace, cluster.values); err != nil {
				return Proof{}, err
			}
		}
		if built == nil || built.err != nil {
			proof.Elsewhere++
			isSaid := func(said string) bool { return strings.HasPrefix(said, "Kustomization "+c.Of.String()+": ") }
			if built != nil && !slices.ContainsFunc(cluster.Has.Problems, isSaid) {
				proof.Problems = append(proof.Problems, fmt.Sprintf("Kustomization %s: its directory cannot be built: %v", c.Of, built.err))
			}
			continue
		}
		proof.Layers++
		for _, object := range built.objects {
			proof.Objects++
			proof.add(c, object, own, holders)
		}
	}
	return proof, nil
}

// add adds one object of a layer.
func (p *Proof) add(c kustomizations.Conversion, object *unstructured.Unstructured, own map[types.NamespacedName]bool, holders map[string]string) {
	id := objects.IDOf(object)
	if kustomizations.IsKustomization(object) && own[types.NamespacedName{Namespace: cmp.Or(id.Namespace, kustomizations.DefaultNamespace), Name: id.Name}] {
		p.Problems = append(p.Problems, fmt.Sprintf("layer %s holds %s, which has a layer of its own: two would own its objects", c.Layer.Name, id))
	}
	why := cmp.Or(reserved.Name(id, defaultSettings.Namespace), reserved.Written(id.GroupKind(), object))
	if why != "" && id.Group != v1alpha1.GroupVersion.Group {
		p.Problems = append(p.Problems, fmt.Sprintf("layer %s: %s is %s, and no layer writes it: "+
			"take it out of the directory, or leave its Kustomization with Flux", c.Layer.Name, id, why))
	}
	if strings.Contains(id.Namespace+id.Name, "${") {
		return // what it is called is not known
	}
	if kinds.HasNoNamespaces(id.GroupKind()) {
		id.Namespace = "" // the API server drops it
	}
	where := ""
	if to := c.Layer.Spec.Cluster; to != nil {
		where = to.Namespace + "/" + to.Name
	}
	key := where + " " + id.String()
	switch other := holders[key]; other {
	case "":
		holders[key] = c.Layer.Name
	case c.Layer.Name:
	default:
		p.Problems = append(p.Problems, fmt.Sprintf("%s would be of layer %s and of layer %s: take it out of one of them", id, other, c.Layer.Name))
	}
}
