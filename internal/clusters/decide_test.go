// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// The clusters of the tests: one, another one, the one that Strata runs in, and that
// of another Strata.
const (
	firstUID  = "11111111-aaaa"
	secondUID = "22222222-bbbb"
	hubUID    = "99999999-hub"
	otherHub  = "88888888-hub"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// keyOf returns a key of digests that begins with a byte.
func keyOf(first byte) digests.Key {
	data := make([]byte, 32)
	for i := range data {
		data[i] = first + byte(i)
	}
	key, err := digests.NewKey(data)
	if err != nil {
		panic(err)
	}
	return key
}

// observation returns what is seen of a cluster that is well, changed as asked.
func observation(changes ...func(*Observation)) Observation {
	access := &Access{KubeConfig: []byte("token: secret "), Digest: "one", Endpoint: "https://api.example.com:6443"}
	cluster := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", Generation: 1}}
	cluster.Spec.KubeConfig.SecretRef.Name = "prod"
	o := Observation{
		Now: now, Cluster: cluster, Source: Source{Known: true, Found: true}, Access: access,
		Answer:   Answer{At: now, Version: "v1.36.3", LastSeen: now},
		Identity: Identity{UID: firstUID, Hub: hubUID, Version: "3"}, Recorded: firstUID, Hub: hubUID, Key: keyOf(7),
	}
	wanted := o.wantedCopy(firstUID)
	copied := wanted.Manifest().DeepCopy()
	copied.SetUID("uid")
	copied.SetResourceVersion("7")
	o.Live = copied
	cluster.Status.Resources = layers.Resources([]dependents.Entry{{
		ID: CopyOf(cluster), Digest: o.wantedCopy(firstUID).Digest, UID: "uid", ResourceVersion: "7", Status: objects.StatusReady, Since: now, Origin: "spec.kubeConfig",
	}})
	for _, change := range changes {
		change(&o)
	}
	return o
}

// behind has the Secret of a cluster lie on another one.
func behind(c *v1alpha1.RemoteCluster) {
	c.Spec.KubeConfig.ClusterRef, c.Spec.KubeConfig.SecretRef.Namespace = &v1alpha1.LocalClusterReference{Name: "outer"}, "tenants"
}

// A cluster with an old word is Stalled, and nothing that it has is written or deleted.
func TestClusterWithAnOldWord(t *testing.T) {
	d := Decide(observation(func(o *Observation) {
		o.Cluster.Spec.OldVia = &v1alpha1.OldViaReference{Name: "outer"}
		o.Source, o.Access = Source{Err: errors.New("not read")}, nil
	}))
	ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ReadyCondition)
	if ready.Reason != v1alpha1.ReasonInvalidSpec || !strings.HasPrefix(ready.Message, "spec.via is now kubeConfig.clusterRef") ||
		!meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.StalledCondition) || len(d.Plan.Actions) > 0 {
		t.Errorf("%+v, with %v", d.Status.Conditions, d.Plan.Actions)
	}
}

func TestDecide(t *testing.T) {
	noSecret := func(o *Observation) { o.Source, o.Access, o.Live = Source{Known: true}, nil, nil }
	unverified := func(o *Observation) { o.Access, o.Unverified, o.Identity, o.Answer = nil, true, Identity{}, Answer{} }
	unreachable := func(o *Observation) { o.Answer = Answer{At: now, Err: errors.New("connection refused"), LastSeen: now} }
	for name, test := range map[string]struct {
		o       Observation
		status  metav1.ConditionStatus
		reason  string
		message string
		writes  bool
	}{
		"well": {observation(), metav1.ConditionTrue, v1alpha1.ReasonReachable, "the API server at https://api.example.com:6443 answers, Kubernetes v1.36.3", false},
		"no Secret yet": {
			observation(noSecret), metav1.ConditionUnknown, v1alpha1.ReasonPending, "waits for Secret fleet/prod, which does not exist", false,
		},
		"a Secret that is empty yet": {
			observation(noSecret, func(o *Observation) {
				o.Source = Source{Known: true, Found: true, Empty: true, Err: errors.New("is empty")}
			}),
			metav1.ConditionUnknown, v1alpha1.ReasonPending, "waits for Secret fleet/prod, which is empty yet", false,
		},
		"a Secret that was emptied": {
			observation(func(o *Observation) {
				o.Source = Source{Known: true, Found: true, Empty: true, Err: errors.New("is empty")}
			}),
			metav1.ConditionFalse, v1alpha1.ReasonInvalidKubeConfig, "Secret fleet/prod is empty", false,
		},
		"another kubeconfig, before it is known where it leads": {
			observation(func(o *Observation) {
				o.Access = &Access{KubeConfig: []byte("token: other"), Digest: "two", Endpoint: "https://other.example.com:6443"}
				o.Identity = Identity{}
			}),
			metav1.ConditionUnknown, v1alpha1.ReasonPending, "the cluster has not said yet which one it is", false,
		},
		"the same kubeconfig after a restart": {
			observation(func(o *Observation) { o.Identity = Identity{} }),
			metav1.ConditionTrue, v1alpha1.ReasonReachable, "the API server at https://api.example.com:6443 answers", false,
		},
		"a Secret behind a cluster": {
			observation(noSecret, func(o *Observation) { behind(o.Cluster) }),
			metav1.ConditionUnknown, v1alpha1.ReasonPending, "waits for Secret tenants/prod on RemoteCluster outer, which does not exist", false,
		},
		"the cluster before it is not connected": {
			observation(noSecret, func(o *Observation) { o.Source, o.Via = Source{}, "waits for RemoteCluster fleet/outer" }),
			metav1.ConditionUnknown, v1alpha1.ReasonPending, "waits for RemoteCluster fleet/outer", false,
		},
		"the Secret may not be read": {
			observation(noSecret, func(o *Observation) {
				denied := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "prod", errors.New("no"))
				o.Source = Source{Err: fmt.Errorf("cannot read Secret fleet/prod: %w", denied)}
			}),
			metav1.ConditionFalse, v1alpha1.ReasonInvalidKubeConfig, `cannot read Secret fleet/prod: secrets "prod" is forbidden: no; remoteClusters.enabled`, false,
		},
		"a kubeconfig that is wrong": {
			observation(func(o *Observation) { o.Source.Err = errors.New("user.exec: is refused") }),
			metav1.ConditionFalse, v1alpha1.ReasonInvalidKubeConfig, "Secret fleet/prod user.exec: is refused", false,
		},
		"the Secret has gone": {
			observation(func(o *Observation) { o.Source.Found = false }),
			metav1.ConditionFalse, v1alpha1.ReasonCredentialsSourceGone, "Secret fleet/prod has gone; the copy of it is used", false,
		},
		"the Secret has gone, and the copy is not Strata's": {
			observation(unverified, func(o *Observation) { o.Source.Found = false }),
			metav1.ConditionFalse, v1alpha1.ReasonCopyUnverified, "Secret fleet/prod has gone, and the copy of it, Secret fleet/strata-kubeconfig-prod, is not used", false,
		},
		"a kubeconfig that is wrong, and a copy that is not Strata's": {
			observation(unverified, func(o *Observation) { o.Source.Err = errors.New("user.exec: is refused") }),
			metav1.ConditionFalse, v1alpha1.ReasonCopyUnverified, "Secret fleet/prod user.exec: is refused, and the copy of it, Secret fleet/strata-kubeconfig-prod, is not used", false,
		},
		"the cluster before it is not connected, and the copy is not Strata's": {
			observation(unverified, func(o *Observation) { o.Source, o.Via = Source{}, "waits for RemoteCluster fleet/outer" }),
			metav1.ConditionUnknown, v1alpha1.ReasonPending, "waits for RemoteCluster fleet/outer", false,
		},
		"a copy without a MAC": {
			observation(func(o *Observation) { o.Live = without(o.Live, v1alpha1.CopyMACAnnotation) }),
			metav1.ConditionUnknown, v1alpha1.ReasonPending, "Secret fleet/strata-kubeconfig-prod has yet to be applied", true,
		},
		"another key": {
			observation(func(o *Observation) { o.Key = keyOf(9) }),
			metav1.ConditionUnknown, v1alpha1.ReasonPending, "Secret fleet/strata-kubeconfig-prod has yet to be applied", true,
		},
		"no answer":   {observation(unreachable), metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "the cluster cannot be reached: connection refused", false},
		"not asked":   {observation(func(o *Observation) { o.Answer = Answer{} }), metav1.ConditionUnknown, v1alpha1.ReasonPending, "the cluster has not been asked yet", false},
		"no copy yet": {observation(func(o *Observation) { o.Live = nil }), metav1.ConditionUnknown, v1alpha1.ReasonPending, "Secret fleet/strata-kubeconfig-prod has yet to be applied", true},
		"other credentials": {
			observation(func(o *Observation) {
				o.Access = &Access{KubeConfig: []byte("token: other"), Digest: "two", Endpoint: o.Access.Endpoint}
			}),
			metav1.ConditionUnknown, v1alpha1.ReasonPending, "Secret fleet/strata-kubeconfig-prod has yet to be applied", true,
		},
		"layers are left": {
			observation(func(o *Observation) { o.Left = []string{"AddonsLayer base"} }),
			metav1.ConditionFalse, v1alpha1.ReasonLayersLeft, "is not deleted while something is on the cluster: AddonsLayer base;", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Decide(test.o)
			ready := meta.FindStatusCondition(decision.Status.Conditions, v1alpha1.ReadyCondition)
			if ready == nil || ready.Status != test.status || ready.Reason != test.reason || !strings.Contains(ready.Message, test.message) {
				t.Errorf("Ready is %+v", ready)
			}
			if decision.Plan.Writes() != test.writes {
				t.Errorf("it does %v", decision.Plan.Actions)
			}
			if len(decision.Plan.Of(dependents.VerbDelete))+len(decision.Plan.Of(dependents.VerbMark)) > 0 {
				t.Errorf("it removes something: %v", decision.Plan.Actions)
			}
			for _, condition := range decision.Status.Conditions {
				if strings.Contains(condition.Message, "secret ") {
					t.Errorf("the condition quotes credentials: %+v", condition)
				}
			}
		})
	}
}

// A cluster that stays as it is has the same status each time.
func TestDecideSettles(t *testing.T) {
	o := observation()
	o.Cluster.Status = Decide(o).Status
	for range 3 {
		o.Now = o.Now.Add(time.Minute)
		o.Answer.At, o.Answer.LastSeen = o.Now, o.Now
		next := Decide(o).Status
		if got, want := next.LastSeen, o.Cluster.Status.LastSeen; !got.Equal(want) {
			t.Errorf("it was last seen at %v, and before at %v", got, want)
		}
		for i, condition := range next.Conditions {
			if condition != o.Cluster.Status.Conditions[i] {
				t.Errorf("a condition has changed: %+v", condition)
			}
		}
	}
}

func TestCredentialsThatEnd(t *testing.T) {
	for name, test := range map[string]struct {
		// life is how long they last in all; 0 where they do not say.
		life, in time.Duration
		status   metav1.ConditionStatus
		until    time.Duration
	}{
		"in a year":      {0, 365 * 24 * time.Hour, metav1.ConditionFalse, (365 - 14) * 24 * time.Hour},
		"in two weeks":   {0, 14 * 24 * time.Hour, metav1.ConditionTrue, 14 * 24 * time.Hour},
		"now":            {0, 0, metav1.ConditionTrue, 0},
		"long ago":       {0, -time.Hour, metav1.ConditionTrue, 0},
		"for a year":     {365 * 24 * time.Hour, 15 * 24 * time.Hour, metav1.ConditionFalse, 24 * time.Hour},
		"an hour's":      {time.Hour, 30 * time.Minute, metav1.ConditionFalse, 10 * time.Minute},
		"an hour's last": {time.Hour, 20 * time.Minute, metav1.ConditionTrue, 20 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Decide(observation(func(o *Observation) {
				o.Access.Expires = now.Add(test.in)
				if test.life > 0 {
					o.Access.Issued = o.Access.Expires.Add(-test.life)
				}
			}))
			condition := meta.FindStatusCondition(decision.Status.Conditions, v1alpha1.CredentialsExpiringCondition)
			if condition == nil || condition.Status != test.status {
				t.Errorf("the condition is %+v", condition)
			}
			var want time.Time
			if test.until > 0 {
				want = now.Add(test.until)
			}
			if !decision.Until.Equal(want) {
				t.Errorf("it is looked at again at %v, want %v", decision.Until, want)
			}
			if decision.Status.CredentialsExpire == nil {
				t.Error("it is not said when they end")
			}
		})
	}
	if found := meta.FindStatusCondition(Decide(observation()).Status.Conditions, v1alpha1.CredentialsExpiringCondition); found != nil {
		t.Errorf("credentials that do not end are said to: %+v", found)
	}
}

// A status that takes a changed copy for the one that was written has no effect: the
// copy is compared, and written again.
func TestForgedStatusHidesNoChangedCopy(t *testing.T) {
	forged := observation(func(o *Observation) {
		o.Live.Object["data"] = map[string]any{placement.KubeConfigKey: "aHR0cHM6Ly9lbHNld2hlcmUuZXhhbXBsZQ=="}
	})
	if plan := Decide(forged).Plan; len(plan.Of(dependents.VerbWrite)) != 1 {
		t.Errorf("the plan for a changed copy is %v", plan.Actions)
	}
	added := observation(func(o *Observation) { o.Live.Object["data"].(map[string]any)["kubeconfig"] = "YQ==" })
	if plan := Decide(added).Plan; len(plan.Of(dependents.VerbWrite)) != 1 {
		t.Errorf("the plan for a copy with another key is %v", plan.Actions)
	}
}

func TestCopyHasAFinalizerAndNothingElse(t *testing.T) {
	d := observation().wantedCopy(firstUID)
	if got := d.Manifest().GetFinalizers(); len(got) != 1 || got[0] != v1alpha1.KubeConfigFinalizer {
		t.Errorf("its finalizers are %v", got)
	}
	data, _, _ := unstructured.NestedStringMap(d.Manifest().Object, "data")
	if len(data) != 1 || data[placement.KubeConfigKey] == "" {
		t.Errorf("it has %d keys", len(data))
	}
}

func TestOnlyCounted(t *testing.T) {
	counted := func(total, deployed int32) v1alpha1.LayerCount {
		return v1alpha1.LayerCount{Total: total, Deployed: deployed}
	}
	last := Decide(observation(func(o *Observation) { o.Layers = counted(3, 1) })).Status
	for name, test := range map[string]struct {
		next func(*Observation)
		want bool
	}{
		"the same":                          {func(o *Observation) { o.Layers = counted(3, 1) }, false},
		"one more layer":                    {func(o *Observation) { o.Layers = counted(4, 1) }, true},
		"one more is deployed":              {func(o *Observation) { o.Layers = counted(3, 2) }, true},
		"none is left":                      {func(*Observation) {}, true},
		"another version":                   {func(o *Observation) { o.Layers = counted(3, 1); o.Answer.Version = "v1.37.0" }, false},
		"one more layer, and it is away":    {func(o *Observation) { o.Layers = counted(4, 1); o.Answer = Answer{At: now, Err: errors.New("refused")} }, false},
		"one more layer, and it is another": {func(o *Observation) { o.Layers = counted(4, 1); o.Cluster.Generation++ }, false},
	} {
		t.Run(name, func(t *testing.T) {
			next := observation(test.next)
			next.Cluster.Status = last
			if got := OnlyCounted(last, Decide(next).Status); got != test.want {
				t.Errorf("it is %t, want %t: %+v", got, test.want, Decide(next).Status)
			}
		})
	}
}
