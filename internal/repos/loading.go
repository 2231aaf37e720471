// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

// loading finds all files that a build needs, and judges on the way what says so: it
// decodes each kustomization and each plug-in as kustomize does, with kustomize's own
// types and readers, goes through the fields that came of it, and hands on what it has
// written anew from them. What kustomize acts on is what was judged, however it was
// written in the file.
type loading struct {
	ctx     context.Context //nolint:containedctx // it ends with the function that makes it
	reader  reader
	factory *resmap.Factory
	// files are handed to kustomize as they are, and kustomizations as written anew.
	files, kustomizations map[string][]byte
	// encrypted are files that nothing decrypts.
	encrypted []string
	// ignored are kustomizations of several documents, of which kustomize reads the first.
	ignored []string
	// opens is true where encrypted files are decrypted.
	opens bool
	// waiting are directories whose kustomization is to be judged, each once.
	waiting []string
	seen    map[string]bool
}

// load returns the files that the kustomization of a directory needs.
// ignored as in the loading.
func load(ctx context.Context, files fs.FS, directory string, opens bool) (needed map[string][]byte, ignored []string, err error) {
	l := &loading{
		ctx: ctx, reader: reader{files: files}, factory: resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory()),
		opens: opens, files: map[string][]byte{}, kustomizations: map[string][]byte{}, seen: map[string]bool{},
	}
	l.enqueue(directory)
	for len(l.waiting) > 0 {
		next := l.waiting[0]
		l.waiting = l.waiting[1:]
		if err := l.kustomization(next); err != nil {
			return nil, nil, err
		}
	}
	if len(l.encrypted) > 0 {
		return nil, nil, encryptedFiles(l.encrypted)
	}
	for name, anew := range l.kustomizations {
		if _, ok := l.files[name]; ok {
			return nil, nil, failed(name, "", "is loaded as a file, too, which a kustomization cannot be: load a copy of another name")
		}
		l.files[name] = anew
	}
	slices.Sort(l.ignored)
	return l.files, l.ignored, nil
}

func (l *loading) enqueue(directory string) {
	if !l.seen[directory] {
		l.seen[directory] = true
		l.waiting = append(l.waiting, directory)
	}
}

// kustomization judges that of a directory.
func (l *loading) kustomization(directory string) error {
	var found []string
	for _, base := range konfig.RecognizedKustomizationFileNames() {
		name := path.Join(directory, base)
		if info, err := fs.Stat(l.reader.files, name); err == nil && !info.IsDir() {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return nil // kustomize says it
	case 1:
	default:
		return failed(found[0], "", "kustomize: Found multiple kustomization files under: %s", directory)
	}
	data, err := l.read(found[0])
	if err != nil {
		return err
	}
	if err := checkPlain(found[0], data); err != nil {
		return err
	}
	if hasSeveral(found[0], data) {
		l.ignored = append(l.ignored, found[0])
	}
	var decoded types.Kustomization
	if err := decoded.Unmarshal(data); err != nil {
		return failed(found[0], "", "kustomize: %s", buildMessage(err, map[string][]byte{found[0]: data}))
	}
	fixed := decoded
	fixed.FixKustomization()
	if err := fixed.CheckEmpty(); err != nil {
		return failed(found[0], "", "kustomize: %s", buildMessage(err, map[string][]byte{found[0]: data}))
	}
	j := &judge{loading: l, file: found[0], directory: directory}
	if err := j.value(reflect.ValueOf(&decoded).Elem()); err != nil {
		return err
	}
	l.kustomizations[found[0]], err = j.anew(&decoded)
	return err
}

// hasSeveral tells whether a file has something behind its first document.
func hasSeveral(name string, data []byte) bool {
	documents, err := splitDocuments(name, data)
	if err != nil {
		return false
	}
	count := 0
	for _, each := range documents {
		if each.parse() != nil || each.root != nil {
			count++
		}
	}
	return count > 1
}

// read reads a file, while there is time.
func (l *loading) read(name string) ([]byte, error) {
	if err := l.ctx.Err(); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return l.reader.read(name)
}

// take hands a file on as it is.
func (l *loading) take(name string) error {
	if _, ok := l.files[name]; ok {
		return nil
	}
	data, err := l.read(name)
	if err != nil {
		return err
	}
	if !l.opens && bytes.Contains(data, []byte("sops")) {
		documents, _ := splitDocuments(name, data)
		if checkEncryption(documents) != nil {
			l.encrypted = append(l.encrypted, name)
		}
	}
	l.files[name] = data
	return nil
}

// maxEncrypted is how many files that are encrypted are named beside the first one.
const maxEncrypted = 10

// encryptedFiles says of the first file that it is encrypted, and names the others.
func encryptedFiles(names []string) error {
	slices.Sort(names)
	mistake, others := encrypted(names[0]), names[1:]
	if len(others) > 0 {
		mistake.Message += "; so are " + strings.Join(others[:min(len(others), maxEncrypted)], ", ")
	}
	if more := len(others) - maxEncrypted; more > 0 {
		mistake.Message += fmt.Sprintf(" and %d more files", more)
	}
	return mistake
}

func checkEncryption(documents []*document) error {
	for _, d := range documents {
		// A file that is no YAML may be one that a generator takes as it is.
		if d.parse() == nil && d.root != nil && isEncrypted(d.root) {
			return encrypted(d.file)
		}
	}
	return nil
}

// judge goes through what was decoded of one file.
type judge struct {
	*loading
	// file that it is of, and directory that names in it begin at.
	file, directory string
}

// value judges a value, and all that is in it.
func (j *judge) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return j.value(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if err := j.value(v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Struct:
		return j.fields(v)
	default:
		return nil
	}
}

func (j *judge) fields(v reflect.Value) error {
	known, ok := allowed[v.Type()]
	if !ok {
		return failed(j.file, "", "holds a %s, of which it is not known what it loads", v.Type().Name())
	}
	for i := range v.NumField() {
		of := v.Type().Field(i)
		if !of.IsExported() || v.Field(i).IsZero() {
			continue
		}
		name, _, _ := strings.Cut(of.Tag.Get("json"), ",")
		as, ok := known[of.Name]
		if !ok {
			return failed(j.file, name, "is a field of which it is not known what it loads: leave it out")
		}
		if err := j.field(v.Field(i), as, name); err != nil {
			return err
		}
	}
	return nil
}

// field judges the value of a field by what kustomize does with it.
func (j *judge) field(v reflect.Value, as role, name string) error {
	switch as {
	case isValue:
		return j.value(v)
	case isChart:
		return failed(j.file, "helmCharts", "Helm charts in a kustomization are not allowed: write a HelmRelease")
	case isSchema:
		return j.openapi(v.Interface().(map[string]string), name)
	case isPlugin:
		texts, err := j.plugins(v.Interface().([]string), name)
		v.Set(reflect.ValueOf(texts))
		return err
	}
	for _, text := range textsOf(v) {
		if err := j.reference(text, as, name); err != nil {
			return err
		}
	}
	return nil
}

// textsOf returns the texts of a field that has one, or a list of them.
func textsOf(v reflect.Value) []string {
	if v.Kind() != reflect.Slice {
		return []string{v.String()}
	}
	texts := make([]string, 0, v.Len())
	for i := range v.Len() {
		texts = append(texts, v.Index(i).String())
	}
	return texts
}

func (j *judge) openapi(of map[string]string, name string) error {
	for key := range of {
		if key != "path" && key != "version" {
			return failed(j.file, name, "has %s, and can have path or version", short(key))
		}
	}
	if at, ok := of["path"]; ok {
		return j.reference(at, isFile, "path")
	}
	return nil
}

// reference judges the name of what is loaded, and loads it.
func (j *judge) reference(text string, as role, name string) error {
	switch as {
	case isSource:
		if _, after, ok := strings.Cut(text, "="); ok {
			text = after
		}
	case isPatch:
		if err := j.checkInline(text); err != nil {
			return err
		}
		if _, err := j.factory.RF().SliceFromBytes([]byte(text)); err == nil {
			return nil // the patch itself
		}
	}
	at, info, err := j.find(text, name)
	switch {
	case err != nil:
		return err
	case info == nil && as == isResource:
		return failed(j.file, "", "kustomize: accumulating resources from '%s': open %s: file does not exist", named(text), named(at))
	case info == nil:
		return failed(j.file, name, "%s is not there", named(text))
	case info.IsDir() && (as == isResource || as == isDirectory):
		j.enqueue(at)
		return nil
	case info.IsDir():
		return failed(j.file, name, "%s is a directory: name a file", named(text))
	case as == isDirectory:
		return failed(j.file, name, "%s is a file: name a directory", named(text))
	default:
		return j.take(at)
	}
}

// find returns the place in the artifact that a name leads to, and what is there.
// Whatever kustomize could take for an address is refused, also where a file has its
// name.
func (j *judge) find(text, name string) (string, fs.FileInfo, error) {
	switch {
	case text == "":
		return "", nil, failed(j.file, name, "names nothing: leave it out")
	case isRemote(text):
		return "", nil, remote(j.file, name, text)
	case path.IsAbs(text) || strings.HasPrefix(path.Join(j.directory, text)+"/", "../"):
		return "", nil, &directories.ContentError{
			Reason: v1alpha1.ReasonPathOutsideArtifact, File: j.file, Field: name,
			Message: fmt.Sprintf("%s is outside of the artifact: only files and directories below the root of the source are allowed", named(text)),
		}
	}
	at := path.Join(j.directory, text)
	info, err := fs.Stat(j.reader.files, at)
	if err != nil {
		return at, nil, nil //nolint:nilerr // what cannot be looked at is not there
	}
	return at, info, nil
}

// anew writes a kustomization from what was decoded of it, and makes sure that
// kustomize decodes the same.
func (j *judge) anew(decoded *types.Kustomization) ([]byte, error) {
	text, err := marshal(decoded)
	var again types.Kustomization
	if err == nil {
		err = again.Unmarshal(text)
	}
	var twice []byte
	if err == nil {
		twice, err = marshal(&again)
	}
	if err == nil && !bytes.Equal(text, twice) {
		err = errors.New("it would be something else")
	}
	if err != nil {
		return nil, failed(j.file, "", "cannot be written out as it was read: %s", buildMessage(err, map[string][]byte{j.file: text}))
	}
	return text, nil
}

// marshal writes a kustomization that is not empty to kustomize, whatever it holds.
func marshal(decoded *types.Kustomization) ([]byte, error) {
	data, err := json.Marshal(decoded)
	if err != nil || len(decoded.Resources) > 0 {
		return escape(data), err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	all["resources"] = json.RawMessage("[]")
	data, err = json.Marshal(all)
	return escape(data), err
}

// escape writes JSON so that YAML reads the same: what is no letter of ASCII has no
// other way of being understood.
func escape(data []byte) []byte {
	var out bytes.Buffer
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r > unicode.MaxASCII && r <= 0xffff, r == 0x7f:
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.Write(data[:size])
		}
		data = data[size:]
	}
	return out.Bytes()
}

// maxFileName is how long the name of a file can be. A longer text is a document.
const maxFileName = 4096

// checkInline checks a text in which a document may stand where a file could be named.
func (j *judge) checkInline(text string) error {
	if len(text) <= maxFileName && !strings.ContainsAny(text, "\n\r{[&*!") {
		return nil
	}
	if isRemote(text) && !strings.ContainsAny(strings.TrimSpace(text), "\n") {
		return nil // which is said of it later
	}
	return checkPlain(j.file, []byte(text))
}

// checkPlain refuses YAML that could be read in more than one way, or would need too
// much memory. Such files are few, and short, so that nobody needs more.
func checkPlain(file string, data []byte) error {
	if linesOf(data) != nil {
		return invalid(file, 0, "", "has a line break that not everybody takes for one (a carriage return alone, NEL, LS or PS): use line feeds")
	}
	documents, err := splitDocuments(file, data)
	if err != nil {
		return err
	}
	for _, d := range documents {
		if err := d.parse(); err != nil {
			return err
		}
		if d.root == nil {
			continue
		}
		if err := d.checkTags(d.root, false); err != nil {
			return err
		}
	}
	return nil
}

// plainTags are those that mean the same to everybody.
var plainTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq"}

// checkTags refuses what makes one thing of another: a tag of its own, and a key that is
// not simply written there. An anchor is looked at once, where it is.
func (d *document) checkTags(node *kyaml.Node, key bool) error {
	tagged := node.Style&kyaml.TaggedStyle != 0
	switch {
	case key && node.Kind == kyaml.AliasNode:
		return invalid(d.file, d.line(node), "", "has an alias as a key: write the key out")
	case key && tagged, tagged && !slices.Contains(plainTags, node.ShortTag()):
		return invalid(d.file, d.line(node), "", "has the tag %s: write the value without it", short(node.Tag))
	case node.Kind == kyaml.AliasNode:
		return nil
	}
	for i, child := range node.Content {
		if err := d.checkTags(child, node.Kind == kyaml.MappingNode && i%2 == 0); err != nil {
			return err
		}
	}
	return nil
}
