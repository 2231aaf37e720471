// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/test/bench/report"
)

// policyFile and logFile are the names of what AuditArgs puts into its folder.
const (
	policyFile = "audit-policy.yaml"
	logFile    = "audit.log"
)

// ServiceAccountUser returns the name by which the API server knows a
// ServiceAccount.
func ServiceAccountUser(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// AuditArgs writes an audit policy into an existing folder and returns the
// arguments of kube-apiserver that make it log the requests of these users
// there, and those of nobody else. OpenAuditLog of the same folder reads them.
//
// Each request is logged before the server is done with it, so that none is
// lost. It is logged with who asked what of which object and not with what was
// sent, which is the same small cost for every user measured. A user who
// impersonates others is logged by the name it came with.
func AuditArgs(dir string, users ...string) ([]string, error) {
	if len(users) == 0 {
		return nil, errors.New("an audit policy for nobody would log nothing")
	}
	policy, err := yaml.Marshal(map[string]any{
		"apiVersion": "audit.k8s.io/v1",
		"kind":       "Policy",
		"omitStages": []string{"RequestReceived"},
		"rules": []map[string]any{
			{"level": "Metadata", "users": users, "omitManagedFields": true},
			{"level": "None"},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot write the audit policy: %w", err)
	}
	path := filepath.Join(dir, policyFile)
	if err := os.WriteFile(path, policy, 0o644); err != nil {
		return nil, fmt.Errorf("cannot write the audit policy: %w", err)
	}
	return []string{
		"--audit-policy-file=" + path,
		"--audit-log-path=" + filepath.Join(dir, logFile),
		"--audit-log-format=json",
		"--audit-log-mode=blocking",
		// In megabytes. A log that is put aside when it is full would be lost
		// to whoever follows it.
		"--audit-log-maxsize=1000000",
	}, nil
}

// AuditLog follows the log that kube-apiserver writes with AuditArgs. It is
// safe for concurrent use.
type AuditLog struct {
	path string

	mu      sync.Mutex
	offset  int64
	rest    []byte // the beginning of a line that is not written to its end yet
	watches map[string]bool
	users   map[string]*userCounts
}

// OpenAuditLog returns the log of the folder that AuditArgs was given. The
// file need not exist yet: kube-apiserver makes it with the first request.
func OpenAuditLog(dir string) *AuditLog {
	return &AuditLog{path: filepath.Join(dir, logFile), watches: map[string]bool{}, users: map[string]*userCounts{}}
}

// userCounts are the totals of one user.
type userCounts struct {
	counts          map[requestKey]int
	leases, version int
	last            time.Time
	leaseNames      map[string]bool // those that were asked for
}

type requestKey struct{ verb, resource string }

func (c *userCounts) clone() *userCounts {
	copied := *c
	copied.counts, copied.leaseNames = maps.Clone(c.counts), nil
	return &copied
}

// Requests are the totals of all users at one moment. The zero value is the
// moment before the first request.
type Requests struct{ users map[string]*userCounts }

// Requests reads what has been logged by now and returns the totals. A
// request counts from its end, a watch from its beginning.
func (l *AuditLog) Requests() (Requests, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(); err != nil {
		return Requests{}, fmt.Errorf("cannot read the audit log: %w", err)
	}
	users := make(map[string]*userCounts, len(l.users))
	for name, counts := range l.users {
		users[name] = counts.clone()
	}
	return Requests{users: users}, nil
}

// Since returns the requests that a user made after an earlier moment.
func (r Requests) Since(earlier Requests, user string) *report.Requests {
	now, before := r.users[user], earlier.users[user]
	if now == nil {
		return report.NewRequests(nil, 0, 0)
	}
	if before == nil {
		before = &userCounts{}
	}
	var counts []report.RequestCount
	for key, n := range now.counts {
		if n -= before.counts[key]; n > 0 {
			counts = append(counts, report.RequestCount{Verb: key.verb, Resource: key.resource, Count: n})
		}
	}
	return report.NewRequests(counts, now.leases-before.leases, now.version-before.version)
}

// Last returns when the last request of a user ended that is no watch, no
// lease and no question for the version, by the API server's clock; the zero
// time when there was none.
func (r Requests) Last(user string) time.Time {
	if counts := r.users[user]; counts != nil {
		return counts.last
	}
	return time.Time{}
}

// read counts what was appended to the file since the last read.
func (l *AuditLog) read() error {
	file, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) && l.offset == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil {
		return err
	} else if info.Size() < l.offset {
		return fmt.Errorf("%s is shorter than it was: somebody else has it", l.path)
	}
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}
	buffer := make([]byte, 1<<20)
	for {
		n, err := file.Read(buffer)
		l.offset += int64(n)
		if err := l.take(buffer[:n]); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take counts the whole lines of what was read and keeps the beginning of the
// one that is not whole.
func (l *AuditLog) take(content []byte) error {
	l.rest = append(l.rest, content...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			l.rest = bytes.Clone(l.rest)
			return nil
		}
		l.rest = rest
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("a line is no audit event: %w", err)
		}
		l.count(e)
	}
}

// event is what is needed of an audit event (audit.k8s.io/v1).
type event struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	StageTimestamp time.Time `json:"stageTimestamp"`
}

// count adds one event. A watch has an event when it begins and one when it
// ends, of which the first counts. What is told about a lease, that somebody
// leads now, counts as the lease does.
func (l *AuditLog) count(e event) {
	switch {
	case e.Stage == "ResponseStarted":
		l.watches[e.AuditID] = true
	case l.watches[e.AuditID]:
		delete(l.watches, e.AuditID)
		return
	}
	counts := l.users[e.User.Username]
	if counts == nil {
		counts = &userCounts{counts: map[requestKey]int{}, leaseNames: map[string]bool{}}
		l.users[e.User.Username] = counts
	}
	resource := e.resource()
	switch {
	case resource == "leases.coordination.k8s.io":
		counts.leases++
		if e.ObjectRef != nil {
			counts.leaseNames[e.ObjectRef.Name] = true
		}
		return
	case resource == "events" && counts.leaseNames[e.subject()]:
		counts.leases++
		return
	case resource == "/version":
		counts.version++
		return
	}
	counts.counts[requestKey{verb: e.Verb, resource: resource}]++
	if e.Verb != "watch" && e.StageTimestamp.After(counts.last) {
		counts.last = e.StageTimestamp
	}
}

// subject returns the name of the object that an event of Kubernetes is about:
// by convention the event is named after it, with a suffix behind the last dot.
func (e event) subject() string {
	if e.ObjectRef == nil {
		return ""
	}
	name := e.ObjectRef.Name
	return name[:max(0, strings.LastIndex(name, "."))]
}

// resource names what the request is about: plural name, group and
// subresource, or the path where it is about no resource.
func (e event) resource() string {
	if e.ObjectRef == nil || e.ObjectRef.Resource == "" {
		path, _, _ := strings.Cut(e.RequestURI, "?")
		return path
	}
	name := e.ObjectRef.Resource
	if e.ObjectRef.APIGroup != "" {
		name += "." + e.ObjectRef.APIGroup
	}
	if e.ObjectRef.Subresource != "" {
		name += "/" + e.ObjectRef.Subresource
	}
	return name
}
