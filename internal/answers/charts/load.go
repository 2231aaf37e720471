// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"

	"github.com/fluxcd/pkg/chartutil"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// unpack loads a packed chart that is no larger, unpacked, than limit bytes. Helm's
// loader has a limit of its own, which is the same for the whole process.
func unpack(data []byte, limit int64) (*chart.Chart, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("it is no packed chart: %w", err)
	}
	size, err := io.Copy(io.Discard, io.LimitReader(unzipped, limit+1))
	if err != nil {
		return nil, fmt.Errorf("it cannot be unpacked: %w", err)
	}
	if size > limit {
		return nil, fmt.Errorf("unpacked, it is larger than %d MiB", limit>>20)
	}
	loaded, err := loader.LoadArchive(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return loaded, nil
}

// replaceValues puts the merged content of files in the place of a chart's own
// values. read returns the content of a file, or nil where there is none.
func replaceValues(c *chart.Chart, ref reference, read func(name string) ([]byte, error)) error {
	if len(ref.valuesFiles) == 0 {
		return nil
	}
	merged := map[string]any{}
	for _, name := range ref.valuesFiles {
		data, err := read(path.Clean(name))
		switch {
		case err != nil:
			return problem(ValuesUnavailable, err, "valuesFiles names %s, which cannot be read", name)
		case data == nil && ref.ignoreMissing:
			continue
		case data == nil:
			return problem(ValuesUnavailable, nil, "valuesFiles names %s, which is not there", name)
		}
		values := map[string]any{}
		if err := yaml.Unmarshal(data, &values); err != nil {
			return problem(ValuesUnavailable, err, "valuesFiles names %s, which cannot be understood", name)
		}
		merged = chartutil.MergeMaps(merged, values)
	}
	c.Values = merged
	return nil
}

// fileOf reads the files of a chart as valuesFiles of a repository name them.
func fileOf(c *chart.Chart) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		for _, file := range c.Raw {
			if file.Name == name {
				return file.Data, nil
			}
		}
		return nil, nil
	}
}
