// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remoteclusters holds the commands that add RemoteClusters and forget them.
package remoteclusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/joining"
	"github.com/strata-project/strata/internal/near"
)

const clusterAddLong = `Turn a context of a kubeconfig into a RemoteCluster, so that layers can be put on
that cluster. With the rights of the context this makes on the other cluster

  - a namespace (--account-namespace), where it is missing,
  - a ServiceAccount in it, for this RemoteCluster alone,
  - its rights: the ClusterRole cluster-admin, because layers may hold anything;
    --role binds another one that is there, and then a ClusterRole of its own to
    get and patch the namespace kube-system, by which it is known which cluster
    it is, and to which hub it belongs,
  - a token.

Once the other cluster has answered to the token, this makes on the management
cluster the namespace of the RemoteCluster, where it is missing, a Secret with
a kubeconfig that holds token and certificate, and the RemoteCluster, and waits
until that is ready. Before that nothing is written there. The context may use
client certificates or run a program for credentials: they are used for this
alone, and are not stored.

The token does not end, because several providers cut short those that do, some
to a day, and a cluster whose token has ended is lost. --token-duration asks for
one that ends; kubectl strata clusters shows when, and warns.

Run again for the same name, it replaces the token: the new one is stored, then
the old ones are deleted (one that ends stays valid until it does).

The address is that of the context; where the management cluster reaches the
other one at another, give --address. The certificate must be valid for it.

Exit codes:
  0  the cluster is ready, or --wait=false and all is made
  1  it is not made; what was made is said
  2  it is made, and not ready in time`

const clusterAddExamples = `  # The cluster of the context prod-eu
  kubectl strata clusters add prod-eu --from-context prod-eu -n fleet -l region=eu,stage=production

  # What would be made, without a token
  kubectl strata clusters add prod-eu --from-context prod-eu -n fleet --dry-run

  # From another kubeconfig, with a token that ends, and fewer rights
  kubectl strata clusters add lab --from-context lab --kubeconfig-of lab.kubeconfig --token-duration 720h --role edit`

// join is what somebody asks for who adds or forgets a cluster.
type join struct {
	*console.Console
	joining.Join
	from, file, address, labels string
	duration, timeout           time.Duration
	wait, dry                   bool

	// management and remote are the two clusters.
	management, remote *side
	endpoint           joining.Endpoint
	// made says what was made, in order.
	made []string
}

// side is one of the two clusters.
type side struct {
	// name in what is said.
	name    string
	config  *rest.Config
	dynamic dynamic.Interface
	typed   kubernetes.Interface
}

func newSide(name string, config *rest.Config) (*side, error) {
	s := &side{name: name, config: config}
	var err error
	if s.dynamic, err = dynamic.NewForConfig(config); err == nil {
		s.typed, err = kubernetes.NewForConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig of %s: %w", name, err)
	}
	return s, nil
}

// Commands returns the commands about single clusters.
func Commands(c *console.Console) []*cobra.Command {
	return []*cobra.Command{newClusterAdd(c), newClusterForget(c)}
}

func (j *join) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&j.Namespace, "namespace", "n", "", "the namespace of the RemoteCluster; the controller's own where it is not given")
	flags.StringVar(&j.from, "from-context", "", "the context that reaches the other cluster")
	flags.StringVar(&j.file, "kubeconfig-of", "", "the kubeconfig with that context; the one in use where it is not given")
	flags.StringVar(&j.AccountNamespace, "account-namespace", gather.DefaultNamespace, "the namespace of the account on the other cluster")
	flags.DurationVar(&j.timeout, "timeout", 2*time.Minute, "how long to wait")
	flags.BoolVar(&j.wait, "wait", true, "wait until it is done")
}

func newClusterAdd(c *console.Console) *cobra.Command {
	j := &join{Console: c}
	command := &cobra.Command{
		Use:     "add [NAMESPACE/]NAME --from-context CONTEXT",
		Short:   "Turn a kubeconfig context into a RemoteCluster",
		Long:    clusterAddLong,
		Example: clusterAddExamples,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return j.add(command.Context(), args[0]) },
	}
	j.addFlags(command)
	command.Flags().StringVar(&j.address, "address", "", "the URL at which the management cluster reaches the API server")
	command.Flags().StringVarP(&j.labels, "labels", "l", "", "labels of the RemoteCluster, such as region=eu,stage=canary")
	command.Flags().StringVar(&j.Role, "role", joining.Administrator, "the ClusterRole of the other cluster that the account gets")
	command.Flags().DurationVar(&j.duration, "token-duration", 0, "ask for a token that ends after this time, such as 720h; at least 10m")
	command.Flags().BoolVar(&j.dry, "dry-run", false, "print what would be made, and make nothing")
	return command
}

func (j *join) add(ctx context.Context, name string) error {
	if j.from == "" {
		return errors.New("--from-context is missing: kubectl config get-contexts lists them")
	}
	if j.duration != 0 && j.duration < 10*time.Minute {
		return fmt.Errorf("--token-duration is %s: no API server gives tokens for less than 10m", j.duration)
	}
	var err error
	if j.Labels, err = labelsOf(j.labels); err != nil {
		return err
	}
	if err := j.connect(ctx, name); err != nil {
		return err
	}
	if err := j.Check(); err != nil {
		return err
	}
	if j.dry {
		return j.printDry()
	}
	if err := j.mayBegin(ctx); err != nil {
		return err
	}
	if err := j.carryOut(ctx); err != nil {
		return j.halfWay(err)
	}
	if joining.IsLoopback(j.endpoint.Server) {
		j.Paragraph(j.ErrOut, "kubectl strata: %s is an address of this machine; where the management cluster is elsewhere, give --address", j.endpoint.Server)
	}
	if !j.wait {
		j.Paragraph(j.Out, "RemoteCluster %s/%s is made; kubectl strata cluster %s/%s shows how it fares", j.Namespace, j.Name, j.Namespace, j.Name)
		return nil
	}
	return j.awaitReady(ctx)
}

// labelsOf reads labels such as a=b,c=d.
func labelsOf(text string) (map[string]string, error) {
	labels := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, is := strings.Cut(pair, "=")
		if !is {
			return nil, fmt.Errorf("--labels has %q: write labels as region=eu,stage=canary", pair)
		}
		labels[key] = value
	}
	return labels, nil
}

// connect finds out how both clusters are reached.
func (j *join) connect(ctx context.Context, name string) error {
	if namespace, single, is := strings.Cut(name, "/"); is {
		if j.Namespace != "" && j.Namespace != namespace {
			return fmt.Errorf("%s is not in the namespace %s that --namespace gives", name, j.Namespace)
		}
		j.Namespace, name = namespace, single
	}
	j.Name = name
	config, err := j.Cluster.Config()
	if err != nil {
		return err
	}
	if j.management, err = newSide("the management cluster", config); err != nil {
		return err
	}
	if j.Namespace == "" {
		j.Namespace = j.Cluster.ControllerNamespace(ctx)
	}
	if j.from == "" {
		return nil
	}
	return j.connectRemote()
}

// connectRemote reads the context that reaches the other cluster.
func (j *join) connectRemote() error {
	loader := j.Flags.ToRawKubeConfigLoader()
	if j.file != "" {
		loader = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: j.file}, &clientcmd.ConfigOverrides{})
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	chosen := raw.Contexts[j.from]
	if chosen == nil {
		names := slices.Sorted(maps.Keys(raw.Contexts))
		if meant := near.Near(j.from, names); len(meant) > 0 {
			return fmt.Errorf("there is no context %s; did you mean %s?", j.from, strings.Join(meant, " or "))
		}
		return fmt.Errorf("there is no context %s; there are %s", j.from, cmp.Or(strings.Join(names, ", "), "none"))
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(raw, j.from, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("cannot use the context %s: %w", j.from, err)
	}
	if j.remote, err = newSide("the cluster of context "+j.from, config); err != nil {
		return err
	}
	j.endpoint = joining.Endpoint{
		Server: cmp.Or(j.address, config.Host), TLSServerName: config.ServerName, CA: config.CAData, Insecure: config.Insecure,
	}
	if cluster := raw.Clusters[chosen.Cluster]; cluster != nil {
		j.endpoint.ProxyURL = cluster.ProxyURL
	}
	if len(j.endpoint.CA) == 0 && config.CAFile != "" {
		if j.endpoint.CA, err = caOf(config.CAFile); err != nil {
			return err
		}
	}
	// What the controller would refuse is refused before anything is made.
	_, err = joining.KubeConfig(j.endpoint, "token")
	return err
}

// caOf reads certificates from a file.
func caOf(file string) ([]byte, error) {
	certificates, err := cert.CertsFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates of the context: %w", err)
	}
	data, err := cert.EncodeCertificates(certificates...)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificates of the context: %w", err)
	}
	return data, nil
}

// printDry prints what would be made.
func (j *join) printDry() error {
	there := j.There()
	if j.duration == 0 {
		there = append(there, j.TokenSecret("SUFFIX"))
	}
	config, err := joining.KubeConfig(j.endpoint, "TOKEN")
	if err != nil {
		return err
	}
	secret, cluster := j.Here(nil)
	unstructured.RemoveNestedField(secret.Object, "data")
	_ = unstructured.SetNestedField(secret.Object, string(config), "stringData", "value")
	namespace := j.There()[0]
	namespace.SetName(j.Namespace)
	for _, part := range []struct {
		about   string
		objects []*unstructured.Unstructured
	}{
		{"# On the cluster of context " + j.from, there},
		{"# On the management cluster", []*unstructured.Unstructured{namespace, secret, cluster}},
	} {
		console.Say(j.Out, "%s", part.about)
		for _, object := range part.objects {
			data, err := yaml.Marshal(object.Object)
			if err != nil {
				return fmt.Errorf("cannot print %s: %w", object.GetName(), err)
			}
			console.Say(j.Out, "---\n%s", strings.TrimSuffix(string(data), "\n"))
		}
	}
	return nil
}

// halfWay says what was made before something failed, and how to go on.
func (j *join) halfWay(err error) error {
	if len(j.made) == 0 {
		return fmt.Errorf("%w; nothing was made", err)
	}
	return fmt.Errorf(
		"%w; until then there was made: %s. Run the same command again to go on, nothing is made twice; or take it away with kubectl strata clusters forget %s/%s --from-context %s",
		err,
		strings.Join(j.made, ", "),
		j.Namespace,
		j.Name,
		j.from,
	)
}
