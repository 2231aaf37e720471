// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command record runs commands and writes what they print as a picture of a
// terminal:
//
//	go run ./hack/record -o docs/images/plugin.svg -- 'kubectl strata tree apps'
//
// The commands are told by CLICOLOR_FORCE and COLUMNS to print as on a terminal.
// An exit code is no mistake: commands have some for what they have found.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	out := flag.String("o", "", "the file that is written (required)")
	width := flag.Int("width", 100, "columns of the terminal")
	title := flag.String("title", "kubectl strata", "what the title bar says")
	flag.Parse()
	if *out == "" || flag.NArg() == 0 || *width < 20 {
		return errors.New("use: record -o FILE [-width 20 or more] -- 'COMMAND' ['COMMAND'...]")
	}
	var lines []line
	for i, command := range flag.Args() {
		printed, err := output(ctx, command, *width)
		if err != nil {
			return err
		}
		if i > 0 {
			lines = append(lines, line{})
		}
		lines = append(lines, prompt(command))
		lines = append(lines, parse(printed)...)
	}
	if err := os.WriteFile(*out, []byte(draw(*title, *width, lines)), 0o644); err != nil {
		return fmt.Errorf("cannot write the picture: %w", err)
	}
	return nil
}

// output returns what a command of the shell prints.
func output(ctx context.Context, command string, width int) (string, error) {
	shell := exec.CommandContext(ctx, "sh", "-c", command)
	shell.Env = append(os.Environ(), "CLICOLOR_FORCE=1", "NO_COLOR=", "COLUMNS="+strconv.Itoa(width))
	printed, err := shell.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() != notFound && exit.ExitCode() > 0 {
		err = nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot run %q: %w\n%s", command, err, printed)
	}
	return string(printed), nil
}

// notFound is how a shell ends where there is no such program.
const notFound = 127
