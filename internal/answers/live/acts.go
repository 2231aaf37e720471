// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/platforms"
)

// answered is how long an access review counts.
const answered = 10 * time.Minute

// mostRights bounds how many access reviews are kept.
const mostRights = 1000

// right is whether somebody may change an object, as far as it is known.
type right struct {
	allowed bool
	at      time.Time
}

// May tells whether whoever asks may change a layer or a Platform by an act. Until the API
// server has said so nobody may; its answer changes what is shown.
func (c *Cluster) May(kind acts.Kind, name string) bool {
	part := snapshot.Layers
	if kind == acts.Approve {
		part = snapshot.Platforms
	}
	of := acts.Patch{Resource: part.GroupVersionResource, Name: name}
	key := part.Kind + "/" + name
	now := c.o.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	known, asked := c.rights[key]
	if !asked || now.Sub(known.at) > answered {
		if len(c.rights) >= mostRights {
			clear(c.rights)
		}
		c.rights[key] = right{known.allowed, now}
		go c.review(key, of)
	}
	return known.allowed
}

// review asks whether an object may be changed.
func (c *Cluster) review(key string, of acts.Patch) {
	client, err := c.o.Cluster.Typed()
	if err != nil {
		return
	}
	made, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(c.ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "patch", Group: of.Resource.Group, Resource: of.Resource.Resource, Namespace: of.Namespace, Name: of.Name,
		}},
	}, metav1.CreateOptions{})
	allowed := err == nil && made.Status.Allowed
	c.mu.Lock()
	known := c.rights[key]
	c.rights[key] = right{allowed, known.at}
	c.mu.Unlock()
	if allowed != known.allowed {
		c.change()
	}
}

// Intend says what an act comes to, from what is held by now.
func (c *Cluster) Intend(s *snapshot.Snapshot, act acts.Act) (acts.Intent, error) {
	return acts.Intend(s, act, c.about.Namespace, func(platform *v1alpha1.Platform) platforms.Observation {
		o, _ := c.Observe(s, platform, s.Now)
		return o
	})
}

// Do makes the patches of an act, as whoever asks: the API server says whether they may.
func (c *Cluster) Do(ctx context.Context, intent acts.Intent) error {
	if intent.NamedBy != nil {
		client, err := c.o.Cluster.Dynamic()
		if err != nil {
			return err
		}
		if user := gather.UserOf(ctx, client); user != "" {
			intent.Patches[0].Annotations = intent.NamedBy(user)
		}
	}
	for _, patch := range intent.Patches {
		err := c.o.Cluster.Annotate(ctx, patch)
		switch {
		case apierrors.IsForbidden(err):
			return fmt.Errorf("you may not change %s; ask for the right to patch %s: %w", patch.Name, patch.Resource.GroupResource(), err)
		case apierrors.IsConflict(err):
			return fmt.Errorf("%s was changed at the same moment; nothing is done, try again: %w", patch.Name, err)
		case err != nil:
			return err
		}
	}
	return nil
}
