// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/round"
)

// keeper looks after one RemoteCluster, as the controller's reconciler does.
type keeper struct {
	*hands
	name types.NamespacedName
}

// keep is one look at a RemoteCluster.
func (p *process) keep(name string, pause func()) (time.Duration, error) {
	cached := p.cachedRemote(name)
	if cached == nil {
		p.disconnect(name)
		return 0, nil
	}
	cluster := cached.DeepCopy()
	k := &keeper{hands: &hands{process: p, pause: pause}, name: types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}}
	if cluster.DeletionTimestamp == nil && !slices.Contains(cluster.Finalizers, v1alpha1.ClusterFinalizer) {
		if err := k.writeRemote(cluster, "gets the finalizer", func(c *v1alpha1.RemoteCluster) {
			c.Finalizers = append(c.Finalizers, v1alpha1.ClusterFinalizer)
		}); err != nil {
			return 0, ignoreNotFound(err)
		}
	}
	o := k.observe(cluster)
	p.looked[name] = true
	if cluster.DeletionTimestamp != nil {
		o.Left = clusters.Left(cluster, p.cachedLayers(), k.through(), namespace)
		if len(o.Left) == 0 {
			return 0, k.finalize(o)
		}
		p.people.covered.saw(remoteWaits)
	}
	if err := k.keepCopy(o); err != nil {
		return 0, err
	}
	if c := p.connections[name]; c != nil && clusters.Judge(o).Claim {
		if err := k.write("claims "+name, func() error {
			k.judgeIdentity(name, c.store)
			c.store.hub = o.Hub
			return nil
		}); err != nil {
			return 0, err
		}
		c.identity.Hub = o.Hub
		return round.LookAgain, nil
	}
	return k.carryOut(o)
}

// keepCopy lets a copy go that somebody has deleted, or has it follow the Secret
// until it may.
func (k *keeper) keepCopy(o clusters.Observation) error {
	if o.Live == nil || o.Live.GetDeletionTimestamp() == nil {
		return nil
	}
	covered := k.people.covered
	if clusters.LetsCopyGo(o, k.through()) {
		covered.saw(copyMadeAnew)
		return k.takeFinalizer(o.Live)
	}
	covered.saw(copyKept)
	refreshed := clusters.Refreshed(o)
	if refreshed == nil {
		return nil
	}
	covered.saw(copyRefreshed)
	k.judgeCopy(refreshed)
	return k.changeCopy(o.Live, "refreshes", func(r *unstructured.Unstructured) {
		r.Object["data"] = refreshed.Object["data"]
		r.SetAnnotations(refreshed.GetAnnotations())
	})
}

// disconnect lets go of a cluster that is gone.
func (p *process) disconnect(name string) {
	delete(p.probes, name)
	delete(p.connections, name)
	delete(p.recorded, name)
	delete(p.mistaken, name)
	delete(p.looked, name)
}

// through returns the releases that install on the cluster.
func (k *keeper) through() []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for _, name := range sortedKeys(k.caches[kindRelease].objects) {
		all = append(all, *k.cachedRelease(name))
	}
	return clusters.Through(k.name, all)
}

// digestKey is that of the simulated installation.
var digestKey = func() digests.Key {
	key, err := digests.NewKey([]byte("0123456789abcdefghijklmnopqrstuv"))
	if err != nil {
		panic(err)
	}
	return key
}()

func (k *keeper) observe(cluster *v1alpha1.RemoteCluster) clusters.Observation {
	name := k.name.String()
	o := clusters.Observation{Now: k.Now(), Cluster: cluster, Live: k.cachedRelease(copyOfKubeConfig(name)), Key: digestKey}
	version := ""
	if o.Live != nil {
		version = o.Live.GetResourceVersion()
	}
	o.Stale = k.writes.IsStale(clusters.CopyOf(cluster), version, o.Now)
	o.Source.Known = true
	kubeconfig := ""
	if secret := k.cachedRelease(sourceOfKubeConfig(name)); secret != nil {
		o.Source.Found, kubeconfig = true, kubeconfigIn(secret)
	} else if o.CopyVerified() {
		kubeconfig = kubeconfigIn(o.Live)
	} else {
		o.Unverified = o.Live != nil
	}
	for _, layer := range k.cachedLayers() {
		if placement.Of(&layer, namespace) == k.name {
			o.Layers.Total++
			if meta.IsStatusConditionTrue(layer.Status.Conditions, v1alpha1.DeployedCondition) {
				o.Layers.Deployed++
			}
		}
	}
	if said := clusters.RecordedOn(o.Live); said != "" {
		k.recorded[name] = said
	}
	o.Hub, o.Recorded = k.cluster.identity, k.recorded[name]
	if kubeconfig == "" {
		delete(k.probes, name)
		return o
	}
	o.Access = &clusters.Access{KubeConfig: []byte(kubeconfig), Digest: kubeconfig, Endpoint: "https://" + name}
	before := k.connections[name]
	connected := k.connect(name, kubeconfig)
	o.Answer = k.answerOf(name, connected, clusters.IntervalOf(cluster), cluster.Status)
	connected.err = o.Answer.Err
	o.Identity = connected.identity
	verdict, wasOpen, was := clusters.Judge(o), connected.open, k.mistaken[name]
	connected.open = verdict.Open
	delete(k.mistaken, name)
	if verdict.Stops {
		k.mistaken[name] = verdict.Message
		k.people.covered.saw(clusterMistaken)
	}
	if before != connected || wasOpen != connected.open || was != k.mistaken[name] {
		k.enqueue(k.layersOn(name)...)
	}
	return o
}

// carryOut does what a decision says.
func (k *keeper) carryOut(o clusters.Observation) (time.Duration, error) {
	decision := clusters.Decide(o)
	status := decision.Status
	var results []dependents.Result
	if decision.Plan.Writes() {
		if len(o.Cluster.Status.Resources) != len(status.Resources) {
			if err := k.persist(o.Cluster, status); err != nil {
				return 0, err
			}
		}
		for _, action := range decision.Plan.Actions {
			results = append(results, k.writeCopy(action))
		}
	}
	k.writes.Wrote(results, k.Now())
	status.Resources = layers.Resources(dependents.Record(decision.Plan.Inventory, results))
	if err := k.persist(o.Cluster, status); err != nil {
		return 0, err
	}
	for _, result := range results {
		if result.Err != nil {
			return 0, result.Err
		}
	}
	if len(results) > 0 {
		return round.LookAgain, nil
	}
	return clusters.Again(o.Cluster, decision, k.Now()), nil
}

// writeCopy writes Strata's own copy of the kubeconfig.
func (k *keeper) writeCopy(action dependents.Action) dependents.Result {
	if action.Verb != dependents.VerbWrite {
		panic("unknown verb for a copy: " + action.Verb)
	}
	result := dependents.Result{Action: action}
	key := keyOf(action.ID)
	var live *unstructured.Unstructured
	err := k.write(key, func() error {
		wanted := action.Wanted.Manifest()
		k.judgeCopy(wanted)
		live = k.cluster.release(key)
		switch {
		case live == nil:
			live = k.cluster.createRelease(wanted.DeepCopy())
		case live.GetDeletionTimestamp() != nil:
			live = nil
			return nil
		default:
			applied := live.DeepCopy()
			applyTo(applied, wanted)
			applied.SetFinalizers(wanted.GetFinalizers())
			if sameValue(applied.Object, live.Object) {
				return nil
			}
			live = k.cluster.changeRelease(key, func(r *unstructured.Unstructured) { r.Object = applied.Object })
		}
		k.note("%s: writes its copy: %s", k.name, kubeconfigIn(live))
		return nil
	})
	switch {
	case err != nil:
		result.Err = err
	case live == nil:
		result.Outdated = true
	default:
		result.UID, result.ResourceVersion = live.GetUID(), live.GetResourceVersion()
		result.Changed = action.ResourceVersion != result.ResourceVersion
	}
	return result
}

// takeFinalizer takes Strata's finalizer off a copy.
func (k *keeper) takeFinalizer(copied *unstructured.Unstructured) error {
	return k.changeCopy(copied, "lets go", func(r *unstructured.Unstructured) { r.SetFinalizers(nil) })
}

// changeCopy changes a copy as it was read.
func (k *keeper) changeCopy(copied *unstructured.Unstructured, what string, do func(*unstructured.Unstructured)) error {
	key := copyOfKubeConfig(k.name.String())
	return ignoreNotFound(k.write(key, func() error {
		live := k.cluster.release(key)
		if live == nil {
			return notFound(secretResource, key)
		}
		if live.GetResourceVersion() != copied.GetResourceVersion() {
			return conflict(secretResource, key)
		}
		k.note("%s %s its copy", k.name, what)
		k.cluster.changeRelease(key, do)
		return nil
	}))
}

// finalize removes the copy, and lets the RemoteCluster go.
func (k *keeper) finalize(o clusters.Observation) error {
	key := copyOfKubeConfig(k.name.String())
	if o.Live != nil && o.Live.GetLabels()[v1alpha1.ClusterLabel] == o.Cluster.Name {
		if err := k.takeFinalizer(o.Live); err != nil {
			return err
		}
		if err := k.write(key, func() error {
			if live := k.cluster.release(key); live != nil && live.GetUID() == o.Live.GetUID() {
				k.cluster.put(kindPlain, key, nil)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if err := k.writeRemote(o.Cluster, "goes", func(c *v1alpha1.RemoteCluster) {
		k.judgeEnd(c)
		c.Finalizers = nil
	}); err != nil {
		return ignoreNotFound(err)
	}
	k.disconnect(k.name.String())
	return nil
}

// persist writes a status where it differs.
func (k *keeper) persist(cluster *v1alpha1.RemoteCluster, status v1alpha1.RemoteClusterStatus) error {
	if equality.Semantic.DeepEqual(cluster.Status, status) {
		return nil
	}
	ready := conditionIn(status.Conditions, v1alpha1.ReadyCondition)
	return ignoreNotFound(k.writeRemote(cluster, "is "+ready.Reason+": "+ready.Message, func(c *v1alpha1.RemoteCluster) {
		c.Status = *status.DeepCopy()
	}))
}

// writeRemote changes a RemoteCluster as it was read, which is what was written
// afterwards.
func (k *keeper) writeRemote(read *v1alpha1.RemoteCluster, what string, do func(*v1alpha1.RemoteCluster)) error {
	name := k.name.String()
	return k.write(what, func() error {
		stored := k.cluster.remote(name)
		switch {
		case stored == nil:
			return notFound(remoteResource, name)
		case stored.ResourceVersion != read.ResourceVersion || stored.UID != read.UID:
			return conflict(remoteResource, name)
		}
		written := stored.DeepCopy()
		do(written)
		k.cluster.putRemote(written)
		k.note("%s %s", name, what)
		*read = *written.DeepCopy()
		return nil
	})
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
