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
	if len(args) != 3 {
		return fmt.Errorf("%s takes a kubeconfig, an address and a method, and not %q", plainCommand, args)
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[0])
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	client, err := restClient(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var manifests []string
		err := json.NewDecoder(r.Body).Decode(&manifests)
		if err == nil {
			err = writeAll(r.Context(), client, args[2], manifests)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	server := &http.Server{Addr: args[1], Handler: handler, ReadHeaderTimeout: stopGrace}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-ended:
		return err
	}
}

// writeAll writes manifests of HelmReleases, as many side by side as a plain
// client has workers.
func writeAll(ctx context.Context, client rest.Interface, method string, manifests []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(plainWorkers)
	for _, manifest := range manifests {
		group.Go(func() error { return writeOne(ctx, client, method, manifest) })
	}
	return group.Wait()
}

// writeOne writes the manifest of a HelmRelease.
func writeOne(ctx context.Context, client rest.Interface, method, manifest string) error {
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		return fmt.Errorf("the manifest is no YAML: %w", err)
	}
	var meta struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return fmt.Errorf("the manifest is no object: %w", err)
	}
	var request *rest.Request
	switch method {
	case methodApply:
		request = client.Patch(types.ApplyPatchType).AbsPath(releasesPath, meta.Metadata.Name).
			Param("fieldManager", plainCommand).Param("force", "true")
	case methodCreate:
		request = client.Post().AbsPath(releasesPath).SetHeader("Content-Type", jsonType).
			Param("fieldManager", plainCommand)
	default:
		return fmt.Errorf("there is no method %q", method)
	}
	if err := request.Body(data).Do(ctx).Error(); err != nil {
		return fmt.Errorf("cannot %s HelmRelease %s: %w", method, meta.Metadata.Name, err)
	}
	return nil
}
