// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// envHost names this machine as the cluster of --cluster current reaches it.
const envHost = "DEMO_HOST"

// useCurrent takes the cluster of the user's current context. Where that has no Flux,
// its controllers run on this machine.
func (d *demo) useCurrent(ctx context.Context) error {
	kubeconfig, err := d.currentContext()
	if err != nil {
		return err
	}
	plane, err := controlplane.FromKubeconfig(ctx, kubeconfig, nil)
	own := errors.Is(err, controlplane.ErrNoFlux)
	if err != nil && !own {
		return err
	}
	if err := d.untouched(ctx, kubeconfig); err != nil {
		return err
	}
	wanted := []string{"kubectl"}
	if own {
		wanted = append(wanted, string(controlplane.SourceController), string(controlplane.HelmController))
	}
	if err := d.programs(ctx, wanted...); err != nil {
		return err
	}
	if err := d.build(ctx); err != nil {
		return err
	}
	if own {
		plane, err = controlplane.FluxBeside(ctx, kubeconfig, controlplane.Options{Dir: filepath.Join(d.dir, "flux")})
	}
	if err != nil {
		return err
	}
	d.plane = plane
	d.onStop(plane.Stop)
	if err := d.connect(); err != nil {
		return err
	}
	if own {
		return nil
	}
	// The example's source is there, wherever Flux is installed.
	if err := plane.CreateNamespace(ctx, controlplane.FluxNamespace); err != nil {
		return err
	}
	return d.reach(ctx)
}

// currentContext writes the user's current context, and nothing else of the file, into
// the demo's folder: what is changed in the file meanwhile leads nowhere else.
func (d *demo) currentContext() (string, error) {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return "", fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	if config.CurrentContext == "" {
		return "", errors.New("there is no current context: set KUBECONFIG, or choose one with kubectl config use-context")
	}
	if err := clientcmd.ConfirmUsable(*config, ""); err != nil {
		return "", fmt.Errorf("context %s: %w", config.CurrentContext, err)
	}
	d.context = config.CurrentContext
	err = errors.Join(clientcmdapi.MinifyConfig(config), clientcmdapi.FlattenConfig(config))
	if err != nil {
		return "", fmt.Errorf("context %s: %w", d.context, err)
	}
	path := filepath.Join(d.dir, "kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// untouched looks at the cluster before anything is written to it. It refuses one that
// has Strata already, whose layers are not the demo's, and notes which namespaces are
// somebody else's.
func (d *demo) untouched(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	c, err := newClient(config)
	if err != nil {
		return err
	}
	return d.mayUse(ctx, c)
}

func (d *demo) mayUse(ctx context.Context, c client.Client) error {
	switch err := c.List(ctx, &v1alpha1.AddonsLayerList{}, client.Limit(1)); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("cannot look for Strata in the cluster of context %s: %w", d.context, err)
	default:
		return fmt.Errorf("the cluster of context %s has AddonsLayers already: the demo installs Strata itself, take another cluster", d.context)
	}
	for _, name := range []string{strata.Namespace, controlplane.FluxNamespace} {
		switch err := c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}); {
		case apierrors.IsNotFound(err):
			d.ownNamespaces = append(d.ownNamespaces, name)
		case err != nil:
			return fmt.Errorf("cannot look for namespace %s in the cluster of context %s: %w", name, d.context, err)
		}
	}
	return nil
}

// reach makes ways for a Flux that runs in the cluster: from there to the servers of
// git and charts on this machine, and from the controller here to Flux's artifacts.
func (d *demo) reach(ctx context.Context) error {
	typed, err := kubernetes.NewForConfig(d.plane.Config())
	if err != nil {
		return err
	}
	host := os.Getenv(envHost)
	if host == "" {
		if host, err = thisMachine(ctx, typed); err != nil {
			return fmt.Errorf("cannot tell how the cluster reaches this machine, set %s to its address: %w", envHost, err)
		}
	}
	if err := os.Setenv(controlplane.EnvHost, host); err != nil {
		return err
	}
	proxy, err := serviceProxy(d.plane.Config())
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	d.onStop(server.Close)
	// Go asks no proxy for what is on this machine, so that a Flux that runs here is
	// asked without it.
	d.proxy = "http://" + listener.Addr().String()
	return nil
}

// thisMachine returns the address of this machine from which it reaches a node, and at
// which, therefore, the node reaches it.
func thisMachine(ctx context.Context, typed kubernetes.Interface) (string, error) {
	nodes, err := typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 10})
	if err != nil {
		return "", err
	}
	for i := range nodes.Items {
		for _, address := range nodes.Items[i].Status.Addresses {
			if address.Type != corev1.NodeInternalIP {
				continue
			}
			return wayTo(ctx, address.Address)
		}
	}
	return "", errors.New("no node has an internal address")
}

// wayTo returns the address from which this machine reaches another one. Nothing is
// sent: the kernel only says which way it would go.
func wayTo(ctx context.Context, other string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(other, "9"))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}

// serviceProxy is an HTTP proxy for Services of a cluster, by way of its API server.
func serviceProxy(config *rest.Config) (http.Handler, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			path, err := servicePath(r.In.URL)
			if err != nil {
				path = "/not-a-service"
			}
			r.Out.URL = server.JoinPath(path)
			r.Out.Host = ""
			r.Out.Header.Del("Authorization")
		},
	}, nil
}

// servicePath returns where the API server proxies to a Service, given its address.
func servicePath(address *url.URL) (string, error) {
	parts := strings.Split(address.Hostname(), ".")
	if len(parts) < 3 || parts[2] != "svc" {
		return "", fmt.Errorf("%s is no Service", address.Hostname())
	}
	port := address.Port()
	if port == "" {
		port = "80"
	}
	return fmt.Sprintf("/api/v1/namespaces/%s/services/http:%s:%s/proxy", parts[1], parts[0], port) + address.EscapedPath(), nil
}

// leave deletes what the demo has deployed to a cluster that goes on without it, while
// there is somebody who looks after it.
func (d *demo) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	return d.step(ctx, "deleting the layers from the cluster of context "+d.context, func(ctx context.Context) error {
		for _, layer := range d.layers {
			// Nobody will adopt what they have: it need not wait for that.
			if _, err := d.kubectl(ctx, "patch", "addonslayer", layer, "--type=merge", `--patch={"spec":{"orphanGrace":"0s"}}`); err != nil {
				return err
			}
		}
		return d.kubectlAll(ctx,
			[]string{"annotate", "addonslayers", "--all", v1alpha1.ConfirmDeletionAnnotation + "=true"},
			[]string{"delete", "addonslayers", "--all", "--timeout=2m"},
			[]string{"delete", "--namespace", controlplane.FluxNamespace, "gitrepositories/" + sourceName, "--ignore-not-found"},
		)
	})
}

// uninstall takes Strata out of that cluster, and Flux where the demo has put it there.
func (d *demo) uninstall() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	return d.step(ctx, "uninstalling Strata", func(ctx context.Context) error {
		err := strata.Uninstall(d.plane)
		folders := []string{filepath.Join(d.root, "config", "crd", "bases")}
		if d.plane.Managed() { // the cluster had no kind of Flux at all
			crds, missing := controlplane.FluxCRDs()
			err = errors.Join(err, missing)
			folders = append(folders, crds)
		}
		for _, folder := range folders {
			err = errors.Join(err, d.kubectlAll(ctx, []string{"delete", "--ignore-not-found", "--filename", folder}))
		}
		for _, name := range d.ownNamespaces {
			err = errors.Join(err, d.kubectlAll(ctx, []string{"delete", "namespace", "--ignore-not-found", name}))
		}
		return err
	})
}

// kubectlAll runs kubectl with each list of arguments, also when one fails.
func (d *demo) kubectlAll(ctx context.Context, commands ...[]string) error {
	var problems []error
	for _, args := range commands {
		_, err := d.kubectl(ctx, args...)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
