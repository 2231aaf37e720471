// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cloudnative-pg is a plug-in that makes Clusters of CloudNativePG: as many instances, and
// as much memory, as the load that a claim names needs.
package main

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/pkg/plugin"
)

func main() { plugin.Serve(clusters{}) }

type clusters struct{}

const schema = `{"type": "object", "required": ["storage"], "properties": {
"storage": {"type": "string", "pattern": "^[0-9]+(Gi|Ti)$", "description": "Size of the volume of each instance"},
"load": {"type": "string", "enum": ["small", "medium", "large"], "default": "small"},
"database": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,62}$", "default": "app"}}}`

// load is what a load needs.
type load struct {
	instances   int64
	cpu, memory string
	// buffers are a quarter of the memory, as PostgreSQL's documentation says.
	buffers string
}

var loads = map[string]load{
	"small":  {1, "500m", "1Gi", "256MB"},
	"medium": {2, "2", "8Gi", "2GB"},
	"large":  {3, "8", "32Gi", "8GB"},
}

// Describe says that it has databases.
func (clusters) Describe() plugin.Description {
	return plugin.Description{Name: "cloudnative-pg", Version: "1.0.0", Capabilities: []plugin.Capability{{
		Capability: "database/postgresql", Versions: []string{"16.9", "17.5"}, Schema: json.RawMessage(schema),
		Passwords: []plugin.NewPassword{{Name: "app"}},
	}}}
}

// Validate refuses a volume that a load outgrows at once.
func (clusters) Validate(request plugin.Request) []plugin.Problem {
	size, _ := request.Parameters["storage"].(string)
	if request.Parameters["load"] == "large" && strings.HasSuffix(size, "Gi") && len(size) < len("10Gi") {
		return []plugin.Problem{{Field: "storage", Message: "is too small for the load large: give 10Gi at least"}}
	}
	return nil
}

// Plan makes a Cluster and the Secret with the password of its role. Its Service says where the
// primary is.
func (clusters) Plan(request plugin.Request) (plugin.Plan, error) {
	size, _ := request.Parameters["storage"].(string)
	database, _ := request.Parameters["database"].(string)
	named, _ := request.Parameters["load"].(string)
	of, known := loads[named]
	if !known || size == "" || database == "" {
		return plugin.Plan{}, fmt.Errorf("parameters: they are not as the schema says: %v", request.Parameters)
	}
	name := request.Claim.Name
	credentials := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: name + "-app"},
		Type: corev1.SecretTypeBasicAuth, StringData: map[string]string{"username": database, "password": plugin.Password("app")},
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"instances": of.instances, "imageName": "ghcr.io/cloudnative-pg/postgresql:" + request.Claim.Version,
			"storage": map[string]any{"size": size},
			"resources": map[string]any{
				"requests": map[string]any{"cpu": of.cpu, "memory": of.memory}, "limits": map[string]any{"memory": of.memory},
			},
			"postgresql": map[string]any{"parameters": map[string]any{"shared_buffers": of.buffers}},
			"bootstrap": map[string]any{"initdb": map[string]any{
				"database": database, "owner": database, "secret": map[string]any{"name": credentials.Name},
			}},
			"managed": map[string]any{"roles": []any{map[string]any{
				"name": database, "login": true, "passwordSecret": map[string]any{"name": credentials.Name},
			}}},
		},
	}}
	host := fmt.Sprintf("%s-rw.%s.svc", name, request.Claim.Namespace)
	return plugin.Plan{
		Objects: []plugin.Object{
			{ID: "credentials", Object: credentials},
			{ID: "cluster", Object: cluster, DependsOn: []string{"credentials"}, HoldsData: true, Waits: waits(request.Objects["cluster"], of.instances)},
		},
		Publishes: []plugin.Value{
			{Key: "host", Text: host},
			{Key: "port", Text: "5432"},
			{Key: "database", Text: database},
			{Key: "username", Text: database},
			{Key: "password", Text: plugin.Password("app")},
			{Key: "uri", Text: "postgresql://" + database + ":" + plugin.Password("app") + "@" + host + ":5432/" + database},
		},
	}, nil
}

// waits says what a Cluster lacks, which has no status that says when it is ready.
func waits(cluster *unstructured.Unstructured, instances int64) string {
	if cluster == nil {
		return ""
	}
	ready, _, _ := unstructured.NestedFieldNoCopy(cluster.Object, "status", "readyInstances")
	have, _ := ready.(int64)
	if number, is := ready.(float64); is {
		have = int64(number)
	}
	if have < instances {
		return fmt.Sprintf("has %d of %d instances ready", have, instances)
	}
	return ""
}
