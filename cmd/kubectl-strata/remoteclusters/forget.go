// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package remoteclusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/joining"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/clusters"
)

const clusterForgetLong = `Delete a RemoteCluster, and the Secret that kubectl strata clusters add has made
for it. With --from-context also the account, its rights and its tokens on the
other cluster are deleted; the namespace there stays.

It is refused while a layer has something there, and says which do. With --force
what is there is given up: the RemoteCluster gets the annotation
` + v1alpha1.AbandonAnnotation + `, releases are deleted without being uninstalled, and layers wait
for a RemoteCluster of that name. That is for clusters that are gone.

Exit codes:
  0  it is forgotten, or nothing stands in the way of that (--plan)
  1  it cannot be done, or does not exist
  2  layers or releases are there, or it is not gone in time`

const clusterForgetExamples = `  # What stands in the way
  kubectl strata clusters forget fleet/prod-eu --plan

  # With the account on the other cluster
  kubectl strata clusters forget fleet/prod-eu --from-context prod-eu

  # The cluster is gone for good
  kubectl strata clusters forget fleet/prod-eu --force`

func newClusterForget(c *console.Console) *cobra.Command {
	j := &join{Console: c}
	var plan, force bool
	command := &cobra.Command{
		Use: "forget [NAMESPACE/]NAME", Short: "Delete a RemoteCluster on which no layer has anything", Long: clusterForgetLong, Example: clusterForgetExamples,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return j.forget(command.Context(), args[0], plan, force)
		},
	}
	j.addFlags(command)
	command.Flags().BoolVar(&plan, "plan", false, "say what would be deleted and what stands in the way, and delete nothing")
	command.Flags().BoolVar(&force, "force", false, "give up what is on the cluster")
	return command
}

func (j *join) forget(ctx context.Context, name string, plan, force bool) error {
	if err := j.connect(ctx, name); err != nil {
		return err
	}
	s, err := j.Cluster.ReadIn(ctx, metav1.NamespaceAll, snapshot.Layers, snapshot.Clusters, snapshot.Releases, snapshot.Claims)
	if err == nil {
		err = errors.Join(s.Unread[snapshot.Clusters], s.Unread[snapshot.Layers])
	}
	if err != nil {
		return j.Explain(err, snapshot.Clusters)
	}
	cluster := s.Cluster(types.NamespacedName{Namespace: j.Namespace, Name: j.Name})
	if cluster == nil {
		return j.nothingToForget(ctx, s, plan)
	}
	secret, err := j.ownSecret(ctx, cluster)
	if err != nil {
		return err
	}
	left := j.left(s, cluster)
	if len(left) > 0 && (plan || !force) {
		j.Paragraph(j.Out, "RemoteCluster %s/%s is not deleted while something is there:", j.Namespace, j.Name)
		for _, one := range left {
			j.Paragraph(j.Out, "- %s", one)
		}
		if unread := s.Unread[snapshot.Releases]; unread != nil {
			j.Paragraph(j.Out, "HelmReleases that are installed there may not be listed, and may be more")
		}
		j.Paragraph(
			j.Out,
			"delete those layers, or move them to another cluster, and those claims; kubectl strata deprovision --cluster %s/%s --plan says in which order they would go",
			j.Namespace,
			j.Name,
		)
		return console.ErrBlocked
	}
	if plan {
		j.Paragraph(j.Out, "would delete RemoteCluster %s/%s: no layer has anything there", j.Namespace, j.Name)
		j.sayPlan(secret)
		return nil
	}
	return j.delete(ctx, cluster, secret, force && len(left) > 0)
}

// left names what stands in the way, as the controller does.
func (j *join) left(s *snapshot.Snapshot, cluster *v1alpha1.RemoteCluster) []string {
	layers := make([]v1alpha1.AddonsLayer, 0, len(s.Layers))
	for _, layer := range s.Layers {
		layers = append(layers, *layer)
	}
	var releases []unstructured.Unstructured
	for _, release := range s.Of(snapshot.Releases) {
		if release.GetNamespace() == cluster.Namespace {
			releases = append(releases, *release)
		}
	}
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	return append(clusters.Left(cluster, layers, clusters.Through(name, releases), j.Namespace), clusters.ClaimsLeft(cluster, s.Claims)...)
}

// nothingToForget removes what is left of a cluster that was added by halves: the
// Secret, and what it has on the other cluster.
func (j *join) nothingToForget(ctx context.Context, s *snapshot.Snapshot, plan bool) error {
	secret, err := j.ownSecret(ctx, nil)
	if err != nil {
		return err
	}
	there := false
	if j.remote != nil {
		account, err := j.remote.typed.CoreV1().ServiceAccounts(j.AccountNamespace).Get(ctx, j.Account(), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return j.cannot("read", j.There()[1], j.remote, err)
		}
		there = err == nil && joining.IsJoined(account)
	}
	if secret == nil && !there {
		var names []string
		for _, cluster := range s.Clusters {
			names = append(names, cluster.Namespace+"/"+cluster.Name)
		}
		return console.NoSuch(snapshot.Clusters, j.Namespace+"/"+j.Name, names)
	}
	j.Paragraph(j.Out, "there is no RemoteCluster %s/%s any more, or not yet", j.Namespace, j.Name)
	if plan {
		j.sayPlan(secret)
		return nil
	}
	if err := j.deleteSecret(ctx, secret); err != nil || !there {
		return err
	}
	return j.deleteThere(ctx)
}

// ownSecret returns the Secret that was made when the cluster was added; nil where
// there is none, or it was made in another way.
func (j *join) ownSecret(ctx context.Context, cluster *v1alpha1.RemoteCluster) (*unstructured.Unstructured, error) {
	secret, _ := j.Here(nil)
	if cluster != nil && (cluster.Spec.KubeConfig.ClusterRef != nil || cluster.Spec.KubeConfig.SecretRef.Name != secret.GetName()) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	live, err := j.management.of(secret).Get(ctx, secret.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none, which is no error
	case err != nil:
		return nil, j.cannot("read", secret, j.management, err)
	case !joining.IsJoined(live):
		return nil, nil //nolint:nilnil // it is somebody else's
	}
	j.Former = live.GetLabels()[joining.JoinedLabel] == j.FormerAccount()
	return live, nil
}

func (j *join) sayPlan(secret *unstructured.Unstructured) {
	if secret != nil {
		j.Paragraph(j.Out, "would delete %s", nameOfObject(secret))
	} else {
		j.Paragraph(j.Out, "would leave its Secret, if there is one: it was made in another way")
	}
	if j.remote == nil {
		j.Paragraph(j.Out, "would leave the account on the cluster: --from-context says how to get there")
		return
	}
	for _, object := range j.There()[1:] {
		j.Paragraph(j.Out, "would delete %s on %s", nameOfObject(object), j.remote.name)
	}
}

func (j *join) delete(ctx context.Context, cluster *v1alpha1.RemoteCluster, secret *unstructured.Unstructured, abandon bool) error {
	resource := j.management.dynamic.Resource(snapshot.Clusters.GroupVersionResource).Namespace(j.Namespace)
	if abandon {
		change := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.AbandonAnnotation)
		if _, err := resource.Patch(ctx, j.Name, types.MergePatchType, change, metav1.PatchOptions{FieldManager: console.ActManager}); err != nil {
			return j.cannotDelete(err)
		}
		j.Paragraph(j.Out, "what is on RemoteCluster %s/%s is given up", j.Namespace, j.Name)
	}
	uid := cluster.UID
	options := metav1.DeleteOptions{}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	if err := resource.Delete(ctx, j.Name, options); err != nil && !apierrors.IsNotFound(err) {
		return j.cannotDelete(err)
	}
	if err := j.awaitGone(ctx); err != nil {
		return err
	}
	j.Paragraph(j.Out, "RemoteCluster %s/%s is deleted", j.Namespace, j.Name)
	if err := j.deleteSecret(ctx, secret); err != nil {
		return err
	}
	if j.remote == nil {
		if secret != nil && !abandon {
			j.Paragraph(j.Out, "the account %s/%s stays on the cluster: --from-context removes it", j.AccountNamespace, j.Account())
		}
		return nil
	}
	return j.deleteThere(ctx)
}

func (j *join) cannotDelete(err error) error {
	if console.Forbidden(err) {
		return fmt.Errorf("you may not delete RemoteCluster %s/%s; ask for the rights to patch and delete remoteclusters.kraan.io: %w", j.Namespace, j.Name, err)
	}
	return j.Explain(err, snapshot.Clusters)
}

func (j *join) deleteSecret(ctx context.Context, secret *unstructured.Unstructured) error {
	if secret == nil {
		return nil
	}
	if err := j.management.of(secret).Delete(ctx, secret.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return j.cannot("delete", secret, j.management, err)
	}
	j.Paragraph(j.Out, "%s is deleted", nameOfObject(secret))
	return nil
}

// awaitGone waits until the RemoteCluster is gone.
func (j *join) awaitGone(ctx context.Context) error {
	if !j.wait {
		return nil
	}
	progress := j.Progress()
	defer progress.Done()
	said := "it is being deleted"
	err := wait.PollUntilContextTimeout(ctx, readyAgain, j.timeout, true, func(context.Context) (bool, error) {
		live, err := j.management.dynamic.Resource(snapshot.Clusters.GroupVersionResource).Namespace(j.Namespace).Get(ctx, j.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, j.Explain(err, snapshot.Clusters)
		}
		cluster := &v1alpha1.RemoteCluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, cluster); err == nil {
			said = summary.OfCluster(cluster, j.Now()).Why
		}
		progress.Say("%s", said)
		return false, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		progress.Done()
		j.Paragraph(j.Out, "RemoteCluster %s/%s is not gone within %s: %s", j.Namespace, j.Name, j.timeout, said)
		return console.ErrBlocked
	}
	return err
}

// deleteThere takes the account off the other cluster: rights, tokens, and itself.
func (j *join) deleteThere(ctx context.Context) error {
	if err := j.dropTokens(ctx, ""); err != nil {
		return fmt.Errorf("the account is left on %s: %w", j.remote.name, err)
	}
	there := j.There()[1:]
	slices.Reverse(there)
	var gone []string
	for _, object := range there {
		live, err := j.remote.of(object).Get(ctx, object.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && !joining.IsJoined(live) {
			continue
		}
		if err == nil {
			err = j.remote.of(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return j.cannot("delete", object, j.remote, err)
		}
		gone = append(gone, nameOfObject(object))
	}
	if len(gone) == 0 {
		j.Paragraph(j.Out, "%s has no account for it", j.remote.name)
		return nil
	}
	j.Paragraph(j.Out, "deleted on %s: %s", j.remote.name, strings.Join(gone, ", "))
	return nil
}
