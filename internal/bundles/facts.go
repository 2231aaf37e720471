// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/templates"
)

// Cluster is what is known of a cluster: facts for templates. The zero value is
// the cluster that Strata runs in, of which nothing is known.
type Cluster struct {
	// Name of the RemoteCluster; zero for the cluster that Strata runs in.
	Name types.NamespacedName
	// Endpoint is the URL of the API server, such as https://10.0.0.1:6443; empty
	// where it is not known.
	Endpoint string
	// Version of Kubernetes, such as v1.31.2; empty where it is not known.
	Version string
	// Labels of the RemoteCluster.
	Labels map[string]string
}

// FactsOf returns what is known of a RemoteCluster.
func FactsOf(cluster *v1alpha1.RemoteCluster) Cluster {
	return Cluster{
		Name:     types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name},
		Endpoint: cluster.Status.Endpoint, Version: cluster.Status.Version, Labels: cluster.Labels,
	}
}

// String names the cluster for messages.
func (c Cluster) String() string {
	if c.Name.Name == "" {
		return "the cluster that Strata runs in"
	}
	return "RemoteCluster " + c.Name.String()
}

// Waiting says what has yet to come before something can be rendered. It is an
// error, and none that anybody has to mend.
type Waiting struct {
	// Reason says what is waited for.
	Reason string
}

// Error returns the reason.
func (w *Waiting) Error() string { return w.Reason }

// The variables of templates.
const (
	varInputs   = "inputs"
	varInstance = "instance"
	varCluster  = "cluster"
	varItem     = "item"
	varClusters = "clusters"
	varObjects  = "objects"
)

// clusterFacts are the fields of the variable cluster.
var clusterFacts = []string{"endpoint", "host", "labels", "name", "namespace", "port", "version"}

// full is the language of most templates; plain is that of those which say where
// something is, before there is a cluster that could be known.
var (
	full = language(varInputs, varCluster, varInstance)
	// content is that of what layers hold, and eachContent that of applications that are
	// there for each item of a list. What is there at all goes by less.
	content     = language(varInputs, varCluster, varInstance, varClusters, varObjects)
	eachContent = language(varInputs, varCluster, varInstance, varItem, varClusters, varObjects)
	// place is that of the name of an installation.
	place = language(varCluster)
	// each is that of an application that is there for each item of a list.
	each  = language(varInputs, varCluster, varInstance, varItem)
	plain = language(varInputs, varInstance)
	// conditionsOf is the language of conditions on objects.
	conditionsOf = language("object")
)

func language(variables ...string) func() (*templates.Language, error) {
	return sync.OnceValues(func() (*templates.Language, error) { return templates.New(variables...) })
}

// facts returns the fields of the variable cluster that are known.
func (c Cluster) facts() map[string]any {
	labels := map[string]any{}
	for key, value := range c.Labels {
		labels[key] = value
	}
	known := map[string]any{"name": c.Name.Name, "namespace": c.Name.Namespace, "labels": labels}
	if c.Version != "" {
		known["version"] = c.Version
	}
	if c.Endpoint != "" {
		known["endpoint"] = c.Endpoint
	}
	if host, port, ok := hostAndPort(c.Endpoint); ok {
		known["host"], known["port"] = host, port
	}
	return known
}

// hostAndPort takes the host and the port out of a URL. Without a port it is that
// of the scheme.
func hostAndPort(endpoint string) (host string, port int64, ok bool) {
	scheme, rest, found := strings.Cut(endpoint, "://")
	if !found {
		return "", 0, false
	}
	port = 443
	if scheme == "http" {
		port = 80
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	host = rest
	// An IPv6 address has colons of its own, and stands in brackets.
	if at := strings.LastIndex(rest, ":"); at > strings.LastIndex(rest, "]") {
		number, err := strconv.ParseUint(rest[at+1:], 10, 16)
		if err != nil {
			return "", 0, false
		}
		host, port = rest[:at], int64(number)
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return host, port, host != ""
}

// filler fills templates for one installation.
type filler struct {
	language *templates.Language
	data     templates.Data
	cluster  Cluster
	// unknown is what cannot be read of clusters and objects.
	unknown []lacking
}

// newFiller returns one for templates that may read all variables.
func newFiller(instance string, inputs map[string]any, cluster Cluster) (*filler, error) {
	language, err := content()
	if err != nil {
		return nil, err
	}
	return &filler{language: language, cluster: cluster, data: templates.Data{
		varInputs: inputs, varInstance: {"name": instance}, varCluster: cluster.facts(),
	}}, nil
}

// with returns a filler that knows an item, too.
func (f *filler) with(item map[string]any) (*filler, error) {
	language, err := eachContent()
	if err != nil {
		return nil, err
	}
	data := maps.Clone(f.data)
	data[varItem] = item
	return &filler{language: language, cluster: f.cluster, data: data, unknown: f.unknown}, nil
}

// newPlainFiller returns one for templates that may read inputs and instance.
func newPlainFiller(instance string, inputs map[string]any) (*filler, error) {
	language, err := plain()
	if err != nil {
		return nil, err
	}
	return &filler{language: language, data: templates.Data{varInputs: inputs, varInstance: {"name": instance}}}, nil
}

// value fills the templates of a value, as JSON has it.
func (f *filler) value(value any) (any, error) {
	uses, _ := f.language.Check(value) // Fill says what is wrong
	if err := f.waits(uses); err != nil {
		return nil, err
	}
	return f.language.Fill(value, f.data)
}

// text fills the templates of a text that stays one.
func (f *filler) text(text string) (string, error) {
	uses, _ := f.language.Check(text) // FillText says what is wrong
	if err := f.waits(uses); err != nil {
		return "", err
	}
	return f.language.FillText(text, f.data)
}

// knows adds what is known of the clusters that other layers of the bundle make.
func (f *filler) knows(clusters map[string]Cluster) {
	known := map[string]any{}
	for _, layer := range slices.Sorted(maps.Keys(clusters)) {
		if cluster := clusters[layer]; cluster.Endpoint == "" {
			why := &Waiting{Reason: fmt.Sprintf("waits for the cluster of layer %s, of which nothing is known yet", layer)}
			f.unknown = append(f.unknown, lacking{varClusters, layer, why})
		} else {
			known[layer] = cluster.facts()
		}
	}
	f.data[varClusters] = known
}

// waits says which fact that is read is not known yet, or may not be read.
func (f *filler) waits(uses []string) error {
	for _, one := range f.unknown {
		if slices.Contains(uses, one.variable) || slices.Contains(uses, one.variable+"."+one.field) {
			return one.why
		}
	}
	for _, fact := range clusterFacts {
		if _, known := f.data[varCluster][fact]; known || f.data[varCluster] == nil {
			continue
		}
		if slices.Contains(uses, varCluster) || slices.Contains(uses, varCluster+"."+fact) {
			return &Waiting{Reason: fmt.Sprintf("waits for the %s of %s, which is not known yet", fact, f.cluster)}
		}
	}
	return nil
}

// InstanceName fills the name of an installation on a cluster. The error is *Waiting where it
// reads a fact that is not known yet.
func InstanceName(text string, cluster Cluster) (string, error) {
	language, err := place()
	if err != nil {
		return "", err
	}
	fill := &filler{language: language, cluster: cluster, data: templates.Data{varCluster: cluster.facts()}}
	name, err := fill.text(text)
	if err != nil {
		return "", err
	}
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return "", fmt.Errorf("%q is no name of small letters, digits and dashes, of at most 63 of them", short(name))
	}
	return name, nil
}
