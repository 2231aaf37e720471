// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
)

// Observation is everything that Decide decides from.
type Observation struct {
	Now time.Time
	// Cluster as it was read, with its last status.
	Cluster *v1alpha1.RemoteCluster
	Source  Source
	// Via says what is waited for on the cluster that the Secret lies on; empty
	// for nothing.
	Via string
	// Access is how the cluster is reached, by the Secret or, where that cannot
	// be used, by Strata's own copy; nil where neither says.
	Access *Access
	// Unlocated is true as long as nobody has seen that Access leads to addresses
	// that are allowed. Nobody else is given it until then.
	Unlocated bool
	// Live is Strata's own copy; nil where there is none.
	Live *unstructured.Unstructured
	// Key is what the copy is authenticated with.
	Key digests.Key
	// Unverified is true where Access would be that of the copy, and nothing shows
	// that Strata has written the copy as it is.
	Unverified bool
	// Stale is true where Live is known to be older than the last write.
	Stale  bool
	Answer Answer
	// Identity is what the connection that Access makes has shown of the cluster.
	Identity Identity
	// Recorded is the UID of the cluster that may be written to, as Live says or,
	// where somebody has deleted that, as it said; empty where none was recorded.
	Recorded string
	// Hub is the UID of the cluster that Strata runs in; empty where that is not
	// known.
	Hub string
	// Twins names the other RemoteClusters that lead to the same cluster, as
	// namespace/name; empty for the cluster that Strata runs in.
	Twins []string
	// Layers that name the cluster.
	Layers v1alpha1.LayerCount
	// Left names what stands in the way of a deletion.
	Left []string
}

// Access is how a cluster is reached, as its kubeconfig says.
type Access struct {
	// KubeConfig as it was written.
	KubeConfig []byte
	// Digest identifies KubeConfig.
	Digest string
	// Endpoint is the URL of the API server.
	Endpoint string
	// Issued is when the credentials began, and Expires when they end; zero where
	// they do not say.
	Issued, Expires time.Time
}

// Source is what is seen of the Secret that holds a cluster's kubeconfig.
type Source struct {
	// Known is false as long as nobody could look.
	Known bool
	// Found is false where there is no such Secret.
	Found bool
	// Empty is true where it was found and holds nothing yet.
	Empty bool
	// Err says that it cannot be looked at and why, or what is wrong with it where
	// it was found.
	Err error
}

// Answer is what a cluster has answered last.
type Answer struct {
	// At is when that was; zero where it was never asked.
	At time.Time
	// Version of the API server; empty where it did not answer.
	Version string
	// Err says why it did not.
	Err error
	// Refused is true where it answered that the credentials do not count.
	Refused bool
	// LastSeen is when it answered last.
	LastSeen time.Time
	// Located is true where the names in its kubeconfig lead to addresses that are
	// allowed.
	Located bool
}
