// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fields decides from managedFields which fields of an object Strata takes back,
// and whether others have changed what it applied. It is pure.
package fields

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Manager is the field manager of what is applied.
const Manager = "strata"

// Rule says of which other managers an object's fields are taken over, so that applying
// removes what is not wanted. The zero value is the rule for an object that Strata has, of
// which git says no replicas.
type Rule struct {
	// Strict takes over whatever others have in spec, but suspend.
	Strict bool
	// Adopts is true where nobody has had the object until now: what other GitOps tools
	// applied is taken over, too. What Helm installed is not: helm-controller would install
	// it again.
	Adopts bool
	// Merges leaves what people have written beside what is applied, as the annotation
	// kustomize.toolkit.fluxcd.io/ssa: Merge asks for.
	Merges bool
	// Replicas is true where git says spec.replicas. Otherwise an autoscaler may depend on
	// the number that somebody has written, and it stays.
	Replicas bool
	// Again is true where the object got before what is applied now. What else its creation has
	// written then is not git's: the API server filled it in. It becomes nobody's, as it is where
	// an object is made by apply, and is not taken back, since one default may depend on another
	// field that others have changed, and may not be changeable itself.
	Again bool
}

// isHand tells managers by which people write with kubectl. The plug-in's is none: what it
// writes are decisions. Fields of an object that nobody had applied before its first apply
// are in before-first-apply; kubectl wrote most of these objects.
func isHand(manager string) bool {
	return manager == "kubectl" || strings.HasPrefix(manager, "kubectl-") && manager != "kubectl-strata" || manager == "before-first-apply"
}

// isFormerTool tells managers of tools that applied an object from git before Strata did.
func isFormerTool(manager string) bool {
	return manager == "argocd-controller" || manager == "argocd-application-controller" || manager == "kustomize-controller"
}

// isTaken tells whether fields of a manager are taken over.
func (r Rule) isTaken(manager string) bool {
	return !r.Merges && isHand(manager) || r.Adopts && isFormerTool(manager)
}

// takesMarks tells whether labels and annotations of an entry are taken over: those that
// came from a manifest, and not those that somebody added by hand.
func (r Rule) takesMarks(entry metav1.ManagedFieldsEntry) bool {
	if !r.isTaken(entry.Manager) {
		return false
	}
	switch entry.Manager {
	case "kubectl-client-side-apply", "before-first-apply":
		return true
	default:
		return isFormerTool(entry.Manager) || entry.Operation == metav1.ManagedFieldsOperationApply
	}
}

// Taken returns what is taken over of the fields that an entry has.
func (r Rule) Taken(entry metav1.ManagedFieldsEntry, has *fieldpath.Set) *fieldpath.Set {
	taken := &fieldpath.Set{}
	if entry.Subresource != "" || entry.Manager == Manager || !r.Strict && !r.isTaken(entry.Manager) {
		return taken
	}
	marks := r.takesMarks(entry)
	has.Iterate(func(path fieldpath.Path) {
		if r.takes(entry.Manager, marks, path) {
			taken.Insert(path.Copy())
		}
	})
	return taken
}

func (r Rule) takes(manager string, marks bool, path fieldpath.Path) bool {
	switch top := nameOf(path, 0); top {
	case "metadata":
		group := nameOf(path, 1)
		return marks && len(path) == 3 && (group == "labels" || group == "annotations") && !isOwnKey(nameOf(path, 2))
	case "status", "apiVersion", "kind":
		return false
	case "spec":
		if r.Strict {
			return len(path) > 1 && nameOf(path, 1) != "suspend"
		}
	}
	return !r.Strict && r.isTaken(manager) && (r.Replicas || !isReplicas(path)) && !isRestart(path)
}

// isOwnKey tells labels and annotations by which people decide something for Strata.
func isOwnKey(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "kraan" || domain == "kraan.io" || strings.HasSuffix(domain, ".kraan.io")
}

func isReplicas(path fieldpath.Path) bool {
	return len(path) == 2 && nameOf(path, 0) == "spec" && nameOf(path, 1) == "replicas"
}

// restartedAt is what kubectl rollout restart writes into the template of a workload.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// isRestart tells the field by which a workload is restarted, and the map that is made for it.
func isRestart(path fieldpath.Path) bool {
	for i, name := range []string{"spec", "template", "metadata", "annotations"} {
		if nameOf(path, i) != name {
			return false
		}
	}
	return len(path) == 4 || len(path) == 5 && nameOf(path, 4) == restartedAt
}

// nameOf returns the name of a field in a path; empty where there is none.
func nameOf(path fieldpath.Path, at int) string {
	if at >= len(path) || path[at].FieldName == nil {
		return ""
	}
	return *path[at].FieldName
}

// Of returns the fields that an entry has.
func Of(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set, nil
	}
	if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("cannot read the managedFields of %s: %w", entry.Manager, err)
	}
	return set, nil
}

// Fold returns managedFields in which Strata's apply has what a rule takes over, and what
// Strata wrote by other means. changed is false where that is how they are.
func (r Rule) Fold(apiVersion string, entries []metav1.ManagedFieldsEntry) (folded []metav1.ManagedFieldsEntry, changed bool, err error) {
	applied := metav1.ManagedFieldsEntry{
		Manager: Manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, FieldsType: "FieldsV1",
	}
	owned := &fieldpath.Set{}
	for _, entry := range entries {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			folded = append(folded, entry)
			continue
		}
		set, err := Of(entry)
		if err != nil {
			return nil, false, err
		}
		if entry.Manager == Manager {
			if entry.Operation == metav1.ManagedFieldsOperationUpdate && r.Again {
				set = identityOf(set)
			}
			owned = owned.Union(set)
			if entry.Operation == metav1.ManagedFieldsOperationApply {
				applied = entry
			} else {
				changed = true
			}
			continue
		}
		taken := r.Taken(entry, set)
		if taken.Empty() {
			folded = append(folded, entry)
			continue
		}
		changed = true
		owned = owned.Union(taken)
		rest := set.Difference(taken)
		if rest.Empty() {
			continue
		}
		if entry.FieldsV1, err = fieldsOf(rest); err != nil {
			return nil, false, err
		}
		folded = append(folded, entry)
	}
	if !changed {
		return nil, false, nil
	}
	if applied.FieldsV1, err = fieldsOf(owned); err != nil {
		return nil, false, err
	}
	return append(folded, applied), true, nil
}

// identityOf returns the labels of a set. An entry needs a field: the API server would call
// the fields of an object that has no entry those of before its first apply.
func identityOf(set *fieldpath.Set) *fieldpath.Set {
	labels := &fieldpath.Set{}
	set.Iterate(func(path fieldpath.Path) {
		if len(path) == 3 && nameOf(path, 0) == "metadata" && nameOf(path, 1) == "labels" {
			labels.Insert(path.Copy())
		}
	})
	return labels
}

func fieldsOf(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	data, err := set.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("cannot write managedFields: %w", err)
	}
	return metav1.NewFieldsV1(string(data)), nil
}
