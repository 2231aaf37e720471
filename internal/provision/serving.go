// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/hostclusters"
)

// servingTime is how long a kubelet may take to ask for a certificate, and to serve with it.
const servingTime = 2 * time.Minute

// approveServing has kubelets get the serving certificates that they ask for, and waits until
// the hosts that lack one have it. What a request claims is looked at again before it is
// approved.
func (w *worker) approveServing(ctx context.Context) error {
	changes := w.sight.Changes
	defer func() { w.sight.Changes = changes }()
	until, said := w.Now().Add(servingTime), ""
	for w.Cluster.Spec.Kubelets.ServerTLSBootstrap {
		if _, err := w.look(ctx); err != nil {
			return err
		}
		if w.sight.Cluster == nil {
			return fmt.Errorf("the cluster does not answer: %s", w.sight.NotQueried)
		}
		var lacking []string
		for _, change := range w.sight.Changes {
			if change.Serving {
				lacking = append(lacking, change.Host)
			}
		}
		if len(lacking) == 0 {
			return nil
		}
		if err := w.approve(ctx, w.sight.Cluster.Open); err != nil {
			return err
		}
		names := strings.Join(lacking, ", ")
		if w.Now().After(until) {
			return fmt.Errorf("%s: the kubelet has no serving certificate of the cluster within %s: does it ask for one (kubectl get csr)?%s",
				names, servingTime, strings.Join(append([]string{""}, w.sight.Refused...), " "))
		}
		if names != said {
			said = names
			w.Report(Event{Message: "waits for serving certificates of " + names, Until: until})
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// approve approves the requests of hosts, by what they claim.
func (w *worker) approve(ctx context.Context, open []certificatesv1.CertificateSigningRequest) error {
	client := w.sight.Cluster.Client.CertificatesV1().CertificateSigningRequests()
	for i := range open {
		request := open[i].DeepCopy()
		host, err := hostclusters.ServingHost(request, w.Cluster.Spec)
		if err != nil {
			continue // the plan warns of it
		}
		request.Status.Conditions = append(slices.Clone(request.Status.Conditions), certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "NamesItsHost",
			Message: "The kubelet of " + host + " asks for a certificate with the name and the addresses of its own host.",
		})
		// The request that was looked at is the one that is approved: its version is in it.
		_, err = client.UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("cannot approve the serving certificate of %s: %w", host, err)
		}
		if err == nil {
			w.Report(Event{Host: host, Message: "gets its serving certificate"})
		}
	}
	return nil
}
