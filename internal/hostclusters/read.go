// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/schemas"
)

// MaxSize is how long a manifest may be, in bytes.
const MaxSize = 1 << 20

// Problem is what is wrong with one field of a manifest.
type Problem struct {
	// Field is its path, such as spec.controlPlane[0].name; empty for all of it.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Problems are all that is wrong with a manifest.
type Problems struct {
	// File as it was given.
	File string
	List []Problem
}

// Error has a line for each problem.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, each := range p.List {
		lines[i] = p.File + ": " + each.Message
		if each.Field != "" {
			lines[i] = p.File + ": " + each.Field + ": " + each.Message
		}
	}
	return strings.Join(lines, "\n")
}

// Read reads the manifest of one HostCluster and fills in its defaults. The error is
// *Problems where the manifest is wrong.
func Read(ctx context.Context, file string, data []byte) (*v1alpha1.HostCluster, error) {
	wrong := func(format string, values ...any) error {
		return &Problems{File: file, List: []Problem{{Message: fmt.Sprintf(format, values...)}}}
	}
	if len(data) > MaxSize {
		return nil, wrong("is longer than %d bytes", MaxSize)
	}
	only, count := single(data)
	if count > 1 {
		return nil, wrong("has %d documents, and must be one HostCluster", count)
	}
	var content map[string]any
	if err := yaml.UnmarshalStrict(only, &content); err != nil {
		return nil, wrong("cannot be read: %s", strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	object := &unstructured.Unstructured{Object: content}
	if object.GetKind() != v1alpha1.HostClusterKind || object.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
		return nil, wrong("must be one HostCluster of %s: kubectl strata hosts init writes one", v1alpha1.GroupVersion)
	}
	known, err := schemas.Read()
	if err != nil {
		return nil, err
	}
	problems := &Problems{File: file}
	for _, mistake := range known.Check(ctx, object) {
		problems.List = append(problems.List, Problem{mistake.Field, mistake.Message})
	}
	if len(problems.List) > 0 {
		return nil, problems
	}
	cluster := &v1alpha1.HostCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, cluster, true); err != nil {
		return nil, wrong("cannot be read: %s", err)
	}
	Default(cluster)
	if problems.List = Check(cluster); len(problems.List) > 0 {
		return nil, problems
	}
	return cluster, nil
}

// single returns the only document of a manifest, and how many there are.
func single(data []byte) (only []byte, count int) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if err != nil {
			return only, count // the end of the text
		}
		if text := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(document), []byte("---"))); len(text) > 0 {
			only, count = text, count+1
		}
	}
}

// APIPort is where the API server of a host listens, and where a cluster is reached that
// says nothing else.
const APIPort = 6443

// Hosts returns the hosts of the control plane, and then the workers.
func Hosts(spec v1alpha1.HostClusterSpec) []v1alpha1.ClusterHost {
	return slices.Concat(spec.ControlPlane, spec.Workers)
}

// ByName returns a host of a cluster, and whether it is a worker.
func ByName(cluster *v1alpha1.HostCluster, name string) (host v1alpha1.ClusterHost, isWorker bool, err error) {
	all := Hosts(cluster.Spec)
	i := slices.IndexFunc(all, func(h v1alpha1.ClusterHost) bool { return h.Name == name })
	if i < 0 {
		return host, false, errors.New("there is no host " + name + " in the manifest")
	}
	return all[i], i >= len(cluster.Spec.ControlPlane), nil
}
