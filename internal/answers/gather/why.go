// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/strata-project/strata/internal/reserved"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/verdict"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/internal/reach"
)

// farTime bounds how long another cluster is waited for.
const farTime = 10 * time.Second

// WhyParts are what the causes of a layer are made from.
var WhyParts = append([]snapshot.Part{snapshot.Layers, snapshot.Releases}, snapshot.Sources...)

// WhyOptions say how far causes are followed.
type WhyOptions struct {
	// Wanted chooses the layers of a verdict; nil for all.
	Wanted labels.Selector
	// Program is how the plug-in is called.
	Program string
	// Stay has no other cluster be asked.
	Stay bool
	// Allowed says where other clusters may be.
	Allowed reach.Allowed
}

// Why says why a layer is not deployed. s has WhyParts; what lies deeper is read now. Of
// what may not be read, or does not answer, the answer has notes.
func (c *Cluster) Why(ctx context.Context, s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer, o WhyOptions) (why.Answer, error) {
	answer := why.Of(s, layer)
	if place, deeper := answer.Deeper(s); deeper {
		below, err := c.below(ctx, place, o)
		switch {
		case place.Cluster != "" && err != nil:
			answer = answer.Unasked(place, address.Error(err).Error())
		case err != nil:
			return answer, err
		default:
			answer = answer.Deepen(s, below, place)
			if lacking := Lacking(below); len(lacking) > 0 {
				answer = answer.Unasked(place, fmt.Sprintf("you may not list %s, so the cause may lie deeper than is shown", strings.Join(lacking, ", ")))
			}
		}
	}
	values, _ := why.Values(s, layer)
	of, err := c.Labels(ctx, values)
	if err != nil {
		return answer, err
	}
	return answer.Unwatched(s, layer, of).Conclude(s, o.Program), nil
}

// Lacking names the resources that whoever asked may not list, sorted.
func Lacking(s *snapshot.Snapshot) []string {
	var lacking []string
	for part, err := range s.Unread {
		if apierrors.IsForbidden(err) {
			lacking = append(lacking, part.GroupResource().String())
		}
	}
	slices.Sort(lacking)
	return lacking
}

// below reads what may explain the end of a chain.
func (c *Cluster) below(ctx context.Context, place why.Place, o WhyOptions) (*snapshot.Snapshot, error) {
	if place.Cluster != "" {
		short, cancel := context.WithTimeout(ctx, farTime)
		defer cancel()
		ctx = short
	}
	at, err := c.Beneath(ctx, place, o)
	if err != nil {
		return nil, err
	}
	below, err := at.ReadIn(ctx, place.Namespace, why.Depths...)
	if err != nil && place.Cluster != "" && ctx.Err() != nil {
		return nil, fmt.Errorf("it has not answered within %s", farTime)
	}
	return below, err
}

// Beneath returns the cluster that a place is on.
func (c *Cluster) Beneath(ctx context.Context, place why.Place, o WhyOptions) (*Cluster, error) {
	if place.Cluster == "" {
		return c, nil
	}
	if o.Stay {
		return nil, errors.New("other clusters are not asked: ask it with the kubectl context that you have for it")
	}
	return c.Beyond(ctx, place.Cluster, o.Allowed)
}

// Beyond returns the cluster of a RemoteCluster, namespace/name, by the copy of its
// kubeconfig that Strata keeps beside it, which whoever asks must be allowed to read.
// That may lead to allowed addresses alone, and have nothing done on this machine. The
// cluster is not asked yet.
func (c *Cluster) Beyond(ctx context.Context, cluster string, allowed reach.Allowed) (*Cluster, error) {
	client, err := c.Typed()
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(cluster, "/")
	secret := types.NamespacedName{Namespace: namespace, Name: reserved.KubeConfigName(name)}
	held, err := client.CoreV1().Secrets(namespace).Get(ctx, secret.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not read Secret %s, which leads there: ask it with the kubectl context that you have for it", secret)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no Secret %s, which leads there", secret)
	case err != nil:
		return nil, err
	}
	found, err := kubeconfig.Find(held.Data, "")
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig in Secret %s: %w", secret, err)
	}
	access, err := kubeconfig.Parse(found, kubeconfig.Allow{})
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig in Secret %s: %w", secret, err)
	}
	connection, err := reach.Connect(access.Config, allowed, nil)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig in Secret %s: %w", secret, err)
	}
	return New(Options{
		Config: func() (*rest.Config, error) { return connection.Config, nil }, Web: connection.Web, Now: c.now,
	}), nil
}

// VerdictParts are what a verdict is made from.
var VerdictParts = append([]snapshot.Part{snapshot.Clusters}, WhyParts...)

// Verdict says how everything stands. s has VerdictParts; what lies below the worst
// causes is read now.
func (c *Cluster) Verdict(ctx context.Context, s *snapshot.Snapshot, o WhyOptions) (verdict.Verdict, error) {
	return verdict.Of(s, o.Wanted, Lacking(s)).Follow(s, func(layer *v1alpha1.AddonsLayer) (why.Answer, error) {
		return c.Why(ctx, s, layer, o)
	})
}
