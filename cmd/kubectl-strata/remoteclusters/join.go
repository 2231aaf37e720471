// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package remoteclusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/joining"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/near"
)

const (
	// tokenAgain is how soon it is asked again whether there is a token, and
	// tokenPatience for how long.
	tokenAgain, tokenPatience = 500 * time.Millisecond, 20 * time.Second
	// readyAgain is how soon it is asked again whether a cluster is ready, or gone.
	readyAgain = time.Second
)

// What polls below asks with the context of the command, and not with the one that
// ends in time: a request that is made a moment before must not fail because of that.

// of returns where objects of a kind are on a side, by the plural that all kinds
// have which are made here.
func (s *side) of(object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	if object.GetNamespace() == "" {
		return s.dynamic.Resource(resource)
	}
	return s.dynamic.Resource(resource).Namespace(object.GetNamespace())
}

func nameOfObject(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
}

// mayBegin tells whether the names are free on the management cluster, or what is
// there was made here.
func (j *join) mayBegin(ctx context.Context) error {
	secret, cluster := j.Here(nil)
	live, err := j.management.of(cluster).Get(ctx, cluster.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if _, err := j.management.of(cluster).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return j.Explain(err, snapshot.Clusters)
		}
	case err != nil:
		return j.Explain(err, snapshot.Clusters)
	default:
		if !live.GetDeletionTimestamp().IsZero() {
			return fmt.Errorf("RemoteCluster %s/%s is being deleted: wait until it is gone", j.Namespace, j.Name)
		}
		name, _, _ := unstructured.NestedString(live.Object, "spec", "kubeConfig", "secretRef", "name")
		if name != j.SecretName() {
			return fmt.Errorf("there is a RemoteCluster %s/%s that reads Secret %s: it was made in another way, choose another name", j.Namespace, j.Name, name)
		}
	}
	existing, err := j.management.of(secret).Get(ctx, secret.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case console.Forbidden(err):
		return fmt.Errorf("you may not read Secrets of namespace %s; ask for the rights to get, create and patch them: %w", j.Namespace, err)
	case err != nil:
		return j.Explain(err, snapshot.Clusters)
	case !joining.IsJoined(existing):
		return fmt.Errorf("there is a Secret %s/%s that was made in another way: delete it, or choose another name", j.Namespace, secret.GetName())
	}
	return nil
}

// carryOut makes everything, the other cluster's part first.
func (j *join) carryOut(ctx context.Context) error {
	progress := j.Progress()
	defer progress.Done()
	progress.Say("asking %s", j.remote.name)
	if _, err := j.remote.typed.Discovery().ServerVersion(); err != nil {
		return fmt.Errorf("%s does not answer: %w", j.remote.name, err)
	}
	if err := j.hasRole(ctx); err != nil {
		return err
	}
	for _, object := range j.There() {
		progress.Say("making %s on %s", nameOfObject(object), j.remote.name)
		if err := j.put(ctx, j.remote, object); err != nil {
			return err
		}
	}
	progress.Say("waiting for a token")
	token, keep, err := j.token(ctx)
	if err != nil {
		return err
	}
	config, err := joining.KubeConfig(j.endpoint, token)
	if err != nil {
		return err
	}
	progress.Say("trying the token")
	if err := j.try(ctx, config); err != nil {
		return err
	}
	if err := j.putHere(ctx, config); err != nil {
		return err
	}
	return j.dropTokens(ctx, keep)
}

// hasRole tells whether the ClusterRole is there, as far as it may be looked up.
func (j *join) hasRole(ctx context.Context) error {
	_, err := j.remote.typed.RbacV1().ClusterRoles().Get(ctx, j.Role, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return nil
	}
	var names []string
	if list, err := j.remote.typed.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{}); err == nil {
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	}
	if meant := near.Near(j.Role, names); len(meant) > 0 {
		return fmt.Errorf("%s has no ClusterRole %s; did you mean %s?", j.remote.name, j.Role, strings.Join(meant, " or "))
	}
	return fmt.Errorf("%s has no ClusterRole %s", j.remote.name, j.Role)
}

// put makes an object, or makes it as it should be. Namespaces are left as they are,
// and rights that cannot be changed are made anew.
func (j *join) put(ctx context.Context, on *side, object *unstructured.Unstructured) error {
	resource := on.of(object)
	live, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return j.cannot("read", object, on, err)
	}
	there := err == nil
	switch {
	case there && object.GetKind() == "Namespace":
		return nil
	case there && object.GetKind() != v1alpha1.RemoteClusterKind && !joining.IsJoined(live):
		return fmt.Errorf("there is a %s on %s that was made in another way: delete it, or choose another name", nameOfObject(object), on.name)
	case there && object.GetKind() == "ClusterRoleBinding":
		was, _, _ := unstructured.NestedString(live.Object, "roleRef", "name")
		if role, _, _ := unstructured.NestedString(object.Object, "roleRef", "name"); role != was {
			if err := resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{}); err != nil {
				return j.cannot("delete", object, on, err)
			}
		}
	}
	if _, err := resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: console.FieldManager, Force: true}); err != nil {
		return j.cannot("make", object, on, err)
	}
	if !there {
		j.made = append(j.made, nameOfObject(object)+" on "+on.name)
	}
	return nil
}

func (j *join) cannot(verb string, object *unstructured.Unstructured, on *side, err error) error {
	if console.Forbidden(err) {
		return fmt.Errorf("you may not %s %s on %s: %w", verb, nameOfObject(object), on.name, err)
	}
	return fmt.Errorf("cannot %s %s on %s: %w", verb, nameOfObject(object), on.name, err)
}

// token returns a token of the account, and the name of the Secret that holds it;
// empty where it has none.
func (j *join) token(ctx context.Context) (token, secret string, err error) {
	if j.duration > 0 {
		seconds := int64(j.duration / time.Second)
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
		answer, err := j.remote.typed.CoreV1().ServiceAccounts(j.AccountNamespace).CreateToken(ctx, j.Account(), request, metav1.CreateOptions{})
		if err != nil {
			return "", "", fmt.Errorf("%s gives no token: %w", j.remote.name, err)
		}
		if got := answer.Status.ExpirationTimestamp.Sub(j.Now()); got < j.duration/2 {
			j.Paragraph(
				j.ErrOut,
				"kubectl strata: the token ends already at %s: %s allows no longer ones",
				answer.Status.ExpirationTimestamp.UTC().Format(time.RFC3339),
				j.remote.name,
			)
		}
		return answer.Status.Token, "", nil
	}
	object := j.TokenSecret(rand.String(5))
	if _, err := j.remote.of(object).Create(ctx, object, metav1.CreateOptions{FieldManager: console.FieldManager}); err != nil {
		return "", "", j.cannot("make", object, j.remote, err)
	}
	j.made = append(j.made, nameOfObject(object)+" on "+j.remote.name)
	err = wait.PollUntilContextTimeout(ctx, tokenAgain, min(tokenPatience, j.timeout), true, func(context.Context) (bool, error) {
		live, err := j.remote.typed.CoreV1().Secrets(j.AccountNamespace).Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, j.cannot("read", object, j.remote, err)
		}
		token = string(live.Data["token"])
		return token != "", nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = fmt.Errorf(
			"nobody has put a token into %s within %s; --token-duration asks for one in another way",
			nameOfObject(object),
			min(tokenPatience, j.timeout),
		)
	}
	return token, object.GetName(), err
}

// try asks the other cluster with the new kubeconfig whether its token counts, and
// who it is.
func (j *join) try(ctx context.Context, config []byte) error {
	made, err := clientcmd.RESTConfigFromKubeConfig(config)
	if err != nil {
		return fmt.Errorf("cannot use the new kubeconfig: %w", err)
	}
	if j.address != "" {
		// That address may be one that the management cluster alone reaches.
		made.Host = j.remote.config.Host
	}
	as, err := newSide("the other cluster", made)
	if err != nil {
		return err
	}
	denied := "it was not answered in time"
	// What has been made a moment ago may not be known everywhere.
	err = wait.PollUntilContextTimeout(ctx, tokenAgain, min(tokenPatience, j.timeout), true, func(context.Context) (bool, error) {
		if _, err := as.typed.Discovery().ServerVersion(); err != nil {
			denied = err.Error()
			return false, nil
		}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "namespaces"},
		}}
		answer, err := as.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		switch {
		case err != nil:
			denied = err.Error()
			return false, nil
		case j.Role == joining.Administrator && !answer.Status.Allowed:
			denied = "the account has no rights"
			return false, nil
		}
		return true, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("the new token does not work: %s", denied)
	}
	return err
}

// putHere makes what the management cluster gets.
func (j *join) putHere(ctx context.Context, config []byte) error {
	secret, cluster := j.Here(config)
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(j.Namespace)
	for _, object := range []*unstructured.Unstructured{namespace, secret, cluster} {
		err := j.put(ctx, j.management, object)
		var status apierrors.APIStatus
		if object.GetKind() == "Namespace" && errors.As(err, &status) && console.Forbidden(err) {
			continue // who may not make it may still have it
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropTokens deletes the Secrets with tokens of the account but for one. One that
// stays does no harm but that it counts, which is said.
func (j *join) dropTokens(ctx context.Context, keep string) error {
	secrets := j.remote.typed.CoreV1().Secrets(j.AccountNamespace)
	list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: joining.JoinedLabel + "=" + j.Account()})
	if err != nil {
		return fmt.Errorf("the new token is in use, but earlier ones cannot be looked up on %s: %w", j.remote.name, err)
	}
	for i := range list.Items {
		// Where both clusters are one, the kubeconfig itself may be among them.
		if list.Items[i].Name == keep || list.Items[i].Type != corev1.SecretTypeServiceAccountToken {
			continue
		}
		if err := secrets.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf(
				"the new token is in use, but the earlier one in Secret %s/%s cannot be deleted on %s: %w",
				j.AccountNamespace,
				list.Items[i].Name,
				j.remote.name,
				err,
			)
		}
	}
	return nil
}

// awaitReady waits until the RemoteCluster is ready, and says what it says until
// then.
func (j *join) awaitReady(ctx context.Context) error {
	progress := j.Progress()
	defer progress.Done()
	said := "it has not been looked at yet"
	version := ""
	err := wait.PollUntilContextTimeout(ctx, readyAgain, j.timeout, true, func(context.Context) (bool, error) {
		live, err := j.management.dynamic.Resource(snapshot.Clusters.GroupVersionResource).Namespace(j.Namespace).Get(ctx, j.Name, metav1.GetOptions{})
		if err != nil {
			return false, j.Explain(err, snapshot.Clusters)
		}
		cluster := &v1alpha1.RemoteCluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, cluster); err != nil {
			return false, fmt.Errorf("cannot understand RemoteCluster %s/%s: %w", j.Namespace, j.Name, err)
		}
		ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil {
			return false, nil
		}
		said, version = ready.Message, cluster.Status.Version
		progress.Say("%s", said)
		return ready.Status == metav1.ConditionTrue && cluster.Status.ObservedGeneration == cluster.Generation, nil
	})
	progress.Done()
	switch {
	case wait.Interrupted(err) && ctx.Err() == nil:
		j.Paragraph(j.Out, "RemoteCluster %s/%s is made, but is not ready within %s: %s", j.Namespace, j.Name, j.timeout, said)
		return console.ErrBlocked
	case err != nil:
		return err
	}
	j.Paragraph(j.Out, "RemoteCluster %s/%s is ready: Kubernetes %s at %s", j.Namespace, j.Name, version, j.endpoint.Server)
	return nil
}
