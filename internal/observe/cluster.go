// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/machines"
	"github.com/strata-project/strata/internal/probes"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/reserved"
	"github.com/strata-project/strata/internal/ssh"
	"github.com/strata-project/strata/internal/versions"
)

// SavedName is the ConfigMap in kube-system that has what was last applied.
const SavedName = reserved.SavedName

// EncryptionName is the ConfigMap in kube-system that says, in its key WrittenWith, with what
// all Secrets in etcd are known to be written.
const (
	EncryptionName = reserved.EncryptionName
	WrittenWith    = "written"
)

// Cluster is one that answers.
type Cluster struct {
	// Leader is the host through which it is asked.
	Leader string
	// Config and Client of its API server, through the leader.
	Config *rest.Config
	Client kubernetes.Interface
	// Saved is what was last applied; its zero value where nothing was.
	Saved Saved

	nodes   []corev1.Node
	kubeadm hostclusters.Kubeadm
	// Configuration is kubeadm's own of the cluster, as text.
	Configuration string
	// Open are requests for serving certificates of kubelets that nobody has answered, where
	// the manifest wants them.
	Open []certificatesv1.CertificateSigningRequest
	// written is the provider with which all Secrets are known to be written.
	written string
	// layers are asked for where the cluster is to get another version.
	layers []v1alpha1.AddonsLayer
	etcd   *etcd
}

// Saved is what is kept in the cluster of the manifest that was last applied.
type Saved struct {
	// ID of the cluster, and Manager who has applied it.
	ID, Manager string
	// Spec is nil where nothing was saved.
	Spec *v1alpha1.HostClusterSpec
}

// askCluster asks the cluster of the hosts that are initialised, where there are some.
func (l *looker) askCluster(ctx context.Context) {
	seen := l.sight.Observation.Hosts
	spec := l.Cluster.Spec
	credentials, from, why := l.credentials(ctx)
	if credentials == nil {
		l.sight.NotQueried = why
		return
	}
	var group sync.WaitGroup
	for i := range seen {
		if seen[i].Worker || !seen[i].Initialised || seen[i].Unreachable != "" || seen[i].Refused != "" {
			continue
		}
		group.Go(func() {
			over, err := connect(l.Machines, seen[i].Name, spec.ControlPlane[i].Address, credentials)
			seen[i].Serving = err == nil && isReady(ctx, over, l.HostTime)
		})
	}
	group.Wait()
	leader := slices.IndexFunc(seen, func(h hosts.Host) bool { return h.Serving })
	if leader < 0 {
		l.sight.NotQueried = "no API server is healthy; asked as the administrator of " + from
		return
	}
	cluster := &Cluster{Leader: seen[leader].Name}
	if err := l.ask(ctx, cluster, leader, credentials); err != nil {
		l.sight.NotQueried = "asked through " + cluster.Leader + ": " + plain(cluster.Leader, err)
		return
	}
	l.sight.Cluster = cluster
	l.sight.Endpoint = cluster.askEndpoint(ctx, spec.Endpoint, l.HostTime)
}

// ask connects to a cluster through the host that leads, and asks what it is.
func (l *looker) ask(ctx context.Context, cluster *Cluster, leader int, credentials *probes.Credentials) error {
	spec := l.Cluster.Spec
	over, err := connect(l.Machines, cluster.Leader, spec.ControlPlane[leader].Address, credentials)
	if err != nil {
		return err
	}
	cluster.Config = over.Config
	if cluster.Client, err = kubernetes.NewForConfigAndClient(over.Config, over.Web); err != nil {
		return err
	}
	cluster.etcd = newEtcd(l.Machines, cluster.Leader, spec.ControlPlane, credentials)
	l.sight.Observation.Cluster, err = cluster.ask(ctx, spec, l.HostTime)
	return err
}

// askEndpoint asks the cluster where people and hosts do, from the leader, and says why it
// does not answer there: hosts that join do it at the endpoint.
func (c *Cluster) askEndpoint(ctx context.Context, endpoint v1alpha1.HostEndpoint, limit time.Duration) string {
	at := net.JoinHostPort(endpoint.Host, strconv.Itoa(int(endpoint.Port)))
	over, err := bound(&rest.Config{Host: "https://" + at, TLSClientConfig: c.Config.TLSClientConfig}, c.etcd.dial)
	if err != nil {
		return "it cannot be asked"
	}
	defer utilnet.CloseIdleConnectionsFor(over.Web.Transport)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err = get(ctx, over.Web, over.Config.Host+"/readyz")
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &unknown):
		return at + " has the certificate of another authority: it leads to another cluster"
	case errors.As(err, &other):
		return at + " leads to an API server whose certificate does not have that name: was the cluster made with this endpoint?"
	}
	return at + " does not lead from " + c.Leader + " to an API server that is ready: set up the load balancer or the address"
}

// credentials returns those of the first host of the control plane that has some.
func (l *looker) credentials(ctx context.Context) (found *probes.Credentials, from, why string) {
	for _, host := range l.sight.Observation.Hosts {
		if host.Worker || !host.Initialised || host.Unreachable != "" || host.Refused != "" {
			continue
		}
		result, err := l.Machines.Run(ctx, host.Name, ssh.Command{Input: probes.CredentialsScript, Timeout: l.HostTime, MaxOutput: probes.MaxAnswer})
		if err == nil {
			found, err = probes.ReadCredentials(result.Output)
		}
		if err == nil {
			return found, host.Name, ""
		}
		why = host.Name + ": " + plain(host.Name, err)
	}
	return nil, "", why
}

// connect returns the connection to the API server of a host, through the host itself.
func connect(all *machines.Machines, name, address string, credentials *probes.Credentials) (*reach.Connection, error) {
	return bound(&rest.Config{
		Host:            "https://" + net.JoinHostPort(address, strconv.Itoa(hostclusters.APIPort)),
		TLSClientConfig: rest.TLSClientConfig{CAData: credentials.Authority, CertData: credentials.Certificate, KeyData: credentials.Key},
	}, through(all, name))
}

// bound returns a connection whose answers end somewhere: whoever is root on a host decides
// what its API server answers. Where that leads is decided on the host.
func bound(config *rest.Config, dial dialer) (*reach.Connection, error) {
	config.Proxy, config.UserAgent = noProxy, "strata-hosts"
	return reach.ConnectHolding(config, reach.Allowed{Elsewhere: true}, func(reach.Dial) reach.Dial { return reach.Dial(dial) }, maxHeld)
}

// noProxy leaves out what the environment says of proxies: the way is that of SSH.
func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// through dials from a host.
func through(all *machines.Machines, name string) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		client, err := all.Client(ctx, name)
		if err != nil {
			return nil, err
		}
		return client.DialContext(ctx, network, address)
	}
}

// isReady asks an API server whether it is ready, which its etcd must be, too.
func isReady(ctx context.Context, over *reach.Connection, limit time.Duration) bool {
	defer utilnet.CloseIdleConnectionsFor(over.Web.Transport)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := get(ctx, over.Web, over.Config.Host+"/readyz")
	return err == nil
}

// errNotFound says that what was asked for is not there.
var errNotFound = errors.New("it answers that there is none")

// maxAnswer is how much of an answer over HTTP is read, in bytes, and maxHeld how much the lists
// of one cluster may bring: several are looked at side by side, in little memory.
const maxAnswer, maxHeld = 1 << 20, 64 << 20

// get asks and reads a bounded answer.
func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	return do(client, request)
}

func do(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case response.StatusCode == http.StatusNotFound:
		return nil, errNotFound
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers %d", response.StatusCode)
	}
	return body, nil
}

// ask asks what a cluster is, and which layers it has where it is to get another version.
func (c *Cluster) ask(ctx context.Context, wanted v1alpha1.HostClusterSpec, limit time.Duration) (hosts.Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the cluster does not answer within %s", limit))
	defer cancel()
	found := hosts.Cluster{Answers: true}
	var err error
	if c.kubeadm, err = c.askKubeadm(ctx); err != nil {
		return hosts.Cluster{}, err
	}
	found.Version = c.kubeadm.KubernetesVersion
	if found.Version != wanted.Version {
		if c.layers, err = c.listLayers(ctx); err != nil {
			return hosts.Cluster{}, err
		}
	}
	if c.Saved, err = c.saved(ctx); err != nil {
		return hosts.Cluster{}, err
	}
	found.Kept = c.Saved.Spec != nil
	if named, _ := hostclusters.EncryptionIn(c.Configuration); named != "" || wanted.APIServer.Encryption != nil {
		if c.written, err = c.writtenWith(ctx); err != nil {
			return hosts.Cluster{}, err
		}
	}
	if wanted.Kubelets.ServerTLSBootstrap {
		if c.Open, err = c.openRequests(ctx); err != nil {
			return hosts.Cluster{}, err
		}
	}
	if c.nodes, err = c.Nodes(ctx); err != nil {
		return hosts.Cluster{}, err
	}
	for i := range c.nodes {
		found.Nodes = append(found.Nodes, c.nodes[i].Name)
	}
	if c.Saved.Spec != nil {
		found.Left = hostclusters.Left(*c.Saved.Spec, wanted, c.nodes)
	}
	if found.Members, err = c.etcd.members(ctx); err != nil {
		return hosts.Cluster{}, err
	}
	return found, nil
}

// askKubeadm reads kubeadm's own configuration, with the version at which hosts join.
func (c *Cluster) askKubeadm(ctx context.Context) (hostclusters.Kubeadm, error) {
	var found hostclusters.Kubeadm
	config, err := c.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		return found, fmt.Errorf("cannot read the ConfigMap kubeadm-config: %w", err)
	}
	c.Configuration = config.Data["ClusterConfiguration"]
	if err := yaml.Unmarshal([]byte(c.Configuration), &found); err != nil || versions.Semantic(found.KubernetesVersion) == nil {
		return found, errors.New("the ConfigMap kubeadm-config names no version of Kubernetes")
	}
	return found, nil
}

// saved reads what was last applied.
func (c *Cluster) saved(ctx context.Context) (Saved, error) {
	object, err := c.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, SavedName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Saved{}, nil
	case err != nil:
		return Saved{}, fmt.Errorf("cannot read the ConfigMap %s: %w", SavedName, err)
	}
	found := Saved{ID: object.Data["id"], Manager: object.Data["manager"], Spec: &v1alpha1.HostClusterSpec{}}
	if err := json.Unmarshal([]byte(object.Data["spec"]), found.Spec); err != nil {
		return Saved{}, fmt.Errorf("the ConfigMap %s in kube-system cannot be read: somebody has changed it", SavedName)
	}
	return found, nil
}

// writtenWith reads with what all Secrets are known to be written; empty where nobody knows.
func (c *Cluster) writtenWith(ctx context.Context) (string, error) {
	object, err := c.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, EncryptionName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot read the ConfigMap %s: %w", EncryptionName, err)
	}
	if provider := object.Data[WrittenWith]; encryption.IsProvider(provider) {
		return provider, nil
	}
	return "", nil
}
