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
	"github.com/strata-project/strata/internal/heldacts"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/reserved"
)

// Given is what a release of another cluster gets of a ConfigMap or Secret that
// its directory does not list. The zero value says that there is none.
type Given struct {
	// Object is the one that is copied; nil where none is.
	Object *unstructured.Unstructured
	// By says by whose leave it is given, as its copy notes; empty with Ending.
	By string
	// Withheld says why it is not given, as what follows its name; empty where it
	// is, and where there is nothing to be given.
	Withheld string
	// Ending says that it is given without leave, because it was before leave was
	// needed, and how to give leave; empty for all that is given otherwise.
	Ending string
}

// Looked is what is known of one of the Places of a ConfigMap or Secret.
type Looked struct {
	// Object with its metadata at least; nil where there is none.
	Object *unstructured.Unstructured
	// Kept says what a Secret is kept for by what refers to it, or by the owner of its
	// name; empty where nothing does.
	Kept string
	// IsBinding is true for the binding of a claim of the RemoteCluster.
	IsBinding bool
	// Allowed says whether the layer's account may get it, on the cluster that it
	// is on; nil where nobody has asked. Unasked says why nobody can; empty where
	// that is possible.
	Allowed *bool
	Unasked string
	// Barred as in the Verdict on the layer's own cluster, which is looked at first.
	Barred string
	// Unshared as in the Verdict on what is beside the RemoteCluster, which is looked at
	// second.
	Unshared bool
	// Copied is true where the layer has a copy that was made before a Secret beside the
	// RemoteCluster needed leave.
	Copied bool
}

// Verdict says whether an object goes to the other cluster.
type Verdict struct {
	// Given is true where it does.
	Given bool
	// Ask is true where that hangs on what the layer's account may do, and nobody
	// has asked.
	Ask bool
	// Unshared is true where it would be given with leave.
	Unshared bool
	// By, Withheld and Ending as in Given.
	By, Withheld, Ending string
	// Barred is as Withheld, of the layer's own cluster where the layer's account
	// may not look: what is in a farther place is given all the same.
	Barred string
}

// By whose leave an object is given, as its copy says.
const (
	byDirectory  = "directory"
	byCluster    = "cluster"
	byNamespace  = "namespace"
	byAnnotation = "annotation"
	byAccount    = "account"
	byClaim      = "claim"
)

// Refusals sum up why an object is given from none of its Places, which are judged in order.
type Refusals struct {
	withheld, barred string
	unshared         bool
}

// Looked returns what is known of the next place by those before it.
func (r *Refusals) Looked() Looked { return Looked{Barred: r.barred, Unshared: r.unshared} }

// Add notes the verdict on a place that gives nothing. What lacks leave in two places is
// worded by the second one, which names both.
func (r *Refusals) Add(verdict Verdict) {
	if r.withheld == "" || r.unshared && verdict.Unshared {
		r.withheld = verdict.Withheld
	}
	r.barred = cmp.Or(r.barred, verdict.Barred)
	r.unshared = verdict.Unshared
}

// Given returns what comes of them: nothing, and why.
func (r *Refusals) Given() Given { return Given{Withheld: cmp.Or(r.withheld, r.barred)} }

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
// there, and without an account always. A ConfigMap beside the RemoteCluster is, and so
// is the binding of a claim of that cluster. Everything else needs leave: that of its
// owner, in an annotation, or that of RBAC, where the layer's account may get it here.
// Nothing is told of an object without leave, not even whether there is one.
func (p Place) Judge(origin, at objects.ID, seen Looked) Verdict {
	if why := reserved.Name(at, ""); why != "" {
		return Verdict{Withheld: never(origin, at, why)}
	}
	verdict := p.mayHave(at, seen)
	if !verdict.Given {
		return verdict
	}
	switch {
	case seen.Object == nil:
		return Verdict{}
	case seen.Kept != "":
		return Verdict{Withheld: never(origin, at, seen.Kept)}
	}
	if why := reserved.Unreadable(at.On(""), seen.Object); why != "" {
		return Verdict{Withheld: never(origin, at, why)}
	}
	return verdict
}

// mayHave says whether the layer may have what lies in a place, whatever it is.
func (p Place) mayHave(at objects.ID, seen Looked) Verdict {
	switch {
	case at.Cluster != "":
		return p.leaveThere(seen)
	case seen.IsBinding:
		return Verdict{Given: true, By: byClaim}
	case at.Kind == secretKind || at.Namespace != p.Cluster.Namespace || isOfClusterAPI(seen.Object):
		return p.leave(at, seen)
	}
	return Verdict{Given: true, By: byNamespace}
}

// IsReserved tells whether an object is known by its name alone to be given to nobody.
func IsReserved(id objects.ID) bool { return reserved.Name(id, "") != "" }

// leaveThere says whether the layer may have what is on its own cluster: no more than
// its account may get there.
func (p Place) leaveThere(seen Looked) Verdict {
	switch {
	case p.Account == "", seen.Allowed != nil && *seen.Allowed:
		return Verdict{Given: true, By: byCluster}
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
func (p Place) leave(at objects.ID, seen Looked) Verdict {
	shared, err := p.sharedWith(seen.Object)
	switch {
	case shared:
		return Verdict{Given: true, By: byAnnotation}
	case seen.Allowed != nil && *seen.Allowed:
		return Verdict{Given: true, By: byAccount}
	case err != nil:
		return Verdict{
			Withheld: fmt.Sprintf("is not given to RemoteCluster %s: its annotation %s is wrong: %v", ClusterName(p.Cluster), v1alpha1.ShareWithAnnotation, err),
		}
	case p.Account != "" && seen.Allowed == nil && seen.Unasked == "":
		return Verdict{Ask: true}
	case seen.Copied && at.Namespace == p.Cluster.Namespace:
		return Verdict{Given: true, Ending: p.howToShare(at, seen)}
	}
	where, of := p.where(at, seen), "that of the namespace "+at.Namespace+" is"
	how := p.howToShare(at, seen)
	if beside := at; seen.Unshared {
		beside.Namespace = p.Cluster.Namespace
		of = fmt.Sprintf("those of the namespaces %s and %s are", beside.Namespace, at.Namespace)
		how = p.share(beside) + ", or " + how
	}
	return Verdict{Unshared: true, Withheld: fmt.Sprintf("%s, and %s not given without leave: %s", where, of, how)}
}

// where says where an object that is not given was not found.
func (p Place) where(at objects.ID, seen Looked) string {
	switch {
	case at.Namespace == p.Cluster.Namespace || seen.Unshared:
		return cmp.Or(seen.Barred, "is not on RemoteCluster "+ClusterName(p.Cluster))
	case seen.Barred != "":
		return fmt.Sprintf("%s, is not in the namespace %s", seen.Barred, p.Cluster.Namespace)
	}
	return fmt.Sprintf("is neither on RemoteCluster %s nor in the namespace %s", ClusterName(p.Cluster), p.Cluster.Namespace)
}

// howToShare names the ways to give leave for an object.
func (p Place) howToShare(at objects.ID, seen Looked) string {
	text := p.share(at)
	if at.Namespace == p.Cluster.Namespace {
		text += fmt.Sprintf(" (%s in place of that gives it to all RemoteClusters of %s)", v1alpha1.ShareWithClusters, at.Namespace)
	}
	if account := p.ReadsAs(); account.Name != "" {
		text += fmt.Sprintf(", or let ServiceAccount %s get it here", account)
		if seen.Unasked != "" {
			text += " (whether it may cannot be asked: " + seen.Unasked + ")"
		}
	}
	return text
}

// HowToShare names the ways to give the layer leave for an object of this cluster.
func (p Place) HowToShare(at objects.ID) string { return p.howToShare(at, Looked{}) }

// share returns the command that gives leave for an object. It writes as a manager that Flux
// leaves alone: the object may be one that Flux applies.
func (p Place) share(at objects.ID) string {
	return printable.Command("kubectl", "--namespace", at.Namespace, "annotate", "--field-manager="+heldacts.PeopleManager, strings.ToLower(at.Kind), at.Name,
		v1alpha1.ShareWithAnnotation+"="+shareWithCluster+ClusterName(p.Cluster))
}

// CopyOf returns the ID of the copy that the layer has of an object.
func (p Place) CopyOf(origin objects.ID) objects.ID {
	return objects.ID{Kind: origin.Kind, Namespace: p.Cluster.Namespace, Name: p.copyName(origin)}
}

// WasGiven tells whether a live copy of an object was made for the layer before a Secret
// beside the RemoteCluster needed leave. copied has its metadata; nil where there is none.
func (p Place) WasGiven(origin objects.ID, copied *unstructured.Unstructured) bool {
	if copied == nil || origin.Kind != secretKind || copied.GetLabels()[v1alpha1.LayerLabel] != p.Layer {
		return false
	}
	annotations := copied.GetAnnotations()
	_, marked := annotations[v1alpha1.SharedByAnnotation]
	return !marked && annotations[v1alpha1.CopyOfAnnotation] == copyOf(origin)
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
	return slices.ContainsFunc(shares, func(share Share) bool {
		return share == Share{Cluster: p.Cluster} || share == Share{Layer: p.Layer} ||
			share.Clusters && obj.GetNamespace() == p.Cluster.Namespace
	}), nil
}

// Share names whom an object is given to: every layer of a RemoteCluster, one layer, or
// every layer of all RemoteClusters of the object's own namespace.
type Share struct {
	Cluster  types.NamespacedName
	Layer    string
	Clusters bool
}

const (
	shareWithCluster = "remotecluster/"
	shareWithLayer   = "layer/"
	// maxShares bounds how many an annotation may name.
	maxShares = 1000
)

// ParseShares reads the value of the annotation that shares an object: a list of
// remotecluster/NAMESPACE/NAME, layer/NAME and remoteclusters with commas between. All
// of it must be right. There are no patterns, so that nothing is given to a cluster of
// another namespace under a name that somebody else chooses.
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
			return nil, fmt.Errorf("%q must be remotecluster/NAMESPACE/NAME, layer/NAME or remoteclusters", printable.Shorten(entry))
		}
		shares = append(shares, share)
	}
	return shares, nil
}

func parseShare(entry string) (Share, bool) {
	if entry == v1alpha1.ShareWithClusters {
		return Share{Clusters: true}, true
	}
	if name, found := strings.CutPrefix(entry, shareWithLayer); found {
		return Share{Layer: name}, isName(name)
	}
	rest, found := strings.CutPrefix(entry, shareWithCluster)
	namespace, name, both := strings.Cut(rest, "/")
	return Share{Cluster: types.NamespacedName{Namespace: namespace, Name: name}}, found && both && len(validation.IsDNS1123Label(namespace)) == 0 && isName(name)
}

func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
