// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/terminal"
)

func release(chart string, generation int64, owner string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"chart": map[string]any{"spec": map[string]any{"version": chart}}}}}
	obj.SetGeneration(generation)
	if owner != "" {
		obj.SetLabels(map[string]string{v1alpha1.LayerLabel: owner})
	}
	return obj
}

func id(name string) objects.ID {
	return objects.ID{Group: kinds.HelmReleaseKind.Group, Kind: kinds.HelmReleaseKind.Kind, Namespace: "apps", Name: name}
}

// hostile is a plan whose names and messages are of somebody who means no good.
func hostile() *preview.Plan {
	f := forecast.Forecast{Settled: true, Steps: []forecast.Step{
		{Wave: 1, Layer: "base", ID: id("web"), Verb: dependents.VerbWrite, Before: release("1.0.0", 1, "base"), Done: release("1.1.0", 2, "base"), Origin: "base/\x1b[2Jweb.yaml"},
	}, Ends: []forecast.End{{Layer: "apps", State: v1alpha1.StateFailed, Reason: "X", Message: "| `rm` <b>\n@everyone \x1b[31m[a](https://b.c) #1"}}}
	return preview.Of(f, nil, map[string]string{"base": "1.1.0"}, func(forecast.Step) *preview.Rendered {
		return &preview.Rendered{Changes: []preview.ObjectChange{{Verb: "change", Object: preview.Object{Kind: "ConfigMap", Name: "c"}, Lines: []string{"~ ConfigMap c", "    data.x: a -> ```\x1b[0m"}}}}
	})
}

func TestPlanOfOthersIsSafe(t *testing.T) {
	var text, comment bytes.Buffer
	if err := Plan(&text, terminal.Screen{}, hostile()); err != nil {
		t.Fatal(err)
	}
	if err := PlanMarkdown(&comment, hostile()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String()+comment.String(), "\x1b") {
		t.Errorf("an escape sequence comes through: %q", text.String()+comment.String())
	}
	for _, bad := range []string{"<b>", "@everyone", "[a]", "https://b", " `rm`", "``` ", "-> ```"} {
		if strings.Contains(comment.String(), bad) {
			t.Errorf("the comment has %q:\n%s", bad, comment.String())
		}
	}
	if fences := strings.Count(comment.String(), "```"); fences != 2 {
		t.Errorf("%d fences:\n%s", fences, comment.String())
	}
}

func TestMarkdownFitsIntoAComment(t *testing.T) {
	f := forecast.Forecast{Settled: true}
	for i := range 3000 {
		f.Steps = append(f.Steps, forecast.Step{Wave: 1, Layer: "base", ID: id(fmt.Sprintf("release-%04d", i)), Verb: dependents.VerbWrite, Done: release("1.0.0", 1, "base")})
	}
	p := preview.Of(f, nil, nil, func(forecast.Step) *preview.Rendered {
		return &preview.Rendered{Changes: []preview.ObjectChange{{Verb: "create", Object: preview.Object{Kind: "ConfigMap", Name: "c"}, Lines: []string{"+ ConfigMap c"}}}}
	})
	var out bytes.Buffer
	if err := PlanMarkdown(&out, p); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 65_000 || !strings.Contains(out.String(), "more lines") || !strings.Contains(out.String(), "is too much for a comment") {
		t.Errorf("%d bytes, ending in %s", out.Len(), out.String()[out.Len()-200:])
	}
}
