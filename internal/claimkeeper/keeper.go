// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claimkeeper keeps CapabilityClaims served and says how CapabilityProviders fare: it
// reads, has package capabilities decide, carries out and reports.
package claimkeeper

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/keeping"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/ownwrites"
	"github.com/strata-project/strata/internal/providers"
	"github.com/strata-project/strata/internal/round"
	"github.com/strata-project/strata/internal/trim"
)

const (
	// minRetry and maxRetry bound the back-off after errors.
	minRetry = 200 * time.Millisecond
	maxRetry = 2 * time.Minute
	// rightsRetry is how soon a claim is looked at again that waits for rights.
	rightsRetry = 30 * time.Second
	// accountKept is how long an account counts as there that was: one that is deleted acts for
	// claims no longer than that, and looks at a thousand claims do not ask for it each.
	accountKept = 2 * time.Second
	// writeTimeout bounds the write of a status.
	writeTimeout = 15 * time.Second
	// jitter spreads the looks of the safety net, by this part of the interval.
	jitter = 0.05
)

// keys are the labels and annotations by which the objects of claims are owned.
var keys = dependents.Keys{
	Owner: v1alpha1.ClaimLabel, Orphaned: v1alpha1.OrphanedLabel, SuspendedByHold: v1alpha1.SuspendedByHoldAnnotation,
	SupersededBy: v1alpha1.SupersededByAnnotation, CreatedFor: v1alpha1.CreatedForAnnotation, Abandon: v1alpha1.AbandonAnnotation,
}

var (
	secretKind        = schema.GroupKind{Kind: "Secret"}
	releaseVersion    = kinds.HelmReleaseKind.WithVersion("v2")
	namespaceVersion  = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	definitionVersion = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// Options are what a keeper is made of.
type Options struct {
	// Client reads from the manager's cache and writes, and Reader reads past it.
	Client client.Client
	Reader client.Reader
	// Settings of the rules.
	Settings layers.Settings
	// Accounts as which objects are read and written.
	Accounts *informers.Accounts
	// Remotes are the connections to other clusters; nil where there are none.
	Remotes *informers.Remotes
	// Plugins runs the programs of providers; nil where none is run.
	Plugins *providers.Host
	// Selector narrows the claims and providers that are looked after; nil means all.
	Selector labels.Selector
	// Concurrent is how many claims are looked at side by side.
	Concurrent int
	// PlanValid is how long after it was made a plan may be acted on; 0 is no limit.
	PlanValid time.Duration
	// Holds tells whether the process may still act.
	Holds func() bool
	// Events receives what happens to claims.
	Events events.EventRecorder
	// Tell tells of the condition Ready of an object where it has changed.
	Tell func(obj client.Object, kind, version string, is, before []metav1.Condition)
	// Now returns the time.
	Now func() time.Time
}

// Keeper keeps claims.
type Keeper struct {
	Options

	// own is the cache of what claims have, of all Secrets' metadata, and of the records of
	// bindings.
	own      cache.Cache
	kinds    *informers.Kinds
	wired    informers.Wiring
	objects  *keeping.Objects
	executor *apply.Executor
	// follows are the objects that claims only observe.
	follows *informers.Follows
	// wakeUps have claims looked at again.
	wakeUps wakeUps
	// providerWakeUps have providers looked at again.
	providerWakeUps wakeUps
	releases        releases

	// written are the claims as this process has written them last, and recent its writes
	// of objects.
	written ownwrites.Newest[*v1alpha1.CapabilityClaim]
	recent  *ownwrites.Objects
	// unsaved are what claims have of which the next look says more, by their UIDs.
	unsaved memo[types.UID, unsaved]
	records records
	signing signing
	served  served
	// there is when accounts were last known to be there.
	there   memo[accountOf, time.Time]
	secrets secrets
	plans   blueprints
	plugins plugins
}

// New returns a keeper, which SetupWithManager starts.
func New(options Options) *Keeper { return &Keeper{Options: options} }

// SetupWithManager registers the controllers of claims and of providers.
func (k *Keeper) SetupWithManager(mgr manager.Manager) error {
	k.recent = ownwrites.NewObjects()
	if err := k.setupIndexes(mgr); err != nil {
		return err
	}
	if err := k.setupCache(mgr); err != nil {
		return err
	}
	k.follows = k.newFollows()
	runs := []manager.RunnableFunc{k.follows.UntilDone, k.signRecords}
	if k.Plugins != nil {
		k.Plugins.On(pluginCluster{k})
		runs = append(runs, k.Plugins.UntilDone)
	}
	for _, run := range runs {
		if err := mgr.Add(run); err != nil {
			return fmt.Errorf("cannot set the keeper of claims up: %w", err)
		}
	}
	if err := k.setupClaims(mgr); err != nil {
		return err
	}
	return k.setupProviders(mgr)
}

// The names of the field indexes.
const (
	indexUID        = "strata.uid"
	indexCapability = "strata.capability"
	indexBoundTo    = "strata.boundTo"
)

func (k *Keeper) setupIndexes(mgr manager.Manager) error {
	claim := &v1alpha1.CapabilityClaim{}
	for _, index := range []struct {
		of     client.Object
		field  string
		values func(client.Object) []string
	}{
		{claim, indexUID, func(obj client.Object) []string { return []string{string(obj.GetUID())} }},
		{claim, indexCapability, func(obj client.Object) []string {
			return []string{strings.ToLower(obj.(*v1alpha1.CapabilityClaim).Spec.Capability)}
		}},
		{claim, indexBoundTo, func(obj client.Object) []string { return boundTo(obj.(*v1alpha1.CapabilityClaim)) }},
		{&v1alpha1.CapabilityProvider{}, indexCapability, func(obj client.Object) []string {
			return []string{strings.ToLower(obj.(*v1alpha1.CapabilityProvider).Spec.Capability)}
		}},
	} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), index.of, index.field, index.values); err != nil {
			return fmt.Errorf("cannot index %s: %w", index.field, err)
		}
	}
	return nil
}

// boundTo returns the claims that a claim is bound to, or is to be, as NAMESPACE/NAME.
func boundTo(claim *v1alpha1.CapabilityClaim) []string {
	var found []string
	if to, is := capabilities.BoundTo(claim); is {
		found = append(found, to.String())
	}
	if is := claim.Status.BoundTo; is != nil && !slices.Contains(found, is.Namespace+"/"+is.Name) {
		found = append(found, is.Namespace+"/"+is.Name)
	}
	return found
}

// setupCache makes the cache of what claims have: objects with their label; and the metadata
// of all Secrets, since a binding may be made of one that somebody else makes for an object.
func (k *Keeper) setupCache(mgr manager.Manager) error {
	only, err := claimed()
	if err != nil {
		return err
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(secretKind.WithVersion("v1"))
	k.own, err = cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultTransform: trim.Object, DefaultLabelSelector: only,
		ByObject: map[client.Object]cache.ByObject{
			secret:                       {Label: labels.Everything()},
			&appsv1.ControllerRevision{}: {Namespaces: map[string]cache.Config{k.Settings.Namespace: {LabelSelector: only}}},
		},
	})
	if err != nil {
		return fmt.Errorf("cannot make the cache of what claims have: %w", err)
	}
	if err := mgr.Add(keeping.LedCache{Cache: k.own}); err != nil {
		return fmt.Errorf("cannot add a cache: %w", err)
	}
	return nil
}

// claimed selects what claims have.
func claimed() (labels.Selector, error) {
	exists, err := labels.NewRequirement(v1alpha1.ClaimLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot select objects: %w", err)
	}
	return labels.NewSelector().Add(*exists), nil
}

// wiring says what becomes of what is seen of the objects of claims: those are woken.
func (k *Keeper) wiring(watch func(source.Source) error) informers.Wiring {
	return informers.Wiring{
		Watch: watch, Handle: k.objectHandler, Passes: k.objectPasses,
		Definitions: func(of *informers.Kinds) handler.EventHandler {
			return handler.EnqueueRequestsFromMapFunc(k.redefined(of))
		},
	}
}

// look has one object looked at, unless the process is about to end.
func (k *Keeper) look(ctx context.Context, req ctrl.Request, do func(context.Context, ctrl.Request) (time.Duration, error)) (ctrl.Result, error) {
	if k.Holds != nil && !k.Holds() {
		return ctrl.Result{}, nil
	}
	after, err := round.Outcome(do(ctx, req))
	return ctrl.Result{RequeueAfter: after}, err
}

// isOwn tells whether an object is this controller's to look after.
func (k *Keeper) isOwn(obj client.Object) bool {
	return k.Selector == nil || k.Selector.Matches(labels.Set(obj.GetLabels()))
}

// safetyNet returns when an object is looked at again in any case.
func (k *Keeper) safetyNet() time.Duration { return wait.Jitter(k.Settings.Interval, jitter) }

// account returns the ServiceAccount of a provider: one without a name where the provider
// names none, and no default account is there for it.
func (k *Keeper) account(provider v1alpha1.CapabilityProviderSpec) types.NamespacedName {
	name := cmp.Or(provider.ServiceAccountName, k.Settings.DefaultServiceAccount)
	return types.NamespacedName{Namespace: capabilities.NamespaceOf(provider, k.Settings.Namespace), Name: name}
}

// checkAccount refuses an account as which nothing may be done for claims.
func (k *Keeper) checkAccount(account types.NamespacedName) error {
	if !k.Settings.Opens(account.Namespace) {
		return fmt.Errorf("spec.namespace: %s is neither the controller's namespace, %s, nor one of --source-namespaces, and references across namespaces are refused (--no-cross-namespace-refs)",
			account.Namespace, k.Settings.Namespace)
	}
	return k.Settings.CheckAccountUse(account, false)
}

// memo is a value that is made once for each key, for keys that are few.
type memo[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]V
}

// maxMemo bounds how many values are kept; with more, all are made anew.
const maxMemo = 10_000

func (m *memo[K, V]) get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, known := m.known[key]
	return value, known
}

func (m *memo[K, V]) set(key K, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxMemo {
		m.known = map[K]V{}
	}
	m.known[key] = value
}

func (m *memo[K, V]) forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}
