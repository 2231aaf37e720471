// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// clusterSeries are the suite's controller's series of a RemoteCluster.
func (f *fixture) clusterSeries(cluster types.NamespacedName) map[string]float64 {
	f.Helper()
	return f.scrape(regexp.MustCompile(`\bremote_cluster="` + regexp.QuoteMeta(cluster.String()) + `",?`))
}

// clusterCounts waits until series of a RemoteCluster have their values.
func (f *fixture) clusterCounts(cluster types.NamespacedName, want map[string]float64) {
	f.Helper()
	f.has("the metrics of RemoteCluster "+cluster.String(), func() map[string]float64 { return f.clusterSeries(cluster) }, want)
}

// clusterTold waits until an event of a RemoteCluster has a reason and a message
// with a word.
func (f *fixture) clusterTold(cluster types.NamespacedName, kind, reason, word string) {
	f.Helper()
	f.eventually(fmt.Sprintf("an event %s %s of RemoteCluster %s says %q", kind, reason, cluster, word), func() error {
		list := &eventsv1.EventList{}
		if err := stack.client.List(f.ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
			return err
		}
		var told []string
		for _, event := range list.Items {
			if event.Regarding.Kind != v1alpha1.RemoteClusterKind || event.Regarding.Name != cluster.Name {
				continue
			}
			if event.Type == kind && event.Reason == reason && strings.Contains(event.Note, word) {
				return nil
			}
			told = append(told, fmt.Sprintf("%s %s %s", event.Type, event.Reason, event.Note))
		}
		return fmt.Errorf("it was told %q", told)
	})
}

// hears waits until notification-controller knows the Alert of the fixture's
// namespace: what it is told before, it tells nobody.
func (f *fixture) hears(w *webhook, path string) {
	f.Helper()
	attempts := 0
	f.eventually("notification-controller knows the Alert", func() error {
		attempts++
		event, err := json.Marshal(eventv1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: v1alpha1.RemoteClusterKind, APIVersion: v1alpha1.GroupVersion.String(), Namespace: f.prefix, Name: "probe"},
			Severity:       eventv1.EventSeverityInfo, Timestamp: metav1.Now(), Reason: "Probe", ReportingController: "strata",
			Message: fmt.Sprintf("attempt %d", attempts), // the same twice would be told once
		})
		if err != nil {
			return err
		}
		response, err := http.Post(stack.plane.EventsURL(), "application/json", bytes.NewReader(event))
		if err != nil {
			return err
		}
		if err := response.Body.Close(); err != nil {
			return err
		}
		if len(w.events(path)) == 0 {
			return fmt.Errorf("the webhook has heard none of %d events", attempts)
		}
		return nil
	})
}

// clusterArrives waits until the webhook has an event of a RemoteCluster with a
// reason, after some that it had before.
func (f *fixture) clusterArrives(w *webhook, path string, cluster types.NamespacedName, reason string, before int) eventv1.Event {
	f.Helper()
	var found eventv1.Event
	f.eventually(fmt.Sprintf("the webhook is told %s of RemoteCluster %s", reason, cluster), func() error {
		events := w.events(path)
		for _, event := range events[before:] {
			object := event.InvolvedObject
			if object.Kind == v1alpha1.RemoteClusterKind && object.Namespace == cluster.Namespace && object.Name == cluster.Name && event.Reason == reason {
				found = event
				return nil
			}
		}
		return fmt.Errorf("of %d events %d are new", len(events), len(events)-before)
	})
	return found
}

// endingCertificate returns a client certificate that ends within the last third
// of its life, and its key. Nobody knows who has signed it: it goes with a token.
func (f *fixture) endingCertificate() (certificate, key []byte) {
	f.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	f.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(30 * time.Minute),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	f.must(err)
	encoded, err := x509.MarshalECPrivateKey(private)
	f.must(err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// Whoever looks at metrics, events or a webhook sees a cluster come, be lost, come
// back and go, and nothing of it is left then.
func TestSignalsOfRemoteClusters(t *testing.T) {
	f := newFixture(t)
	var hook *webhook
	if stack.plane.EventsURL() != "" {
		hook = f.webhook()
		f.listens(f.prefix, hook.URL+"/fleet")
		f.hears(hook, "/fleet")
	}
	heard := func() int {
		if hook == nil {
			return 0
		}
		return len(hook.events("/fleet"))
	}
	posts := func(reason, severity, message string, before int) {
		t.Helper()
		if hook == nil {
			return
		}
		key := types.NamespacedName{Namespace: f.prefix, Name: "prod"}
		event := f.clusterArrives(hook, "/fleet", key, reason, before)
		asked := reason == v1alpha1.ReasonReachable || reason == v1alpha1.ReasonUnreachable
		if event.Severity != severity || !strings.Contains(event.Message, message) || asked && event.Metadata["version"] == "" {
			t.Errorf("%s is %+v, want severity %s and the words %q", reason, event, severity, message)
		}
	}
	far := f.mortalFar()
	cluster := f.remoteCluster("prod")
	f.clusterCounts(cluster, map[string]float64{
		"strata_remote_cluster_ready": -1, "strata_remote_cluster_reachable": -1, "strata_remote_cluster_layers": 0,
		`strata_remote_cluster_reason{reason="Pending"}`: 1,
	})
	f.clusterTold(cluster, "Normal", v1alpha1.ReasonPending, "waits for Secret")
	posts(v1alpha1.ReasonPending, eventv1.EventSeverityInfo, "waits for Secret", 0)

	f.kubeconfigSecret(stack.client, f.prefix, "prod", f.tokenOf(far, "strata"))
	found := f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", on(cluster))
	f.deployed("base", revision)
	f.clusterCounts(cluster, map[string]float64{
		"strata_remote_cluster_ready": 1, "strata_remote_cluster_reachable": 1, "strata_remote_cluster_layers": 1, "strata_remote_cluster_layers_deployed": 1,
		`strata_remote_cluster_reason{reason="Reachable"}`:                          1,
		fmt.Sprintf("strata_remote_cluster_info{version=%q}", found.Status.Version): 1,
		"strata_remote_cluster_reachable_since_timestamp_seconds":                   float64(meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ReachableCondition).LastTransitionTime.Unix()),
		"strata_remote_cluster_credentials_expiration_timestamp_seconds":            float64(found.Status.CredentialsExpire.Unix()),
		"strata_remote_cluster_credentials_expiring":                                0,
		fmt.Sprintf("strata_layer_cluster{layer=%q}", f.name("base")):               1,
	})
	f.counts("base", map[string]float64{fmt.Sprintf("strata_layer_cluster{remote_cluster=%q}", cluster): 1})
	f.clusterTold(cluster, "Normal", v1alpha1.ReasonReachable, "answers")
	ending := far.Config()
	ending.CertData, ending.KeyData = f.endingCertificate()
	f.kubeconfigSecret(stack.client, f.prefix, "prod", kubeconfigOf(t, ending))
	f.clusterTold(cluster, "Warning", v1alpha1.ReasonCredentialsExpiring, "the credentials end at")
	posts(v1alpha1.ReasonCredentialsExpiring, eventv1.EventSeverityError, "the credentials end at", 0)
	f.clusterCounts(cluster, map[string]float64{"strata_remote_cluster_credentials_expiring": 1, "strata_remote_cluster_ready": 1})

	const seen = "strata_remote_cluster_last_seen_timestamp_seconds"
	first := f.clusterSeries(cluster)[seen]
	f.eventually("a cluster that answers is seen again and again", func() error {
		if got := f.clusterSeries(cluster)[seen]; got <= first {
			return fmt.Errorf("it was seen at %v, and at %v", first, got)
		}
		return nil
	})

	before := heard()
	f.must(far.KillComponent(controlplane.APIServer))
	found = f.clusterSays(cluster, v1alpha1.ReachableCondition, metav1.ConditionFalse, v1alpha1.ReasonUnreachable)
	f.clusterCounts(cluster, map[string]float64{
		"strata_remote_cluster_ready": 0, "strata_remote_cluster_reachable": 0, `strata_remote_cluster_reason{reason="Unreachable"}`: 1,
		"strata_remote_cluster_reachable_since_timestamp_seconds": float64(meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ReachableCondition).LastTransitionTime.Unix()),
	})
	series := f.clusterSeries(cluster)
	if last := series[seen]; last <= first || last > float64(time.Now().Unix()) {
		t.Errorf("it was seen last at %v, want between %v and now", last, first)
	}
	if series[`strata_remote_cluster_probe_duration_seconds_count{result="answered"}`] < 2 || series[`strata_remote_cluster_probe_duration_seconds_count{result="failed"}`] < 1 {
		t.Errorf("probes are %v", series)
	}
	f.clusterTold(cluster, "Warning", v1alpha1.ReasonUnreachable, "cannot be reached")
	posts(v1alpha1.ReasonUnreachable, eventv1.EventSeverityError, "cannot be reached", before)

	before = heard()
	f.must(far.StartComponent(f.ctx, controlplane.APIServer))
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	posts(v1alpha1.ReasonReachable, eventv1.EventSeverityInfo, "answers", before)

	f.deleteLayer("base")
	f.layerGone("base")
	f.must(stack.client.Delete(f.ctx, &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}))
	f.eventually("the RemoteCluster is gone", func() error { return isGone(stack.client.Get(f.ctx, cluster, &v1alpha1.RemoteCluster{})) })
	f.within(promptly, "nothing is left of a RemoteCluster that is gone", func() error {
		if left := f.clusterSeries(cluster); len(left) > 0 {
			return fmt.Errorf("there is %v", left)
		}
		return nil
	})
}
