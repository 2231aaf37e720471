// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed" // the stages of kwok
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/strata-project/strata/hack/controlplane/cache"
)

// Component is a program of the control plane, by the name of its binary.
type Component string

// The components of a control plane, in the order in which they are started.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
	SourceController  Component = "source-controller"
	HelmController    Component = "helm-controller"
	// NotificationController takes events at ControlPlane.EventsURL.
	NotificationController Component = "notification-controller"
)

// EnvBinaries names a folder with the programs, in place of the cache folder
// that `make controlplane` fills.
const EnvBinaries = "STRATA_CONTROLPLANE"

// Binary returns the path of a program of the control plane, or of kubectl.
// When it is missing the error says how to build it.
func Binary(name string) (string, error) {
	dir, err := binaries()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not in %s, run: make controlplane", name, dir)
	}
	return path, nil
}

func binaries() (string, error) {
	if dir := os.Getenv(EnvBinaries); dir != "" {
		return dir, nil
	}
	return cache.Dir()
}

// launcher knows how each component is run.
type launcher struct {
	dir    string
	pki    *pki
	opts   Options
	ports  []port
	etcd   string // URL of etcd
	server string // URL of kube-apiserver
	events string // URL of notification-controller's events
	// given is the kubeconfig of a cluster that others have started, as whose user all
	// components run; "" where this process has made the users.
	given string
}

// reserve returns the address of a port that is kept until the control plane
// is stopped.
func (l *launcher) reserve() (port, error) {
	p, err := reservePort()
	if err != nil {
		return port{}, err
	}
	l.ports = append(l.ports, p)
	return p, nil
}

// process describes the run of a component: its arguments, environment,
// ports and health. The ports stay the same for all its runs.
func (l *launcher) process(name Component) (*process, error) {
	path, err := Binary(string(name))
	if err != nil {
		return nil, err
	}
	p := &process{
		name: name,
		path: path,
		log:  l.logFile(name),
		env:  environment(l.dir),
	}
	describe := map[Component]func(*process) error{
		Etcd:              l.describeEtcd,
		APIServer:         l.describeAPIServer,
		ControllerManager: l.describeControllerManager,
		Scheduler:         l.describeScheduler,
		Kwok:              l.describeKwok,
		SourceController:  l.describeSourceController,
		HelmController:    l.describeHelmController,

		NotificationController: l.describeNotificationController,
	}[name]
	if describe == nil {
		return nil, fmt.Errorf("unknown component %q", name)
	}
	if err := describe(p); err != nil {
		return nil, err
	}
	p.args = append(p.args, l.opts.Args[name]...)
	return p, nil
}

// environment is that of a program whose folder is dir: that of the caller
// stays outside, but for the path and for how much memory Go trades for time.
func environment(dir string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + filepath.Join(dir, "tmp")}
	if percent := os.Getenv("GOGC"); percent != "" {
		env = append(env, "GOGC="+percent)
	}
	return env
}

func (l *launcher) logFile(name Component) string {
	return filepath.Join(l.dir, "logs", string(name)+".log")
}

func (l *launcher) describeEtcd(p *process) error {
	clients, err := l.reserve()
	if err != nil {
		return err
	}
	peers, err := l.reserve()
	if err != nil {
		return err
	}
	l.etcd = "http://" + clients.address()
	p.args = []string{
		"--data-dir=" + filepath.Join(l.dir, "etcd"),
		"--listen-client-urls=" + l.etcd,
		"--advertise-client-urls=" + l.etcd,
		"--listen-peer-urls=http://" + peers.address(),
		"--initial-advertise-peer-urls=http://" + peers.address(),
		"--initial-cluster=default=http://" + peers.address(),
		"--unsafe-no-fsync=true",
		"--log-level=warn",
	}
	p.healthy = httpHealth(http.DefaultClient, l.etcd+"/health", "")
	return nil
}

func (l *launcher) describeAPIServer(p *process) error {
	secure, err := l.reserve()
	if err != nil {
		return err
	}
	l.server = "https://" + secure.address()
	p.args = []string{
		"--etcd-servers=" + l.etcd,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--secure-port=" + strconv.Itoa(secure.number),
		"--tls-cert-file=" + l.pki.file("serving.crt"),
		"--tls-private-key-file=" + l.pki.file("serving.key"),
		"--client-ca-file=" + l.pki.file("ca.crt"),
		"--authorization-mode=RBAC",
		"--token-auth-file=" + l.pki.file("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.pki.file("service-account.key"),
		"--service-account-signing-key-file=" + l.pki.file("service-account.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		"--max-requests-inflight=2000",
		"--max-mutating-requests-inflight=1000",
	}
	if !l.opts.runs(ControllerManager) {
		// Nothing makes the ServiceAccounts that the plug-in asks for.
		p.args = append(p.args, "--disable-admission-plugins=ServiceAccount")
	}
	p.healthy = httpHealth(l.secureClient(), l.server+"/readyz", l.pki.users[admin].token)
	return nil
}

func (l *launcher) describeControllerManager(p *process) error {
	if err := l.describeSecure(p); err != nil {
		return err
	}
	p.args = append(p.args,
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+l.pki.file("service-account.key"),
		"--root-ca-file="+l.pki.file("ca.crt"),
		"--concurrent-namespace-syncs=10",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
	return nil
}

func (l *launcher) describeScheduler(p *process) error {
	if err := l.describeSecure(p); err != nil {
		return err
	}
	p.args = append(p.args, "--kube-api-qps=500", "--kube-api-burst=1000")
	return nil
}

// describeSecure sets the arguments that kube-controller-manager and
// kube-scheduler share.
func (l *launcher) describeSecure(p *process) error {
	secure, err := l.reserve()
	if err != nil {
		return err
	}
	kubeconfig, err := l.kubeconfig("system:" + string(p.name))
	if err != nil {
		return err
	}
	p.healthy = httpHealth(l.secureClient(), "https://"+secure.address()+"/healthz", "")
	p.args = []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-skip-lookup=true",
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(secure.number),
		"--tls-cert-file=" + l.pki.file("serving.crt"),
		"--tls-private-key-file=" + l.pki.file("serving.key"),
	}
	return nil
}

//go:embed stages.yaml
var stages []byte

func (l *launcher) describeKwok(p *process) error {
	server, err := l.reserve()
	if err != nil {
		return err
	}
	kubeconfig, err := l.kubeconfig(string(Kwok))
	if err != nil {
		return err
	}
	// What becomes of nodes and pods is told by the same stages for every release of kwok.
	config := filepath.Join(l.dir, "stages.yaml")
	if err := os.WriteFile(config, stages, 0o600); err != nil {
		return fmt.Errorf("cannot write the stages of kwok: %w", err)
	}
	p.args = []string{
		"--kubeconfig=" + kubeconfig,
		"--config=" + config,
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=" + nodeAnnotation + "=fake",
		"--node-lease-duration-seconds=40",
		"--cidr=10.0.0.1/24",
		"--node-ip=127.0.0.1",
		"--server-address=" + server.address(),
	}
	p.healthy = httpHealth(http.DefaultClient, "http://"+server.address()+"/healthz", "")
	return nil
}

func (l *launcher) describeSourceController(p *process) error {
	storage, err := l.reserve()
	if err != nil {
		return err
	}
	if err := l.describeFlux(p, 10); err != nil {
		return err
	}
	p.args = append(p.args,
		"--storage-path="+filepath.Join(l.dir, "artifacts"),
		"--storage-addr="+storage.address(),
		"--storage-adv-addr="+storage.address(),
	)
	return nil
}

func (l *launcher) describeHelmController(p *process) error {
	return l.describeFlux(p, l.opts.HelmConcurrency)
}

func (l *launcher) describeNotificationController(p *process) error {
	events, err := l.reserve()
	if err != nil {
		return err
	}
	receiver, err := l.reserve()
	if err != nil {
		return err
	}
	if err := l.describeFlux(p, 4); err != nil {
		return err
	}
	l.events = "http://" + events.address()
	p.args = slices.DeleteFunc(p.args, func(arg string) bool { return strings.HasPrefix(arg, "--events-addr=") })
	p.args = append(p.args, "--events-addr="+events.address(), "--receiverAddr="+receiver.address())
	return nil
}

// describeFlux sets the arguments that the Flux controllers share.
func (l *launcher) describeFlux(p *process, concurrent int) error {
	metrics, err := l.reserve()
	if err != nil {
		return err
	}
	health, err := l.reserve()
	if err != nil {
		return err
	}
	kubeconfig, err := l.kubeconfig(string(p.name))
	if err != nil {
		return err
	}
	p.env = append(p.env, "KUBECONFIG="+kubeconfig, "RUNTIME_NAMESPACE="+FluxNamespace)
	p.args = []string{
		"--watch-all-namespaces=true",
		"--enable-leader-election=false",
		"--events-addr=",
		"--metrics-addr=" + metrics.address(),
		"--health-addr=" + health.address(),
		"--concurrent=" + strconv.Itoa(concurrent),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
	p.healthy = httpHealth(http.DefaultClient, "http://"+health.address()+"/readyz", "")
	return nil
}

// secureClient trusts the control plane's own authority.
func (l *launcher) secureClient() *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(l.pki.ca)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
}

// Healthy asks a URL, such as that of a controller's /readyz, which answers 200
// when all is well. The error says what it answers instead.
func Healthy(ctx context.Context, url string) error {
	return httpHealth(http.DefaultClient, url, "")(ctx)
}

// httpHealth asks url, which answers 200 when the component is healthy.
func httpHealth(client *http.Client, url, token string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return errors.New(url + ": " + response.Status)
		}
		return nil
	}
}
