// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/yaml"
)

// plugins judges those that one field lists, and returns them as texts: kustomize runs
// those that are written out first.
func (j *judge) plugins(listed []string, name string) ([]string, error) {
	var inline, files []string
	for _, text := range listed {
		if err := j.checkInline(text); err != nil {
			return nil, err
		}
		if found, err := j.factory.NewResMapFromBytes([]byte(text)); err == nil {
			texts, err := j.configurations(found.Resources(), name)
			if err != nil {
				return nil, err
			}
			inline = append(inline, texts...)
			continue
		}
		texts, err := j.pluginFile(text, name)
		if err != nil {
			return nil, err
		}
		files = append(files, texts...)
	}
	return append(inline, files...), nil
}

// pluginFile reads plug-ins from a file. It must be one: a directory could change, by
// patches, what they load.
func (j *judge) pluginFile(text, name string) ([]string, error) {
	at, info, err := j.find(text, name)
	switch {
	case err != nil:
		return nil, err
	case info == nil:
		return nil, failed(j.file, name, "%s is not there", named(text))
	case info.IsDir():
		return nil, failed(j.file, name, "%s is a directory: name the files in it", named(text))
	}
	data, err := j.read(at)
	if err != nil {
		return nil, err
	}
	if err := checkPlain(at, data); err != nil {
		return nil, err
	}
	found, err := j.factory.NewResMapFromBytes(data)
	if err != nil {
		return nil, failed(at, "", "kustomize: %s", buildMessage(err, map[string][]byte{at: data}))
	}
	// Names in it begin where those of the kustomization do.
	in := &judge{loading: j.loading, file: at, directory: j.directory}
	return in.configurations(found.Resources(), name)
}

// configurations judges what plug-ins are told, and returns it written anew.
func (j *judge) configurations(found []*resource.Resource, name string) ([]string, error) {
	texts := make([]string, 0, len(found))
	for _, each := range found {
		told, err := j.configuration(each, name)
		if err != nil {
			return nil, err
		}
		if err := j.value(reflect.ValueOf(told).Elem()); err != nil {
			return nil, err
		}
		text, err := write(each, told)
		if err == nil {
			err = j.sameAgain(each, text)
		}
		if err != nil {
			return nil, failed(
				j.file,
				name,
				"%s %s cannot be written out as it was read: %s",
				each.GetKind(),
				each.GetName(),
				buildMessage(err, map[string][]byte{j.file: text}),
			)
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// configuration decodes what a plug-in is told, as it decodes that itself.
func (j *judge) configuration(of *resource.Resource, name string) (any, error) {
	kind := of.GetGvk()
	if kind.Kind == "HelmChartInflationGenerator" {
		return nil, failed(j.file, name, "Helm charts in a kustomization are not allowed: write a HelmRelease")
	}
	made, ok := plugins[kind.Kind]
	if !ok || kind.Group != "" || kind.Version != konfig.BuiltinPluginApiVersion {
		return nil, failed(
			j.file,
			name,
			"%s is no plug-in that is part of kustomize (apiVersion: builtin): others are not allowed, since they are programs",
			short(kind.Kind),
		)
	}
	told := made()
	text, err := of.AsYAML()
	if err == nil {
		err = yaml.Unmarshal(text, told)
	}
	if err != nil {
		return nil, failed(j.file, name, "kustomize: %s %s: %s", kind.Kind, of.GetName(), buildMessage(err, map[string][]byte{j.file: text}))
	}
	return told, nil
}

// write writes a plug-in anew, from what was decoded of it.
func write(of *resource.Resource, told any) ([]byte, error) {
	data, err := json.Marshal(told)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&all); err != nil {
		return nil, err
	}
	metadata := map[string]any{"name": of.GetName()}
	if namespace := of.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	all["apiVersion"], all["kind"], all["metadata"] = konfig.BuiltinPluginApiVersion, of.GetKind(), metadata
	data, err = json.Marshal(all)
	return escape(data), err
}

// sameAgain makes sure that kustomize reads of a text what was read of a plug-in.
func (j *judge) sameAgain(of *resource.Resource, text []byte) error {
	found, err := j.factory.NewResMapFromBytes(text)
	if err != nil {
		return err
	}
	if found.Size() != 1 {
		return errors.New("it would be another number of plug-ins")
	}
	told, err := j.configuration(found.Resources()[0], "")
	if err != nil {
		return err
	}
	again, err := write(of, told)
	if err == nil && !bytes.Equal(again, text) {
		err = errors.New("it would be something else")
	}
	return err
}
