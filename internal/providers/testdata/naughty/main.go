// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command naughty is a plug-in that does what its parameters say.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/pkg/plugin"
)

func main() { plugin.Serve(&naughty{}) }

type naughty struct{ asked atomic.Int64 }

// Describe says that it has databases.
func (n *naughty) Describe() plugin.Description {
	return plugin.Description{Name: "naughty", Version: "1.0.0", Capabilities: []plugin.Capability{{
		Capability: "database/naughty", Versions: []string{"1.0"}, Passwords: []plugin.NewPassword{{Name: "app"}},
		Schema: []byte(`{"type": "object", "properties": {"do": {"type": "string"}, "name": {"type": "string"}, "namespace": {"type": "string"}}}`),
	}}}
}

// Health is bad where a file says so.
func (n *naughty) Health() error {
	if _, err := os.Stat("/etc/unhealthy"); err == nil {
		return errors.New("the server is away")
	}
	return nil
}

// Validate refuses what is said to be wrong.
func (n *naughty) Validate(request plugin.Request) []plugin.Problem {
	if request.Parameters["do"] == "wrong" {
		return []plugin.Problem{{Field: "do", Message: "is wrong"}}
	}
	return nil
}

// Plan does as it is told.
func (n *naughty) Plan(request plugin.Request) (plugin.Plan, error) {
	asked := n.asked.Add(1)
	name := func(suffix string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: request.Claim.Name + suffix}
	}
	server := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: name("-server"),
		Data: map[string]string{"version": request.Claim.Version, "script": "echo ${HOME}"},
	}
	users := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: name("-users"),
		StringData: map[string]string{"app": plugin.Password("app")},
	}
	plan := plugin.Plan{
		Objects: []plugin.Object{{ID: "server", Object: server}, {ID: "users", Object: users, DependsOn: []string{"server"}, HoldsData: true}},
		Publishes: []plugin.Value{
			{Key: "uri", Text: "db://app:" + plugin.Password("app") + "@" + server.Name},
			{Key: "password", Secret: &plugin.SecretKey{Name: users.Name, Key: "app"}},
		},
	}
	switch do, _ := request.Parameters["do"].(string); do {
	case "many":
		plan = many(request.Claim)
	case "hang":
		select {}
	case "exit":
		os.Exit(1)
	case "panic":
		panic("it fell over")
	case "fail":
		return plan, errors.New("it cannot be planned")
	case "flood":
		server.Data["flood"] = strings.Repeat("x", 5<<20)
	case "memory":
		var held [][]byte
		for range 4096 {
			held = append(held, []byte(strings.Repeat("x", 1<<20)))
		}
		fmt.Fprintln(os.Stderr, len(held))
	case "log":
		for i := range 5_000 {
			fmt.Fprintln(os.Stderr, "line", i, "\x1b[31m"+strings.Repeat("y", 2000))
		}
	case "environment":
		server.Data["environment"] = strings.Join(os.Environ(), "\n")
	case "pid":
		server.Data["pid"] = fmt.Sprint(os.Getpid())
	case "slow":
		if asked%20 == 0 {
			time.Sleep(1200 * time.Millisecond)
		}
	case "unsteady":
		server.Labels = map[string]string{"asked": fmt.Sprint(asked)}
	case "kind":
		plan.Objects[0].Object = &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: name("-server")}
	case "named":
		server.Name, _ = request.Parameters["name"].(string)
		server.Namespace, _ = request.Parameters["namespace"].(string)
	case "waits":
		plan.Waits = "waits for the moon"
	case "unready":
		plan.Objects[0].Waits = "has no disk yet"
	}
	return plan, nil
}

// many has ten objects, as the templates have that it is compared with.
func many(claim plugin.Claim) plugin.Plan {
	users := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: claim.Name + "-users"},
		StringData: map[string]string{"app": plugin.Password("app")},
	}
	plan := plugin.Plan{
		Objects:   []plugin.Object{{ID: "users", Object: users}},
		Publishes: []plugin.Value{{Key: "password", Secret: &plugin.SecretKey{Name: users.Name, Key: "app"}}},
	}
	for i := range 9 {
		plan.Objects = append(plan.Objects, plugin.Object{ID: fmt.Sprintf("s%d", i), Object: &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", claim.Name, i)},
			Data: map[string]string{"of": claim.Name},
		}})
	}
	return plan
}
