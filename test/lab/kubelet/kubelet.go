// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// round is how often the kubelet looks at its files and Pods.
const round = 300 * time.Millisecond

// kubelet is the one of a host.
type kubelet struct {
	node    string
	statics *statics
	client  kubernetes.Interface
	pods    map[types.UID]*podRun
	// lastAddress is the last one of the Node's range that a Pod got.
	lastAddress int
}

// runKubelet waits for its configuration, as the real one does by being started again, and
// runs until it is stopped. Its Pods go on: they are no children of its session.
func runKubelet(ctx context.Context) error {
	node, err := os.Hostname()
	if err != nil {
		return err
	}
	k := &kubelet{node: node, statics: newStatics(), pods: map[types.UID]*podRun{}}
	healthy := false
	for {
		if _, err := os.Stat(kubeletConfig); err == nil {
			if !healthy {
				healthy = true
				go serveHealth(ctx)
			}
			if err := k.step(ctx); err != nil {
				fmt.Println(time.Now().Format(time.TimeOnly), err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(round):
		}
	}
}

// serveHealth answers kubeadm, which asks whether the kubelet is there.
func serveHealth(ctx context.Context) {
	server := &http.Server{
		Addr: "127.0.0.1:10248", ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }),
	}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); err != nil {
		fmt.Println(err)
	}
}

// step brings everything one step further.
func (k *kubelet) step(ctx context.Context) error {
	if err := k.statics.step(); err != nil {
		return err
	}
	if k.client == nil {
		made, err := client(ctx, k.node)
		if err != nil {
			return err
		}
		k.client = made
	}
	if err := k.register(ctx); err != nil {
		return err
	}
	if err := k.mirror(ctx); err != nil {
		return err
	}
	return k.runPods(ctx)
}

// register makes the Node, says that it is ready when the network plug-in has written its
// configuration, and renews its Lease.
func (k *kubelet) register(ctx context.Context) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node, Labels: map[string]string{
			corev1.LabelHostname: k.node, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}}}
		node, err = k.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("cannot register the Node: %w", err)
	}
	status, reason := corev1.ConditionFalse, "KubeletNotReady"
	if networkReady() {
		status, reason = corev1.ConditionTrue, "KubeletReady"
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == status && time.Since(condition.LastHeartbeatTime.Time) < 10*time.Second {
			return nil
		}
	}
	address, err := hostAddress()
	if err != nil {
		return err
	}
	now := metav1.Now()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: k.node}}
	node.Status.NodeInfo.KubeletVersion = version("LAB_KUBELET", "v1.36.3")
	node.Status.Capacity, node.Status.Allocatable = capacity(), capacity()
	_, err = k.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// networkReady tells whether a network plug-in has written its configuration.
func networkReady() bool {
	files, err := os.ReadDir("/etc/cni/net.d")
	return err == nil && len(files) > 0
}
