// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// Trust says where what the Secrets of a source hold may be sent. The zero value
// sends it nowhere.
type Trust struct {
	// Host has it sent to the host of the source's own address.
	Host bool
	// Beyond has it sent to other hosts, too, where the source says so with
	// passCredentials.
	Beyond bool
	// Withheld says why something is not sent that the source names; empty where
	// nothing is held back.
	Withheld string
}

// TrustAll sends what the Secrets of a source hold wherever the source says.
var TrustAll = Trust{Host: true, Beyond: true}

// secretFields are the fields of a source that say whose rights it is fetched with,
// and how well the way is guarded.
var secretFields = []string{"secretRef", "certSecretRef", "proxySecretRef", "serviceAccountName", "provider", "insecure"}

// TrustOf says where the credentials of a source may be sent, by the source as the
// cluster has it, which is nil where it has none. Whoever writes a change chooses the
// address in it; who may have the credentials was chosen before.
func TrustOf(source, live *unstructured.Unstructured) Trust {
	id := objects.IDOf(source)
	withheld := func(format string, args ...any) Trust { return Withhold(source, fmt.Sprintf(format, args...)) }
	if live == nil {
		return withheld("the cluster has no %s", id)
	}
	address, known := specText(source, "url"), specText(live, "url")
	if !sameOrigin(parsed(address), parsed(known)) {
		return withheld("%s of the cluster is at %s, and not at %s", id, originOf(parsed(known)), originOf(parsed(address)))
	}
	for _, field := range secretFields {
		if !reflect.DeepEqual(specField(source, field), specField(live, field)) {
			return withheld("%s of the cluster has another spec.%s", id, field)
		}
	}
	passes := reflect.DeepEqual(specField(source, "passCredentials"), specField(live, "passCredentials"))
	return Trust{Host: true, Beyond: passes && address == known}
}

// Withhold sends the credentials of a source nowhere. The reason is said where it has
// any.
func Withhold(source *unstructured.Unstructured, reason string) Trust {
	if !namesSecrets(source) {
		return Trust{}
	}
	return Trust{Withheld: reason}
}

// namesSecrets tells whether a source names Secrets that something would be sent of.
func namesSecrets(source *unstructured.Unstructured) bool {
	return specField(source, "secretRef") != nil || specField(source, "certSecretRef") != nil || specField(source, "proxySecretRef") != nil
}

// specField returns a field of a spec; nil where it is not there, empty, or as it is
// by default.
func specField(object *unstructured.Unstructured, field string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", field)
	if value == nil || value == "" || value == false || value == "generic" {
		return nil
	}
	return value
}

func specText(object *unstructured.Unstructured, field string) string {
	text, _ := specField(object, field).(string)
	return text
}

// parsed returns an address; one without a host where it cannot be understood.
func parsed(address string) *url.URL {
	found, err := url.Parse(address)
	if err != nil {
		return &url.URL{}
	}
	return found
}

// originOf returns the scheme, host and port of an address.
func originOf(address *url.URL) string {
	scheme := strings.ToLower(address.Scheme)
	port := cmp.Or(address.Port(), map[string]string{"http": "80", "https": "443", "oci": "443"}[scheme])
	host := strings.ToLower(address.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host + ":" + port
}

// sameOrigin tells whether two addresses are of one server, and the way to it is
// guarded in the same way.
func sameOrigin(a, b *url.URL) bool {
	return a.Hostname() != "" && originOf(a) == originOf(b)
}
