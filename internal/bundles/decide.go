// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/conditions"
)

// Observation is everything that Decide decides from.
type Observation struct {
	Now time.Time
	// Bundle as it was read, with its last status.
	Bundle *v1alpha1.ApplicationBundle
	// Catalogue holds the applications by name: all of them, or those that the
	// bundle names.
	Catalogue map[string]*v1alpha1.HelmApplication
	// PlatformsUsing is how many Platforms have the bundle on some cluster.
	PlatformsUsing int32
}

// Decision is what to say of an ApplicationBundle.
type Decision struct {
	Status v1alpha1.ApplicationBundleStatus
}

// CountLag is how long a status waits that differs only in how many Platforms have the
// bundle.
const CountLag = 2 * time.Second

// OnlyCounted tells whether a status says nothing new but how many Platforms have the
// bundle.
func OnlyCounted(last, next v1alpha1.ApplicationBundleStatus) bool {
	last.Platforms = next.Platforms
	return equality.Semantic.DeepEqual(last, next)
}

// Decide says whether a bundle can be installed. It is deterministic.
func Decide(o Observation) Decision {
	bundle := o.Bundle
	status := v1alpha1.ApplicationBundleStatus{ObservedGeneration: bundle.Generation, Platforms: o.PlatformsUsing, MAC: bundle.Status.MAC}
	for _, layer := range bundle.Spec.Layers {
		status.Layers++
		for range layer.Applications {
			status.Applications++
		}
	}
	digest, err := DigestOf(bundle)
	status.Digest = cmp.Or(bundle.Status.Digest, digest)
	problems := Check(bundle, o.Catalogue)
	set := conditions.New(bundle.Status.Conditions, bundle.Generation, o.Now)
	switch {
	case err != nil || digest != status.Digest:
		problems = append([]string{changedContent}, problems...)
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonContentChanged, catalogue.Summary(problems))
		set.Put(v1alpha1.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonContentChanged, changedContent)
	case len(problems) > 0:
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonProblems, catalogue.Summary(problems))
		set.Put(v1alpha1.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonProblems, catalogue.Summary(problems))
	default:
		notes := o.madeFor() + o.withdrawn() + o.narrower() + o.lacking()
		message := fmt.Sprintf("%s, %s%s", count(status.Layers, "layer"), count(status.Applications, "application"), notes)
		set.Put(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonPublished, message)
	}
	status.Problems = catalogue.FirstOf(problems)
	status.Conditions = set.List
	return Decision{Status: status}
}

// madeFor tells a bundle that was made of a Platform's picks from one that somebody has
// published.
func (o Observation) madeFor() string {
	if owner := metav1.GetControllerOf(o.Bundle); owner != nil && owner.Kind == v1alpha1.PlatformKind {
		return "; made for Platform " + owner.Name
	}
	return ""
}

// withdrawn says which application of the bundle is withdrawn. That keeps nobody
// from what was tested, but is to be known.
func (o Observation) withdrawn() string {
	for _, layer := range o.Bundle.Spec.Layers {
		for _, application := range layer.Applications {
			name := ApplicationName(application)
			app := o.Catalogue[name]
			if app == nil {
				continue
			}
			if version := catalogue.VersionOf(app, application.Version); version != nil && version.Withdrawn != "" {
				return fmt.Sprintf("; version %s of HelmApplication %s is withdrawn: %s", version.Version, name, version.Withdrawn)
			}
		}
	}
	return ""
}

func count(number int32, what string) string {
	if number == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", number, what)
}
