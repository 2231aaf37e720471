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
	runPage(t, firstLayerPage, filepath.Join(home, "platform"), environment, 15, nil)
}

// runPage runs the commands of a page, in order, in a folder, and compares what they print with
// what is below them. It has at least so many. replaced are texts of the page that are others in a
// test.
func runPage(t *testing.T, path, folder string, environment []string, least int, replaced map[string]string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var there, back []string
	for text, by := range replaced {
		there, back = append(there, text, by), append(back, by, text)
	}
	var seen strings.Builder
	count := 0
	for _, part := range partsOf(string(page)) {
		if part.command == "" {
			seen.WriteString(part.text)
			continue
		}
		count++
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.NewReplacer(there...).Replace(part.command))
		cmd.Dir, cmd.Env = folder, environment
		output, err := cmd.CombinedOutput()
		if ended := cmd.ProcessState.ExitCode(); err != nil && ended != 2 {
			t.Fatalf("$ %s\nends with %d: %s", part.command, ended, output)
		}
		said := withoutModules(strings.NewReplacer(back...).Replace(string(output)))
		printed := steady(said)
		if want := steady(part.output); !*updatePages && printed != want {
			t.Errorf("$ %s\nprints\n%swant\n%swhich differ in\n%s", part.command, printed, want, differing(printed, want))
		}
		seen.WriteString(indented("$ "+part.command+"\n") + indented(said))
	}
	if count < least {
		t.Errorf("the page has %d commands", count)
	}
	if *updatePages {
		if err := os.WriteFile(path, []byte(strings.TrimSuffix(seen.String(), "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// withoutModules returns what a command prints without what go tells of modules that it fetches,
// which hangs on what is there already.
func withoutModules(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "go: ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
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
		case line == "\n" && document:
			parts[last].command += line
			continue
		case line == "\n" && inCommand:
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
	hashes    = regexp.MustCompile(`\b([0-9a-f]{8,40}|[0-9a-f]{64})\b`)
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
