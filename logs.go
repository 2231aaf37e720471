// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/go-logr/logr"

	"github.com/strata-project/strata/internal/address"
)

// withoutAddresses returns a logger that shows of addresses what may be shown of
// them, whoever logs one: a library that cannot reach something names it in full.
func withoutAddresses(log logr.Logger) logr.Logger {
	sink := log.GetSink()
	if sink == nil {
		return log // nothing is logged
	}
	if caller, is := sink.(logr.CallDepthLogSink); is {
		sink = caller.WithCallDepth(1)
	}
	return logr.New(discreet{sink})
}

// discreet is a sink that hides what addresses may hold.
type discreet struct{ logr.LogSink }

// Init leaves the sink as it is: it has been initialised.
func (d discreet) Init(logr.RuntimeInfo) {}

// Info logs a message.
func (d discreet) Info(level int, message string, values ...any) {
	d.LogSink.Info(level, address.Hide(message), shown(values)...)
}

// Error logs an error.
func (d discreet) Error(err error, message string, values ...any) {
	d.LogSink.Error(address.Error(err), address.Hide(message), shown(values)...)
}

// WithValues returns a sink with more values.
func (d discreet) WithValues(values ...any) logr.LogSink {
	return discreet{d.LogSink.WithValues(shown(values)...)}
}

// WithName returns a sink with a longer name.
func (d discreet) WithName(name string) logr.LogSink { return discreet{d.LogSink.WithName(name)} }

// WithCallDepth returns a sink that looks further for who has called it.
func (d discreet) WithCallDepth(depth int) logr.LogSink {
	if caller, is := d.LogSink.(logr.CallDepthLogSink); is {
		return discreet{caller.WithCallDepth(depth)}
	}
	return d
}

// shown returns values of a line with addresses as they are shown.
func shown(values []any) []any {
	if len(values) == 0 {
		return values
	}
	found := make([]any, len(values))
	for i, value := range values {
		switch value := value.(type) {
		case string:
			found[i] = address.Hide(value)
		case error:
			found[i] = address.Error(value)
		default:
			found[i] = value
		}
	}
	return found
}
