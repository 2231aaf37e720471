// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Kinds of objects of others whose statuses Strata reads, besides those that have a name of their
// own in ForeignStatusFields.
const (
	// AnySource stands for all kinds of sources of Flux.
	AnySource = "Source"
	// AnyObject stands for an object of any kind that a layer or a claim lists, waits for or
	// reads: of Flux's kinds and of Strata's as well.
	AnyObject = "Object"
)

// ForeignStatusFields returns the class of each field that Strata's programs read of the statuses
// of kinds that are not Strata's, by the kind and the path in JSON. A condition is a field by its
// type, and a list is one field. TestEveryFieldOfOthersThatIsReadHasAClass fails for a field that
// code reads and that is in no class, and for a class of a field that nothing reads.
func ForeignStatusFields(kind string) map[string]StatusClass { return foreignStatusFields()[kind] }

// ForeignKinds returns the kinds that have classes.
func ForeignKinds() []string {
	var kinds []string
	for kind := range foreignStatusFields() {
		kinds = append(kinds, kind)
	}
	return kinds
}

func foreignStatusFields() map[string]map[string]StatusClass {
	return map[string]map[string]StatusClass{
		"HelmRelease":               releaseStatusFields(),
		AnySource:                   sourceStatusFields(),
		"Kustomization":             kustomizationStatusFields(),
		AnyObject:                   objectStatusFields(),
		"CustomResourceDefinition":  definitionStatusFields(),
		"ClusterProfile":            profileStatusFields(),
		"Deployment":                deploymentStatusFields(),
		"Namespace":                 of(NotActedOn, "conditions"),
		"Node":                      nodeStatusFields(),
		"Pod":                       podStatusFields(),
		"CertificateSigningRequest": of(VerifiedBy("what the request itself names, which is judged before it is approved"), "conditions"),
	}
}

// releaseStatusFields are those that helm-controller writes.
func releaseStatusFields() map[string]StatusClass {
	return merged(
		of(believes("a layer takes the release for ready or not, and others that wait for it go on; a rotation takes passwords of before back"),
			"observedGeneration", "conditions[Ready]", "lastAttemptedRevision"),
		of(believes("a roll-out counts as failed, and goes back where spec.rollback says so"), "conditions[Stalled]"),
		of(believes("a roll-out counts as under way, or as timed out; a release that is to go does so in the middle of an action"),
			"conditions[Reconciling]"),
		of(believes("a rotation takes the release for one that has the next passwords, and takes those of before back"), "lastAttemptedConfigDigest"),
		of(believes("a layer that watches health looks at other workloads; the forecast of a deletion or a reinstallation counts less"), "inventory.entries"),
		of(NotActedOn, "history", "storageNamespace", "helmChart"),
	)
}

// sourceStatusFields are those that source-controller writes.
func sourceStatusFields() map[string]StatusClass {
	return merged(
		of(believes("which artifact of the hosts that the installation names is deployed"), "artifact.url", "artifact.digest", "artifact.revision"),
		of(believes("an artifact that was made of an earlier specification is deployed"), "observedGeneration", "conditions[ArtifactInStorage]"),
		of(Withholds, "artifact.size"),
		of(NotActedOn, "conditions[Ready]", "lastHandledReconcileAt"),
	)
}

// kustomizationStatusFields are those that kustomize-controller writes. Only commands that hand
// Kustomizations over read them.
func kustomizationStatusFields() map[string]StatusClass {
	return merged(
		of(believes("kubectl strata import flux hands it over, although what is there is not what git says"), "observedGeneration", "conditions[Ready]"),
		of(believes("a command goes on before kustomize-controller has let go of what was handed over"), "lastHandledReconcileAt"),
		of(VerifiedBy("the label of the live object: what is not the Kustomization's is not handed over"), "inventory.entries"),
		of(NotActedOn, "lastAppliedRevision"),
	)
}

// objectStatusFields are read of every object that a layer or a claim lists or waits for.
func objectStatusFields() map[string]StatusClass {
	const ready = "a layer or a claim that lists the object takes it for ready or not, and what waits for it is written"
	return merged(
		of(believes(ready), "observedGeneration", "conditions[Ready]", "conditions[Stalled]", "conditions[Reconciling]", "conditions[Complete]", "kstatus",
			"conditions[Available]", "conditions[Progressing]", "replicas", "updatedReplicas"),
		of(believes("what expressions of a layer or a provider read is taken as it is: readiness, and values of templates"), "*"),
	)
}

func definitionStatusFields() map[string]StatusClass {
	return merged(
		of(believes("its kind counts as one that is served, or that is not: objects of a kind that is not served are taken for gone"), "conditions"),
		of(NotActedOn, "storedVersions"),
	)
}

// profileStatusFields are those that the manager of an inventory of clusters writes.
func profileStatusFields() map[string]StatusClass {
	return merged(
		of(believes("the RemoteCluster of the ClusterProfile has them as labels, by which Platforms pick clusters"), "properties"),
		of(believes("the RemoteCluster of the ClusterProfile says that it was told of that version"), "version.kubernetes"),
	)
}

func deploymentStatusFields() map[string]StatusClass {
	return merged(
		of(VerifiedBy("the plug-in that the Deployment runs: it is asked, and shows its certificate"), "observedGeneration", "availableReplicas"),
		of(believes("kubectl strata hosts apply brings the first layers of a new cluster before the controllers of Flux run"), "readyReplicas"),
		of(NotActedOn, "conditions", "replicas"),
	)
}

// nodeStatusFields are read on clusters of hosts, and by commands.
func nodeStatusFields() map[string]StatusClass {
	return merged(
		of(believes("a host counts as one that runs, or does not, and the upgrade of the cluster goes on or stops"), "conditions"),
		of(believes("the Node of a host that joins anew is deleted although another host has its name"), "addresses"),
	)
}

func podStatusFields() map[string]StatusClass {
	return merged(
		of(believes("a Pod that nothing makes again counts as ended, and its host is drained"), "phase"),
		of(NotActedOn, "conditions", "conditions[PodScheduled]", "reason", "message", "containerStatuses", "initContainerStatuses"),
	)
}
