// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
)

// mark encloses what stands for a password until all else is written: no name and no text of an
// object has a NUL.
const mark = "\x00"

// written writes a text as templates have it: what stands for a password as an expression, and
// everything else for itself.
func written(text string) string {
	parts := strings.Split(text, mark)
	for i, part := range parts {
		if i%2 == 0 {
			parts[i] = strings.ReplaceAll(part, "${", "$${")
		} else {
			parts[i] = "${" + part + "}"
		}
	}
	return strings.Join(parts, "")
}

// template writes an object as a template.
func template(object any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("cannot be written: %w", err)
	}
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("is no object: %w", err)
	}
	delete(content, "status")
	if metadata, is := content["metadata"].(map[string]any); is && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp") // as types have it that were never stored
	}
	return json.Marshal(writtenIn(content))
}

func writtenIn(value any) any {
	switch value := value.(type) {
	case string:
		return written(value)
	case []any:
		for i := range value {
			value[i] = writtenIn(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = writtenIn(value[key])
		}
	}
	return value
}

func describe(from Description) *pluginv1.DescribeResponse {
	response := &pluginv1.DescribeResponse{Name: from.Name, Version: from.Version}
	for _, capability := range from.Capabilities {
		one := &pluginv1.Capability{Capability: capability.Capability, Versions: capability.Versions, Schema: capability.Schema}
		for _, password := range capability.Passwords {
			one.Passwords = append(one.Passwords, &pluginv1.Password{Name: password.Name, Length: int32(password.Length)}) //nolint:gosec // Strata refuses long ones
		}
		response.Capabilities = append(response.Capabilities, one)
	}
	return response
}

// requestOf reads a request.
func requestOf(claim *pluginv1.Claim, parameters []byte, objects map[string][]byte) (Request, error) {
	request := Request{
		Claim: Claim{
			Name: claim.GetName(), Namespace: claim.GetNamespace(), UID: claim.GetUid(), Capability: claim.GetCapability(), Version: claim.GetVersion(),
			Cluster: claim.GetCluster(), Rotation: claim.GetRotation(), Rotating: claim.GetRotating(),
		},
		Parameters: map[string]any{}, Objects: map[string]*unstructured.Unstructured{},
	}
	if len(parameters) > 0 {
		if err := json.Unmarshal(parameters, &request.Parameters); err != nil {
			return request, fmt.Errorf("parameters: %w", err)
		}
	}
	for id, data := range objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			return request, fmt.Errorf("objects[%s]: %w", id, err)
		}
		request.Objects[id] = object
	}
	return request, nil
}

var modes = map[Mode]pluginv1.Mode{
	Apply: pluginv1.Mode_MODE_APPLY, CreateOnce: pluginv1.Mode_MODE_CREATE_ONCE, Observe: pluginv1.Mode_MODE_OBSERVE,
}

func planned(plan Plan) (*pluginv1.PlanResponse, error) {
	response := &pluginv1.PlanResponse{Waits: plan.Waits}
	for _, object := range plan.Objects {
		mode, known := modes[object.Mode]
		if !known {
			return nil, fmt.Errorf("object %s has the mode %q, which is none", object.ID, object.Mode)
		}
		data, err := template(object.Object)
		if err != nil {
			return nil, fmt.Errorf("object %s %w", object.ID, err)
		}
		response.Objects = append(response.Objects, &pluginv1.Object{
			Id: object.ID, Template: data, Mode: mode, HoldsData: object.HoldsData, DeleteOnRename: object.DeleteOnRename,
			DependsOn: object.DependsOn, Waits: object.Waits,
		})
	}
	response.Publishes = published(plan.Publishes)
	return response, nil
}

func published(values []Value) []*pluginv1.Value {
	var found []*pluginv1.Value
	for _, value := range values {
		one := &pluginv1.Value{Key: value.Key, From: &pluginv1.Value_Text{Text: written(value.Text)}}
		if from := value.Secret; from != nil {
			one.From = &pluginv1.Value_SecretKey{SecretKey: &pluginv1.SecretKey{Namespace: from.Namespace, Name: from.Name, Key: from.Key}}
		}
		found = append(found, one)
	}
	return found
}
