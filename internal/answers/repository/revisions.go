// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// mostRefs bounds how many branches and tags are looked at for the newest.
const mostRefs = 10_000

// Revision is what a git repository has committed under a name.
type Revision struct {
	// Name of a branch or a tag, or HEAD.
	Name string `json:"name"`
	// Commit in short, its first line, and when it was made, as RFC 3339.
	Commit string `json:"commit"`
	Title  string `json:"title"`
	At     string `json:"at"`
}

// Revisions returns HEAD, and the newest branches and tags of the git repository around a
// folder, at most as many as are asked for.
func Revisions(ctx context.Context, folder string, most int) ([]Revision, error) {
	opened, err := openGit(folder)
	if err != nil {
		return nil, err
	}
	type dated struct {
		Revision
		when time.Time
	}
	var found []dated
	add := func(name string, hash plumbing.Hash) {
		if resolved, err := opened.ResolveRevision(plumbing.Revision(name)); err == nil {
			hash = *resolved // A tag may be an object of its own.
		}
		commit, err := opened.CommitObject(hash)
		if err != nil {
			return // A tag of something else.
		}
		title, _, _ := strings.Cut(commit.Message, "\n")
		at := commit.Committer.When.UTC()
		found = append(found, dated{Revision{name, hash.String()[:12], title, at.Format(time.RFC3339)}, at})
	}
	refs, err := opened.References()
	if err != nil {
		return nil, fmt.Errorf("cannot read the branches of the git repository of %s: %w", folder, err)
	}
	defer refs.Close()
	for range mostRefs {
		ref, err := refs.Next()
		if err != nil || ctx.Err() != nil {
			break
		}
		if name := ref.Name(); ref.Type() == plumbing.HashReference && (name.IsBranch() || name.IsRemote() || name.IsTag()) {
			add(name.Short(), ref.Hash())
		}
	}
	slices.SortStableFunc(found, func(a, b dated) int { return cmp.Or(b.when.Compare(a.when), strings.Compare(a.Name, b.Name)) })
	if head, err := opened.Head(); err == nil {
		all := found
		found = nil
		add("HEAD", head.Hash())
		found = append(found, all...)
	}
	revisions := []Revision{}
	for _, each := range found[:min(len(found), most)] {
		revisions = append(revisions, each.Revision)
	}
	return revisions, ctx.Err()
}

// InGit returns an error for a folder that is in no git repository.
func InGit(folder string) error {
	_, err := openGit(folder)
	return err
}

// openGit opens the git repository around a folder.
func openGit(folder string) (*git.Repository, error) {
	return git.PlainOpenWithOptions(folder, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
}
