// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/audit/policy"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/printable"
)

// APIFiles is where API servers find what they read beside their arguments.
const APIFiles = encryption.Folder

// The volumes of the API servers' Pods that are Strata's.
const (
	filesVolume = "strata"
	auditVolume = "strata-audit"
)

// Argument is one of a component. kubeadm.k8s.io/v1beta4 has them in this form.
type Argument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Volume is a folder of the host that a component sees, in the form of kubeadm.k8s.io/v1beta4.
type Volume struct {
	Name      string `json:"name"`
	HostPath  string `json:"hostPath"`
	MountPath string `json:"mountPath"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
	PathType  string `json:"pathType"`
}

// APIServer is what API servers are given for a manifest.
type APIServer struct {
	Arguments []Argument
	Volumes   []Volume
	// Files are what is in APIFiles, by their names, which change with what is in them: so an
	// API server starts again for it.
	Files map[string]string
}

// ownArguments are those that the manifest alone decides.
var ownArguments = []string{
	"audit-policy-file", "audit-log-path", "audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize",
	"oidc-issuer-url", "oidc-client-id", "oidc-username-claim", "oidc-username-prefix", "oidc-groups-claim", "oidc-groups-prefix",
	"oidc-required-claim", "oidc-ca-file",
}

// APIServerOf returns what API servers are given for a manifest with its defaults, and the
// path of their EncryptionConfiguration, which is empty where they have none.
func APIServerOf(spec v1alpha1.HostAPIServer, encrypting string) APIServer {
	made := APIServer{Files: map[string]string{}}
	add := func(name, value string) {
		if value != "" {
			made.Arguments = append(made.Arguments, Argument{name, value})
		}
	}
	file := func(name, ending, content string) string {
		sum := sha256.Sum256([]byte(content))
		name = fmt.Sprintf("%s-%s.%s", name, hex.EncodeToString(sum[:])[:8], ending)
		made.Files[name] = content
		return path.Join(APIFiles, name)
	}
	if audit := spec.Audit; audit != nil {
		add("audit-policy-file", file("audit-policy", "yaml", audit.Policy))
		add("audit-log-path", path.Join(audit.Directory, "audit.log"))
		for name, number := range map[string]int32{"maxage": audit.MaxAge, "maxbackup": audit.MaxBackups, "maxsize": audit.MaxSize} {
			add("audit-log-"+name, strconv.Itoa(int(number)))
		}
		made.Volumes = append(made.Volumes, Volume{auditVolume, audit.Directory, audit.Directory, false, "DirectoryOrCreate"})
	}
	if oidc := spec.OIDC; oidc != nil {
		add("oidc-issuer-url", oidc.IssuerURL)
		add("oidc-client-id", oidc.ClientID)
		add("oidc-username-claim", oidc.UsernameClaim)
		add("oidc-username-prefix", oidc.UsernamePrefix)
		add("oidc-groups-claim", oidc.GroupsClaim)
		add("oidc-groups-prefix", oidc.GroupsPrefix)
		for claim, value := range oidc.RequiredClaims {
			add("oidc-required-claim", claim+"="+value)
		}
		if oidc.CertificateAuthority != "" {
			add("oidc-ca-file", file("oidc-ca", "crt", oidc.CertificateAuthority))
		}
	}
	add(encryption.Argument, encrypting)
	if len(made.Files) > 0 || encrypting != "" {
		made.Volumes = append(made.Volumes, Volume{filesVolume, APIFiles, APIFiles, true, "DirectoryOrCreate"})
	}
	slices.SortFunc(made.Arguments, func(a, b Argument) int { return strings.Compare(a.Name+"="+a.Value, b.Name+"="+b.Value) })
	slices.SortFunc(made.Volumes, func(a, b Volume) int { return strings.Compare(a.Name, b.Name) })
	return made
}

// WithAPIServer returns kubeadm's ClusterConfiguration with what a manifest says of API
// servers, and the path of their EncryptionConfiguration. What somebody else has given them
// stays.
func WithAPIServer(configuration string, spec v1alpha1.HostAPIServer, encrypting string) (string, error) {
	isOwnVolume := func(name, _ string) bool { return name == filesVolume || name == auditVolume }
	return withAPIServer(configuration, APIServerOf(spec, encrypting), isOwnArgument, isOwnVolume)
}

// WithEncryption returns kubeadm's ClusterConfiguration with the path of the API servers'
// EncryptionConfiguration, or with none, and with nothing else changed.
func WithEncryption(configuration, encrypting string) (string, error) {
	wanted := APIServerOf(v1alpha1.HostAPIServer{}, encrypting)
	isOwn := func(name, value string) bool { return name == encryption.Argument && isOwnArgument(name, value) }
	return withAPIServer(configuration, wanted, isOwn, func(name, _ string) bool { return name == filesVolume && encrypting != "" })
}

// withAPIServer puts arguments and volumes in place of those that were ours before.
func withAPIServer(configuration string, wanted APIServer, isOwnArgument, isOwnVolume func(name, value string) bool) (string, error) {
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(configuration), &content); err != nil {
		return "", errors.New("kubeadm's ClusterConfiguration cannot be read")
	}
	if version := content["apiVersion"]; version != "kubeadm.k8s.io/v1beta4" {
		return "", fmt.Errorf("kubeadm's ClusterConfiguration is of %v, and not of kubeadm.k8s.io/v1beta4: an upgrade of the cluster renews it", version)
	}
	api, _, err := unstructured.NestedMap(content, "apiServer")
	if err != nil {
		return "", errors.New("apiServer of kubeadm's ClusterConfiguration cannot be read")
	}
	_, isThere := content["apiServer"].(map[string]any) // kubeadm leaves one with nothing in it
	if api == nil {
		api = map[string]any{}
	}
	args, err := merged(api["extraArgs"], wanted.Arguments, isOwnArgument)
	if err != nil {
		return "", err
	}
	volumes, err := merged(api["extraVolumes"], wanted.Volumes, isOwnVolume)
	if err != nil {
		return "", err
	}
	for key, list := range map[string][]any{"extraArgs": args, "extraVolumes": volumes} {
		delete(api, key)
		if len(list) > 0 {
			api[key] = list
		}
	}
	delete(content, "apiServer")
	if len(api) > 0 || isThere {
		content["apiServer"] = api
	}
	data, err := yaml.Marshal(content)
	return string(data), err
}

// isOwnArgument tells whether an argument is Strata's. An EncryptionConfiguration of somebody
// else has keys without which nobody could read what is in etcd.
func isOwnArgument(name, value string) bool {
	return slices.Contains(ownArguments, name) || name == encryption.Argument && encryption.IsFile(value)
}

// merged returns a list of named things with ours in place of those that were ours before.
func merged[T any](present any, wanted []T, isOwn func(name, value string) bool) ([]any, error) {
	there, is := present.([]any)
	if present != nil && !is {
		return nil, errors.New("apiServer of kubeadm's ClusterConfiguration cannot be read")
	}
	var kept []any
	for _, each := range there {
		fields, _ := each.(map[string]any)
		name, _ := fields["name"].(string)
		value, _ := fields["value"].(string)
		if !isOwn(name, value) {
			kept = append(kept, each)
		}
	}
	for _, each := range wanted {
		var plain map[string]any
		data, err := yaml.Marshal(each)
		if err == nil {
			err = yaml.Unmarshal(data, &plain)
		}
		if err != nil {
			return nil, err
		}
		kept = append(kept, plain)
	}
	return kept, nil
}

// APIServerDrift returns what of a manifest API servers do not have yet, by kubeadm's
// ClusterConfiguration, which is written when all of them have it.
func APIServerDrift(configuration string, wanted v1alpha1.HostClusterSpec) []Change {
	encrypting, _ := EncryptionIn(configuration)
	want, err := WithAPIServer(configuration, wanted.APIServer, encrypting)
	if err != nil {
		if len(APIServerOf(wanted.APIServer, "").Arguments) == 0 {
			return nil // there is nothing to give them
		}
		return []Change{{Field: "apiServer", From: printable.Line(err.Error(), 200), To: "as the manifest says", API: true}}
	}
	if sameYAML(configuration, want) {
		return nil
	}
	was, is := argumentsIn(configuration), argumentsIn(want)
	from := slices.DeleteFunc(slices.Clone(was), func(each string) bool { return slices.Contains(is, each) })
	to := slices.DeleteFunc(is, func(each string) bool { return slices.Contains(was, each) })
	return []Change{{Field: "apiServer", From: cmp.Or(strings.Join(from, " "), "-"), To: cmp.Or(strings.Join(to, " "), "-"), OnHost: true, API: true}}
}

func sameYAML(a, b string) bool {
	var x, y any
	return yaml.Unmarshal([]byte(a), &x) == nil && yaml.Unmarshal([]byte(b), &y) == nil && plainly(x) == plainly(y)
}

// extraArguments are those that a ClusterConfiguration gives API servers; none where it
// cannot be read, which is told elsewhere.
func extraArguments(configuration string) []Argument {
	var read struct {
		APIServer struct {
			ExtraArgs []Argument `json:"extraArgs"`
		} `json:"apiServer"`
	}
	if err := yaml.Unmarshal([]byte(configuration), &read); err != nil {
		return nil
	}
	return read.APIServer.ExtraArgs
}

// EncryptionIn returns the path of the EncryptionConfiguration of Strata that a
// ClusterConfiguration has; isForeign is true for that of somebody else.
func EncryptionIn(configuration string) (file string, isForeign bool) {
	for _, each := range extraArguments(configuration) {
		switch {
		case each.Name != encryption.Argument:
		case encryption.IsFile(each.Value):
			return each.Value, false
		default:
			return "", true
		}
	}
	return "", false
}

// argumentsIn are those of our arguments that a ClusterConfiguration has, sorted.
func argumentsIn(configuration string) []string {
	var found []string
	for _, each := range extraArguments(configuration) {
		if slices.Contains(ownArguments, each.Name) {
			found = append(found, each.Name+"="+each.Value)
		}
	}
	slices.Sort(found)
	return found
}

// apiServer checks the settings of API servers.
func (c *checker) apiServer(spec v1alpha1.HostAPIServer) {
	if audit := spec.Audit; audit != nil {
		if _, err := policy.LoadPolicyFromBytes([]byte(audit.Policy)); err != nil {
			c.add("spec.apiServer.audit.policy", "%s", printable.Line(err.Error(), 500))
		}
	}
	oidc := spec.OIDC
	if oidc == nil {
		return
	}
	address, err := url.Parse(oidc.IssuerURL)
	if err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil || address.RawQuery != "" || address.Fragment != "" {
		c.add("spec.apiServer.oidc.issuerURL", "must be https:// with a host and a path alone")
	}
	if oidc.GroupsPrefix != "" && oidc.GroupsClaim == "" {
		c.add("spec.apiServer.oidc.groupsPrefix", "has nothing to be put before: groupsClaim is not given")
	}
	for _, claim := range slices.Sorted(maps.Keys(oidc.RequiredClaims)) {
		if claim == "" || strings.ContainsAny(claim, "=,") || strings.Contains(oidc.RequiredClaims[claim], ",") {
			c.add("spec.apiServer.oidc.requiredClaims", "%q=%q cannot be given to an API server", claim, oidc.RequiredClaims[claim])
		}
	}
	if text := oidc.CertificateAuthority; text != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(text)) {
		c.add("spec.apiServer.oidc.certificateAuthority", "has no certificate in PEM")
	}
}
