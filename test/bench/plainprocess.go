// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// plainCommand makes this program the process of a plain client.
const plainCommand = "plain-client"

// plainProcess serves an address, where it takes a list of manifests and
// answers when it has written them. It returns when it is told to end.
func plainProcess(args []string) error {
	holds := len(args) > 0 && args[len(args)-1] == idleManagerFlag
	if holds {
		args = args[:len(args)-1]
	}
	if len(args) != 3 && len(args) != 4 {
		return fmt.Errorf("%s takes a kubeconfig, an address, a method and perhaps the kubeconfig of another cluster, and not %q", plainCommand, args)
	}
	writer := plainWriter{method: args[2]}
	var err error
	if writer.home, err = clientOf(args[0]); err != nil {
		return err
	}
	if len(args) == 4 {
		if writer.remote, err = clientOf(args[3]); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var manifests []string
		err := json.NewDecoder(r.Body).Decode(&manifests)
		if err == nil {
			err = writer.writeAll(r.Context(), manifests)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	server := &http.Server{Addr: args[1], Handler: handler, ReadHeaderTimeout: stopGrace}
	ended := make(chan error, 2)
	if holds {
		go func() { ended <- holdCaches(ctx, args[0]) }()
	}
	go func() { ended <- server.ListenAndServe() }()
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-ended:
		return err
	}
}

// clientOf returns a client of the cluster that a kubeconfig file names.
func clientOf(kubeconfig string) (rest.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	return restClient(config)
}

// plainWriter writes HelmReleases to one cluster and everything else to another,
// which is nil where there is nothing else.
type plainWriter struct {
	home, remote rest.Interface
	method       string
}

// writeAll writes manifests, as many side by side as a plain client has workers.
func (w plainWriter) writeAll(ctx context.Context, manifests []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(plainWorkers)
	for _, manifest := range manifests {
		group.Go(func() error { return w.writeOne(ctx, manifest) })
	}
	return group.Wait()
}

// writeOne writes the manifest of one object.
func (w plainWriter) writeOne(ctx context.Context, manifest string) error {
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		return fmt.Errorf("the manifest is no YAML: %w", err)
	}
	var meta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return fmt.Errorf("the manifest is no object: %w", err)
	}
	client, path := w.home, releasesPath
	if meta.Kind != helmReleaseKind {
		group, _, _ := strings.Cut(meta.APIVersion, "/")
		client, path = w.remote, putPath(group)
	}
	if client == nil {
		return fmt.Errorf("there is no cluster for %s %s", meta.Kind, meta.Metadata.Name)
	}
	var request *rest.Request
	switch w.method {
	case methodApply:
		request = client.Patch(types.ApplyPatchType).AbsPath(path, meta.Metadata.Name).
			Param("fieldManager", plainCommand).Param("force", "true")
	case methodCreate:
		request = client.Post().AbsPath(path).SetHeader("Content-Type", jsonType).
			Param("fieldManager", plainCommand)
	default:
		return fmt.Errorf("there is no method %q", w.method)
	}
	if err := request.Body(data).Do(ctx).Error(); err != nil {
		return fmt.Errorf("cannot %s %s %s: %w", w.method, meta.Kind, meta.Metadata.Name, err)
	}
	return nil
}
