// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/internal/images"
)

// Cluster is what programs need of the cluster, which is asked for as their providers' accounts.
type Cluster interface {
	// Login returns what the registry of a program asks for, as docker login writes it.
	Login(ctx context.Context, of Reference) ([]byte, error)
	// Deploy brings the Deployment of a program about, and returns where it listens. The error is
	// a WaitingError until it does.
	Deploy(ctx context.Context, of Reference) (Endpoint, error)
	// Deployed tells whether the Deployment of a program is there as it is wanted, by what it has
	// been signed with.
	Deployed(ctx context.Context, of Reference) (bool, error)
	// Withdraw removes the Deployment of a program that may not run.
	Withdraw(ctx context.Context, of Reference) error
}

// Endpoint is where a program listens.
type Endpoint struct {
	// Address as HOST:PORT.
	Address string
	// TLS has the certificates of both sides.
	TLS *tls.Config
}

// deployed launches a program as a Deployment.
type deployed struct {
	of      Reference
	options Options
	cluster Cluster
}

// launch brings the Deployment about, and connects with it.
func (d deployed) launch(ctx context.Context) (*running, error) {
	if d.cluster == nil {
		return nil, fmt.Errorf("there is no cluster for the Deployment of %s", d.of.Image)
	}
	if err := d.trusted(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	at, err := d.cluster.Deploy(ctx, d.of)
	if err != nil {
		return nil, err
	}
	dial := d.options.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	options := append(dialOptions(), grpc.WithTransportCredentials(credentials.NewTLS(at.TLS)), grpc.WithNoProxy(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return dial(ctx, "tcp", address) }))
	over, err := grpc.NewClient("passthrough:///"+at.Address, options...)
	if err != nil {
		return nil, fmt.Errorf("cannot connect with %s: %w", at.Address, err)
	}
	api := pluginv1.NewCapabilityPluginClient(over)
	if _, err := health(ctx, api, grpc.WaitForReady(true)); err != nil {
		_ = over.Close()
		return nil, fmt.Errorf("its Deployment is there, and does not answer at %s: %w", at.Address, err)
	}
	return &running{api: api, gone: func() bool { return false }, end: func() { _ = over.Close() }}, nil
}

// tend brings about what is missing of the Deployment, and withdraws one that may not run any
// more.
func (d deployed) tend(ctx context.Context) error {
	if d.cluster == nil {
		return nil
	}
	err := d.trusted(ctx)
	var unsigned *images.UnsignedError
	if errors.As(err, &unsigned) {
		return errors.Join(err, d.cluster.Withdraw(ctx, d.of))
	}
	if err != nil {
		return err
	}
	_, err = d.cluster.Deploy(ctx, d.of)
	var waits *WaitingError
	if errors.As(err, &waits) {
		return nil // whoever asks is told
	}
	return err
}

// trusted says why the image of the program may not run. The kubelet fetches it later, by the
// same digest.
func (d deployed) trusted(ctx context.Context) error {
	if d.of.Verify == nil {
		return nil
	}
	if d.options.Images == nil {
		return errors.New("this controller has no folder to check signatures in")
	}
	image, err := d.of.image(ctx, d.cluster)
	if err != nil {
		return err
	}
	err = d.options.Images.Check(ctx, image)
	var unsigned *images.UnsignedError
	if err == nil || errors.As(err, &unsigned) {
		return err
	}
	// Its registry is away. It was signed when it was deployed.
	if there, failure := d.cluster.Deployed(ctx, d.of); failure == nil && there {
		return nil
	}
	return err
}
