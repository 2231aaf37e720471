// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// units are the services of a host, and where their files are.
var units = []string{"containerd", "kubelet"}

const (
	// runDir has the units' process IDs, stateDir which are enabled and what they wrote.
	runDir   = "/run/lab"
	stateDir = "/var/lib/lab"
)

// systemctl is what kubeadm and people use of systemd.
func systemctl(args []string) error {
	now := slices.Contains(args, "--now")
	value := slices.Contains(args, "--value")
	var words, properties []string
	for i, arg := range args {
		switch {
		case i > 0 && args[i-1] == "-p":
			properties = append(properties, arg)
		case !strings.HasPrefix(arg, "-"):
			words = append(words, arg)
		}
	}
	if len(words) == 0 {
		return errors.New("no command")
	}
	command, names := words[0], words[1:]
	if command == "daemon-reload" || command == "reset-failed" {
		return nil
	}
	for _, name := range names {
		if err := unitCommand(command, strings.TrimSuffix(name, ".service"), now, value, properties); err != nil {
			return err
		}
	}
	return nil
}

func unitCommand(command, name string, now, value bool, properties []string) error {
	known := slices.Contains(units, name)
	switch command {
	case "show":
		return show(name, known, value, properties)
	case "status":
		if !known {
			fmt.Printf("Unit %s.service could not be found.\nLoaded: not-found\n", name)
			return errors.New("not found")
		}
		fmt.Printf("%s.service\n   Loaded: loaded\n   Active: %s\n", name, state(name))
		return nil
	case "is-active":
		fmt.Println(state(name))
		if state(name) != "active" {
			os.Exit(3)
		}
		return nil
	case "is-enabled":
		if _, err := os.Stat(enabledFile(name)); err != nil {
			fmt.Println("disabled")
			os.Exit(1)
		}
		fmt.Println("enabled")
		return nil
	}
	if !known {
		return fmt.Errorf("unit %s.service not found", name)
	}
	switch command {
	case "enable":
		if err := enable(name); err != nil || !now {
			return err
		}
		return start(name)
	case "disable":
		_ = os.Remove(enabledFile(name))
		if now {
			return stopUnit(name)
		}
		return nil
	case "start":
		return start(name)
	case "stop":
		return stopUnit(name)
	case "restart", "reload-or-restart":
		if err := stopUnit(name); err != nil {
			return err
		}
		return start(name)
	}
	return fmt.Errorf("it does not know %s", command)
}

func show(name string, known, value bool, properties []string) error {
	load, active, sub := "not-found", "inactive", "dead"
	if known {
		load = "loaded"
	}
	if state(name) == "active" {
		active, sub = "active", "running"
	}
	all := map[string]string{"LoadState": load, "ActiveState": active, "SubState": sub}
	for _, property := range properties {
		if value {
			fmt.Println(all[property])
		} else {
			fmt.Printf("%s=%s\n", property, all[property])
		}
	}
	return nil
}

func enabledFile(name string) string { return filepath.Join(stateDir, name+".enabled") }
func pidFile(name string) string     { return filepath.Join(runDir, name+".pid") }

func enable(name string) error {
	if err := os.MkdirAll(stateDir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(enabledFile(name), nil, 0o644)
}

// pid returns the process of a unit that runs; 0 where none does.
func pid(name string) int {
	data, err := os.ReadFile(pidFile(name))
	if err != nil {
		return 0
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || syscall.Kill(number, 0) != nil || isZombie(number) {
		return 0
	}
	return number
}

// isZombie tells whether a process has ended and was not waited for.
func isZombie(number int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", number))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.HasPrefix(rest, "Z")
}

func state(name string) string {
	if pid(name) != 0 {
		return "active"
	}
	return "inactive"
}

// start starts a unit in a session of its own, so that it outlives who has started it.
func start(name string) error {
	if pid(name) != 0 {
		return nil
	}
	for _, dir := range []string{runDir, stateDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(stateDir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	process := exec.Command(program)
	process.Stdout, process.Stderr = log, log
	process.Dir = "/"
	// systemd hands on nothing of whoever asks it, such as a proxy.
	process.Env = []string{"PATH=" + os.Getenv("PATH"), "LAB_KUBELET=" + os.Getenv("LAB_KUBELET"), "LAB_CONTAINERD=" + os.Getenv("LAB_CONTAINERD")}
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := process.Start(); err != nil {
		return err
	}
	if err := os.WriteFile(pidFile(name), []byte(strconv.Itoa(process.Process.Pid)), 0o644); err != nil || name != "containerd" {
		return err
	}
	// systemd waits until containerd says that it is ready.
	for range 600 {
		if conn, err := net.Dial("unix", socket); err == nil {
			return conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("containerd does not listen")
}

// stopUnit stops a unit, and with the kubelet nothing else: its Pods go on.
func stopUnit(name string) error {
	number := pid(name)
	if number == 0 {
		return nil
	}
	if err := syscall.Kill(number, syscall.SIGTERM); err != nil {
		return err
	}
	for range 100 {
		if pid(name) == 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return syscall.Kill(number, syscall.SIGKILL)
}
