// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// StatusClass says what may follow from a field of a status, which more people may write than the
// object itself.
//
// +kubebuilder:object:generate=false
type StatusClass struct {
	kind statusKind
	// By is what a field is verified by, or what a forged value of one that is believed leads to.
	By string
}

type statusKind int

const (
	notActedOn statusKind = iota + 1
	withholds
	verified
	believed
	listed
)

var (
	// NotActedOn is for fields that report: nothing follows from them.
	NotActedOn = StatusClass{kind: notActedOn} //nolint:gochecknoglobals // it is constant
	// Withholds is for fields that can only hold back: a forged value may delay or prevent a
	// write of its own object, and never causes one.
	Withholds = StatusClass{kind: withholds} //nolint:gochecknoglobals // it is constant
	// WhereListed is for fields that Strata reads of the kind at most to hold back. A layer that
	// lists the object takes it for ready by them, as it does an object of any kind: AnyObject
	// says what that leads to.
	WhereListed = StatusClass{kind: listed} //nolint:gochecknoglobals // it is constant
)

// Signed is for fields that others act on. The controller signs them in the MAC of the status. It
// leaves them out of a status whose MAC does not match.
var Signed = VerifiedBy("mac, by the controller's key") //nolint:gochecknoglobals // it is constant

// VerifiedBy is for fields that are acted on once something shows that a controller of Strata
// has written them, or that what they say is so.
func VerifiedBy(what string) StatusClass { return StatusClass{verified, what} }

// believes is for fields that are acted on as they are: what that leads to is in docs/security.md,
// under what is known and left. A field more of the kind is a hole.
func believes(what string) StatusClass { return StatusClass{believed, what} }

// IsForgeable tells whether a test may put anything into a field: nothing is done by it, but for
// what a layer that lists the object takes for ready.
func (c StatusClass) IsForgeable() bool {
	return c.kind == notActedOn || c.kind == withholds || c.kind == listed
}

// IsListed tells whether a layer that lists the object reads the field, and nothing else does.
func (c StatusClass) IsListed() bool { return c.kind == listed }

// IsVerified tells whether a field is acted on once it was verified.
func (c StatusClass) IsVerified() bool { return c.kind == verified }

// IsBelieved tells whether a field is acted on as it is.
func (c StatusClass) IsBelieved() bool { return c.kind == believed }

// StatusFields returns the class of each field of a kind's status, by its path in JSON: a struct
// or a list of structs has a class for each of its fields, but for conditions, which are one field.
// TestEveryFieldOfAStatusHasAClass fails for a field that is in none.
func StatusFields(kind string) map[string]StatusClass {
	return map[string]map[string]StatusClass{
		AddonsLayerKind:        layerStatusFields(),
		PlatformKind:           platformStatusFields(),
		RemoteClusterKind:      remoteClusterStatusFields(),
		HostClusterKind:        hostClusterStatusFields(),
		CapabilityProviderKind: providerStatusFields(),
		CapabilityClaimKind:    claimStatusFields(),
		ClusterDiscoveryKind:   discoveryStatusFields(),
		HelmApplicationKind:    applicationStatusFields(),
		ApplicationBundleKind:  bundleStatusFields(),
	}[kind]
}

// merged returns the classes of several parts of a status.
func merged(parts ...map[string]StatusClass) map[string]StatusClass {
	all := map[string]StatusClass{}
	for _, part := range parts {
		for path, class := range part {
			all[path] = class
		}
	}
	return all
}

// of returns one class for some fields.
func of(class StatusClass, paths ...string) map[string]StatusClass {
	all := map[string]StatusClass{}
	for _, path := range paths {
		all[path] = class
	}
	return all
}

func layerStatusFields() map[string]StatusClass {
	return merged(
		of(VerifiedBy("the controller's key"), "mac"),
		of(NotActedOn, "lastHandledReconcileAt",
			"blockedBy[].depth", "blockedBy[].kind", "blockedBy[].cluster", "blockedBy[].namespace", "blockedBy[].name",
			"blockedBy[].reason", "blockedBy[].message", "blockedBy[].until",
			"history[].message", "history[].duration"),
		of(Signed, "state", "stateSince", "version", "revision", "digest", "observedGeneration", "conditions", "cluster"),
		of(VerifiedBy("the annotation kraan.io/decided"), "attempt.allowed", "attempt.refused",
			"rollback.to", "rollback.version", "rollback.revision", "rollback.digest", "rollback.generation", "rollback.message"),
		of(Withholds, "attempt.revision", "attempt.artifact.url", "attempt.artifact.digest", "attempt.artifact.path"),
		of(Signed, "attempt.version", "attempt.digest", "attempt.startTime"),
		of(VerifiedBy("what was kept of the layer, its digest, and the address of its source's artifact"),
			"history[].id", "history[].version", "history[].revision", "history[].digest", "history[].result", "history[].started",
			"history[].artifact.url", "history[].artifact.digest", "history[].artifact.path", "history[].kept"),
		of(VerifiedBy("the owner's label of the live object: what is not the layer's is not touched"),
			"resources[].cluster", "resources[].namespace", "resources[].name", "resources[].kind"),
		of(VerifiedBy("the live object, which is compared with what is wanted"),
			"resources[].digest", "resources[].uid", "resources[].generation", "resources[].resourceVersion", "resources[].fields"),
		of(Signed, "resources[].status"),
		of(Withholds, "resources[].lastTransitionTime", "resources[].file", "resources[].dependsOn", "resources[].completed"),
	)
}

func platformStatusFields() map[string]StatusClass {
	return merged(
		of(VerifiedBy("the controller's key"), "mac"),
		of(NotActedOn, "available", "nextChange",
			"clusters.total", "clusters.ready", "clusters.progressing", "clusters.waiting", "clusters.failed", "clusters.unreachable",
			"layers.deployed", "layers.total", "worst[].cluster", "worst[].stage", "worst[].reason",
			"approvals[].approval", "approvals[].by", "approvals[].reason", "approvals[].seen", "approvals[].selector",
			"stages[].name", "stages[].state", "stages[].total", "stages[].updated", "stages[].moving", "stages[].waiting", "stages[].failed",
			"stages[].unhealthy", "stages[].stuck", "stages[].unreachable", "stages[].unfit", "stages[].approval", "stages[].waitingSince"),
		of(VerifiedBy("the annotation kraan.io/decided"), "lock.digest", "lock.bundle", "lock.applications[].name", "lock.applications[].version",
			"rollout.target", "rollout.since", "rollout.passed", "rollout.rolledBack"),
		of(NotActedOn, "lock.applications[].why"),
		of(Signed, "version", "observedGeneration", "conditions"),
	)
}

func remoteClusterStatusFields() map[string]StatusClass {
	return merged(
		of(VerifiedBy("the controller's key"), "mac"),
		of(NotActedOn, "clusterUID", "credentialsExpire", "lastSeen", "layers.deployed", "layers.total"),
		of(WhereListed, "observedGeneration"),
		of(Signed, "version", "endpoint", "conditions"),
		of(VerifiedBy("the live copy, by its label and its MAC"),
			"resources[].cluster", "resources[].namespace", "resources[].name", "resources[].kind",
			"resources[].digest", "resources[].uid", "resources[].generation", "resources[].resourceVersion", "resources[].fields"),
		of(Withholds, "resources[].status", "resources[].lastTransitionTime", "resources[].file", "resources[].dependsOn", "resources[].completed"),
	)
}

func hostClusterStatusFields() map[string]StatusClass {
	// Which cluster it is the Secret with its kubeconfig says.
	return merged(
		of(NotActedOn, "id", "version", "healthy", "etcd", "certificatesEnd", "kubeConfig", "lastHandledReconcileAt",
			"hosts[].name", "hosts[].role", "hosts[].class", "hosts[].version", "hosts[].note"),
		of(WhereListed, "observedGeneration", "conditions"),
	)
}

func providerStatusFields() map[string]StatusClass {
	// Which plug-in has served a record says.
	return merged(
		of(Withholds, "plugin.image", "plugin.digest", "plugin.name", "plugin.version"),
		of(NotActedOn, "claims", "versions", "parameters.schema", "problems"),
		of(WhereListed, "observedGeneration", "conditions"),
	)
}

func claimStatusFields() map[string]StatusClass {
	const mac = "objectsMAC, and by the labels of live objects"
	return merged(
		of(NotActedOn, "version", "binding.name", "rotation"),
		of(Withholds, "provider", "boundTo.namespace", "boundTo.name"),
		of(WhereListed, "observedGeneration", "conditions"),
		of(VerifiedBy(mac), "objectsMAC", "objects[].id", "objects[].of", "objects[].group", "objects[].kind", "objects[].namespace", "objects[].name",
			"objects[].cluster", "objects[].status", "objects[].message", "objects[].lastTransitionTime", "objects[].digest", "objects[].uid",
			"objects[].generation", "objects[].resourceVersion", "objects[].completed", "objects[].dependsOn"),
	)
}

func discoveryStatusFields() map[string]StatusClass {
	return merged(of(NotActedOn, "selected", "clusters", "ready", "problems"), of(WhereListed, "observedGeneration", "conditions"))
}

func applicationStatusFields() map[string]StatusClass {
	return merged(
		of(VerifiedBy("the controller's key"), "mac"),
		of(NotActedOn, "latest", "bundles", "problems"),
		of(WhereListed, "observedGeneration", "conditions"),
		of(Signed, "published[].version", "published[].digest"),
	)
}

func bundleStatusFields() map[string]StatusClass {
	return merged(
		of(VerifiedBy("the controller's key"), "mac"),
		of(NotActedOn, "layers", "applications", "platforms", "problems"),
		of(WhereListed, "observedGeneration", "conditions"),
		of(Signed, "digest"),
	)
}
