// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/version"
)

// fakeServer answers with what it is told to, and counts.
type fakeServer struct {
	mu      sync.Mutex
	version string
	err     error
	asked   int
}

func (s *fakeServer) ServerVersion() (*version.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.err != nil {
		return nil, s.err
	}
	return &version.Info{GitVersion: s.version}, nil
}

func (s *fakeServer) set(answer string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.err = answer, err
}

func (s *fakeServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func TestClusterVersionNeedsAnAnswer(t *testing.T) {
	if _, err := NewClusterVersion(&fakeServer{err: errors.New("away")}, time.Minute); err == nil || !strings.Contains(err.Error(), "cannot ask for the cluster's version: away") {
		t.Errorf("without an answer it is %v", err)
	}
}

func TestClusterVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{version: "v1.35.0"}
		c, err := NewClusterVersion(server, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = c.Start(t.Context()) }()
		woken := func() bool {
			synctest.Wait()
			select {
			case <-c.changes:
				return true
			default:
				return false
			}
		}
		check := func(what, want string, asked int, wakes bool) {
			t.Helper()
			if got := woken(); got != wakes {
				t.Errorf("%s: layers are woken: %t, want %t", what, got, wakes)
			}
			if c.Version() != want || server.count() != asked {
				t.Errorf("%s: version %s after %d questions, want %s after %d", what, c.Version(), server.count(), want, asked)
			}
		}

		check("at first", "v1.35.0", 1, false)
		time.Sleep(59 * time.Second)
		check("before the period", "v1.35.0", 1, false)
		time.Sleep(time.Second)
		check("after the period", "v1.35.0", 2, false)

		server.set("v1.36.3", nil)
		check("not asked yet", "v1.35.0", 2, false)
		c.Ask()
		check("a watch had to reconnect", "v1.36.3", 3, true)
		check("once", "v1.36.3", 3, false)

		server.set("", errors.New("away"))
		time.Sleep(time.Minute)
		check("the server is away", "v1.36.3", 4, false)
		server.set("v1.37.0", nil)
		time.Sleep(time.Minute)
		check("the server is back", "v1.37.0", 5, true)
	})
}

// Many watches that reconnect at once ask one question, or two.
func TestClusterVersionIsAskedOnceForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{version: "v1.35.0"}
		c, err := NewClusterVersion(server, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			c.Ask()
		}
		go func() { _ = c.Start(t.Context()) }()
		synctest.Wait()
		if got := server.count(); got != 2 {
			t.Errorf("%d questions, want one at first and one for all", got)
		}
	})
}
