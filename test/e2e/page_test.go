// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/test/controlplane"
)

var updatePages = flag.Bool("update-pages", false, "write what commands print into the pages that show it")

const firstLayerPage = "../../docs/first-layer.md"

// The page of the first layer does what it says: every command that begins with a dollar
// is run, in order, and prints what is below it.
func TestPageOfTheFirstLayer(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	f.must(stack.plane.CreateNamespace(f.ctx, controlplane.FluxNamespace))
	f.must(f.repo.AllowPush())
	source := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.FluxNamespace, Name: "platform"},
		Spec: sourcev1.GitRepositorySpec{
			URL: f.repo.URL(), Interval: metav1.Duration{Duration: time.Second}, Reference: &sourcev1.GitRepositoryRef{Branch: controlplane.Branch},
		},
	}
	f.must(stack.client.Create(f.ctx, source))
	t.Cleanup(func() { f.must(stack.client.Delete(f.ctx, source)) })
	home := t.TempDir()
	kubectl, err := controlplane.Binary("kubectl")
	f.must(err)
	environment := append(os.Environ(), "HOME="+home, "KUBECONFIG="+stack.plane.Kubeconfig(), "PATH="+filepath.Dir(path)+":"+filepath.Dir(kubectl)+":"+os.Getenv("PATH"),
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.invalid", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.invalid")
	clone := exec.CommandContext(f.ctx, "git", "clone", "--quiet", f.repo.URL(), "platform")
	clone.Dir, clone.Env = home, environment
	if output, err := clone.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	page, err := os.ReadFile(firstLayerPage)
	f.must(err)
	var seen strings.Builder
	count := 0
	for _, part := range partsOf(string(page)) {
		if part.command == "" {
			seen.WriteString(part.text)
			continue
		}
		count++
		cmd := exec.CommandContext(f.ctx, "sh", "-c", part.command)
		cmd.Dir, cmd.Env = filepath.Join(home, "platform"), environment
		output, err := cmd.CombinedOutput()
		if ended := cmd.ProcessState.ExitCode(); err != nil && ended != 2 {
			t.Fatalf("$ %s\nends with %d: %s", part.command, ended, output)
		}
		printed := steady(string(output))
		if want := steady(part.output); !*updatePages && printed != want {
			t.Errorf("$ %s\nprints\n%swant\n%swhich differ in\n%s", part.command, printed, want, differing(printed, want))
		}
		seen.WriteString(indented("$ "+part.command+"\n") + indented(string(output)))
	}
	if count < 15 {
		t.Errorf("the page has %d commands", count)
	}
	if *updatePages {
		f.must(os.WriteFile(firstLayerPage, []byte(strings.TrimSuffix(seen.String(), "\n")), 0o600))
	}
}

// part is a text of a page, or a command with what it prints.
type part struct{ text, command, output string }

// partsOf takes a page apart. A command begins with a dollar in an indented block; the
// lines of a document that it reads from the shell belong to it.
func partsOf(page string) []part {
	var parts []part
	document, blank := false, ""
	for line := range strings.Lines(page) {
		code, is := strings.CutPrefix(line, "    ")
		last := len(parts) - 1
		inCommand := last >= 0 && parts[last].command != ""
		// An empty line belongs to what is printed where more of that follows.
		switch {
		case line == "\n" && inCommand && !document:
			blank += line
			continue
		case is && inCommand && !strings.HasPrefix(code, "$ "):
			code = blank + code
		default:
			line = blank + line
		}
		blank = ""
		switch {
		case is && document:
			parts[last].command += code
			document = strings.TrimSpace(code) != "EOF"
		case is && strings.HasPrefix(code, "$ "):
			parts = append(parts, part{command: strings.TrimPrefix(code, "$ ")})
			document = strings.Contains(code, "<<'EOF'")
		case is && inCommand:
			parts[last].output += code
		case inCommand, last < 0:
			parts = append(parts, part{text: line})
		default:
			parts[last].text += line
		}
	}
	for i := range parts {
		parts[i].command = strings.TrimSuffix(parts[i].command, "\n")
	}
	return parts
}

// What differs from run to run.
var (
	hashes    = regexp.MustCompile(`\b[0-9a-f]{8,40}\b`)
	durations = regexp.MustCompile(`\b(\d+(\.\d+)?(ms|s|m|h|d))+\b|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?`)
	addresses = regexp.MustCompile(`https://127\.0\.0\.1:\d+`)
	spaces    = regexp.MustCompile(`[ \t]+`)
)

// steady returns a text without what differs from run to run.
func steady(text string) string {
	text = addresses.ReplaceAllString(text, "ADDRESS")
	text = durations.ReplaceAllString(hashes.ReplaceAllString(text, "HASH"), "TIME")
	var lines []string
	for line := range strings.Lines(text) {
		// How far a roll-out is when somebody looks.
		if strings.Contains(line, ": Applying ") {
			continue
		}
		lines = append(lines, strings.TrimSpace(spaces.ReplaceAllString(line, " ")))
	}
	return strings.Join(lines, "\n") + "\n"
}

// differing returns the lines that only one of two texts has: what is printed behind a plus
// sign, and what is wanted behind a minus sign.
func differing(printed, want string) string {
	var out strings.Builder
	for _, side := range []struct{ sign, text, other string }{{"+", printed, want}, {"-", want, printed}} {
		known := strings.Split(side.other, "\n")
		for _, line := range strings.Split(side.text, "\n") {
			if !slices.Contains(known, line) {
				out.WriteString(side.sign + " " + line + "\n")
			}
		}
	}
	return out.String()
}

func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			out.WriteString("\n")
			continue
		}
		out.WriteString("    " + strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}
