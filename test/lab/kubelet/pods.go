// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// runPods brings the Pods of the Node one step further: those that use the network of the
// host at once, and others when the network plug-in is there. Each container is a process.
func (k *kubelet) runPods(ctx context.Context) error {
	list, err := k.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.node})
	if err != nil {
		return fmt.Errorf("cannot list the Pods of the Node: %w", err)
	}
	present := map[types.UID]bool{}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Annotations[corev1.MirrorPodAnnotationKey] != "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		present[pod.UID] = true
		if err := k.stepPod(ctx, pod); err != nil {
			fmt.Println(pod.Namespace, pod.Name, err)
		}
	}
	for _, uid := range slices.Collect(maps.Keys(k.pods)) {
		if !present[uid] {
			k.pods[uid].end()
			delete(k.pods, uid)
		}
	}
	return nil
}

// stepPod brings one Pod one step further.
func (k *kubelet) stepPod(ctx context.Context, pod *corev1.Pod) error {
	running := k.pods[pod.UID]
	if pod.DeletionTimestamp != nil {
		if running != nil {
			running.end()
			delete(k.pods, pod.UID)
		}
		now := int64(0)
		err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		return ignoreNotFound(err)
	}
	if running == nil {
		if !pod.Spec.HostNetwork && !networkReady() {
			return k.tell(ctx, pod, corev1.PodPending, nil, "the network is not ready: no network plug-in has written its configuration")
		}
		made, err := k.startPod(ctx, pod)
		if err != nil {
			return k.tell(ctx, pod, corev1.PodPending, nil, err.Error())
		}
		running = made
		k.pods[pod.UID] = made
	}
	running.step()
	return k.tell(ctx, pod, running.phase(), running, "")
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// tell writes the status of a Pod where it differs.
func (k *kubelet) tell(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase, running *podRun, waiting string) error {
	address, err := hostAddress()
	if err != nil {
		return err
	}
	ready := running != nil && running.ready()
	status := corev1.PodStatus{
		Phase: phase, HostIP: address, HostIPs: []corev1.HostIP{{IP: address}}, QOSClass: pod.Status.QOSClass, StartTime: pod.Status.StartTime,
	}
	if status.StartTime == nil {
		now := metav1.Now()
		status.StartTime = &now
	}
	if running != nil {
		status.PodIP, status.PodIPs = running.address, []corev1.PodIP{{IP: running.address}}
	}
	yes := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}
	for _, condition := range []struct {
		name corev1.PodConditionType
		is   bool
	}{{corev1.PodScheduled, true}, {corev1.PodInitialized, running != nil}, {corev1.ContainersReady, ready}, {corev1.PodReady, ready}} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: condition.name, Status: yes[condition.is], Message: waiting, LastTransitionTime: *status.StartTime,
		})
	}
	for _, container := range pod.Spec.Containers {
		state := corev1.ContainerStatus{Name: container.Name, Image: container.Image, ImageID: container.Image}
		if running == nil {
			state.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: waiting}
		} else {
			started := true
			state.Ready, state.Started, state.State = ready, &started, running.state(container.Name)
		}
		status.ContainerStatuses = append(status.ContainerStatuses, state)
	}
	if same(pod.Status, status) {
		return nil
	}
	pod.Status = status
	_, err = k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil // it is told at the next step
	}
	return ignoreNotFound(err)
}

// same tells whether a status says nothing new.
func same(before, after corev1.PodStatus) bool {
	said := func(s corev1.PodStatus) string {
		text := fmt.Sprint(s.Phase, s.PodIP)
		for _, condition := range s.Conditions {
			text += fmt.Sprint(condition.Type, condition.Status, condition.Message)
		}
		for _, container := range s.ContainerStatuses {
			text += fmt.Sprint(container.Name, container.Ready, container.State.Terminated != nil, container.State.Waiting != nil)
		}
		return text
	}
	return said(before) == said(after)
}
