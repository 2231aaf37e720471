// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/printable"
)

const (
	// maxOthers is how many of each are asked for.
	maxOthers = 500
	// addonLabel is on what KubeOne has brought as an add-on.
	addonLabel = "kubeone.io/addon"
)

// takeOver looks at a cluster that is to be taken over: what stops that, and what somebody
// else keeps there, which is left alone.
func (l *looker) takeOver(ctx context.Context) {
	seen, cluster := &l.sight.Observation, l.sight.Cluster
	seen.TakesOver = true
	seen.Stops = append(seen.Stops, hostclusters.Unlike(cluster.kubeadm, cluster.nodes, l.Cluster.Spec)...)
	others := &l.sight.Others
	if nodes := hostclusters.Unlisted(cluster.nodes, l.Cluster.Spec); len(nodes) > 0 {
		*others = append(*others, "Nodes that the manifest does not list are left alone: "+strings.Join(nodes, ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, l.HostTime)
	defer cancel()
	for _, each := range []struct{ what, path, kind string }{
		{"KubeOne's add-ons", "/apis/apps/v1/deployments?labelSelector=" + addonLabel, "Deployment"},
		{"KubeOne's add-ons", "/apis/apps/v1/daemonsets?labelSelector=" + addonLabel, "DaemonSet"},
		{"machine-controller and its machines", "/apis/cluster.k8s.io/v1alpha1/machinedeployments", "MachineDeployment"},
	} {
		names, err := cluster.names(ctx, each.path)
		switch {
		case err != nil:
			*others = append(*others, fmt.Sprintf("whether there are %s is not known: they are left alone", each.what))
		case len(names) > 0:
			*others = append(*others, fmt.Sprintf("%s are left alone: %s %s", each.what, each.kind, strings.Join(names, ", ")))
		}
	}
}

// names returns the names of the objects in a list; none where their kind is not known.
func (c *Cluster) names(ctx context.Context, path string) ([]string, error) {
	request := c.Client.Discovery().RESTClient().Get().RequestURI(path)
	data, err := request.Param("limit", fmt.Sprint(maxOthers)).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	var list struct {
		Items []metav1.PartialObjectMetadata `json:"items"`
	}
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for i := range list.Items {
		found = append(found, printable.Line(list.Items[i].Namespace+"/"+list.Items[i].Name, 300))
	}
	return found, nil
}
