// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

const manifestDir = "/etc/kubernetes/manifests"

// statics are the static Pods of a host.
type statics struct {
	running map[string]*static
	// posted are the hashes of the mirrors that the API server has.
	posted map[string]string
}

// static is one of them, which runs as one process.
type static struct {
	pod     *corev1.Pod
	hash    string
	process int
	ended   time.Time
}

// staticFile has the process of a static Pod, for a kubelet that is started again.
func staticFile(name string) string { return runDir + "/static-" + name }

func newStatics() *statics {
	return &statics{running: map[string]*static{}, posted: map[string]string{}}
}

// step starts what has a manifest, again what has changed, and stops the others.
func (s *statics) step() error {
	files, err := filepath.Glob(filepath.Join(manifestDir, "*.yaml"))
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pod := &corev1.Pod{}
		if err := yaml.Unmarshal(data, pod); err != nil || pod.Name == "" || len(pod.Spec.Containers) == 0 {
			continue // half written
		}
		sum := sha256.Sum256(data)
		wanted[pod.Name] = true
		if err := s.want(pod, hex.EncodeToString(sum[:16])); err != nil {
			fmt.Println(pod.Name, err)
		}
	}
	for name, each := range s.running {
		if !wanted[name] {
			each.end()
			delete(s.running, name)
			delete(s.posted, name)
			_ = os.Remove(staticFile(name))
		}
	}
	return s.adoptLeft(wanted)
}

// want has a Pod run as its manifest says.
func (s *statics) want(pod *corev1.Pod, hash string) error {
	each := s.running[pod.Name]
	if each == nil {
		each = &static{}
		each.readBack(pod.Name)
		s.running[pod.Name] = each
	}
	switch {
	case each.hash == hash && each.alive():
	case each.hash == hash && time.Since(each.ended) < time.Second:
		return nil // it is not started again at once
	default:
		each.end()
		if err := each.start(pod, hash); err != nil {
			each.ended = time.Now()
			return err
		}
	}
	each.pod = pod
	return nil
}

// adoptLeft ends Pods of an earlier kubelet whose manifests have gone.
func (s *statics) adoptLeft(wanted map[string]bool) error {
	files, err := filepath.Glob(staticFile("*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		name := strings.TrimPrefix(filepath.Base(file), "static-")
		if !wanted[name] {
			left := &static{}
			left.readBack(name)
			left.end()
			_ = os.Remove(file)
		}
	}
	return nil
}

// readBack finds the process that an earlier kubelet has started.
func (p *static) readBack(name string) {
	data, err := os.ReadFile(staticFile(name))
	if err != nil {
		return
	}
	hash, number, _ := strings.Cut(string(data), " ")
	if p.process, err = strconv.Atoi(number); err == nil && p.alive() {
		p.hash = hash
	}
}

func (p *static) alive() bool {
	if p.process == 0 {
		return false
	}
	var status syscall.WaitStatus
	if ended, err := syscall.Wait4(p.process, &status, syscall.WNOHANG, nil); err == nil && ended == p.process {
		p.process, p.ended = 0, time.Now()
		return false
	}
	return syscall.Kill(p.process, 0) == nil && !isZombie(p.process)
}

// end ends the process, and waits until it has gone.
func (p *static) end() {
	if !p.alive() {
		return
	}
	_ = syscall.Kill(p.process, syscall.SIGTERM)
	for i := range 100 {
		if !p.alive() {
			return
		}
		if i == 60 {
			_ = syscall.Kill(p.process, syscall.SIGKILL)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *static) start(pod *corev1.Pod, hash string) error {
	container := pod.Spec.Containers[0]
	words := append(append([]string{}, container.Command...), container.Args...)
	if len(words) == 0 {
		return errors.New("its container has no command")
	}
	program, err := programOf(words[0], container.Image)
	if err != nil {
		return err
	}
	for _, dir := range []string{stateDir, runDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(filepath.Join(stateDir, pod.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	process := exec.Command(program, words[1:]...)
	process.Stdout, process.Stderr, process.Dir = log, log, "/"
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := process.Start(); err != nil {
		return err
	}
	p.process, p.hash, p.pod = process.Process.Pid, hash, pod
	return os.WriteFile(staticFile(pod.Name), []byte(hash+" "+strconv.Itoa(p.process)), 0o644)
}

// programOf returns the program of a version where the host has several, by the tag of the
// image.
func programOf(name, image string) (string, error) {
	if i := strings.LastIndex(image, ":"); i >= 0 {
		if program, err := exec.LookPath(name + "-" + image[i+1:]); err == nil {
			return program, nil
		}
	}
	return exec.LookPath(name)
}

// mirror shows the static Pods to the API server, as a kubelet does.
func (k *kubelet) mirror(ctx context.Context) error {
	for name, each := range k.statics.running {
		if each.pod == nil || k.statics.posted[name] == each.hash {
			continue
		}
		if err := mirrorPod(ctx, k.client, k.node, each); err != nil {
			return fmt.Errorf("cannot show the static Pod %s: %w", name, err)
		}
		k.statics.posted[name] = each.hash
	}
	return nil
}

func mirrorPod(ctx context.Context, client kubernetes.Interface, node string, each *static) error {
	pod := each.pod.DeepCopy()
	pods := client.CoreV1().Pods(pod.Namespace)
	pod.Name += "-" + node
	pod.Spec.NodeName = node
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	for key, value := range map[string]string{
		corev1.MirrorPodAnnotationKey: each.hash, "kubernetes.io/config.hash": each.hash, "kubernetes.io/config.source": "file",
	} {
		pod.Annotations[key] = value
	}
	owner, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	controls := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: owner.UID, Controller: &controls}}
	// A Node may list its own Pods, and get none by a name that is not there.
	own, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return err
	}
	var existing *corev1.Pod
	for i := range own.Items {
		if own.Items[i].Name == pod.Name {
			existing = &own.Items[i]
		}
	}
	if existing != nil && existing.Annotations[corev1.MirrorPodAnnotationKey] != each.hash {
		now := int64(0)
		if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		existing = nil
	}
	if existing == nil {
		if existing, err = pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	address, err := hostAddress()
	if err != nil {
		return err
	}
	existing.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: address, PodIP: address,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		},
	}
	_, err = pods.UpdateStatus(ctx, existing, metav1.UpdateOptions{})
	return err
}

// hostAddress returns the address of the host's only network.
func hostAddress() (string, error) {
	link, err := net.InterfaceByName("eth0")
	if err != nil {
		return "", err
	}
	addresses, err := link.Addrs()
	if err != nil {
		return "", err
	}
	for _, address := range addresses {
		if network, is := address.(*net.IPNet); is && network.IP.To4() != nil {
			return network.IP.String(), nil
		}
	}
	return "", errors.New("the host has no address")
}

// capacity is what a Node of the lab has.
func capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
		corev1.ResourceEphemeralStorage: resource.MustParse("50Gi"),
	}
}
