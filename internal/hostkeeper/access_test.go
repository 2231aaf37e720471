// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostkeeper

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/reach"
)

// Nothing is dialled that is in none of the ranges, whatever name leads there, and nothing
// at all without ranges. Loopback and other special addresses need a range of their own.
func TestAddressesThatAreNotAllowed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	var taken atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			taken.Add(1)
			_ = conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		ranges, host string
		want         string
	}{
		{"", "127.0.0.1", "no host may be reached, for no range of addresses is allowed: --allowed-host-ranges gives them"},
		{"10.0.0.0/8", "127.0.0.1", "--allowed-host-ranges"},
		{"10.0.0.0/8", "localhost", "--allowed-host-ranges"},
		{"0.0.0.0/0", "127.0.0.1", "a loopback address, which is refused (--allowed-host-ranges allows it)"},
		{"0.0.0.0/0", "169.254.169.254", "a link-local address"},
		{"127.0.0.0/8", "127.0.0.1", ""},
	} {
		r := &Reconciler{Allowed: reach.Allowed{RangesFlag: RangesFlag}}
		if test.ranges != "" {
			r.Allowed.Ranges = []netip.Prefix{netip.MustParsePrefix(test.ranges)}
		}
		conn, err := r.dial(t.Context(), "tcp", net.JoinHostPort(test.host, port))
		if err == nil {
			_ = conn.Close()
		}
		var refused *reach.RefusedError
		if test.want == "" && err != nil || test.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s in %q: %v", test.host, test.ranges, err)
		}
	}
	// The bastion finds out where a name leads.
	r := &Reconciler{Allowed: reach.Allowed{RangesFlag: RangesFlag, Ranges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	for host, want := range map[string]string{"10.0.0.1": "", "192.168.0.1": "is in none of the ranges of --allowed-host-ranges", "cp-0.example.com": "is a name"} {
		if err := r.may(host); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("behind a bastion %s: %v", host, err)
		}
	}
	if n := taken.Load(); n > 1 {
		t.Errorf("%d connections", n)
	}
}

// What is wrong with a Secret is told with its name and its key, and nothing that is in it.
func TestKeysThatAreNone(t *testing.T) {
	for name, test := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"nothing":         {nil, "the Secret ssh has no identity, which is the private key"},
		"no key":          {map[string][]byte{"identity": []byte("hunter2")}, "the Secret ssh: the private key is no private key of OpenSSH"},
		"a key in public": {map[string][]byte{"identity": []byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIhunter2")}, "is no private key"},
	} {
		_, err := keysOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ssh"}, Data: test.data})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A HostCluster gives its snapshots no more room than whoever runs the controller has given it.
func TestQuotaOfTheController(t *testing.T) {
	for quota, want := range map[string]string{"2Gi": "spec.snapshots.quota: must be at most 1024 MiB", "1Gi": "spec.ssh.secretRef is missing", "": "spec.ssh.secretRef is missing"} {
		object := &v1alpha1.HostCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge"}}
		object.Spec.Version = "v1.36.3"
		object.Spec.ControlPlane = []v1alpha1.ClusterHost{{Name: "cp-0", Address: "10.88.40.10"}}
		object.Spec.Snapshots.S3 = &v1alpha1.HostSnapshotBucket{Bucket: "saved"}
		if quota != "" {
			given := resource.MustParse(quota)
			object.Spec.Snapshots.Quota = &given
		}
		k := &keeper{Reconciler: &Reconciler{SnapshotQuota: 1 << 30}, object: object}
		if _, err := k.options(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a quota of %q: error %v, want one with %q", quota, err, want)
		}
	}
}
