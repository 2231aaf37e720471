// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"encoding/base64"
	"fmt"

	"github.com/strata-project/strata/internal/reserved"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// CopyOf returns the ID of Strata's own copy of a cluster's kubeconfig.
func CopyOf(cluster *v1alpha1.RemoteCluster) objects.ID {
	return objects.ID{Kind: "Secret", Namespace: cluster.Namespace, Name: reserved.KubeConfigName(cluster.Name)}
}

// wantedCopy returns Strata's own copy of a kubeconfig, with a finalizer of its
// own: without the Secret Flux would uninstall nothing, and say nothing. It says
// which cluster may be written to through it: who may write a status cannot.
func (o Observation) wantedCopy(uid string) dependents.Dependent {
	id := CopyOf(o.Cluster)
	encoded := base64.StdEncoding.EncodeToString(o.Access.KubeConfig)
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{placement.KubeConfigKey: encoded},
	}}
	obj.SetNamespace(id.Namespace)
	obj.SetName(id.Name)
	obj.SetLabels(map[string]string{v1alpha1.ClusterLabel: o.Cluster.Name, kinds.WatchLabel: kinds.WatchEnabled})
	obj.SetFinalizers([]string{v1alpha1.KubeConfigFinalizer})
	digest, annotations := o.Access.Digest, map[string]string{}
	if uid != "" {
		annotations[v1alpha1.ClusterUIDAnnotation] = uid
		digest += "-" + uid
	}
	if mac := o.Key.MAC(macPurpose, o.macParts(encoded, uid)...); mac != "" {
		annotations[v1alpha1.CopyMACAnnotation] = mac
	}
	if len(annotations) > 0 {
		obj.SetAnnotations(annotations)
	}
	return dependents.Dependent{ID: id, Object: dependents.ContentOf(obj), Digest: digest, Assess: objects.AssessExistence, Origin: "spec.kubeConfig"}
}

// macPurpose keeps a MAC of a copy from being one of anything else.
const macPurpose = "kubeconfig"

// macParts returns what a copy is authenticated by: what is read of it, and whose it
// is. A RemoteCluster that is made anew has another UID, so that the copy of somebody
// else's is none of its own.
func (o Observation) macParts(encoded, uid string) []string {
	return []string{string(o.Cluster.UID), encoded, uid}
}

// CopyVerified tells whether Live is as Strata has written it, for this RemoteCluster.
// Whoever may write Secrets can change a copy, and without the key not its MAC.
func (o Observation) CopyVerified() bool {
	if o.Live == nil {
		return false
	}
	encoded, _, err := unstructured.NestedString(o.Live.Object, "data", placement.KubeConfigKey)
	mac := o.Live.GetAnnotations()[v1alpha1.CopyMACAnnotation]
	return err == nil && o.Key.IsMAC(mac, macPurpose, o.macParts(encoded, RecordedOn(o.Live))...)
}

// isCopy tells whether a copy holds and says what the one that is wanted does. A
// status, which others may write, does not tell.
func isCopy(live, wanted *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(live.Object["data"], wanted.Object["data"]) && RecordedOn(live) == RecordedOn(wanted) &&
		live.GetAnnotations()[v1alpha1.CopyMACAnnotation] == wanted.GetAnnotations()[v1alpha1.CopyMACAnnotation]
}

// isRefused tells whether there is nothing to reach the cluster by but a copy that is
// not used. While it is not known what the Secret says, it may yet turn up.
func (o Observation) isRefused() bool { return o.Unverified && o.Source.Known }

// refused is the verdict on a cluster whose copy is not used. Flux would use it, and
// asks nobody: so the releases are suspended as those of a wrong cluster.
func (o Observation) refused() Verdict {
	what, mend := "has gone", "put it back"
	if o.Source.Err != nil {
		what, mend = o.Source.Err.Error(), "mend it"
	}
	return Verdict{
		Stops: true, Keeps: true, Record: o.Recorded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCopyUnverified,
		Message: fmt.Sprintf("%s %s, and the copy of it, %s, is not used: its annotation %s does not show that Strata has written it as it is; %s",
			o.secret(), what, CopyOf(o.Cluster), v1alpha1.CopyMACAnnotation, mend),
	}
}
