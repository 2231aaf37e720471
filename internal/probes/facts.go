// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/versions"
)

// MaxAnswer is how long the answer to Script may be, in bytes.
const MaxAnswer = 256 << 10

// maxCertificates is how many certificates of an answer are read.
const maxCertificates = 40

// maxProviders is how many names of keys are read.
const maxProviders = 20

// Facts are what a host says of itself. What it has not said, or not as it must be, is
// zero.
type Facts struct {
	Hostname, Kernel, Machine string
	// OS is the name and the version of the distribution, such as debian 12.
	OS string
	// Time on the host, in whole seconds.
	Time time.Time
	// CgroupV2 is true where the second version of control groups is mounted.
	CgroupV2 bool
	// Swaps is how many swap areas are in use.
	Swaps int
	// MemoryBytes of the machine, and FreeBytes below /var/lib.
	MemoryBytes, FreeBytes int64
	Kubelet, Containerd    Unit
	// Kubeadm is its version; empty where there is none.
	Kubeadm string
	// Initialised is true where /etc/kubernetes/kubelet.conf is there.
	Initialised bool
	// Remains are paths in which something of a cluster is.
	Remains []string
	// Authority is the SHA-256 of the certificate authority's file, in hex.
	Authority string
	// Certificates by their files below /etc/kubernetes/pki, and when they end.
	Certificates map[string]time.Time
	// ServingEnds is when the certificate ends that the cluster has signed for its kubelet's
	// server; the zero time where there is none.
	ServingEnds time.Time
	// Encryption is the path of the EncryptionConfiguration that its API server is given;
	// empty where that is none of Strata's. Providers are the names of what is in it, in their
	// order, and no key.
	Encryption string
	Providers  []string
	// Journal is its last entry.
	Journal hosts.Entry
	// Busy is true while an action goes on there, whoever has begun it.
	Busy bool
	// Worked is when an action has last done something there, by the clock of the host; the
	// zero time where none has.
	Worked time.Time
}

// Unit is a service of systemd with the version of its program.
type Unit struct {
	// Loaded is true where systemd knows it.
	Loaded bool
	// Running is true where it runs and is not about to be started again.
	Running bool
	Version string
}

// ErrCutOff says that an answer does not end as it should.
var ErrCutOff = errors.New("its answer is cut off")

// ErrNotRoot says that the script did not run as root.
var ErrNotRoot = errors.New("the script did not run as root: sudo without a password is needed")

// Read reads an answer to Script. An error says what is wrong with all of it, and nothing
// that the host said.
func Read(answer []byte) (Facts, error) {
	if len(answer) > MaxAnswer {
		return Facts{}, fmt.Errorf("its answer is longer than %d bytes", MaxAnswer)
	}
	facts := Facts{Certificates: map[string]time.Time{}}
	said := map[string]string{}
	for line := range strings.Lines(string(answer)) {
		key, value, isPair := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !isPair {
			continue
		}
		switch file, isCertificate := strings.CutPrefix(key, "certificate."); {
		case isCertificate:
			facts.addCertificate(file, value)
		case key == "serving":
			facts.ServingEnds = endOf(value)
		case key == "remains":
			facts.addRemains(value)
		case key == "provider" && encryption.IsProvider(value) && len(facts.Providers) < maxProviders:
			facts.Providers = append(facts.Providers, value)
		default:
			said[key] = value
		}
	}
	switch {
	case said["end"] != "1" || !bytes.HasSuffix(answer, []byte("end=1\n")):
		return Facts{}, ErrCutOff
	case said["user"] != "0":
		return Facts{}, ErrNotRoot
	}
	facts.take(said)
	return facts, nil
}

// What values may be.
var (
	word          = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~-]{0,62}$`)
	system        = regexp.MustCompile(`^[a-z0-9._-]{1,32} [0-9.]{0,16}$`)
	cluster       = regexp.MustCompile(`^[a-z0-9.-]{1,63}/[a-z0-9.-]{1,63}/[a-z0-9]{8,36}$`)
	digest        = regexp.MustCompile(`^[0-9a-f]{64}$`)
	kernelNumbers = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+`)
	pkiFile       = regexp.MustCompile(`^(etcd/)?[a-z0-9-]{1,60}\.crt$`)
	release       = regexp.MustCompile(`(?:^| )(v?[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.+~-]{0,40})(?: |$)`)
)

// take takes the values that are as they must be.
func (f *Facts) take(said map[string]string) {
	matching := func(key string, may *regexp.Regexp) string {
		if value := said[key]; may.MatchString(value) {
			return value
		}
		return ""
	}
	number := func(key string) int64 {
		value, err := strconv.ParseInt(said[key], 10, 64)
		if err != nil || value < 0 {
			return 0
		}
		return value
	}
	f.Hostname, f.Kernel, f.Machine = matching("hostname", word), matching("kernel", word), matching("machine", word)
	f.OS, f.Authority = strings.TrimSpace(matching("os", system)), matching("authority", digest)
	if at := number("time"); at > 0 {
		f.Time = time.Unix(at, 0).UTC()
	}
	if at := number("worked"); at > 0 {
		f.Worked = time.Unix(at, 0).UTC()
	}
	if file := said["encryption"]; encryption.IsFile(file) {
		f.Encryption = file
	} else {
		f.Providers = nil
	}
	f.CgroupV2 = said["cgroup"] == "cgroup2fs"
	f.Swaps = int(min(number("swap"), 1000))
	const most = 1 << 50 // in KiB, an exbibyte
	f.MemoryBytes, f.FreeBytes = min(number("memory"), most)*1024, min(number("free"), most)*1024
	f.Kubelet, f.Containerd = unitOf(said, "kubelet"), unitOf(said, "containerd")
	f.Kubeadm = versionOf(said["version.kubeadm"])
	f.Initialised = said["initialised"] == "/etc/kubernetes/kubelet.conf"
	f.Journal, f.Busy = entryOf(said["journal"]), said["busy"] == "1"
}

// unitOf reads what systemd says of a unit.
func unitOf(said map[string]string, name string) Unit {
	states := strings.Fields(said["unit."+name])
	unit := Unit{Version: versionOf(said["version."+name])}
	if len(states) == 3 {
		unit.Loaded = states[0] == "loaded"
		unit.Running = unit.Loaded && states[1] == "active" && states[2] == "running"
	}
	return unit
}

// versionOf finds the version in what a program says of itself; "" where there is none.
func versionOf(text string) string {
	found := release.FindStringSubmatch(text)
	if len(found) < 2 || versions.Semantic(found[1]) == nil {
		return ""
	}
	return found[1]
}

// remains are the paths that Script looks for.
var remains = []string{
	"/etc/kubernetes/pki", "/etc/kubernetes/manifests", "/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf",
	"/etc/kubernetes/bootstrap-kubelet.conf", "/var/lib/etcd", "/var/lib/kubelet/pki",
}

func (f *Facts) addRemains(where string) {
	if slices.Contains(remains, where) && !slices.Contains(f.Remains, where) {
		f.Remains = append(f.Remains, where)
	}
}

// addCertificate reads when a certificate ends.
func (f *Facts) addCertificate(file, encoded string) {
	if !pkiFile.MatchString(file) || path.Clean(file) != file || len(f.Certificates) >= maxCertificates {
		return
	}
	if end := endOf(encoded); !end.IsZero() {
		f.Certificates[file] = end
	}
}

// endOf returns when a certificate in base64 ends; the zero time where it is none.
func endOf(encoded string) time.Time {
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return time.Time{}
	}
	certificate, err := x509.ParseCertificate(decoded)
	if err != nil {
		return time.Time{}
	}
	return certificate.NotAfter
}

// Expires returns when the first certificate of the host ends that kubeadm renews: those of
// authorities are others; zero where it has none.
func (f Facts) Expires() time.Time {
	var first time.Time
	for file, ends := range f.Certificates {
		if isAuthority := strings.HasSuffix(file, "ca.crt"); !isAuthority && (first.IsZero() || ends.Before(first)) {
			first = ends
		}
	}
	return first
}

// line is an entry of a journal as it is written.
type line struct {
	Cluster string     `json:"cluster"`
	Action  hosts.Verb `json:"action"`
	Version string     `json:"version,omitempty"`
	Ended   bool       `json:"ended,omitempty"`
}

// Unreadable is the ClusterID of an entry that cannot be read: it is of no cluster, and of
// a journal all the same.
const Unreadable = "unreadable"

// entryOf reads an entry of the journal.
func entryOf(text string) hosts.Entry {
	if text == "" {
		return hosts.Entry{}
	}
	var read line
	if json.Unmarshal([]byte(text), &read) != nil || !cluster.MatchString(read.Cluster) || !slices.Contains(journalled, read.Action) ||
		read.Version != "" && versions.Semantic(read.Version) == nil {
		return hosts.Entry{ClusterID: Unreadable}
	}
	return hosts.Entry{ClusterID: read.Cluster, Action: read.Action, Version: read.Version, Ended: read.Ended}
}

// journalled are the actions that are written into the journal of a host.
var journalled = []hosts.Verb{
	hosts.VerbInit, hosts.VerbJoin, hosts.VerbJoinWorker, hosts.VerbReset, hosts.VerbUpgrade, hosts.VerbRestore,
	hosts.VerbRenew, hosts.VerbUpgradeContainerd,
}

// Host returns what is decided upon, of a host that the manifest names so.
func (f Facts) Host(name string, isWorker bool) hosts.Host {
	return hosts.Host{
		Name: name, Worker: isWorker,
		Initialised: f.Initialised, Remains: f.Remains, Running: f.Kubelet.Running && f.Containerd.Running,
		Version: f.Kubelet.Version, Authority: f.Authority, Journal: f.Journal,
	}
}
