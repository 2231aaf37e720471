// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

func archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var data bytes.Buffer
	zipped := gzip.NewWriter(&data)
	writer := tar.NewWriter(zipped)
	for _, name := range sortedKeys(files) {
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func podinfo() map[string]string {
	return map[string]string{
		"podinfo/Chart.yaml": "name: podinfo\nversion: 1.2.3\n", "podinfo/values.yaml": "replicas: 1\n",
		"podinfo/templates/a.yaml": "a: b\n", "podinfo/README.md": "read me\n",
	}
}

func TestOnlyTheVeryChartIsTheSame(t *testing.T) {
	secret := storedByHelm(t, helmRelease())
	r, err := Decode(secret.Data["release"])
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(map[string]string)
		want   string
	}{
		{"the same", func(map[string]string) {}, ""},
		{"another file that Helm does not render", func(files map[string]string) { files["podinfo/README.md"] = "x" }, ""},
		{"values written otherwise", func(files map[string]string) { files["podinfo/values.yaml"] = "# one\n{replicas: 1}\n" }, ""},
		{"another version", func(files map[string]string) { files["podinfo/Chart.yaml"] = "name: podinfo\nversion: 1.2.4\n" }, "it is podinfo 1.2.4"},
		{"another template", func(files map[string]string) { files["podinfo/templates/a.yaml"] = "a: c\n" }, "templates/a.yaml differs"},
		{"one template more", func(files map[string]string) { files["podinfo/templates/b.yaml"] = "" }, "it has templates/b.yaml beside"},
		{"one template less", func(files map[string]string) { delete(files, "podinfo/templates/a.yaml") }, "it lacks templates/a.yaml"},
		{"other defaults", func(files map[string]string) { files["podinfo/values.yaml"] = "replicas: 2\n" }, "its default values differ"},
		{"other defaults beside a chart of its own", func(files map[string]string) {
			files["podinfo/values.yaml"] = "replicas: 2\n"
			files["podinfo/charts/x/Chart.yaml"] = "name: x\n"
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := podinfo()
			test.change(files)
			chart, err := ReadChart(archive(t, files))
			if err != nil {
				t.Fatal(err)
			}
			if got := chart.Differs(r.Chart); got != test.want {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestWhatIsNoChartIsRefused(t *testing.T) {
	for name, broken := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":                {nil, "is no packaged chart"},
		"text":                   {[]byte("404 not found"), "is no packaged chart"},
		"an empty archive":       {archive(t, nil), "it lacks Chart.yaml"},
		"a chart that is broken": {archive(t, map[string]string{"x/Chart.yaml": "name: [\n"}), "has a Chart.yaml that cannot be read"},
		"values that are broken": {archive(t, map[string]string{"x/Chart.yaml": "name: x\n", "x/values.yaml": "a: [\n"}), "has default values that cannot be read"},
		"cut short":              {archive(t, podinfo())[:60], "is no packaged chart"},
	} {
		if _, err := ReadChart(broken.data); err == nil || !strings.Contains(err.Error(), broken.want) {
			t.Errorf("%s is taken: %v", name, err)
		}
	}
}

func TestReadIndex(t *testing.T) {
	index, err := ReadIndex([]byte("entries:\n  podinfo:\n  - {version: 1.2.3, urls: [podinfo-1.2.3.tgz], digest: abc}\n  - {version: 1.2.2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if entry, found := index.Find("podinfo", "1.2.3"); !found || entry.Digest != "abc" {
		t.Errorf("%v, %v", entry, found)
	}
	for _, version := range []string{"1.2.2", "1.2.4", ""} {
		if _, found := index.Find("podinfo", version); found {
			t.Errorf("%s is found", version)
		}
	}
	for text, want := range map[string]string{
		"": "no index of charts", "<html>": "cannot be read", "entries: 1": "cannot be read", strings.Repeat("[", 100): "cannot be read",
	} {
		if _, err := ReadIndex([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is taken: %v", text, err)
		}
	}
}
