// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/plugindeploy"
	"github.com/strata-project/strata/internal/providers"
)

// pluginCluster does for plug-ins what their providers' accounts may.
type pluginCluster struct{ k *Keeper }

// as returns what reads and writes as the account of a plug-in's provider.
func (c pluginCluster) as(ctx context.Context, of providers.Reference) (client.Client, error) {
	account := types.NamespacedName{Namespace: of.Namespace, Name: of.Account}
	if account.Name == "" {
		return nil, errors.New("its provider names no account: spec.serviceAccountName")
	}
	if err := c.k.checkAccount(account); err != nil {
		return nil, err
	}
	if err := c.k.Accounts.Check(ctx, account); err != nil {
		return nil, err
	}
	return c.k.Accounts.Client(account)
}

// Login reads what the registry of a plug-in asks for.
func (c pluginCluster) Login(ctx context.Context, of providers.Reference) ([]byte, error) {
	as, err := c.as(ctx, of)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	if err := as.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.PullSecretRef.Name}, secret); err != nil {
		return nil, fmt.Errorf("cannot read the Secret of its registry: %w", err)
	}
	data := secret.Data[corev1.DockerConfigJsonKey]
	if len(data) == 0 {
		return nil, fmt.Errorf("the Secret %s/%s has no %s", of.Namespace, of.PullSecretRef.Name, corev1.DockerConfigJsonKey)
	}
	return data, nil
}

// plugin returns what a plug-in runs by. Its provider must be there: all of it goes with that.
func (c pluginCluster) plugin(ctx context.Context, of providers.Reference) (plugindeploy.Plugin, error) {
	provider := &v1alpha1.CapabilityProvider{}
	err := c.k.Client.Get(ctx, client.ObjectKey{Name: of.Provider}, provider)
	if apierrors.IsNotFound(err) || err == nil && !provider.DeletionTimestamp.IsZero() {
		return plugindeploy.Plugin{}, fmt.Errorf("is not run any more: CapabilityProvider %s has gone", of.Provider)
	}
	if err != nil {
		return plugindeploy.Plugin{}, fmt.Errorf("cannot read CapabilityProvider %s: %w", of.Provider, err)
	}
	return plugindeploy.Plugin{
		Provider: of.Provider, ProviderUID: provider.UID, Namespace: of.Namespace, Controller: c.k.Settings.Namespace,
		Credentials: of.Credentials, CapabilityPlugin: of.CapabilityPlugin,
	}, nil
}

// Deploy brings the Deployment of a plug-in about, with what it needs. What is as it should be is
// not written.
func (c pluginCluster) Deploy(ctx context.Context, of providers.Reference) (providers.Endpoint, error) {
	none := providers.Endpoint{}
	made, err := c.plugin(ctx, of)
	if err != nil {
		return none, err
	}
	as, err := c.as(ctx, of)
	if err != nil {
		return none, err
	}
	secret, err := c.certificates(ctx, as, made)
	if err != nil {
		return none, err
	}
	at := providers.Endpoint{Address: made.Address()}
	if at.TLS, err = made.ClientTLS(secret.Data); err != nil {
		return none, fmt.Errorf("the Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	deployment, err := c.deployment(ctx, as, made)
	if err != nil {
		return none, err
	}
	if waits := waitsFor(deployment); waits != "" {
		return none, &providers.WaitingError{Waits: waits}
	}
	return at, nil
}

// waitsFor says what a Deployment lacks to be asked; empty for nothing.
func waitsFor(of *appsv1.Deployment) string {
	if of.Status.ObservedGeneration >= of.Generation && of.Status.AvailableReplicas > 0 {
		return ""
	}
	waits := fmt.Sprintf("waits for Deployment %s/%s, of which no Pod is available", of.Namespace, of.Name)
	for _, condition := range of.Status.Conditions {
		isFailure := condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue
		if isFailure || condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse {
			waits += ": " + condition.Message
		}
	}
	return waits
}

// certificates returns the Secret of a plug-in, which is written where it is missing or ends soon.
func (c pluginCluster) certificates(ctx context.Context, as client.Client, of plugindeploy.Plugin) (*corev1.Secret, error) {
	live := &corev1.Secret{}
	err := as.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name()}, live)
	isNew := apierrors.IsNotFound(err)
	if err != nil && !isNew {
		return nil, fmt.Errorf("cannot read the Secret of its certificates: %w", err)
	}
	if !isNew {
		if err := belongs(live, of); err != nil {
			return nil, err
		}
	}
	wanted, changed, err := of.Secret(live.Data, c.k.now())
	switch {
	case err != nil:
		return nil, err
	case isNew:
		err = as.Create(ctx, wanted, client.FieldOwner(dependents.FieldManager))
	case changed:
		wanted.ResourceVersion = live.ResourceVersion
		err = as.Update(ctx, wanted, client.FieldOwner(dependents.FieldManager))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write the Secret of its certificates: %w", err)
	}
	return wanted, nil
}

// belongs refuses what is somebody else's.
func belongs(object client.Object, of plugindeploy.Plugin) error {
	for key, value := range plugindeploy.Selects(of.Provider) {
		if object.GetLabels()[key] != value {
			return fmt.Errorf("%s/%s is somebody else's: it has no label %s=%s", object.GetNamespace(), object.GetName(), key, value)
		}
	}
	return nil
}

// deployment returns the Deployment of a plug-in, which is applied with all else where it is not
// the one that is wanted.
func (c pluginCluster) deployment(ctx context.Context, as client.Client, of plugindeploy.Plugin) (*appsv1.Deployment, error) {
	objects, err := of.Objects()
	if err != nil {
		return nil, err
	}
	deployment := objects[len(objects)-1]
	live := &appsv1.Deployment{}
	err = as.Get(ctx, client.ObjectKeyFromObject(deployment), live)
	if err == nil && live.Annotations[v1alpha1.PluginAnnotation] == deployment.GetAnnotations()[v1alpha1.PluginAnnotation] {
		return live, belongs(live, of)
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cannot read its Deployment: %w", err)
	}
	for _, object := range objects {
		if err := c.put(ctx, as, object, of); err != nil {
			return nil, err
		}
	}
	return deployment.(*appsv1.Deployment), nil // whose status nobody has written yet
}

// put has an object be as it is wanted.
func (c pluginCluster) put(ctx context.Context, as client.Client, object client.Object, of plugindeploy.Plugin) error {
	kind := object.GetObjectKind().GroupVersionKind()
	name := fmt.Sprintf("%s %s/%s", kind.Kind, object.GetNamespace(), object.GetName())
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	err := as.Get(ctx, client.ObjectKeyFromObject(object), live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	content, failure := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if failure != nil {
		return fmt.Errorf("cannot write %s: %w", name, failure)
	}
	wanted := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(wanted.Object, "status")
	if err == nil {
		if err := belongs(live, of); err != nil {
			return fmt.Errorf("%s %w", kind.Kind, err)
		}
		wanted.SetResourceVersion(live.ResourceVersion)
	}
	err = as.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner(dependents.FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("cannot apply %s: %w", name, err)
	}
	return nil
}

// Deployed tells whether the Deployment of a plug-in is there as it is wanted.
func (c pluginCluster) Deployed(ctx context.Context, of providers.Reference) (bool, error) {
	made, err := c.plugin(ctx, of)
	if err != nil {
		return false, err
	}
	as, err := c.as(ctx, of)
	if err != nil {
		return false, err
	}
	objects, err := made.Objects()
	if err != nil {
		return false, err
	}
	live := &appsv1.Deployment{}
	if err := as.Get(ctx, types.NamespacedName{Namespace: made.Namespace, Name: made.Name()}, live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	wanted := objects[len(objects)-1].GetAnnotations()[v1alpha1.PluginAnnotation]
	return live.Annotations[v1alpha1.PluginAnnotation] == wanted && belongs(live, made) == nil, nil
}

// Withdraw removes the Deployment of a plug-in.
func (c pluginCluster) Withdraw(ctx context.Context, of providers.Reference) error {
	made, err := c.plugin(ctx, of)
	if err != nil {
		return err
	}
	as, err := c.as(ctx, of)
	if err != nil {
		return err
	}
	live := &appsv1.Deployment{}
	err = as.Get(ctx, types.NamespacedName{Namespace: made.Namespace, Name: made.Name()}, live)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read its Deployment: %w", err)
	}
	if err := belongs(live, made); err != nil {
		return err
	}
	err = as.Delete(ctx, live, client.Preconditions{UID: &live.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete its Deployment: %w", err)
	}
	return nil
}

// withdraw removes what the plug-ins of a provider run by that nobody needs any more: neither the
// provider, nor new claims, nor one that is bound. It looks where the needed ones are other ones
// than before. It returns false once nothing is needed.
func (k *Keeper) withdraw(ctx context.Context, provider *v1alpha1.CapabilityProvider) (left bool) {
	needed, known := k.needed(ctx, provider)
	left = !known || len(needed) > 0
	text := strings.Join(slices.Sorted(maps.Keys(needed)), " ")
	if last, did := k.plugins.needed.get(provider.UID); !known || did && last == text {
		return left
	}
	if err := k.removeOthers(ctx, provider, needed); err != nil {
		logf.FromContext(ctx).Info("what a plug-in has left is still there", "provider", provider.Name, "error", err.Error())
		return true
	}
	k.plugins.needed.set(provider.UID, text)
	return left
}

// needed returns the names of what the plug-ins of a provider run by; known is false where a
// binding cannot be read.
func (k *Keeper) needed(ctx context.Context, provider *v1alpha1.CapabilityProvider) (names map[string]bool, known bool) {
	names = map[string]bool{}
	add := func(plugin *v1alpha1.CapabilityPlugin) {
		if plugin != nil && providers.RunOf(*plugin) == v1alpha1.PluginDeployment {
			names[plugindeploy.Plugin{Provider: provider.Name, CapabilityPlugin: *plugin}.Name()] = true
		}
	}
	add(provider.Spec.Plugin)
	if last := k.before(provider); last != nil {
		add(last.Plugin)
	}
	claims := &v1alpha1.CapabilityClaimList{}
	of := client.MatchingFields{indexCapability: strings.ToLower(provider.Spec.Capability)}
	if err := k.Client.List(ctx, claims, of, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false
	}
	for i := range claims.Items {
		record, err := k.bound(ctx, &claims.Items[i])
		switch {
		case err != nil, record == nil && claims.Items[i].Status.Provider == provider.Name:
			return nil, false
		case record != nil && record.bound.Provider == provider.Name:
			add(record.bound.Spec.Plugin)
		}
	}
	return names, true
}

// removeOthers removes what is there for a provider's plug-ins but some, the Deployments last:
// they say what is there.
func (k *Keeper) removeOthers(ctx context.Context, provider *v1alpha1.CapabilityProvider, needed map[string]bool) error {
	account := k.account(provider.Spec)
	as, err := pluginCluster{k}.as(ctx, providers.Reference{Namespace: account.Namespace, Account: account.Name})
	if err != nil {
		return err
	}
	list := &appsv1.DeploymentList{}
	if err := as.List(ctx, list, client.InNamespace(account.Namespace), client.MatchingLabels(plugindeploy.Selects(provider.Name))); err != nil {
		return fmt.Errorf("cannot list Deployments: %w", err)
	}
	for i := range list.Items {
		deployment := &list.Items[i]
		if needed[deployment.Name] {
			continue
		}
		meta := metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}
		for _, object := range []client.Object{
			&corev1.Service{ObjectMeta: meta}, &networkingv1.NetworkPolicy{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}, deployment,
		} {
			err := as.Delete(ctx, object)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot delete %T %s/%s: %w", object, meta.Namespace, meta.Name, err)
			}
		}
	}
	return nil
}
