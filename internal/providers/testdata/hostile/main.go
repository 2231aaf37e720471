// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hostile is a plug-in that tries to get at what is not its own, and says what it got.
package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/pkg/plugin"
)

func main() { plugin.Serve(hostile{}) }

type hostile struct{}

// Describe says that it has databases.
func (hostile) Describe() plugin.Description {
	return plugin.Description{Name: "hostile", Version: "1.0.0", Capabilities: []plugin.Capability{{
		Capability: "database/naughty",
		Schema:     []byte(`{"type": "object", "properties": {"file": {"type": "string"}, "api": {"type": "string"}, "plugin": {"type": "string"}}}`),
	}}}
}

// Plan has an object that says what it got.
func (hostile) Plan(request plugin.Request) (plugin.Plan, error) {
	text := func(name string) string {
		value, _ := request.Parameters[name].(string)
		return value
	}
	got := map[string]string{}
	for name, try := range map[string]func() string{
		"token":                 func() string { return read("/var/run/secrets/kubernetes.io/serviceaccount/token") },
		"environment":           environment,
		"file-of-controller":    func() string { return read(text("file")) },
		"environment-of-others": func() string { return processes("environ") },
		"memory-of-others":      func() string { return processes("mem") },
		"files-of-plugins":      files,
		"certificate":           func() string { return read(filepath.Join(os.Getenv(plugin.CertificatesVariable), "client.key")) },
		"authority":             func() string { return read(filepath.Join(os.Getenv(plugin.CertificatesVariable), "ca.key")) },
		"api-server":            func() string { return ask(text("api")) },
		"other-plugin":          func() string { return connect(text("plugin")) },
		"root":                  root,
		"writes":                writes,
	} {
		if what := try(); what != "" {
			got[name] = what
		}
	}
	said := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: request.Claim.Name + "-got"}, Data: got,
	}
	return plugin.Plan{Objects: []plugin.Object{{ID: "got", Object: said}}}, nil
}

func read(path string) string {
	content, err := os.ReadFile(path) //nolint:gosec // that is what it is for
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d bytes", len(content))
}

// environment names what is beyond what every plug-in has.
func environment() string {
	var found []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		own := name == "TMPDIR" || name == "HOME" || strings.HasPrefix(name, "PLUGIN_") || strings.HasPrefix(name, "STRATA_")
		if !own {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}

// processes opens a file of each other process.
func processes(name string) string {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err != nil || pid == os.Getpid() {
			continue
		}
		file, err := os.Open(filepath.Join("/proc", entry.Name(), name)) //nolint:gosec // that is what it is for
		if err != nil {
			continue
		}
		_, err = file.Read(make([]byte, 1))
		_ = file.Close()
		if err == nil || name == "mem" {
			return "process " + entry.Name()
		}
	}
	return ""
}

// files are those of other plug-ins.
func files() string {
	own := os.Getenv("TMPDIR")
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(own), "strata-plugin-*"))
	found = slices.DeleteFunc(found, func(path string) bool {
		_, err := os.ReadDir(path)
		return path == own || err != nil
	})
	return strings.Join(found, " ")
}

// ask asks the API server for Secrets.
func ask(address string) string {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as somebody would who attacks
	response, err := client.Get(address + "/api/v1/secrets")
	if err != nil {
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return ""
	}
	return response.Status
}

// connect asks another plug-in, with the certificate that it has.
func connect(address string) string {
	raw, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return ""
	}
	defer func() { _ = raw.Close() }()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // as somebody would who attacks
	folder := os.Getenv(plugin.CertificatesVariable)
	if own, err := tls.LoadX509KeyPair(filepath.Join(folder, plugin.CertificateFile), filepath.Join(folder, plugin.KeyFile)); err == nil {
		config.Certificates = []tls.Certificate{own}
	}
	over := tls.Client(raw, config)
	_ = over.SetDeadline(time.Now().Add(5 * time.Second))
	if over.Handshake() != nil {
		return ""
	}
	_, _ = over.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	if _, err := over.Read(make([]byte, 9)); err != nil {
		return ""
	}
	return "an answer"
}

func root() string {
	if os.Getuid() == 0 {
		return "yes"
	}
	return ""
}

// writes tries to write outside of its own folder.
func writes() string {
	for _, folder := range []string{"/", "/etc", "/bin", "/etc/strata/certificates", filepath.Dir(filepath.Clean(os.Getenv("TMPDIR")))} {
		file, err := os.CreateTemp(folder, "hostile-")
		if err == nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
			return folder
		}
	}
	return ""
}
