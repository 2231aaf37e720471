// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/printable"
)

// Given is what a release of another cluster gets of a ConfigMap or Secret that
// its directory does not list. The zero value says that there is none.
type Given struct {
	// Object is the one that is copied; nil where none is.
	Object *unstructured.Unstructured
	// Withheld says why it is not given, as what follows its name; empty where it
	// is, and where there is nothing to be given.
	Withheld string
}

// Looked is what is known of one of the Places of a ConfigMap or Secret.
type Looked struct {
	// Object with its metadata at least; nil where there is none.
	Object *unstructured.Unstructured
	// IsKubeConfig is true where a RemoteCluster has its kubeconfig from it.
	IsKubeConfig bool
	// Allowed says whether the layer's account may get it, on the cluster that it
	// is on; nil where nobody has asked. Unasked says why nobody can; empty where
	// that is possible.
	Allowed *bool
	Unasked string
	// Barred as in the Verdict on the layer's own cluster, which is looked at first.
	Barred string
}

// Verdict says whether an object goes to the other cluster.
type Verdict struct {
	// Given is true where it does.
	Given bool
	// Ask is true where that hangs on what the layer's account may do, and nobody
	// has asked.
	Ask bool
	// Withheld as in Given.
	Withheld string
	// Barred is as Withheld, of the layer's own cluster where the layer's account
	// may not look: what is in a farther place is given all the same.
	Barred string
}

// Places returns where a ConfigMap or Secret that the directory does not list is
// looked for, in order: on the layer's own cluster, under its name in the
// RemoteCluster's namespace here, and here as it was written. origin is the ID of
// the last one.
func (p Place) Places(origin objects.ID) []objects.ID {
	beside := origin
	beside.Namespace = p.Cluster.Namespace
	places := []objects.ID{origin.On(ClusterName(p.Cluster)), beside}
	if origin != beside && !p.OwnNamespaceOnly {
		places = append(places, origin)
	}
	return places
}

// Judge says whether what lies in one of the Places of origin is given to the
// layer. What is on the layer's own cluster is where the layer's account may get it
// there, and without an account always; what is beside the RemoteCluster is; what is
// elsewhere needs leave: that of its owner, who names the RemoteCluster or the layer
// in an annotation, or that of RBAC, where the layer's account may get it here.
// Nothing is told of an object without that, not even whether there is one.
func (p Place) Judge(origin, at objects.ID, seen Looked) Verdict {
	if why := ReservedSecret(at); why != "" {
		return Verdict{Withheld: never(origin, at, why)}
	}
	if at.Cluster != "" {
		if verdict := p.leaveThere(seen); !verdict.Given {
			return verdict
		}
	}
	if at.Cluster == "" && (at.Namespace != p.Cluster.Namespace || isOfClusterAPI(seen.Object)) {
		if verdict := p.leave(origin, at, seen); !verdict.Given {
			return verdict
		}
	}
	switch {
	case seen.Object == nil:
		return Verdict{}
	case seen.IsKubeConfig:
		return Verdict{Withheld: never(origin, at, KeptSource)}
	}
	if why := ReservedObject(at.GroupKind(), seen.Object); why != "" {
		return Verdict{Withheld: never(origin, at, why)}
	}
	return Verdict{Given: true}
}

// IsReserved tells whether an object is known by its name alone to be given to nobody.
func IsReserved(id objects.ID) bool { return ReservedSecret(id) != "" }

// leaveThere says whether the layer may have what is on its own cluster: no more than
// its account may get there.
func (p Place) leaveThere(seen Looked) Verdict {
	switch {
	case p.Account == "", seen.Allowed != nil && *seen.Allowed:
		return Verdict{Given: true}
	case seen.Allowed == nil && seen.Unasked == "":
		return Verdict{Ask: true}
	}
	barred := fmt.Sprintf("is not given from RemoteCluster %s, where ServiceAccount %s may not get it", ClusterName(p.Cluster), p.ReadsAs())
	if seen.Unasked != "" {
		barred += " (whether it may cannot be asked: " + seen.Unasked + ")"
	}
	return Verdict{Barred: barred}
}

// leave says whether there is leave for an object of this cluster that needs it.
func (p Place) leave(origin, at objects.ID, seen Looked) Verdict {
	shared, err := p.sharedWith(seen.Object)
	switch {
	case shared, seen.Allowed != nil && *seen.Allowed:
		return Verdict{Given: true}
	case err != nil:
		return Verdict{
			Withheld: fmt.Sprintf("is not given to RemoteCluster %s: its annotation %s is wrong: %v", ClusterName(p.Cluster), v1alpha1.ShareWithAnnotation, err),
		}
	case p.Account != "" && seen.Allowed == nil && seen.Unasked == "":
		return Verdict{Ask: true}
	}
	where := fmt.Sprintf("is neither on RemoteCluster %s nor in the namespace %s", ClusterName(p.Cluster), p.Cluster.Namespace)
	switch beside := at.Namespace == p.Cluster.Namespace; {
	case beside:
		where = cmp.Or(seen.Barred, "is not on RemoteCluster "+ClusterName(p.Cluster))
	case seen.Barred != "":
		where = fmt.Sprintf("%s, is not in the namespace %s", seen.Barred, p.Cluster.Namespace)
	}
	text := fmt.Sprintf("%s, and that of the namespace %s is not given without leave: kubectl --namespace %s annotate %s %s %s=%s",
		where, at.Namespace, at.Namespace, strings.ToLower(origin.Kind), at.Name, v1alpha1.ShareWithAnnotation, shareWithCluster+ClusterName(p.Cluster))
	if account := p.ReadsAs(); account.Name != "" {
		text += fmt.Sprintf(", or let ServiceAccount %s get it here", account)
		if seen.Unasked != "" {
			text += " (whether it may cannot be asked: " + seen.Unasked + ")"
		}
	}
	return Verdict{Withheld: text}
}

// ReadsAs returns the ServiceAccount whose rights to read are those of the layer, the
// one of that name on each of the two clusters; the zero value where the layer names
// none.
func (p Place) ReadsAs() types.NamespacedName {
	if p.Account == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: p.Cluster.Namespace, Name: p.Account}
}

// never words that an object is given to nobody. It is named where it is not the one
// that was written.
func never(origin, at objects.ID, why string) string {
	named := "it"
	if at.On("") != origin {
		named = at.String()
	}
	return fmt.Sprintf("is never given to a release of another cluster: %s is %s", named, why)
}

// isOfClusterAPI tells what Cluster API keeps of a cluster: its kubeconfig, and the
// keys of its authorities. These lie beside the RemoteClusters more often than not.
func isOfClusterAPI(obj *unstructured.Unstructured) bool {
	return obj != nil && (obj.GetLabels()["cluster.x-k8s.io/cluster-name"] != "" || obj.Object["type"] == "cluster.x-k8s.io/secret")
}

// sharedWith tells whether an object's own annotation gives it to the layer. One
// with a mistake gives it to nobody.
func (p Place) sharedWith(obj *unstructured.Unstructured) (bool, error) {
	if obj == nil {
		return false, nil
	}
	text, found := obj.GetAnnotations()[v1alpha1.ShareWithAnnotation]
	if !found {
		return false, nil
	}
	shares, err := ParseShares(text)
	if err != nil {
		return false, err
	}
	return slices.Contains(shares, Share{Cluster: p.Cluster}) || slices.Contains(shares, Share{Layer: p.Layer}), nil
}

// Share names whom an object is given to: every layer of a RemoteCluster, or one
// layer.
type Share struct {
	Cluster types.NamespacedName
	Layer   string
}

const (
	shareWithCluster = "remotecluster/"
	shareWithLayer   = "layer/"
	// maxShares bounds how many an annotation may name.
	maxShares = 1000
)

// ParseShares reads the value of the annotation that shares an object: a list of
// remotecluster/NAMESPACE/NAME and layer/NAME with commas between. All of it must be
// right. There are no patterns, so that nothing is given to a cluster that comes
// later under a name that somebody else chooses.
func ParseShares(text string) ([]Share, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("it is empty")
	}
	entries := strings.Split(text, ",")
	if len(entries) > maxShares {
		return nil, fmt.Errorf("it has %d entries, more than %d", len(entries), maxShares)
	}
	shares := make([]Share, 0, len(entries))
	for _, entry := range entries {
		share, ok := parseShare(strings.Trim(entry, " "))
		if !ok {
			return nil, fmt.Errorf("%q must be remotecluster/NAMESPACE/NAME or layer/NAME", printable.Shorten(entry))
		}
		shares = append(shares, share)
	}
	return shares, nil
}

func parseShare(entry string) (Share, bool) {
	if name, found := strings.CutPrefix(entry, shareWithLayer); found {
		return Share{Layer: name}, isName(name)
	}
	rest, found := strings.CutPrefix(entry, shareWithCluster)
	namespace, name, both := strings.Cut(rest, "/")
	return Share{Cluster: types.NamespacedName{Namespace: namespace, Name: name}}, found && both && len(validation.IsDNS1123Label(namespace)) == 0 && isName(name)
}

func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
