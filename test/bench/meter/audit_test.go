// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/test/bench/report"
)

// line is an audit event as kube-apiserver writes it, with fields that the
// reader does not need.
func line(id, stage, user, verb, uri, ref, at string) string {
	text := `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"` + id + `","stage":"` + stage +
		`","requestURI":"` + uri + `","verb":"` + verb + `","user":{"username":"` + user + `","groups":["g"]},` +
		`"responseStatus":{"metadata":{},"code":200},"stageTimestamp":"2026-01-01T00:00:` + at + `Z"`
	if ref != "" {
		text += `,"objectRef":` + ref
	}
	return text + "}\n"
}

const (
	release       = `{"resource":"helmreleases","namespace":"n","name":"r","apiGroup":"helm.toolkit.fluxcd.io","apiVersion":"v2"}`
	releaseStatus = `{"resource":"helmreleases","name":"r","apiGroup":"helm.toolkit.fluxcd.io","apiVersion":"v2","subresource":"status"}`
	secret        = `{"resource":"secrets","name":"s","apiVersion":"v1"}`
	elected       = `{"resource":"events","namespace":"n","name":"the.leader.18a2f","apiVersion":"v1"}`
	told          = `{"resource":"events","namespace":"n","name":"the.18a2f","apiVersion":"v1"}`
	lease         = `{"resource":"leases","name":"the.leader","apiGroup":"coordination.k8s.io","apiVersion":"v1"}`
)

// write appends to the audit log of a folder.
func write(t *testing.T, dir, text string) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func requests(t *testing.T, log *AuditLog) Requests {
	t.Helper()
	r, err := log.Requests()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAuditLog(t *testing.T) {
	dir := t.TempDir()
	log := OpenAuditLog(dir)
	start := requests(t, log)
	if diff := cmp.Diff(report.NewRequests(nil, 0, 0), start.Since(Requests{}, "a")); diff != "" {
		t.Errorf("requests before there is a log:\n%s", diff)
	}

	half := line("9", "ResponseComplete", "a", "patch", "/x", release, "07.5")
	write(t, dir,
		line("1", "ResponseComplete", "a", "get", "/x", secret, "01")+
			line("2", "ResponseStarted", "a", "watch", "/x?watch=true", release, "02")+
			line("3", "ResponseComplete", "b", "get", "/x", secret, "03")+
			line("4", "ResponseComplete", "a", "get", "/version", "", "09")+
			line("5", "ResponseComplete", "a", "update", "/x", lease, "09")+
			line("11", "ResponseComplete", "a", "create", "/x", elected, "09")+
			line("12", "ResponseComplete", "a", "create", "/x", told, "05")+
			line("6", "ResponseComplete", "a", "get", "/apis/apps/v1?timeout=32s", "", "04")+
			line("7", "Panic", "a", "patch", "/x", releaseStatus, "05")+
			line("8", "ResponseComplete", "a", "watch", "/x", secret, "06")+
			half[:40])
	first := requests(t, log)
	want := report.NewRequests([]report.RequestCount{
		{Verb: "create", Resource: "events", Count: 1},
		{Verb: "get", Resource: "/apis/apps/v1", Count: 1},
		{Verb: "get", Resource: "secrets", Count: 1},
		{Verb: "patch", Resource: "helmreleases.helm.toolkit.fluxcd.io/status", Count: 1},
		{Verb: "watch", Resource: "helmreleases.helm.toolkit.fluxcd.io", Count: 1},
		{Verb: "watch", Resource: "secrets", Count: 1},
	}, 2, 1)
	if diff := cmp.Diff(want, first.Since(start, "a")); diff != "" {
		t.Errorf("requests from the beginning:\n%s", diff)
	}
	if got := first.Last("a"); !got.Equal(time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC)) {
		t.Errorf("the last request was at %s, want 00:00:05: watches, leases and versions are none", got)
	}

	write(t, dir, half[40:]+
		line("2", "ResponseComplete", "a", "watch", "/x", release, "08")+
		line("10", "ResponseComplete", "a", "get", "/x", secret, "08"))
	second := requests(t, log)
	want = report.NewRequests([]report.RequestCount{
		{Verb: "get", Resource: "secrets", Count: 1},
		{Verb: "patch", Resource: "helmreleases.helm.toolkit.fluxcd.io", Count: 1},
	}, 0, 0)
	if diff := cmp.Diff(want, second.Since(first, "a")); diff != "" {
		t.Errorf("requests of the second window, in which a line is completed and a watch ends:\n%s", diff)
	}
	if got := second.Since(start, "b"); got.Reads() != 1 || got.Writes() != 0 {
		t.Errorf("requests of another user: %+v", got)
	}
	if got := second.Since(start, "c"); len(got.Counts) != 0 || !second.Last("c").IsZero() {
		t.Errorf("requests of a user that made none: %+v", got)
	}
	if diff := cmp.Diff(1, first.Since(start, "a").Verb("list", "patch")); diff != "" {
		t.Errorf("an earlier moment has changed:\n%s", diff)
	}
}

func TestAuditLogSaysWhatIsWrong(t *testing.T) {
	for _, test := range []struct {
		reason, text, want string
	}{
		{"no event", "not json\n", "no audit event"},
		{"a file that was cut", "", "shorter than it was"},
	} {
		dir := t.TempDir()
		log := OpenAuditLog(dir)
		write(t, dir, line("1", "ResponseComplete", "a", "get", "/x", secret, "01"))
		requests(t, log)
		if test.text == "" {
			if err := os.Truncate(filepath.Join(dir, logFile), 3); err != nil {
				t.Fatal(err)
			}
		} else {
			write(t, dir, test.text)
		}
		if _, err := log.Requests(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.reason, err, test.want)
		}
	}
}

func TestAuditArgsNeedUsers(t *testing.T) {
	if _, err := AuditArgs(t.TempDir()); err == nil || !strings.Contains(err.Error(), "an audit policy for nobody") {
		t.Errorf("a policy for nobody: %v", err)
	}
	if _, err := AuditArgs(filepath.Join(t.TempDir(), "absent"), "a"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "cannot write the audit policy") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
