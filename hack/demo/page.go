// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/strata-project/strata/internal/answers/verdict"
)

// servePage has the plug-in serve the page.
func (d *demo) servePage(ctx context.Context) error {
	command := exec.CommandContext(ctx, filepath.Join(d.bin, "kubectl-strata"), "ui", "--open=false", "--allowed-cluster-ranges", "127.0.0.0/8,::1/128")
	command.Env = append(os.Environ(), "KUBECONFIG="+d.plane.Kubeconfig())
	command.Stderr = os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = stopGrace
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("cannot serve the page: %w", err)
	}
	d.onStop(func() error {
		_ = command.Process.Signal(os.Interrupt) // It may have ended with everything else.
		_ = command.Wait()
		return nil
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, is := strings.Cut(lines.Text(), "The page is at "); is {
			d.page = address
			return nil
		}
	}
	return errors.New("kubectl strata ui has ended")
}

func (d *demo) sayPage() { fmt.Fprintf(d.out, "\nWatch it in a browser: %s\n", d.page) }

// lookTime is how long the page may take to say that all is well.
const lookTime = 30 * time.Second

// lookAtPage reads what the page is sent, as a browser does, until its verdict is that all
// is well.
func (d *demo) lookAtPage(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTime, fmt.Errorf("the page does not say within %s that all is well", lookTime))
	defer cancel()
	cookies, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: cookies}
	get := func(address string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		answer, err := browser.Do(request)
		if err == nil && answer.StatusCode != http.StatusOK {
			_ = answer.Body.Close()
			err = fmt.Errorf("the page answers %s", answer.Status)
		}
		return answer, err
	}
	first, err := get(d.page)
	if err != nil {
		return err
	}
	_ = first.Body.Close()
	at, err := url.Parse(d.page)
	if err != nil {
		return err
	}
	stream, err := get(at.Scheme + "://" + at.Host + "/stream")
	if err != nil {
		return err
	}
	defer func() { _ = stream.Body.Close() }()
	lines := bufio.NewScanner(stream.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var change struct {
			Set struct{ Verdict *verdict.Verdict }
		}
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		if err := json.Unmarshal([]byte(data), &change); err != nil {
			return fmt.Errorf("the page is sent what cannot be read: %w", err)
		}
		if v := change.Set.Verdict; v != nil && v.State == verdict.Well {
			fmt.Fprintf(d.out, "The page says: %s.\n", v.Sentence)
			return nil
		}
	}
	return errors.Join(context.Cause(ctx), lines.Err())
}
