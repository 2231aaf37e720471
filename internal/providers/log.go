// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"bytes"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	"github.com/strata-project/strata/internal/printable"
)

const (
	// linesPerSecond and maxLines bound how many lines of a program's log are taken over, and
	// maxLogLine how long each is, in bytes.
	linesPerSecond = 10
	maxLines       = 100
	maxLogLine     = 1024
)

// logWriter takes over what a program writes, line by line. What is too much is left out.
type logWriter struct {
	log   logr.Logger
	limit *rate.Limiter
}

func newLogWriter(log logr.Logger) *logWriter {
	return &logWriter{log: log, limit: rate.NewLimiter(linesPerSecond, maxLines)}
}

// Write takes over a line, or some.
func (w *logWriter) Write(data []byte) (int, error) {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && w.limit.Allow() {
			w.log.Info(printable.Line(string(line), maxLogLine))
		}
	}
	return len(data), nil
}
