// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubelet stands on a lab's host for the programs that need a real machine. By the
// name of its file it is
//
//   - kubelet: it registers the Node with a certificate that it asks for, runs static Pods and
//     those of the Node as processes, and tells the API server how they are. A Pod has the
//     program that is called as its image, an account, and a network of its own as soon as
//     there is one,
//   - network-plugin and kube-proxy: what connects Pods, and Services with them,
//   - pause: what holds a Pod together,
//   - containerd: a CRI that has every image,
//   - systemctl: it starts and stops both.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// version of Kubernetes and of containerd that the programs say they are; a host can have
// others, and a package has it in a file beside the program.
func version(name, fallback string) string {
	if said := os.Getenv(name); said != "" {
		return said
	}
	if program, err := os.Executable(); err == nil {
		if said, err := os.ReadFile(program + ".version"); err == nil {
			return strings.TrimSpace(string(said))
		}
	}
	return fallback
}

func main() {
	keepToItself()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, filepath.Base(os.Args[0]), os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

// keepToItself has no program that is started from here inherit what is open, such as the
// lock of a script: real services are started by another process.
func keepToItself() {
	for fd := 3; fd < 64; fd++ {
		syscall.CloseOnExec(fd)
	}
}

func run(ctx context.Context, name string, args []string) error {
	asksVersion := slices.Contains(args, "--version")
	switch {
	case name == "systemctl":
		return systemctl(args)
	case name == "containerd" && asksVersion:
		fmt.Printf("containerd github.com/containerd/containerd/v2 %s 0000000000000000000000000000000000000000\n", version("LAB_CONTAINERD", "v2.2.0"))
		return nil
	case name == "containerd":
		return serveRuntime(ctx)
	case name == "kubelet" && asksVersion:
		fmt.Printf("Kubernetes %s\n", version("LAB_KUBELET", "v1.36.3"))
		return nil
	case name == "kubelet":
		return runKubelet(ctx)
	case name == "pause" && slices.Contains(args, "-v"):
		fmt.Println("pause.c lab")
		return nil
	case name == "pause":
		<-ctx.Done()
		return nil
	case name == "network-plugin":
		return runNetwork(ctx)
	case name == "kube-proxy":
		return runProxy(ctx)
	}
	return fmt.Errorf("it is called %s, and plays nothing of that name", name)
}
