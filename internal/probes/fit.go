// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/strata-project/strata/internal/versions"
)

// What a host must have.
const (
	// leastMemory is what kubeadm asks of a host of the control plane.
	leastMemory = 1700 << 20
	// leastFree is what must be free below /var/lib before anything is put there.
	leastFree = 2 << 30
	// mostSkew is how far the clocks of two hosts may be apart. kubeadm's certificates
	// begin five minutes before they are made; half of that is left for others' clocks.
	mostSkew = 150 * time.Second
)

// Wanted is what a host is to be.
type Wanted struct {
	// Version of Kubernetes.
	Version string
	// Worker is false for a host of the control plane.
	Worker bool
	// CgroupV1 is true where the kubelet is told to run on the first version of control
	// groups.
	CgroupV1 bool
}

// since tells whether a version of Kubernetes is of a minor version or a later one.
func since(version string, minor uint64) bool {
	parsed := versions.Semantic(version)
	return parsed != nil && (parsed.Major() > 1 || parsed.Minor() >= minor)
}

// Unfit says why a host cannot be what is wanted; empty where it can. What a host has not
// said is not held against it.
func (f Facts) Unfit(wanted Wanted) []string {
	var why []string
	add := func(format string, values ...any) { why = append(why, fmt.Sprintf(format, values...)) }
	if kernel := versions.Semantic(upstream(f.Kernel)); kernel != nil && kernel.LessThan(semver.MustParse("5.4.0")) {
		add("its kernel %s is older than 5.4, which Kubernetes needs", f.Kernel)
	}
	if since(wanted.Version, 35) && !f.CgroupV2 && !wanted.CgroupV1 {
		add("it has control groups of version 1, on which the kubelet of %s does not run: boot it with version 2, or set kubelet.cgroupV1", wanted.Version)
	}
	if !wanted.Worker && !since(wanted.Version, 36) && strings.HasPrefix(f.OS, "flatcar ") {
		add("it has Flatcar, where the control plane of %s wants a folder below /usr that cannot be made: v1.36 is the first that does without", wanted.Version)
	}
	if f.Initialised {
		return why
	}
	if !wanted.Worker && f.MemoryBytes > 0 && f.MemoryBytes < leastMemory {
		add("it has %d MiB of memory, and a host of the control plane needs %d", f.MemoryBytes>>20, leastMemory>>20)
	}
	if f.FreeBytes > 0 && f.FreeBytes < leastFree {
		add("%d MiB are free below /var/lib, and %d are needed", f.FreeBytes>>20, leastFree>>20)
	}
	if !slices.Contains([]string{"x86_64", "aarch64", ""}, f.Machine) {
		add("its processor is %s: there are programs for x86_64 and aarch64", f.Machine)
	}
	return why
}

// upstream returns the first three numbers of a kernel's version.
func upstream(kernel string) string {
	if found := kernelNumbers.FindString(kernel); found != "" {
		return found
	}
	return kernel
}

// Skewed names the hosts whose clocks are too far from that of most, with how far. ahead
// is by how much each host's clock is ahead of ours.
func Skewed(ahead map[string]time.Duration) map[string]time.Duration {
	if len(ahead) < 2 {
		return nil
	}
	sorted := make([]time.Duration, 0, len(ahead))
	for _, each := range ahead {
		sorted = append(sorted, each)
	}
	slices.Sort(sorted)
	middle := sorted[(len(sorted)-1)/2]
	var found map[string]time.Duration
	for name, each := range ahead {
		if distance := each - middle; distance > mostSkew || distance < -mostSkew {
			if found == nil {
				found = map[string]time.Duration{}
			}
			found[name] = distance
		}
	}
	return found
}
