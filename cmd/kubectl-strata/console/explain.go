// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/strata-project/strata/internal/answers/snapshot"
)

// errNoCluster is returned where neither flags nor files name a cluster.
var errNoCluster = errors.New("no cluster is configured: set KUBECONFIG, or use --kubeconfig or --server")

// Config returns how to reach the cluster.
func Config(flags *genericclioptions.ConfigFlags) (*rest.Config, error) {
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	if clientcmd.IsConfigurationInvalid(clientcmd.Validate(raw)) && len(raw.Clusters) > 0 {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", clientcmd.Validate(raw))
	}
	config, err := flags.ToRESTConfig()
	switch {
	case clientcmd.IsEmptyConfig(err), err == nil && len(raw.Clusters) == 0 && *flags.APIServer == "" && config.BearerTokenFile == "":
		return nil, errNoCluster
	case err != nil:
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	// A command asks a handful of questions at once, which need no spacing.
	config.QPS, config.Burst = 50, 100
	return config, nil
}

// Explain says what to do about an error of the API server or on the way to it, where
// somebody asks for objects of a kind. Other errors stay as they are.
func (c *Console) Explain(err error, of snapshot.Part) error { return c.ExplainKind(err, kinds[of]) }

// ExplainKind is Explain for kinds that have no part of a snapshot.
func (c *Console) ExplainKind(err error, of Kind) error {
	var missing *MissingError
	var unreachable *url.Error
	var network net.Error
	switch {
	case err == nil, errors.As(err, &missing):
		return err
	case apierrors.IsNotFound(err):
		return errors.New(of.Unknown)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not know who you are; log in again, or choose another --context or --user: %w", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("your rights do not suffice; ask for the role strata-view, or for get, list and watch on %s: %w", of.Resource.GroupResource(), err)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.As(err, &unreachable), errors.As(err, &network):
		return fmt.Errorf("cannot reach the cluster%s; check that it runs, and that it is the one you mean (kubectl config current-context): %w", at(c.Flags), err)
	default:
		return err
	}
}

// at names the cluster's address where it is known.
func at(flags *genericclioptions.ConfigFlags) string {
	if config, err := flags.ToRESTConfig(); err == nil {
		return " at " + config.Host
	}
	return ""
}

// Forbidden tells whether an error says that a right is missing.
func Forbidden(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }
