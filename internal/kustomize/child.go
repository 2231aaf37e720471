// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/strata-project/strata/internal/confined"
)

// marker is the name under which a program is started to build. Its arguments are the
// limits.
const marker = "strata-kustomize-build"

// limits are what a build may take.
type limits struct {
	// memory in bytes, and processor time in whole seconds.
	memory uint64
	cpu    time.Duration
	// time from its beginning, however little of it it runs.
	time time.Duration
	// output is how many bytes it may answer.
	output int64
}

// arguments returns the limits that a process sets for itself.
func (l limits) arguments() []string {
	return []string{marker, strconv.FormatUint(l.memory, 10), strconv.Itoa(int(l.cpu / time.Second))}
}

func parseLimits(arguments []string) (limits, error) {
	if len(arguments) != len(limits{}.arguments()) {
		return limits{}, errors.New("a build is started by the program itself")
	}
	memory, err := strconv.ParseUint(arguments[1], 10, 64)
	if err != nil {
		return limits{}, fmt.Errorf("cannot read the limit of memory: %w", err)
	}
	cpu, err := strconv.Atoi(arguments[2])
	if err != nil {
		return limits{}, fmt.Errorf("cannot read the limit of processor time: %w", err)
	}
	return limits{memory: memory, cpu: time.Duration(cpu) * time.Second}, nil
}

// maxCopied is how many bytes the copies of one JSON patch may come to. kustomize takes a
// hundred times as much memory for what is in them.
const maxCopied = 1 << 20

// A program that is started to build does that and nothing else. It is asked here, and
// not in main, so that no program and no test that links the package can forget it:
// that one would start itself without end.
func init() {
	if len(os.Args) > 0 && os.Args[0] == marker {
		os.Exit(serve(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
}

// serve builds what it is asked for, until nobody asks any more.
func serve(arguments []string, in io.Reader, out, errOut io.Writer) int {
	jsonpatch.AccumulatedCopySizeLimit = maxCopied
	l, err := parseLimits(arguments)
	if err == nil {
		err = confined.Bounds{Memory: l.memory, CPU: l.cpu}.Enter()
	}
	if err == nil {
		err = answer(in, out)
	}
	if err != nil {
		fmt.Fprintln(errOut, err)
		return confined.ExitFailed
	}
	return confined.ExitFine
}

// answer reads requests, and writes what comes of each.
func answer(in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(in)
	buffered := bufio.NewWriterSize(out, 64<<10)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	own := openapi.GetSchemaVersion()
	for {
		var request handed
		switch err := decoder.Decode(&request); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("cannot read what is to be built: %w", err)
		}
		last, err := work(&request, encoder)
		if err != nil {
			return err
		}
		if err := encoder.Encode(last); err != nil {
			return err
		}
		if err := buffered.Flush(); err != nil {
			return err
		}
		forget(own)
	}
}

// forget has kustomize keep no schema that the files of a build named: the next build has
// others.
func forget(own string) {
	if openapi.GetSchemaVersion() != own {
		openapi.ResetOpenAPI()
	}
}

// work does what a request asks for. It returns the last word.
func work(request *handed, encoder *json.Encoder) (message, error) {
	last := message{End: true}
	var err error
	if request.Generate != nil {
		// It reads the files of its folder, so they cannot be closed yet.
		last.Kustomization, err = generate(request.Folder, &request.Request)
	} else if err := confined.CloseFiles(); err != nil {
		// The runtime has what it needs for timers by now: watchMemory runs one.
		return message{}, err
	}
	switch {
	case request.Generate != nil:
	case request.Decrypt != nil:
		last.Decrypted, err = decrypt(&request.Request)
	default:
		err = Observed(Files(request.Files), &request.Request, func(object *Object) error { return encoder.Encode(message{Object: object}) })
	}
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return message{Refusal: refusal.Message}, nil
	}
	return last, err
}
