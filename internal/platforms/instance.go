// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"errors"
	"fmt"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
)

// nameInstances names the installations on the clusters of a platform that says how. One that
// exists keeps its name, and no two have one.
func (d *decider) nameInstances() {
	text := d.Platform.Spec.InstanceName
	if text == "" {
		return
	}
	holder := map[string]*member{}
	for _, fresh := range []bool{false, true} {
		for _, m := range d.members {
			value := clusterValue(m.target)
			name := d.names.instances[value]
			if (name == "") != fresh {
				continue
			}
			var err error
			if fresh {
				name, err = bundles.InstanceName(text, factsOf(d.Observation, m.target))
			}
			if other := holder[name]; err == nil && other != nil {
				err = fmt.Errorf("%s and %s both come to %s", other.name(), m.name(), name)
			}
			if err != nil {
				d.names.wrong[value] = fmt.Errorf("spec.instanceName: %w", err)
				if waits := (*bundles.Waiting)(nil); !errors.As(err, &waits) {
					d.stall(v1alpha1.ReasonInvalidSpec, d.names.wrong[value].Error())
				}
				continue
			}
			holder[name], d.names.instances[value] = m, name
		}
	}
}
