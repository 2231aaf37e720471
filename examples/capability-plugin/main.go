// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command capability-plugin serves database/postgresql: a claim gets a server of its own, with a
// volume that stays as long as nobody confirms its end.
package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/strata-project/strata/pkg/plugin"
)

func main() { plugin.Serve(postgres{}) }

type postgres struct{}

const schema = `{
  "type": "object",
  "properties": {
    "database": {"type": "string", "default": "app", "pattern": "^[a-z][a-z0-9_]*$"},
    "size": {"type": "string", "default": "1Gi"},
    "port": {"type": "integer", "default": 5432, "minimum": 1, "maximum": 65535},
    "address": {"type": "string", "description": "by which applications reach the server; its Service where it is not given"}
  }
}`

// Describe says that there are two versions.
func (postgres) Describe() plugin.Description {
	return plugin.Description{Name: "postgres", Version: "1.0.0", Capabilities: []plugin.Capability{{
		Capability: "database/postgresql", Versions: []string{"15.18", "16.4"}, Schema: []byte(schema),
		Passwords: []plugin.NewPassword{{Name: "app"}},
	}}}
}

// Validate refuses a size that no volume has, which a schema cannot tell.
func (postgres) Validate(request plugin.Request) []plugin.Problem {
	size, err := resource.ParseQuantity(fmt.Sprint(request.Parameters["size"]))
	if err != nil || size.Sign() <= 0 {
		return []plugin.Problem{{Field: "size", Message: "is no size such as 10Gi"}}
	}
	return nil
}

// Plan wants a server with a password, a volume and a Service.
func (postgres) Plan(request plugin.Request) (plugin.Plan, error) {
	name := request.Claim.Name + "-postgres"
	database, port := fmt.Sprint(request.Parameters["database"]), int32(request.Parameters["port"].(float64))
	address, _ := request.Parameters["address"].(string)
	if address == "" {
		address = name + "." + request.Claim.Namespace + ".svc"
	}
	meta, labels := metav1.ObjectMeta{Name: name}, map[string]string{"app": name}
	password := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta,
		StringData: map[string]string{"password": plugin.Password("app")},
	}
	service := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta,
		Spec: corev1.ServiceSpec{Selector: labels, ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: port}}},
	}
	server := &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](1), ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "postgres", Image: "docker.io/library/postgres:" + request.Claim.Version, Args: []string{"-p", fmt.Sprint(port)},
					Env: []corev1.EnvVar{
						{Name: "POSTGRES_USER", Value: "app"},
						{Name: "POSTGRES_DB", Value: database},
						{Name: "PGDATA", Value: "/data/postgres"},
						{Name: "POSTGRES_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
							LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "password",
						}}},
					},
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceStorage: resource.MustParse(fmt.Sprint(request.Parameters["size"])),
					}},
				},
			}},
		},
	}
	return plugin.Plan{
		Objects: []plugin.Object{
			{ID: "password", Object: password},
			{ID: "service", Object: service},
			{ID: "server", Object: server, HoldsData: true, DependsOn: []string{"password", "service"}},
		},
		Publishes: []plugin.Value{
			{Key: "host", Text: address},
			{Key: "port", Text: fmt.Sprint(port)},
			{Key: "username", Text: "app"},
			{Key: "password", Text: plugin.Password("app")},
			{Key: "database", Text: database},
			{Key: "uri", Text: fmt.Sprintf("postgresql://app:%s@%s:%d/%s", plugin.Password("app"), address, port, database)},
		},
	}, nil
}
