// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import "fmt"

// Unshared is a copy of a Secret that a layer of another cluster has, and that it would
// not be given now.
type Unshared struct {
	// Layer that has the copy, and the Secret that it is a copy of, as NAMESPACE/NAME.
	Layer, Secret string
	// Cluster is the RemoteCluster of the layer, as NAMESPACE/NAME.
	Cluster string
	// Never says what the Secret is kept for where no leave gives it; empty otherwise.
	Never string
	// Share names the ways to give leave; empty with Never.
	Share string
}

// sharing tells of copies of Secrets that nobody has shared.
func sharing(f Facts) []Finding {
	if f.UnsharedErr != nil {
		return []Finding{{
			"sharing", Warn, "which Secrets layers of other clusters have is not known: " + shortError(f.UnsharedErr),
			"ask for the right to list Secrets, RemoteClusters and layers",
		}}
	}
	var findings []Finding
	for _, copied := range f.Unshared {
		has := fmt.Sprintf("layer %s has a copy of Secret %s", copied.Layer, copied.Secret)
		if copied.Never != "" {
			findings = append(findings, Finding{
				"sharing", Warn, fmt.Sprintf("%s, which is %s: no layer of another cluster is given that", has, copied.Never),
				"put what the release needs into a Secret of its own, and give the layer leave for that",
			})
			continue
		}
		findings = append(findings, Finding{
			"sharing", Warn,
			fmt.Sprintf("%s, which nobody has shared with RemoteCluster %s: the copy goes with the next minor version", has, copied.Cluster),
			copied.Share,
		})
	}
	if len(findings) == 0 {
		findings = append(findings, Finding{Check: "sharing", Result: OK, What: "all Secrets that layers of other clusters have are shared with them"})
	}
	return findings
}
