// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubectl/pkg/drain"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/scripts"
)

// drainTime is how long Pods may take to leave a host, where the manifest does not say.
const drainTime = 10 * time.Minute

// drains tells whether an action begins with a drain of the host, which is uncordoned after it.
func drains(action hosts.Action) bool {
	return action.Verb == hosts.VerbUpgrade || action.Verb == hosts.VerbUpgradeContainerd
}

// together returns the actions that are taken side by side: the first one, and where it
// upgrades a worker, as many more like it as the manifest allows at once.
func together(spec v1alpha1.HostClusterSpec, actions []hosts.Action) []hosts.Action {
	isWorkers := func(action hosts.Action) bool {
		return drains(action) && action.Verb == actions[0].Verb &&
			slices.ContainsFunc(spec.Workers, func(h v1alpha1.ClusterHost) bool { return h.Name == action.Host })
	}
	most := 1
	if wanted := spec.Upgrade.MaxUnavailable; wanted != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(wanted, len(spec.Workers), false); err == nil {
			most = max(n, 1)
		}
	}
	n := 1
	for n < min(most, len(actions)) && isWorkers(actions[0]) && isWorkers(actions[n]) {
		n++
	}
	return actions[:n]
}

// goneTime is how long after its own time a Pod that is to end is waited for: longer, nobody
// on its host ends it.
const goneTime = time.Minute

// upgrade takes a host to another version, or to another containerd: its Pods leave it first, and it takes Pods again
// once it is healthy. One that has begun was left by its Pods before.
func (w *worker) upgrade(ctx context.Context, action hosts.Action) (bool, error) {
	if cluster := w.sight.Cluster; cluster != nil && !action.Continues {
		if err := w.drain(ctx, cluster.Client, action.Host); err != nil {
			return false, err
		}
	}
	job := scripts.Job{Cluster: w.Cluster, ID: w.id, Action: action}
	if cluster := w.sight.Cluster; cluster != nil && action.Verb == hosts.VerbUpgrade && w.isControlPlane(action.Host) {
		// kubeadm begins the API server with what its own configuration names.
		var err error
		if job.Encryption, err = w.sharedEncryption(ctx); err != nil {
			return false, err
		}
	}
	return w.runScript(ctx, job)
}

// drain has the Pods leave a host, where another one could take them.
func (w *worker) drain(ctx context.Context, client kubernetes.Interface, host string) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list the Nodes: %w", err)
	}
	if !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return n.Name != host && takesPods(n) }) {
		w.Report(Event{Host: host, Message: "keeps its Pods, since no other Node takes any"})
		return nil
	}
	limit := drainTime
	if wanted := w.Cluster.Spec.Upgrade.DrainTimeout; wanted != nil {
		limit = wanted.Duration
	}
	leaving := &leaving{host: host, report: w.Report, until: w.Now().Add(limit), pods: map[string]bool{}}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	helper := &drain.Helper{
		Ctx: ctx, Client: client, Timeout: limit, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		// Those that nothing would make again are refused in our own words.
		Force: true, SkipWaitForDeleteTimeoutSeconds: int(goneTime / time.Second), Out: io.Discard, ErrOut: leaving,
		OnPodDeletionOrEvictionStarted:  func(pod *corev1.Pod, _ bool) { leaving.add(pod) },
		OnPodDeletionOrEvictionFinished: func(pod *corev1.Pod, _ bool, err error) { leaving.remove(pod, err) },
	}
	// Nothing is done to the host before it is known that all may leave; others may come
	// until it is held back.
	if _, err := podsOn(helper, host); err != nil {
		return err
	}
	if err := w.cordon(ctx, client, host); err != nil {
		return err
	}
	pods, err := podsOn(helper, host)
	if err != nil || len(pods) == 0 {
		return err
	}
	w.Report(Event{Host: host, Message: fmt.Sprintf("is left by %d Pods", len(pods)), Until: leaving.until})
	if err := helper.DeleteOrEvictPods(pods); err != nil {
		return fmt.Errorf("%s has Pods that do not leave within %s (spec.upgrade.drainTimeout): %s", host, limit, leaving.why(err))
	}
	return nil
}

// podsOn returns the Pods that are to leave a host. The error names those that nothing would
// make again.
func podsOn(helper *drain.Helper, host string) ([]corev1.Pod, error) {
	list, failures := helper.GetPodsForDeletion(host)
	if len(failures) > 0 {
		return nil, fmt.Errorf("cannot tell which Pods are on %s: %w", host, errors.Join(failures...))
	}
	pods := list.Pods()
	if alone := withoutController(pods); len(alone) > 0 {
		return nil, fmt.Errorf("%s has Pods that nothing would make again: %s. End them, or have a controller make them", host, strings.Join(alone, ", "))
	}
	return pods, nil
}

// takesPods tells whether a Node is ready, and takes Pods.
func takesPods(node corev1.Node) bool {
	return !node.Spec.Unschedulable && hostclusters.IsReady(&node)
}

// withoutController returns the Pods that go on and that nothing would make again.
func withoutController(pods []corev1.Pod) []string {
	var found []string
	for i := range pods {
		phase := pods[i].Status.Phase
		if metav1.GetControllerOf(&pods[i]) == nil && phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			found = append(found, pods[i].Namespace+"/"+pods[i].Name)
		}
	}
	slices.Sort(found)
	return found
}

// cordon makes a Node unschedulable, with the mark by which uncordon knows it.
func (w *worker) cordon(ctx context.Context, client kubernetes.Interface, host string) error {
	return changeNode(ctx, client, host, func(node *corev1.Node) bool {
		if node.Spec.Unschedulable {
			return false // by an earlier run, or by somebody who decides when that ends
		}
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[v1alpha1.UpgradingAnnotation], node.Spec.Unschedulable = w.id, true
		return true
	})
}

// uncordon makes all Nodes schedulable that were cordoned for an upgrade, but for some.
func (w *worker) uncordon(ctx context.Context, but ...string) error {
	cluster := w.sight.Cluster
	if cluster == nil {
		return nil // a later run does it
	}
	nodes, err := cluster.Nodes(ctx)
	if err != nil {
		return err
	}
	for i := range nodes {
		if name := nodes[i].Name; !slices.Contains(but, name) && hostclusters.IsCordoned(&nodes[i]) {
			err := changeNode(ctx, cluster.Client, name, func(node *corev1.Node) bool {
				delete(node.Annotations, v1alpha1.UpgradingAnnotation)
				node.Spec.Unschedulable = false
				return true
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// changeNode changes a Node, where it is there and the change says that it differs.
func changeNode(ctx context.Context, client kubernetes.Interface, name string, change func(*corev1.Node) bool) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil || !change(node) {
			return err
		}
		_, err = client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot change the Node %s: %w", name, err)
	}
	return nil
}

// leaving are the Pods that are to leave a host. Several goroutines tell of them.
type leaving struct {
	host   string
	report func(Event)
	until  time.Time

	mu   sync.Mutex
	pods map[string]bool
	// refusal is the last one that the API server gave.
	refusal string
}

func (l *leaving) add(pod *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods[pod.Namespace+"/"+pod.Name] = true
}

func (l *leaving) remove(pod *corev1.Pod, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.pods, pod.Namespace+"/"+pod.Name)
	}
}

// Write hears what is said of a Pod that does not leave yet, such as that a
// PodDisruptionBudget holds it. The same is reported once.
func (l *leaving) Write(said []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(said) {
		text := printable.Line(strings.TrimSpace(string(line)), 400)
		if !strings.HasPrefix(text, "error when evicting") || text == l.refusal {
			continue
		}
		l.refusal = text
		l.report(Event{Host: l.host, Message: text, Until: l.until})
	}
	return len(said), nil
}

// why says what is still there when the time is over.
func (l *leaving) why(err error) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var left []string
	for name := range l.pods {
		left = append(left, name)
	}
	slices.Sort(left)
	return strings.Join(left, ", ") + ": " + cmp.Or(l.refusal, err.Error())
}
