// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint finds what is wrong with a repository of layers before a cluster
// does: by the rules of the controller and of the API server, and without either.
// It reads nothing but the file system that it is given, and charts through a
// function of the caller.
package lint

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/schemas"
)

// Finding is one thing that is wrong.
type Finding struct {
	// Rule that found it, and how bad it is.
	Rule  string `json:"rule"`
	Level Level  `json:"level"`
	// File below the root, with slashes. Line and Column are counted from 1; 0
	// where they are not known.
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Field is the path of the field, and Layer the name of the layer; either may
	// be empty.
	Field string `json:"field,omitempty"`
	Layer string `json:"layer,omitempty"`
	// Message says what is wrong, and what to do.
	Message string `json:"message"`
}

// Report is what was found, and in how much.
type Report struct {
	// Findings in the order of their files, lines and rules.
	Findings []Finding `json:"findings"`
	// Errors and Warnings are how many of the findings are either.
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	// Files that were read, and Layers and Releases that are in them.
	Files    int `json:"files"`
	Layers   int `json:"layers"`
	Releases int `json:"releases"`
}

// Options say what to look at.
type Options struct {
	// Files of the repository from its root. Links must not lead out of it, as with
	// os.Root.
	Files fs.FS
	// Artifact has the files that reach the cluster: those of which Flux makes an
	// artifact. It is Files where it is nil.
	Artifact fs.FS
	// Below are the folders to look at, as paths from the root; all of it where
	// there are none.
	Below []string
	// Source that the repository is, as [KIND/][NAMESPACE/]NAME; empty where the
	// layers' paths tell.
	Source string
	// Kubernetes is the version of the cluster, such as 1.34; empty where that does
	// not matter.
	Kubernetes string
	// Render renders a chart; nil where none is. It is asked only with Kubernetes.
	Render func(context.Context, charts.Request) (*charts.Rendering, error)
	// Disabled rules find nothing.
	Disabled []string
	// Now is the time, by which versions of applications have ended.
	Now time.Time
}

// Run looks for everything that is wrong. The error says why it cannot: the folders
// are not there, or the context has ended.
func Run(ctx context.Context, o Options) (*Report, error) {
	known, err := schemas.Read()
	if err != nil {
		return nil, err
	}
	l := &linter{
		Options: o, ctx: ctx, schemas: known, session: repos.NewSession(), seen: map[seenKey]bool{}, releases: map[place]bool{},
		kustomizations: map[string]*kustomization{}, raw: map[string]place{}, plain: map[string][]place{},
		directories: map[built]*directory{}, unreadable: map[string]bool{}, raws: map[int]string{},
	}
	defer l.session.Close()
	if l.Artifact == nil {
		l.Artifact = l.Files
	}
	if len(l.Below) == 0 {
		l.Below = []string{"."}
	}
	for _, step := range []func() error{l.list, l.readFiles, l.buildKustomizations, l.readLayers} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	l.dropBuilt()
	l.checkAside()
	l.checkCatalogue()
	l.checkLayers()
	l.checkActs()
	l.checkBetween()
	l.checkUnused()
	if err := l.checkKubernetes(); err != nil {
		return nil, err
	}
	l.checkDefined()
	return l.report(), ctx.Err()
}

// linter is one Run.
type linter struct {
	Options
	ctx     context.Context //nolint:containedctx // it lives as long as one Run
	schemas *schemas.Schemas
	session *repos.Session

	names          []string                  // manifests, in order
	kustomizations map[string]*kustomization // by folder
	objects        []object                  // of kinds that others refer to
	raw            map[string]place          // where kustomizations have their objects from
	plain          map[string][]place        // where other objects are
	directories    map[built]*directory      // of layers
	scopes         map[schema.GroupKind]objects.Scope
	unreadable     map[string]bool              // files that cannot be read
	raws           map[int]string               // by finding, files that were read by themselves
	written        []object                     // identities of objects with a namespace
	giving         []*unstructured.Unstructured // ConfigMaps and Secrets, which may give variables
	apartFrom      []aside                      // what is wrong with objects that no layer may have
	layers         []*layer
	apart          map[string]map[string]bool // by folder, those of other clusters
	bundles        map[string]*v1alpha1.ApplicationBundle
	releases       map[place]bool

	files    int
	findings []Finding
	seen     map[seenKey]bool
	last     lastRead
}

// lastRead is the file that was looked at last.
type lastRead struct {
	file      string
	documents []repos.Document
}

// place is where an object begins.
type place struct {
	file string
	line int
}

// object is an object of the repository.
type object struct {
	place
	*unstructured.Unstructured
}

type seenKey struct {
	place
	message string
}

// add adds a finding at a field of an object.
func (l *linter) add(rule string, at place, field, layer, format string, args ...any) {
	l.addAs(levelOf(rule), rule, at, field, layer, fmt.Sprintf(format, args...))
}

func (l *linter) addAs(level Level, rule string, at place, field, layer, message string) {
	if slices.Contains(l.Disabled, rule) {
		return
	}
	line, column := at.line, 0
	if field != "" && at.line > 0 {
		line, column = l.position(at, field)
	}
	key := seenKey{place{at.file, line}, field + message}
	if l.seen[key] {
		return
	}
	l.seen[key] = true
	if rule == ruleUnreadable && level == Error {
		l.unreadable[at.file] = true
	}
	l.findings = append(l.findings, Finding{
		Rule: rule, Level: level, File: at.file, Line: line, Column: column, Field: field, Layer: layer, Message: message,
	})
}

// addMistake adds what the controller says of the content of a layer.
func (l *linter) addMistake(level Level, mistake *directories.ContentError, file, layer string) {
	if l.unreadable[mistake.File] {
		return // it was said
	}
	at := place{cmp.Or(mistake.File, file), mistake.Line}
	l.addAs(level, ruleOf(mistake), at, "", layer, withField(mistake))
}

// withField keeps the field in the text, since the line is that of the field.
func withField(mistake *directories.ContentError) string {
	if mistake.Field == "" {
		return mistake.Message
	}
	return mistake.Field + ": " + mistake.Message
}

// position finds the line and column of a field of an object. The file is read
// again: most repositories have few findings.
func (l *linter) position(at place, field string) (line, column int) {
	if l.last.file != at.file {
		data, err := fs.ReadFile(l.Files, at.file)
		if err != nil {
			return at.line, 0
		}
		l.last.documents, _ = repos.Documents(at.file, data)
		l.last.file = at.file
	}
	for _, document := range l.last.documents {
		if document.Line == at.line {
			return document.Position(field)
		}
	}
	return at.line, 0
}

// origin is where an object is written that a kustomization may have made.
func (l *linter) origin(file string, line int, of *unstructured.Unstructured) place {
	if line != 0 {
		return place{file, line}
	}
	key, folder := of.GetKind()+"/"+of.GetName(), path.Dir(file)
	if l.kustomizations[folder] == nil {
		// The kustomization was made of what lies in the directory.
		for _, found := range l.plain[key] {
			if folder == "." || strings.HasPrefix(found.file, folder+"/") {
				return found
			}
		}
	}
	if found, known := l.raw[key]; known {
		return found
	}
	return place{file, line}
}

// levelOf returns the usual level of a rule.
func levelOf(name string) Level {
	for _, rule := range Rules() {
		if rule.Name == name {
			return rule.Level
		}
	}
	return Error
}

// report sorts and counts what was found.
func (l *linter) report() *Report {
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Message, b.Message))
	})
	r := &Report{Findings: append([]Finding{}, l.findings...), Files: l.files, Layers: len(l.layers), Releases: len(l.releases)}
	for _, finding := range r.Findings {
		if finding.Level == Error {
			r.Errors++
		} else {
			r.Warnings++
		}
	}
	return r
}

// ruleOf returns the rule that a mistake in the content of a layer belongs to.
func ruleOf(mistake *directories.ContentError) string {
	switch {
	case mistake.Reason == v1alpha1.ReasonDuplicateObject:
		return ruleDuplicateObject
	case mistake.Reason == v1alpha1.ReasonKustomizeFailed:
		return ruleKustomization
	case mistake.Reason == v1alpha1.ReasonPathNotFound, mistake.Reason == v1alpha1.ReasonPathOutsideArtifact && mistake.File == "":
		return rulePath
	case strings.HasPrefix(mistake.Message, "cannot be read"):
		return ruleSyntax
	default:
		return ruleManifest
	}
}
