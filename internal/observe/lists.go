// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
)

const (
	// pageSize is how many objects are asked for at once.
	pageSize = 200
	// maxNodes, maxLayers and maxRequests are how many of each are read.
	maxNodes, maxLayers, maxRequests = 5000, 5000, 1000
)

// paged lists all objects of a kind page by page, up to a number. read reads one page, and
// returns how many it has and where the next one begins; empty for nowhere.
func paged(what string, most int, read func(metav1.ListOptions) (n int, next string, err error)) error {
	options := metav1.ListOptions{Limit: pageSize}
	// An API server may answer pages with nothing on them.
	for count, pages := 0, 0; ; pages++ {
		n, next, err := read(options)
		if err != nil {
			return fmt.Errorf("cannot list the %s: %w", what, err)
		}
		if count += n; count > most || pages > most/pageSize*2 {
			return fmt.Errorf("the API server lists more than %d %s, which are not read", most, what)
		}
		if options.Continue = next; next == "" {
			return nil
		}
	}
}

// Nodes returns the Nodes of the cluster, without what nobody here asks for.
func (c *Cluster) Nodes(ctx context.Context) ([]corev1.Node, error) {
	var found []corev1.Node
	err := paged("Nodes", maxNodes, func(options metav1.ListOptions) (int, string, error) {
		page, err := c.Client.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return 0, "", err
		}
		for i := range page.Items {
			page.Items[i].ManagedFields, page.Items[i].Status.Images = nil, nil
		}
		found = append(found, page.Items...)
		return len(page.Items), page.Continue, nil
	})
	return found, err
}

// listLayers lists the layers; none where the cluster does not know them.
func (c *Cluster) listLayers(ctx context.Context) ([]v1alpha1.AddonsLayer, error) {
	var found []v1alpha1.AddonsLayer
	err := paged("AddonsLayers", maxLayers, func(options metav1.ListOptions) (int, string, error) {
		request := c.Client.Discovery().RESTClient().Get().AbsPath("/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "addonslayers").
			Param("limit", strconv.Itoa(pageSize))
		if options.Continue != "" {
			request = request.Param("continue", options.Continue)
		}
		data, err := request.DoRaw(ctx)
		if apierrors.IsNotFound(err) {
			return 0, "", nil
		}
		var page v1alpha1.AddonsLayerList
		if err == nil {
			err = json.Unmarshal(data, &page)
		}
		found = append(found, page.Items...)
		return len(page.Items), page.Continue, err
	})
	return found, err
}

// openRequests lists what kubelets ask for that nobody has answered, among the first requests.
func (c *Cluster) openRequests(ctx context.Context) ([]certificatesv1.CertificateSigningRequest, error) {
	list, err := c.Client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{
		FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName, Limit: maxRequests,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the CertificateSigningRequests: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(r certificatesv1.CertificateSigningRequest) bool { return !hostclusters.IsOpen(&r) }), nil
}
