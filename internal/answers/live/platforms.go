// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/platforms"
)

// Observe returns what a Platform would be decided from at a moment, as far as it is held
// by now, and what of that is missing. ConfigMaps with inputs are watched from now on, each
// by its name, and change the answer once they are there.
func (c *Cluster) Observe(s *snapshot.Snapshot, platform *v1alpha1.Platform, at time.Time) (o platforms.Observation, missing []string) {
	missing = gather.Missing(s)
	configMap := func(name types.NamespacedName) (map[string]string, error) {
		below, note := c.below(spot{Place: why.Place{Namespace: name.Namespace}, configMap: name.Name})
		var err error
		switch {
		case below == nil:
			err = errors.New(cmp.Or(note, "is not read yet"))
		case below.Unread[snapshot.ConfigMaps] != nil:
			err = below.Unread[snapshot.ConfigMaps]
		}
		if err != nil {
			missing = append(missing, fmt.Sprintf("ConfigMap %s: %v", name, err))
			return nil, err
		}
		if found := below.Objects[objects.ID{Kind: snapshot.ConfigMaps.Kind, Namespace: name.Namespace, Name: name.Name}]; found != nil {
			return gather.DataOf(found), nil
		}
		return nil, nil
	}
	return gather.Observation(gather.WorldOf(s, c.about.Namespace), c.about.Version, platform, at, configMap), missing
}
