// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/internal/ssh/sshtest"
)

// A command is held while somebody says that he is there, and hears when he ends it and
// when he only goes.
func TestCommandIsHeld(t *testing.T) {
	heard := make(chan string, 1)
	m := sshtest.New(t, func(_ string, channel cryptossh.Channel) int {
		input := bufio.NewReader(channel)
		who, _ := input.ReadString('\n')
		fmt.Fprintf(channel, "hello %s", who)
		rest, _ := io.ReadAll(input)
		heard <- string(rest)
		return 0
	})
	hold := func() (*ssh.Client, *ssh.Held) {
		client, err := ssh.Dial(t.Context(), target(m, "m"))
		if err != nil {
			t.Fatal(err)
		}
		held, said, err := client.Hold(t.Context(), "hold", "me\n", time.Minute)
		if err != nil || said != "hello me\n" {
			t.Fatalf("%q, %v", said, err)
		}
		if err := held.Say("."); err != nil {
			t.Fatal(err)
		}
		return client, held
	}
	client, held := hold()
	held.Release("e", time.Minute)
	if got := <-heard; got != ".e" {
		t.Errorf("it has heard %q", got)
	}
	_ = client.Close()
	client, held = hold()
	_ = client.Close()
	if got := <-heard; got != "." {
		t.Errorf("it has heard %q", got)
	}
	// The other side has heard of the end; this one hears of it a moment later.
	err := held.Say(".")
	for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); err = held.Say(".") {
		time.Sleep(time.Millisecond)
	}
	if err == nil || !strings.Contains(err.Error(), "m no longer listens") {
		t.Errorf("error %v", err)
	}
	held.Release("e", time.Minute)
}

// A command that says nothing is not waited for, and one that says too much is cut off.
func TestHeldCommandsThatMisbehave(t *testing.T) {
	m := sshtest.New(t, func(line string, channel cryptossh.Channel) int {
		if line == "hold silent" {
			_, _ = io.Copy(io.Discard, channel)
			return 0
		}
		_, _ = io.Copy(channel, strings.NewReader(strings.Repeat("x", 100000)))
		return 0
	})
	client, err := ssh.Dial(t.Context(), target(m, "m"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if _, _, err := client.Hold(t.Context(), "hold silent", "", 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "m: it takes longer than 100ms") {
		t.Errorf("error %v", err)
	}
	held, said, err := client.Hold(t.Context(), "hold loud", "", time.Minute)
	if err != nil || len(said) != 4096 {
		t.Fatalf("%d bytes, %v", len(said), err)
	}
	held.Release("", time.Millisecond)
}
