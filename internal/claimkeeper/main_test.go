// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/claimkeeper"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/images"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/providers"
	"github.com/strata-project/strata/test/atrest"
	"github.com/strata-project/strata/test/controlplane"
)

// plane is the API server that all tests of the package share.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(controlplane.Main(m, controlplane.Options{With: controlplane.APIOnly(), FluxCRDs: true, After: stopFar}, func(p *controlplane.ControlPlane) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		plane = p
		return p.InstallCRDs(ctx, "../../config/crd/bases")
	}))
}

// patience bounds every wait for something that must happen.
const patience = time.Minute

// workers is how many claims a keeper looks at side by side.
const workers = 4

// fixture is a keeper of its own, with a namespace for claims, and one for itself.
type fixture struct {
	testing.TB
	ctx            context.Context
	shop, system   string
	client         client.Client
	scheme         *runtime.Scheme
	mu             sync.Mutex
	requests       []string
	stop           context.CancelFunc
	ended          chan error
	dieAt, counted int
	dead           bool
	killed         chan struct{}
	// plugins is the folder of plug-ins; empty for none. host runs them.
	plugins string
	// programs is the folder of fetched programs, imagesFrom are whose images run as processes, and
	// dial connects with plug-ins of the cluster.
	programs   string
	imagesFrom []string
	// credentials is the folder with those of processes.
	credentials string
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
	host        *providers.Host
	// patience bounds a question to a plug-in; 0 is as it is outside of tests.
	patience time.Duration
	// digestKey is the controller's key, where it is another one than that of most tests.
	digestKey string
	// seen sees when the keeper is at rest.
	seen *atrest.Observer
	// elsewhere is true where the keeper is connected to the other cluster, over remotes.
	elsewhere bool
	remotes   *informers.Remotes
}

var fixtures atomic.Int32

// newFixture makes namespaces and the account databases, which may do with Secrets and
// ConfigMaps of the claims' namespace what it likes. No keeper runs yet.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	if test, is := t.(*testing.T); is {
		test.Parallel()
	}
	if testing.Short() {
		t.Skip("needs an API server")
	}
	n := fixtures.Add(1)
	f := &fixture{TB: t, ctx: t.Context(), shop: fmt.Sprintf("shop%d", n), system: fmt.Sprintf("system%d", n), scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		f.must(add(f.scheme))
	}
	var err error
	f.client, err = client.New(plane.Config(), client.Options{Scheme: f.scheme})
	f.must(err)
	for _, namespace := range []string{f.shop, f.system} {
		f.must(plane.CreateNamespace(f.ctx, namespace))
	}
	f.programs = filepath.Join(f.TempDir(), "programs")
	f.create(fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: databases, namespace: %s}\n", f.system))
	f.grant(f.shop, "secrets", "configmaps")
	return f
}

// grant gives the account of the providers rights in a namespace.
func (f *fixture) grant(namespace string, resources ...string) {
	f.Helper()
	at := metav1.ObjectMeta{Namespace: namespace, Name: f.system + "-" + resources[0]}
	f.must(f.client.Create(f.ctx, &rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get", "create", "patch", "delete"}},
	}}))
	f.must(f.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: at.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.system, Name: "databases"}},
	}))
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

var errDead = errors.New("this controller is dead")

// asksPlugins are what the keeper has other goroutines do: they wait for plug-ins.
var asksPlugins = []string{"claimkeeper.(*Keeper).inquire.", "claimkeeper.(*Keeper).fly."}

// counts tells which requests count: watches do not, nor do events and questions for one's own
// rights.
func counts(req *http.Request) bool {
	return req.URL.Query().Get("watch") != "true" && !strings.Contains(req.URL.Path, "/events") && !strings.Contains(req.URL.Path, "selfsubject")
}

// wrap counts requests, and lets none through once the keeper is dead.
func (f *fixture) wrap(next http.RoundTripper) http.RoundTripper {
	killed := f.killed
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		f.mu.Lock()
		if killed != f.killed || f.dead {
			f.mu.Unlock()
			return nil, errDead
		}
		if counts(req) {
			f.requests = append(f.requests, req.Method+" "+req.URL.Path)
			if req.Method != http.MethodGet {
				f.counted++
				if f.counted == f.dieAt {
					f.dead = true
					f.mu.Unlock()
					// It takes effect, and nobody hears of it.
					resp, err := next.RoundTrip(req)
					if err == nil {
						_ = resp.Body.Close()
					}
					close(killed)
					return nil, errDead
				}
			}
		}
		f.mu.Unlock()
		return next.RoundTrip(req)
	})
}

// isDead tells whether the keeper has begun the write that kills it.
func (f *fixture) isDead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// start runs a keeper, which dies of a write, counted from 1; 0 is never.
func (f *fixture) start(dieAt int) {
	f.Helper()
	f.mu.Lock()
	f.dieAt, f.counted, f.dead, f.killed = dieAt, 0, false, make(chan struct{})
	f.mu.Unlock()
	server := plane.Config()
	server.Wrap(f.wrap)
	f.seen = atrest.New(atrest.Options{Working: asksPlugins, Aside: func(req *http.Request) bool { return !counts(req) }})
	yes, none := true, time.Duration(0)
	mgr, err := ctrl.NewManager(f.seen.Config(server), ctrl.Options{
		Scheme: f.scheme, Cache: informers.CacheOptions(), Logger: logr.Discard(), Client: informers.ClientOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &yes}, GracefulShutdownTimeout: &none,
	})
	f.must(err)
	mgr = f.seen.Over(mgr)
	selector, err := labels.Parse("!beside")
	f.must(err)
	key, err := digests.NewKey([]byte(cmp.Or(f.digestKey, "0123456789abcdefghijklmnopqrstuv")))
	f.must(err)
	f.remotes = informers.NewRemotes(informers.Options{Scheme: f.scheme, Wiring: deaf, Wake: func(types.NamespacedName) {}})
	f.host = providers.NewHost(providers.Options{
		Folder: f.plugins, Log: logr.Discard(), CallTimeout: f.patience, Dial: f.dial, ImagesFrom: f.imagesFrom, Images: images.NewStore(f.programs),
		Credentials: f.credentials,
	})
	keeper := claimkeeper.New(claimkeeper.Options{
		Plugins: f.host,
		Client:  mgr.GetClient(), Reader: mgr.GetAPIReader(), Accounts: informers.NewAccounts(mgr, mgr.GetAPIReader()), Remotes: f.remotes,
		Events: mgr.GetEventRecorder("strata"), Concurrent: workers, Selector: namespaced{selector, f.shop},
		Settings: layers.Settings{Interval: time.Hour, Namespace: f.system, DigestKey: key},
	})
	ctx, cancel := context.WithCancel(context.Background())
	f.must(keeper.SetupWithManager(mgr))
	ended := make(chan error, 1)
	f.stop, f.ended = cancel, ended
	go func() { ended <- mgr.Start(ctx) }()
	if f.elsewhere {
		f.connect("")
	}
	f.Cleanup(cancel)
}

// namespaced selects what is of one test: claims and providers carry its name as a label.
type namespaced struct {
	labels.Selector
	name string
}

// Matches tells what is of the test.
func (n namespaced) Matches(set labels.Labels) bool { return set.Get("test") == n.name }

// end stops the keeper.
func (f *fixture) end() {
	f.Helper()
	f.stop()
	select {
	case err := <-f.ended:
		_ = err // of one that was killed there may be any
	case <-time.After(patience):
		f.Fatal("the keeper does not end")
	}
}

// create creates an object of a manifest, in which SHOP, SYSTEM and TEST are the fixture's.
func (f *fixture) create(text string) client.Object {
	f.Helper()
	obj, err := f.parse(text)
	f.must(err)
	f.must(f.client.Create(f.ctx, obj))
	f.Cleanup(func() { _ = f.client.Delete(context.Background(), obj) })
	return obj
}

func (f *fixture) parse(text string) (client.Object, error) {
	text = strings.NewReplacer("SHOP", f.shop, "SYSTEM", f.system).Replace(text)
	kind := metav1.TypeMeta{}
	if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
		return nil, err
	}
	made, err := f.scheme.New(kind.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	obj := made.(client.Object)
	return obj, yaml.UnmarshalStrict([]byte(text), obj)
}

// provider creates a CapabilityProvider SHOP-name.
func (f *fixture) provider(name, spec string) client.Object {
	f.Helper()
	return f.create(fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: CapabilityProvider\nmetadata: {name: SHOP-%s, labels: {test: SHOP}}\nspec:\n"+
		"  capability: database/SHOP\n  serviceAccountName: databases\n  allowedNamespaces: {matchLabels: {kubernetes.io/metadata.name: SHOP}}\n%s", name, spec))
}

// claims creates a CapabilityClaim of the namespace SHOP, or NAMESPACE/NAME.
func (f *fixture) claims(name, spec string) client.Object {
	f.Helper()
	key := f.key(name)
	return f.create(fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: CapabilityClaim\nmetadata: {name: %s, namespace: %s, labels: {test: SHOP}}\nspec:\n"+
		"  capability: database/SHOP\n%s", key.Name, key.Namespace, spec))
}

func (f *fixture) eventually(what string, check func() error) {
	f.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// providerSays waits until a provider says something of its condition Ready.
func (f *fixture) providerSays(name string, words ...string) *v1alpha1.CapabilityProvider {
	f.Helper()
	provider := &v1alpha1.CapabilityProvider{}
	f.eventually(fmt.Sprintf("provider %s says %q", name, words), func() error {
		f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.shop + "-" + name}, provider))
		found := meta.FindStatusCondition(provider.Status.Conditions, v1alpha1.ReadyCondition)
		if found == nil || found.ObservedGeneration != provider.Generation {
			return errors.New("it says nothing yet")
		}
		for _, word := range words {
			if !strings.Contains(found.Message, word) {
				return fmt.Errorf("it says %s", found.Message)
			}
		}
		return nil
	})
	return provider
}

// get reads a claim by its name, or by NAMESPACE/NAME.
func (f *fixture) get(name string) *v1alpha1.CapabilityClaim {
	f.Helper()
	claim := &v1alpha1.CapabilityClaim{}
	f.must(f.client.Get(f.ctx, f.key(name), claim))
	return claim
}

func (f *fixture) key(name string) types.NamespacedName {
	if namespace, of, is := strings.Cut(name, "/"); is {
		return types.NamespacedName{Namespace: namespace, Name: of}
	}
	return types.NamespacedName{Namespace: f.shop, Name: name}
}

// says waits until a claim says something of its condition Ready.
func (f *fixture) says(name, reason string, words ...string) *v1alpha1.CapabilityClaim {
	f.Helper()
	return f.condition(name, v1alpha1.ReadyCondition, reason, words...)
}

func (f *fixture) condition(name, kind, reason string, words ...string) *v1alpha1.CapabilityClaim {
	f.Helper()
	var claim *v1alpha1.CapabilityClaim
	f.eventually(fmt.Sprintf("claim %s says %s %q", name, reason, words), func() error {
		claim = f.get(name)
		found := meta.FindStatusCondition(claim.Status.Conditions, kind)
		if found == nil || found.Reason != reason || found.ObservedGeneration != claim.Generation {
			return fmt.Errorf("it says %+v", claim.Status.Conditions)
		}
		for _, word := range words {
			if !strings.Contains(found.Message, word) {
				return fmt.Errorf("it says %s", found.Message)
			}
		}
		return nil
	})
	return claim
}

func (f *fixture) secret(name string) *corev1.Secret {
	f.Helper()
	secret := &corev1.Secret{}
	f.must(f.client.Get(f.ctx, f.key(name), secret))
	return secret
}

// gone waits until an object of the claims' namespace has gone.
func (f *fixture) gone(obj client.Object, name string) {
	f.Helper()
	f.eventually(fmt.Sprintf("%T %s is gone", obj, name), func() error {
		err := f.client.Get(f.ctx, f.key(name), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

// annotate sets an annotation of a claim; with an empty value it takes it off.
func (f *fixture) annotate(obj client.Object, key, value string) {
	f.Helper()
	text := "null"
	if value != "" {
		text = fmt.Sprintf("%q", value)
	}
	f.patch(obj, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, text))
}

func (f *fixture) patch(obj client.Object, patch string) {
	f.Helper()
	f.must(f.client.Patch(f.ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// settled waits until the keeper has nothing left to do, and returns what it has asked for since
// the last call.
func (f *fixture) settled() []string {
	f.Helper()
	f.eventually("the keeper is at rest", func() error { return f.seen.Check(f.ctx) })
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.requests
	f.requests = nil
	return asked
}
