// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"io/fs"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kustomize"
)

// Session reads many directories of one repository. Their builds are those of one
// kustomize.Session, which says what they share. It must be closed.
type Session struct{ builds *kustomize.Session }

// NewSession returns a session that has started nothing yet.
func NewSession() *Session { return &Session{kustomize.NewSession()} }

// Close ends what the session has started.
func (s *Session) Close() { s.builds.Close() }

func (s *Session) programs() programs {
	return programs{s.builds.Build, s.builds.Generate, s.builds.Decrypt, nil}
}

// ParseAs is the function ParseAs, in the session.
func (s *Session) ParseAs(ctx context.Context, files fs.FS, name string, how builds.Build) (*directories.Directory, error) {
	return parse(ctx, files, name, how, first, s.programs)
}
