// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/internal/answers/adoption"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

// inScope tells whether somebody asked for a namespace.
func (i *helmImport) inScope(namespace string) bool {
	return len(i.namespaces) == 0 || slices.Contains(i.namespaces, namespace)
}

// loose returns the live HelmReleases that a layer may take as they are, and notes
// the others.
func (i *helmImport) loose(seen *snapshot.Snapshot) []*unstructured.Unstructured {
	selector, _ := labels.Parse(i.selector) // it was checked
	var loose []*unstructured.Unstructured
	for _, live := range seen.Of(snapshot.Releases) {
		if !i.inScope(live.GetNamespace()) || !selector.Matches(labels.Set(live.GetLabels())) {
			continue
		}
		if by, _ := adoption.Kept(live); by != "" {
			chart, version := adoption.ChartOf(live)
			i.skip(live.GetNamespace(), live.GetName(), chart, version, by)
			continue
		}
		loose = append(loose, live)
	}
	return loose
}

func (i *helmImport) skip(namespace, name, chart, version, reason string) {
	i.skipped = append(i.skipped, adoption.Item{Namespace: namespace, Name: name, Chart: chart, Version: version, Action: adoption.ActionSkip, Note: reason})
}

// candidates reads the Helm releases one after the other, so that only what is
// needed of each stays in memory.
func (i *helmImport) candidates(ctx context.Context, seen *snapshot.Snapshot, charts *market) ([]adoption.Candidate, error) {
	stored, err := i.stored(ctx)
	if err != nil {
		return nil, err
	}
	ending := i.endingNamespaces(ctx)
	progress := i.Progress()
	defer progress.Done()
	var candidates []adoption.Candidate
	newest := adoption.Newest(stored)
	live := seen.Of(snapshot.Releases)
	for n, each := range newest {
		progress.Say("release %d of %d: %s/%s", n+1, len(newest), each.Namespace, each.Release)
		release, problem, err := i.release(ctx, each)
		if err != nil {
			return nil, err
		}
		if problem != "" {
			i.skip(each.Namespace, each.Release, "", "", problem)
			i.toDos = append(i.toDos, fmt.Sprintf("look at Secret %s: it %s", each, problem))
			continue
		}
		reason, covered := adoption.Judge(release, live)
		if ending[each.Namespace] && reason == "" {
			reason = "its namespace is being deleted"
		}
		switch {
		case covered && i.covers(live, release):
		case reason != "":
			i.skip(release.Namespace, release.Name, release.Chart.Name, release.Chart.Version, reason)
		default:
			candidate := adoption.Candidate{Release: release}
			candidate.Repository, candidate.Why = charts.find(ctx, release)
			candidates = append(candidates, candidate)
		}
		if ctx.Err() != nil {
			return nil, i.Explain(ctx.Err(), snapshot.Layers)
		}
	}
	return candidates, nil
}

// covers tells whether the HelmRelease that stands for a release is listed itself.
func (i *helmImport) covers(live []*unstructured.Unstructured, release adoption.Release) bool {
	selector, _ := labels.Parse(i.selector) // it was checked
	found := adoption.ByIdentity(live)[release.Namespace+"/"+release.Name]
	return found != nil && i.inScope(found.GetNamespace()) && selector.Matches(labels.Set(found.GetLabels()))
}

// pageSize is how many Secrets one answer names.
const pageSize = 500

// stored lists the Secrets of Helm by their labels alone.
func (i *helmImport) stored(ctx context.Context) ([]adoption.Stored, error) {
	if len(i.namespaces) > 0 {
		return i.storedEach(ctx, i.namespaces)
	}
	found, err := i.storedIn(ctx, metav1.NamespaceAll)
	if !apierrors.IsForbidden(err) {
		return found, i.Explain(err, snapshot.Layers)
	}
	list, listErr := i.client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(ctx, metav1.ListOptions{})
	if listErr != nil {
		return nil, fmt.Errorf("you may list Secrets of neither all namespaces nor, because you may not list those, of each: name namespaces with -n: %w", err)
	}
	var names []string
	for _, namespace := range list.Items {
		names = append(names, namespace.GetName())
	}
	return i.storedEach(ctx, names)
}

func (i *helmImport) storedEach(ctx context.Context, namespaces []string) ([]adoption.Stored, error) {
	var found []adoption.Stored
	var refused []string
	for _, namespace := range namespaces {
		more, err := i.storedIn(ctx, namespace)
		switch {
		case apierrors.IsForbidden(err):
			refused = append(refused, namespace)
		case err != nil:
			return nil, i.Explain(err, snapshot.Layers)
		}
		found = append(found, more...)
	}
	if len(refused) > 0 {
		i.toDos = append(i.toDos, fmt.Sprintf("get the rights to get and list Secrets in %s, whose releases were left out", strings.Join(refused, ", ")))
	}
	return found, nil
}

func (i *helmImport) storedIn(ctx context.Context, namespace string) ([]adoption.Stored, error) {
	var found []adoption.Stored
	options := metav1.ListOptions{
		LabelSelector: strings.Trim(adoption.StoredSelector+","+i.selector, ","), FieldSelector: "type=" + adoption.StoredType, Limit: pageSize,
	}
	for {
		list, err := i.metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for at := range list.Items {
			secret := &list.Items[at]
			stored, err := adoption.StoredOf(secret.Namespace, secret.Name, secret.Labels)
			if err != nil {
				i.toDos = append(i.toDos, fmt.Sprintf("look at Secret %s/%s: it %v", secret.Namespace, secret.Name, err))
				continue
			}
			found = append(found, stored)
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return found, nil
		}
	}
}

// release reads one release; problem says why it cannot be understood.
func (i *helmImport) release(ctx context.Context, stored adoption.Stored) (_ adoption.Release, problem string, _ error) {
	secret, err := i.client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(stored.Namespace).Get(ctx, stored.Secret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return adoption.Release{}, "is gone by now", nil
	case apierrors.IsForbidden(err):
		return adoption.Release{}, "may not be read by you", nil
	case err != nil:
		return adoption.Release{}, "", i.Explain(err, snapshot.Layers)
	}
	text, _, _ := unstructured.NestedString(secret.Object, "data", "release")
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return adoption.Release{}, "holds no release", nil
	}
	release, err := adoption.Decode(data)
	if err != nil {
		return adoption.Release{}, err.Error(), nil
	}
	return release, stored.Check(release), nil
}

// endingNamespaces returns the namespaces that are being deleted, as far as they
// may be seen.
func (i *helmImport) endingNamespaces(ctx context.Context) map[string]bool {
	ending := map[string]bool{}
	list, err := i.client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return ending
	}
	for at := range list.Items {
		ending[list.Items[at].GetName()] = !list.Items[at].GetDeletionTimestamp().IsZero()
	}
	return ending
}
