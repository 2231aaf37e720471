// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// VolumeClass is what is known of a StorageClass.
type VolumeClass struct {
	// WaitsForConsumers is true where volumes are made when a Pod wants them.
	WaitsForConsumers bool
	// Unread says why it is not known; empty where it is.
	Unread string
}

// ClassesInQuestion returns the StorageClasses that say whether claims of the layer wait for
// their first consumer, in order.
func (o Observation) ClassesInQuestion() []objects.ID {
	found := map[objects.ID]bool{}
	for id, live := range o.Live {
		if live == nil || id.GroupKind() != kinds.VolumeClaimKind {
			continue
		}
		if class, is := kinds.UnconsumedClass(live); is && objects.AssessObject(objects.AssessStatus, live).Health == objects.Progressing {
			found[classID(id.Cluster, class)] = true
		}
	}
	ids := make([]objects.ID, 0, len(found))
	for id := range found {
		ids = append(ids, id)
	}
	return objects.SortIDs(ids)
}

func classID(cluster, name string) objects.ID {
	return objects.ID{Cluster: cluster, Group: kinds.StorageClassKind.Group, Kind: kinds.StorageClassKind.Kind, Name: name}
}

// volumeClaimStanding says how a claim for a volume on a cluster fares. One that waits for a Pod
// that wants it is as ready as it gets by itself: that Pod may be what comes behind it.
func (o Observation) volumeClaimStanding(cluster string, live *unstructured.Unstructured) objects.Standing {
	standing := objects.AssessObject(objects.AssessStatus, live)
	name, unconsumed := kinds.UnconsumedClass(live)
	if standing.Health != objects.Progressing || !unconsumed {
		return standing
	}
	switch class := o.Classes[classID(cluster, name)]; {
	case class.WaitsForConsumers:
		return objects.Standing{
			Health: objects.Ready, Status: objects.StatusWaitsForConsumer, Message: fmt.Sprintf("waits for a Pod that wants it, as StorageClass %s says", name),
		}
	case class.Unread != "":
		standing.Message += fmt.Sprintf("; whether it waits for its first consumer is not known, because StorageClass %s %s", name, class.Unread)
		standing.Said = ""
	}
	return standing
}
