// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// bridge is where the Pods of a host are connected.
const bridge = "pods0"

func inCluster() (kubernetes.Interface, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = 10 * time.Second
	return kubernetes.NewForConfig(config)
}

// runNetwork is the lab's network plug-in, as it runs in a DaemonSet: it makes the bridge
// of the host, has the Pods of other hosts reached through these, and then writes the
// configuration by which the kubelet knows that there is a network.
func runNetwork(ctx context.Context) error {
	client, err := inCluster()
	if err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	made := false
	for {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err == nil {
			for i := range nodes.Items {
				if err = connect(&nodes.Items[i], name, &made); err != nil {
					break
				}
			}
		}
		if err != nil {
			fmt.Println(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// connect makes the bridge of this Node, or the route to another one.
func connect(node *corev1.Node, own string, made *bool) error {
	prefix, err := netip.ParsePrefix(node.Spec.PodCIDR)
	if err != nil {
		return nil // it has no addresses yet
	}
	if node.Name != own {
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				return ip("route", "replace", prefix.String(), "via", address.Address)
			}
		}
		return nil
	}
	if *made {
		return nil
	}
	_ = ip("link", "add", bridge, "type", "bridge") // it may be there already
	if err := ip("addr", "replace", fmt.Sprintf("%s/%d", prefix.Addr().Next(), prefix.Bits()), "dev", bridge); err != nil {
		return err
	}
	if err := ip("link", "set", bridge, "up"); err != nil {
		return err
	}
	const dir = "/etc/cni/net.d"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	*made = true
	return os.WriteFile(filepath.Join(dir, "10-lab.conf"), []byte("{}\n"), 0o644)
}

// proxy is the lab's kube-proxy: it has the addresses of Services on the host, listens
// there, and passes on what comes.
type proxy struct {
	client    kubernetes.Interface
	listening map[string]net.Listener
	// mu guards endpoints: where a Service is served, by its address and port.
	mu        sync.Mutex
	endpoints map[string][]string
}

func runProxy(ctx context.Context) error {
	client, err := inCluster()
	if err != nil {
		return err
	}
	p := &proxy{client: client, listening: map[string]net.Listener{}, endpoints: map[string][]string{}}
	for {
		if err := p.step(ctx); err != nil {
			fmt.Println(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// step follows what Services there are.
func (p *proxy) step(ctx context.Context) error {
	services, err := p.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	slices, err := p.client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	names := &strings.Builder{}
	names.WriteString("127.0.0.1 localhost\n")
	found := map[string][]string{}
	for _, service := range services.Items {
		if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
			continue
		}
		fmt.Fprintf(names, "%[1]s %[2]s.%[3]s.svc.cluster.local %[2]s.%[3]s.svc %[2]s.%[3]s\n", service.Spec.ClusterIP, service.Name, service.Namespace)
		for _, port := range service.Spec.Ports {
			if port.Protocol != corev1.ProtocolTCP {
				continue
			}
			at := net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port.Port)))
			found[at] = endpointsOf(slices.Items, service, port.Name)
			if err := p.listen(at, service.Spec.ClusterIP); err != nil {
				return err
			}
		}
	}
	p.mu.Lock()
	p.endpoints = found
	p.mu.Unlock()
	return os.WriteFile(servicesFile, []byte(names.String()), 0o644)
}

// endpointsOf returns where a port of a Service is served by who is ready.
func endpointsOf(slices []discoveryv1.EndpointSlice, service corev1.Service, port string) []string {
	var found []string
	for _, slice := range slices {
		if slice.Namespace != service.Namespace || slice.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		for _, each := range slice.Ports {
			if each.Name == nil || *each.Name != port || each.Port == nil {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
					found = append(found, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*each.Port))))
				}
			}
		}
	}
	return found
}

// listen listens at the address of a Service, which the host gets.
func (p *proxy) listen(at, address string) error {
	if p.listening[at] != nil {
		return nil
	}
	if err := ip("addr", "replace", address+"/32", "dev", "lo"); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	p.listening[at] = listener
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.pass(conn, at)
		}
	}()
	return nil
}

// pass passes a connection on to one of those who serve.
func (p *proxy) pass(conn net.Conn, at string) {
	defer func() { _ = conn.Close() }()
	p.mu.Lock()
	endpoints := p.endpoints[at]
	p.mu.Unlock()
	if len(endpoints) == 0 {
		return
	}
	to, err := net.DialTimeout("tcp", endpoints[rand.IntN(len(endpoints))], 5*time.Second)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(to, conn)
		_ = to.Close()
	}()
	_, _ = io.Copy(conn, to)
}
