// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// S3Server is an S3 endpoint over plain HTTP. Any key opens it.
type S3Server struct {
	*server
	store *s3mem.Backend
}

// NewS3Server starts an endpoint without buckets.
func NewS3Server() (*S3Server, error) {
	store := s3mem.New()
	s, err := newServer(gofakes3.New(store).Server())
	if err != nil {
		return nil, err
	}
	return &S3Server{server: s, store: store}, nil
}

// Close stops the server and forgets its buckets.
func (s *S3Server) Close() error { return s.close("") }

// Endpoint returns the address as a Bucket names it.
func (s *S3Server) Endpoint() string { return s.host }

// NewBucket creates an empty bucket.
func (s *S3Server) NewBucket(name string) error {
	if err := s.store.CreateBucket(name); err != nil {
		return fmt.Errorf("cannot create bucket %s: %w", name, err)
	}
	return nil
}

// Put writes objects, by their keys, and leaves the others as they are.
func (s *S3Server) Put(bucket string, objects map[string]string) error {
	for key, content := range objects {
		headers := map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}
		_, err := s.store.PutObject(bucket, key, headers, strings.NewReader(content), int64(len(content)), nil)
		if err != nil {
			return fmt.Errorf("cannot put %s into bucket %s: %w", key, bucket, err)
		}
	}
	return nil
}

// Delete removes objects.
func (s *S3Server) Delete(bucket string, keys ...string) error {
	if _, err := s.store.DeleteMulti(bucket, keys...); err != nil {
		return fmt.Errorf("cannot delete from bucket %s: %w", bucket, err)
	}
	return nil
}
