// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// podRun is a Pod that runs: a process for each container, in the network of the Pod.
type podRun struct {
	pod       *corev1.Pod
	address   string
	namespace string // of the network; empty for that of the host
	dir       string
	processes map[string]*static
	probed    bool
	// idle are containers whose program the host has not: they are ready as they are.
	idle map[string]bool
}

// podDir is where what Pods mount is.
const podDir = "/run/lab/pods"

// servicesFile has the names of Services, as lines of /etc/hosts. kube-proxy writes it.
const servicesFile = "/run/lab/hosts"

// startPod makes the network of a Pod and what it mounts, and starts its containers.
func (k *kubelet) startPod(ctx context.Context, pod *corev1.Pod) (*podRun, error) {
	run := &podRun{pod: pod, dir: filepath.Join(podDir, string(pod.UID)), processes: map[string]*static{}, idle: map[string]bool{}}
	if err := os.MkdirAll(run.dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if pod.Spec.HostNetwork {
		run.address, err = hostAddress()
	} else {
		err = k.connectPod(ctx, run)
	}
	if err != nil {
		return nil, err
	}
	if err := k.writeAccount(ctx, run); err != nil {
		return nil, err
	}
	for _, container := range pod.Spec.Containers {
		if err := k.startContainer(ctx, run, container); err != nil {
			run.end()
			return nil, fmt.Errorf("container %s: %w", container.Name, err)
		}
	}
	return run, nil
}

// connectPod gives a Pod a network of its own, at the bridge of the network plug-in.
func (k *kubelet) connectPod(ctx context.Context, run *podRun) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	prefix, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil {
		return errors.New("the Node has no range of addresses for its Pods yet")
	}
	k.lastAddress++
	address := prefix.Addr().Next() // that of the bridge
	for range k.lastAddress {
		address = address.Next()
	}
	short := string(run.pod.UID)[:8]
	run.address, run.namespace = address.String(), "pod-"+short
	for _, args := range [][]string{
		{"netns", "add", run.namespace},
		{"link", "add", "v" + short, "type", "veth", "peer", "name", "eth0", "netns", run.namespace},
		{"link", "set", "v" + short, "master", bridge},
		{"link", "set", "v" + short, "up"},
		{"-n", run.namespace, "link", "set", "lo", "up"},
		{"-n", run.namespace, "addr", "add", fmt.Sprintf("%s/%d", address, prefix.Bits()), "dev", "eth0"},
		{"-n", run.namespace, "link", "set", "eth0", "up"},
		{"-n", run.namespace, "route", "add", "default", "via", prefix.Addr().Next().String()},
	} {
		if err := ip(args...); err != nil {
			return err
		}
	}
	return nil
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// writeAccount writes the token of a Pod's account, which ends with the Pod.
func (k *kubelet) writeAccount(ctx context.Context, run *podRun) error {
	account := run.pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	lasts := int64(24 * 3600)
	token, err := k.client.CoreV1().ServiceAccounts(run.pod.Namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &lasts,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: run.pod.Name, UID: run.pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("no token for %s: %w", account, err)
	}
	authority, err := os.ReadFile("/etc/kubernetes/pki/ca.crt")
	if err != nil {
		return err
	}
	dir := filepath.Join(run.dir, "account")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range map[string]string{"token": token.Status.Token, "ca.crt": string(authority), "namespace": run.pod.Namespace} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// startContainer starts the process of a container. Its program is the one that is called
// as its image; an image whose program the host has not does nothing, for ever.
func (k *kubelet) startContainer(ctx context.Context, run *podRun, container corev1.Container) error {
	image, _, _ := strings.Cut(path.Base(container.Image), "@")
	image, _, _ = strings.Cut(image, ":")
	words := append([]string{}, container.Args...)
	program, err := exec.LookPath(image)
	if err != nil {
		program, words = "/usr/bin/sleep", []string{"infinity"}
		run.idle[container.Name] = true
	}
	environment := map[string]string{"KUBERNETES_SERVICE_HOST": kubernetesService, "KUBERNETES_SERVICE_PORT": "443", "PATH": os.Getenv("PATH"), "HOME": "/tmp"}
	if run.pod.Spec.HostNetwork {
		// Services may not be reached from the host before kube-proxy runs on it.
		if environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"], err = apiServer(); err != nil {
			return err
		}
	}
	for _, each := range container.Env {
		environment[each.Name] = run.value(each)
	}
	for i, word := range words {
		for name, value := range environment {
			word = strings.ReplaceAll(word, "$("+name+")", value)
		}
		words[i] = word
	}
	mounts, err := k.mounts(ctx, run, container)
	if err != nil {
		return err
	}
	name, args := "unshare", append([]string{"--mount", "sh", "-c", mounts + `exec "$@"`, "sh", program}, words...)
	if run.namespace != "" {
		name, args = "ip", append([]string{"netns", "exec", run.namespace, "unshare"}, args...)
	}
	log, err := os.OpenFile(filepath.Join(stateDir, run.pod.Name+"."+container.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	process := exec.Command(name, args...)
	process.Stdout, process.Stderr, process.Dir = log, log, "/"
	for name, value := range environment {
		process.Env = append(process.Env, name+"="+value)
	}
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := process.Start(); err != nil {
		return err
	}
	run.processes[container.Name] = &static{process: process.Process.Pid}
	return nil
}

// apiServer is the one that the kubelet of the host speaks to.
func apiServer() (host, port string, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeletConf)
	if err != nil {
		return "", "", err
	}
	at, err := url.Parse(config.Host)
	if err != nil {
		return "", "", err
	}
	return at.Hostname(), at.Port(), nil
}

// kubernetesService is the address of the Service kubernetes, the first one of its range.
const kubernetesService = "10.96.0.1"

// value is that of a variable.
func (r *podRun) value(of corev1.EnvVar) string {
	if of.ValueFrom == nil || of.ValueFrom.FieldRef == nil {
		return of.Value
	}
	switch of.ValueFrom.FieldRef.FieldPath {
	case "metadata.namespace":
		return r.pod.Namespace
	case "metadata.name":
		return r.pod.Name
	case "status.podIP":
		return r.address
	case "spec.nodeName":
		return r.pod.Spec.NodeName
	}
	return ""
}

// mounts are the lines of a shell that mount what a container sees as its own.
func (k *kubelet) mounts(ctx context.Context, run *podRun, container corev1.Container) (string, error) {
	lines := []string{
		"set -e", "mkdir -p /run/secrets/kubernetes.io/serviceaccount",
		"mount --bind " + filepath.Join(run.dir, "account") + " /run/secrets/kubernetes.io/serviceaccount",
		"touch " + servicesFile, "mount --bind " + servicesFile + " /etc/hosts",
	}
	volumes := map[string]corev1.Volume{}
	for _, volume := range run.pod.Spec.Volumes {
		volumes[volume.Name] = volume
	}
	for _, mount := range container.VolumeMounts {
		volume := volumes[mount.Name]
		dir := filepath.Join(run.dir, "volumes", mount.Name)
		var files map[string][]byte
		switch {
		case volume.EmptyDir != nil:
		case volume.ConfigMap != nil:
			object, err := k.client.CoreV1().ConfigMaps(run.pod.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			files = map[string][]byte{}
			for name, text := range object.Data {
				files[name] = []byte(text)
			}
		default:
			continue // what the lab's programs do not read
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return "", err
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
				return "", err
			}
		}
		target := mount.MountPath
		if target == "/data" || !exists(target) {
			lines = append(lines, "mkdir -p "+target)
		}
		lines = append(lines, "mount --bind "+dir+" "+target)
	}
	return strings.Join(lines, "\n") + "\n", nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// step looks how the containers are.
func (r *podRun) step() {
	for name, process := range r.processes {
		if !process.alive() && process.ended.IsZero() {
			process.ended = time.Now()
			fmt.Println(r.pod.Name, name, "has ended")
		}
	}
	r.probed = true
	for _, container := range r.pod.Spec.Containers {
		if probe := container.ReadinessProbe; probe != nil && probe.HTTPGet != nil && !r.idle[container.Name] {
			r.probed = r.probed && r.answers(container, probe.HTTPGet)
		}
	}
}

// answers asks a container whether it is ready.
func (r *podRun) answers(container corev1.Container, get *corev1.HTTPGetAction) bool {
	port := get.Port.IntValue()
	for _, each := range container.Ports {
		if each.Name == get.Port.StrVal && each.Name != "" {
			port = int(each.ContainerPort)
		}
	}
	client := &http.Client{Timeout: time.Second}
	response, err := client.Get("http://" + net.JoinHostPort(r.address, strconv.Itoa(port)) + get.Path)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode < 400
}

// ready tells whether all containers run and answer.
func (r *podRun) ready() bool { return r.phase() == corev1.PodRunning && r.probed }

// phase is Succeeded or Failed when containers have ended that are not started again.
func (r *podRun) phase() corev1.PodPhase {
	for _, process := range r.processes {
		if process.ended.IsZero() {
			continue
		}
		if r.pod.Spec.RestartPolicy == corev1.RestartPolicyNever || r.pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
			return corev1.PodSucceeded
		}
		return corev1.PodFailed // whoever owns it makes another one
	}
	return corev1.PodRunning
}

// state is that of one container.
func (r *podRun) state(name string) corev1.ContainerState {
	if process := r.processes[name]; process != nil && !process.ended.IsZero() {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.NewTime(process.ended)}}
	}
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
}

// end ends all processes of a Pod, and its network.
func (r *podRun) end() {
	for _, process := range r.processes {
		process.end()
	}
	if r.namespace != "" {
		_ = ip("netns", "del", r.namespace)
	}
	_ = os.RemoveAll(r.dir)
}
