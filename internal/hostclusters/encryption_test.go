// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/hostclusters"
)

// A change is told in words, and kubeadm's configuration names what encrypts; what somebody
// else encrypts with stays.
func TestEncryptionDrift(t *testing.T) {
	const one, plain = "strata-1-00000001", encryption.InClear
	spec := v1alpha1.HostClusterSpec{APIServer: v1alpha1.HostAPIServer{Encryption: &v1alpha1.HostEncryption{KeyGeneration: 1}}}
	for _, c := range []struct {
		has     []string
		written string
		spec    v1alpha1.HostClusterSpec
		want    string
	}{
		{nil, "", v1alpha1.HostClusterSpec{}, "[]"},
		{nil, "", spec, "[apiServer.encryption: identity -> a new key of generation 1]"},
		{[]string{plain, one}, "", spec, "[apiServer.encryption: identity -> " + one + "]"},
		{[]string{one, plain}, "", spec, "[apiServer.encryption: " + one + " and identity -> " + one + "]"},
		{[]string{one, plain}, one, spec, "[]"},
		{[]string{one, plain}, one, v1alpha1.HostClusterSpec{}, "[apiServer.encryption: " + one + " -> identity]"},
	} {
		if got := fmt.Sprint(hostclusters.EncryptionDrift(map[string][]string{"cp-0": c.has}, c.written, c.spec)); got != c.want {
			t.Errorf("%v written with %q: it is %s, and not %s", c.has, c.written, got, c.want)
		}
	}
	const file = "/etc/kubernetes/strata/encryption-01234567.yaml"
	with, err := hostclusters.WithEncryption(ofKubeOne, file)
	if named, isForeign := hostclusters.EncryptionIn(with); err != nil || named != file || isForeign || !strings.Contains(with, "/old/audit.log") || !strings.Contains(with, "mountPath: /etc/kubernetes/strata") {
		t.Errorf("%v\n%s", err, with)
	}
	if changes := hostclusters.APIServerDrift(with, v1alpha1.HostClusterSpec{}); len(changes) != 1 || strings.Contains(changes[0].String(), "encryption") {
		t.Errorf("%+v", changes)
	}
	without, err := hostclusters.WithEncryption(with, "")
	if named, isForeign := hostclusters.EncryptionIn(without); err != nil || named != "" || isForeign {
		t.Errorf("%v\n%s", err, without)
	}
	theirs := strings.Replace(ofKubeOne, "enable-admission-plugins, value: NodeRestriction", "encryption-provider-config, value: /etc/kubernetes/theirs.yaml", 1)
	with, err = hostclusters.WithEncryption(theirs, "")
	if _, isForeign := hostclusters.EncryptionIn(with); err != nil || !isForeign || !strings.Contains(with, "/etc/kubernetes/theirs.yaml") {
		t.Errorf("%v\n%s", err, with)
	}
}
