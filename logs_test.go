// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// No line of the log has what signs an address, or the password in it, wherever in
// the line the address is.
func TestLogHidesWhatAddressesHold(t *testing.T) {
	const signed = "https://robot:s3cr3t@bucket.example/a.tar.gz?X-Amz-Signature=s3cr3t"
	failed := &url.Error{Op: "Get", URL: signed, Err: errors.New("refused")}
	for name, write := range map[string]func(logr.Logger){
		"message":           func(log logr.Logger) { log.Info("fetches " + signed) },
		"value":             func(log logr.Logger) { log.V(1).Info("fetches", "url", signed) },
		"error":             func(log logr.Logger) { log.Error(failed, "cannot fetch") },
		"error as a value":  func(log logr.Logger) { log.Info("cannot fetch", "error", failed) },
		"value of a logger": func(log logr.Logger) { log.WithValues("url", signed).WithName("x").Info("fetches") },
		"helper":            func(log logr.Logger) { log.WithCallDepth(1).Info("fetches", "url", signed) },
	} {
		t.Run(name, func(t *testing.T) {
			var written bytes.Buffer
			write(withoutAddresses(zap.New(zap.WriteTo(&written), zap.UseDevMode(true))))
			if text := written.String(); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "https://bucket.example/a.tar.gz") {
				t.Errorf("the log says %s", text)
			}
		})
	}
	withoutAddresses(logr.Discard()).Info("nothing happens")
}
