// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package postgres runs PostgreSQL of Debian for tests, as a process on the loopback address.
package postgres

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/strata-project/strata/test/lab"
)

// nobody is as whom the server runs where the test is root, which PostgreSQL refuses to be.
const nobody = 65534

// Server is one that runs.
type Server struct {
	bin, data string
	port      int
	process   *exec.Cmd
}

// programs returns the folder with PostgreSQL's programs: those that are installed, or those
// of Debian's packages, unpacked in the cache.
func programs(ctx context.Context) (string, error) {
	const installed = "/usr/lib/postgresql/15/bin"
	if _, err := os.Stat(filepath.Join(installed, "postgres")); err == nil {
		return installed, nil
	}
	unpacked, err := lab.Debian(ctx, "postgresql-15", "postgresql-15", "postgresql-client-15", "libpq5")
	if err != nil {
		return "", err
	}
	return filepath.Join(unpacked, installed), nil
}

// Start runs a server with a superuser and a database of the user's name, until the test ends.
func Start(t testing.TB, port int, user, password string) *Server {
	t.Helper()
	bin, err := programs(t.Context())
	if err != nil {
		t.Skipf("PostgreSQL 15 is not there: %v", err)
	}
	// Not in the test's own folder, which others may not enter.
	data, err := os.MkdirTemp("", "strata-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{bin: bin, data: data, port: port}
	t.Cleanup(func() { s.stop(t) })
	secret := filepath.Join(data, "password")
	if err := errors.Join(os.WriteFile(secret, []byte(password+"\n"), 0o600), s.own(data, secret)); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(data, "data")
	if out, err := s.command("initdb", "-D", folder, "-U", user, "--pwfile", secret, "-A", "scram-sha-256", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	s.Again(t)
	if user != "postgres" {
		if _, err := s.Query(s.URI(user, password, "postgres"), "CREATE DATABASE "+user); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Again starts the server that was stopped, with what it has.
func (s *Server) Again(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(s.data, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	port := strconv.Itoa(s.port)
	s.process = s.command("postgres", "-D", filepath.Join(s.data, "data"), "-p", port, "-h", "127.0.0.1", "-k", s.data, "-F")
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		out, err := s.command("pg_isready", "-h", "127.0.0.1", "-p", port).CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("PostgreSQL does not answer: %s: %s", out, said)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// URI returns the address of a database, for a user.
func (s *Server) URI(user, password, database string) string {
	return fmt.Sprintf("postgresql://%s:%s@127.0.0.1:%d/%s", user, password, s.port, database)
}

// Query runs a statement as a client of its own, and returns what it prints.
func (s *Server) Query(uri, statement string) (string, error) {
	client := s.command("psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-Atqc", statement, uri)
	var out, said bytes.Buffer
	client.Stdout, client.Stderr = &out, &said
	if err := client.Run(); err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, said.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// Session is a client that stays connected.
type Session struct {
	client *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
}

// Connect connects a client, which stays until the test ends.
func (s *Server) Connect(t testing.TB, uri string) *Session {
	t.Helper()
	c := &Session{client: s.command("psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-Atq", uri)}
	var err error
	if c.in, err = c.client.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.client.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.in.Close()
		_ = c.client.Wait()
	})
	return c
}

// Ask runs a statement in the session, and returns the line that it prints; empty where the
// session has ended.
func (c *Session) Ask(statement string) string {
	if _, err := io.WriteString(c.in, statement+";\n"); err != nil || !c.out.Scan() {
		return ""
	}
	return c.out.Text()
}

// command returns a program of PostgreSQL, which does not outlive this process.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	program := exec.Command(filepath.Join(s.bin, name), args...)
	program.Dir = s.data
	program.Env = slices.DeleteFunc(os.Environ(), func(each string) bool { return strings.HasPrefix(each, "PG") })
	program.Env = append(program.Env, "LC_ALL=C", "LD_LIBRARY_PATH="+filepath.Join(s.bin, "..", "..", "..", "x86_64-linux-gnu"))
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		program.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return program
}

// own gives files to whoever runs the server.
func (s *Server) own(paths ...string) error {
	if os.Getuid() != 0 {
		return nil
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, os.Chown(path, nobody, nobody))
	}
	return errors.Join(errs...)
}

// Stop ends the server, and removes its data.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.stop(t)
}

// Pause ends the server, which Again starts with the data that it has.
func (s *Server) Pause() {
	if s.process != nil {
		_ = s.process.Process.Signal(syscall.SIGINT) // at once, and in order
		_ = s.process.Wait()
	}
	s.process = nil
}

func (s *Server) stop(t testing.TB) {
	s.Pause()
	if err := os.RemoveAll(s.data); err != nil {
		t.Errorf("cannot remove the server's folder: %v", err)
	}
}
