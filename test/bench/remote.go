// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/strata-project/strata/test/bench/meter"
	"github.com/strata-project/strata/test/bench/report"
	"github.com/strata-project/strata/test/controlplane"
)

// remoteAccount is as whom every system comes to the other clusters.
const remoteAccount = "fleet"

// remoteBed is the control plane that stands in for all clusters of a fleet.
type remoteBed struct {
	plane *controlplane.ControlPlane
	// client is the measuring program's own.
	client rest.Interface
	// identity is that of the measured system, and audit counts what it asks.
	identity controlplane.Identity
	audit    *meter.AuditLog
	// guises are the clusters that the control plane stands in for.
	guises *guises
}

// definitionTime bounds the wait for a definition to be served.
const definitionTime = time.Minute

// startRemote starts the control plane of the other clusters, with a namespace
// of the layers, and begins to watch what is put there.
func (b *bed) startRemote(ctx context.Context) error {
	dir := filepath.Join(b.dir, "remote")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	audit, err := meter.AuditArgs(dir, accountUser(remoteAccount))
	if err != nil {
		return err
	}
	r := &remoteBed{audit: meter.OpenAuditLog(dir)}
	r.plane, err = controlplane.Start(ctx, controlplane.Options{
		With: controlplane.APIOnly(),
		Args: map[controlplane.Component][]string{controlplane.APIServer: audit},
	})
	if err != nil {
		return err
	}
	b.onClose(r.plane.Stop)
	if r.guises, err = newGuises(r.plane.Config()); err != nil {
		return err
	}
	b.onClose(r.guises.close)
	if r.client, err = restClient(r.plane.Config()); err != nil {
		return err
	}
	if err := r.plane.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	if err := bindAccounts(ctx, r.client); err != nil {
		return err
	}
	if r.identity, err = accountOf(ctx, r.plane, r.client, remoteAccount); err != nil {
		return err
	}
	b.remote = r
	if b.work.bundled {
		return nil
	}
	return each(ctx, b.work.clusters, func(_ context.Context, cluster string) error { return b.definePut(ctx, cluster) })
}

// definePut defines what layers have on a cluster, and watches it. ctx ends the
// watch.
func (b *bed) definePut(ctx context.Context, cluster string) error {
	client := b.remote.client
	err := createObject(ctx, client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", putDefinition(cluster))
	if err != nil {
		return fmt.Errorf("cannot define what layers have on %s: %w", cluster, err)
	}
	path := putPath(putGroup(cluster))
	waiting, cancel := context.WithTimeout(ctx, definitionTime)
	defer cancel()
	err = await(waiting, seldom, path+" to be served", func() string { return fmt.Sprint(err) }, func() bool {
		err = client.Get().AbsPath(path).Do(waiting).Error()
		return err == nil
	})
	if err != nil {
		return err
	}
	return watch(ctx, client, path, func(seen change) { b.put.tell(seen, present) })
}

// kubeconfig returns the kubeconfig of one of the clusters. All of them name the
// same server, at a path of their own, and the same account, and none is like
// another: the authority's
// certificate follows a line of its own, as otherwise a client would use one
// connection for all, which clusters do not share.
func (r *remoteBed) kubeconfig(cluster string) ([]byte, error) {
	config, err := clientcmd.LoadFromFile(r.identity.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read a kubeconfig: %w", err)
	}
	server, authority := r.guises.of(cluster)
	for _, of := range config.Clusters {
		of.Server, of.CertificateAuthority, of.TLSServerName = server, "", ""
		of.CertificateAuthorityData = slices.Concat([]byte(cluster+"\n"), bytes.TrimSpace(authority), []byte("\n"))
	}
	return clientcmd.Write(*config)
}

// since returns the requests of the measured system after a moment.
func (r *remoteBed) since(earlier meter.Requests) (*report.Requests, error) {
	requests, err := r.audit.Requests()
	if err != nil {
		return nil, err
	}
	return requests.Since(earlier, accountUser(remoteAccount)), nil
}
