// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
)

// doomed marks a platform as being deleted.
func (w *world) doomed() { w.Platform.DeletionTimestamp = &metav1.Time{Time: w.Now} }

func TestTheMakerGoesLast(t *testing.T) {
	c, maker, guest, _ := makerAndGuest(t, "")
	c.settle(t)
	maker.doomed()
	c.meet()
	d := maker.apply(t)
	if len(d.Delete)+len(d.Write) > 0 || d.Gone ||
		!strings.Contains(said(d.Status), "is not deleted: Platform g is on RemoteCluster fleet/m-inner, which this platform has made") ||
		!strings.Contains(conditionsOf(d.Status), "Ready=False/DeletionBlocked") {
		t.Fatalf("%d layers are deleted: %s, %s", len(d.Delete), said(d.Status), conditionsOf(d.Status))
	}
	if d := guest.apply(t); len(d.Delete) > 0 {
		t.Errorf("the guest deletes %d layers", len(d.Delete))
	}
	guest.doomed()
	c.settle(t)
	if d := maker.apply(t); !d.Gone || len(guest.Layers) > 0 {
		t.Errorf("there are %s and %s: %s", maker.names(), guest.names(), said(d.Status))
	}
}

func TestSomebodyIsInTheWay(t *testing.T) {
	for _, test := range []struct {
		reason, says string
		policy       v1alpha1.ClusterDeletionPolicy
		change       func(maker, guest *world)
	}{
		{"a layer of somebody", "AddonsLayer by-hand is on RemoteCluster", "", func(_, guest *world) {
			guest.Layers = guest.Layers[:1]
			guest.Layers[0].Name, guest.Layers[0].Labels = "by-hand", nil
		}},
		{"a layer of somebody, with Delete", "AddonsLayer by-hand is on RemoteCluster", v1alpha1.ClusterDeletionDelete, func(_, guest *world) {
			guest.Layers = guest.Layers[:1]
			guest.Layers[0].Name, guest.Layers[0].Labels = "by-hand", nil
		}},
		{"one that depends on it", "Platform g depends on this one", "", func(_, guest *world) {
			guest.Platform.Spec.DependsOn = []v1alpha1.PlatformDependency{{Name: "m"}}
			for _, layer := range guest.Layers {
				layer.Spec.Cluster = nil
			}
		}},
		{"one that depends on it, beside a circle", "Platform g depends on this one", "", func(maker, guest *world) {
			guest.Platform.Spec.DependsOn = []v1alpha1.PlatformDependency{{Name: "m"}}
			for _, layer := range guest.Layers {
				layer.Spec.Cluster = nil
			}
			maker.Platform.Spec.DependsOn = []v1alpha1.PlatformDependency{{Name: "m"}}
		}},
		{"nobody, in a circle", "", "", func(maker, guest *world) {
			guest.Platform.Spec.DependsOn, maker.Platform.Spec.DependsOn = []v1alpha1.PlatformDependency{{Name: "m"}}, []v1alpha1.PlatformDependency{{Name: "g"}}
			for _, layer := range guest.Layers {
				layer.Spec.Cluster = nil
			}
		}},
		{"nobody, with force", "", "", func(maker, _ *world) {
			maker.Platform.Annotations = map[string]string{v1alpha1.ForceDeleteAnnotation: "true"}
		}},
		{"nobody, with Abandon", "", v1alpha1.ClusterDeletionAbandon, func(_, guest *world) {
			guest.Layers = guest.Layers[:1]
			guest.Layers[0].Name, guest.Layers[0].Labels = "by-hand", nil
		}},
		{"one that depends on it and has nothing", "", "", func(_, guest *world) {
			guest.Platform.Spec.DependsOn, guest.Layers = []v1alpha1.PlatformDependency{{Name: "m"}}, nil
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			c, maker, guest, _ := makerAndGuest(t, test.policy)
			c.settle(t)
			test.change(maker, guest)
			maker.doomed()
			c.meet()
			d := maker.apply(t)
			if (test.says == "") != (len(d.Delete) > 0) || !strings.Contains(said(d.Status), test.says) {
				t.Errorf("%d layers are deleted: %s", len(d.Delete), said(d.Status))
			}
		})
	}
}

func TestAClusterTakesAlongWhatIsThere(t *testing.T) {
	for _, test := range []struct {
		cluster    v1alpha1.ClusterDeletionPolicy
		own        v1alpha1.DeletionPolicy
		want       v1alpha1.DeletionPolicy
		annotation string
	}{
		{cluster: v1alpha1.ClusterDeletionDelete, want: v1alpha1.DeletionPolicyDelete},
		{cluster: v1alpha1.ClusterDeletionOrphan, want: v1alpha1.DeletionPolicyOrphan},
		{cluster: v1alpha1.ClusterDeletionAbandon, want: v1alpha1.DeletionPolicyAbandon},
		{cluster: v1alpha1.ClusterDeletionDelete, own: v1alpha1.DeletionPolicyOrphan, want: v1alpha1.DeletionPolicyOrphan},
		{cluster: v1alpha1.ClusterDeletionWait},
		{cluster: v1alpha1.ClusterDeletionWait, annotation: "true", want: v1alpha1.DeletionPolicyAbandon},
		{},
	} {
		t.Run(string(test.cluster+"/")+string(test.own)+test.annotation, func(t *testing.T) {
			_, maker, guest, place := makerAndGuest(t, test.cluster)
			guest.Platform.Spec.DeletionPolicy = test.own
			c := company{maker, guest}
			c.settle(t)
			guest.Clusters[place].Annotations = map[string]string{v1alpha1.AbandonAnnotation: test.annotation}
			// Its maker goes, and it is not yet being deleted itself.
			layer := maker.find("m-inner").DeepCopy()
			layer.DeletionTimestamp = &metav1.Time{Time: maker.Now}
			maker.Layers = []*v1alpha1.AddonsLayer{layer}
			c.meet()
			d := guest.apply(t)
			if (test.want == "") != (len(d.Delete) == 0) {
				t.Fatalf("%d layers are deleted: %s", len(d.Delete), said(d.Status))
			}
			if !strings.Contains(said(d.Status), "RemoteCluster fleet/m-inner goes with layer m-inner of Platform m") {
				t.Errorf("it says %s", said(d.Status))
			}
			for _, layer := range guest.Layers {
				if layer.Spec.DeletionPolicy != test.want && test.want != "" {
					t.Errorf("layer %s goes with %q, not %q", layer.Name, layer.Spec.DeletionPolicy, test.want)
				}
				if test.want != "" && (layer.Spec.OrphanGrace == nil || layer.Spec.OrphanGrace.Duration != 0) {
					t.Errorf("layer %s waits for somebody to adopt what it has", layer.Name)
				}
			}
			if d := guest.apply(t); len(d.Write)+len(d.Delete) > 0 {
				t.Errorf("it does it again: %d layers are written, %d deleted", len(d.Write), len(d.Delete))
			}
		})
	}
}

func TestADoomedClusterIsNotEmptiedFirst(t *testing.T) {
	maker := newWorld(platform("m", "", inputs(`{"nested": true}`)), nested(""))
	maker.apply(t)
	c := company{maker}
	c.madeBy(maker, v1alpha1.ClusterDeletionAbandon)
	c.settle(t)
	maker.doomed()
	maker.apply(t)
	for name, want := range map[string]v1alpha1.DeletionPolicy{"m-base": "", "m-inner": "", "m-gpu": v1alpha1.DeletionPolicyAbandon} {
		if got := maker.find(name).Spec.DeletionPolicy; got != want {
			t.Errorf("layer %s goes with %q, not %q", name, got, want)
		}
	}
}

func TestAbandonAtHomeIsOrphan(t *testing.T) {
	w := newWorld(platform("p", "", inputs(`{"nested": true}`)), nested(""))
	w.Platform.Spec.DeletionPolicy = v1alpha1.DeletionPolicyAbandon
	w.settle(t)
	w.doomed()
	for _, when := range []string{"while it is there", "when it goes"} {
		if home, away := w.find("p-base").Spec.DeletionPolicy, w.find("p-gpu").Spec.DeletionPolicy; home != v1alpha1.DeletionPolicyOrphan || away != v1alpha1.DeletionPolicyAbandon {
			t.Errorf("%s the layers have %s and %s", when, home, away)
		}
		w.apply(t)
	}
}

// A layer that makes a cluster stays as long as somebody is there, with all that the
// platform has there.
func TestALayerOfAClusterThatIsUsedStays(t *testing.T) {
	c, maker, guest, _ := makerAndGuest(t, "")
	c.settle(t)
	inputs(`{"nested": false}`)(maker.Platform)
	c.meet()
	d := maker.apply(t)
	if len(d.Delete) > 0 || !strings.Contains(said(d.Status), "layer m-inner stays: Platform g is on RemoteCluster fleet/m-inner, which it has made") {
		t.Fatalf("%d layers are deleted: %s", len(d.Delete), said(d.Status))
	}
	guest.doomed()
	c.settle(t)
	if got, want := maker.names(), "m-base@1.0.0"; got != want {
		t.Errorf("there are %s, not %s: %s", got, want, said(maker.apply(t).Status))
	}
}

// TestALayerThatOthersComeAfterCanBeSwitchedOff shows that a part of a bundle goes although
// another Platform came after it, that this one forgets it and nothing else, and that it is
// there again when it is switched on.
func TestALayerThatOthersComeAfterCanBeSwitchedOff(t *testing.T) {
	optional := withInputs(bundle("1.0.0", "", "base", "extra when:inputs.extra"), v1alpha1.BundleInput{Name: "extra", Type: v1alpha1.InputBoolean})
	maker := newWorld(platform("m", "", inputs(`{"extra": true}`)), optional)
	guest := newWorld(platform("g", "", func(p *v1alpha1.Platform) {
		p.Spec.DependsOn = []v1alpha1.PlatformDependency{{Name: "m"}}
	}), bundle("1.0.0", "", "apps"))
	c := company{maker, guest}
	c.settle(t)
	needs := func(want ...string) {
		t.Helper()
		if got := guest.find("g-apps").Spec.Prereqs.DependsOn; !slices.Equal(dependencies.Names(got), want) {
			t.Errorf("the guest comes after %v, want %v", got, want)
		}
	}
	needs("m-base", "m-extra")
	inputs(`{"extra": false}`)(maker.Platform)
	c.settle(t)
	needs("m-base")
	if maker.find("m-extra") != nil {
		t.Error("the part is there")
	}
	inputs(`{"extra": true}`)(maker.Platform)
	c.settle(t)
	needs("m-base", "m-extra")
	if extra := maker.find("m-extra"); extra == nil || isDropped(extra) {
		t.Errorf("the part is %+v", extra)
	}
	// What somebody deletes by hand is wanted, and others go on to come after it.
	maker.find("m-base").DeletionTimestamp = &metav1.Time{Time: maker.Now}
	c.meet()
	maker.apply(t)
	guest.apply(t)
	needs("m-base", "m-extra")
}

func TestPolicyOfALayerOfTheBundle(t *testing.T) {
	b := bundle("1.0.0", "", "base", "data")
	b.Spec.Layers[1].DeletionPolicy = v1alpha1.DeletionPolicyOrphan
	w := newWorld(platform("p", ""), b)
	w.settle(t)
	policies := func(when string, base, data v1alpha1.DeletionPolicy) {
		t.Helper()
		if got, also := w.find("p-base").Spec.DeletionPolicy, w.find("p-data").Spec.DeletionPolicy; got != base || also != data {
			t.Errorf("%s the policies are %q and %q, not %q and %q", when, got, also, base, data)
		}
	}
	policies("while they are there", "", v1alpha1.DeletionPolicyOrphan)
	w.Platform.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
	w.doomed()
	w.apply(t)
	policies("when they go", v1alpha1.DeletionPolicyDelete, v1alpha1.DeletionPolicyOrphan)

	gone := newWorld(platform("p", ""), b)
	gone.settle(t)
	gone.Bundles = nil
	gone.doomed()
	gone.apply(t)
	if got := gone.find("p-data").Spec.DeletionPolicy; got != v1alpha1.DeletionPolicyOrphan {
		t.Errorf("without its bundle the layer goes with %q", got)
	}
}

// What volumes and custom objects keep is confirmed once, on the Platform, before its
// deletion or while it waits; the confirmation is acted on only when the Platform goes.
func TestDeletionIsConfirmedOnThePlatform(t *testing.T) {
	confirmed := func(w *world) (count int) {
		for _, layer := range w.Layers {
			if layer.Annotations[v1alpha1.ConfirmDeletionAnnotation] == "true" && layer.DeletionTimestamp != nil {
				count++
			}
		}
		return count
	}
	for _, before := range []bool{true, false} {
		w := fleet(t, 2, "1.0.0")
		w.Platform.Annotations = map[string]string{}
		if before {
			w.Platform.Annotations[v1alpha1.ConfirmDeletionAnnotation] = "true"
			if d := w.apply(t); len(d.Write) > 0 {
				t.Errorf("what stays is written: %v", d.Write[0].Annotations)
			}
		}
		w.doomed()
		w.apply(t)
		for i, layer := range w.Layers {
			w.Layers[i] = w.state(layer, v1alpha1.StatePruning, "is not deleted while 1 volume would be lost: set the annotation kraan.io/confirm-deletion")
		}
		d := w.apply(t)
		const hint = `; the annotation kraan.io/confirm-deletion: "true" on the Platform confirms that for all of them`
		if strings.Contains(said(d.Status), hint) == before {
			t.Errorf("confirmed before: %t; it says %s", before, said(d.Status))
		}
		if !before {
			if got := confirmed(w); got > 0 {
				t.Errorf("%d are confirmed by nobody", got)
			}
			w.Platform.Annotations[v1alpha1.ConfirmDeletionAnnotation] = "true"
			w.apply(t)
		}
		if got := confirmed(w); got != len(w.Layers) || got == 0 {
			t.Errorf("confirmed before: %t; %d of %d layers are confirmed", before, got, len(w.Layers))
		}
		if d := w.apply(t); len(d.Write) > 0 {
			t.Errorf("they are confirmed again: %v", d.Write[0].Name)
		}
	}
}

// One annotation on the Platform gives up a cluster that it has made and that does not answer:
// what it has there, what others have there, and nothing else. It may be set before the deletion
// or while that waits.
func TestADeadClusterIsGivenUpOnThePlatform(t *testing.T) {
	for _, before := range []bool{true, false} {
		c, maker, guest, place := makerAndGuest(t, "")
		c.settle(t)
		maker.answers(place.Name, false)
		abandon := func() {
			maker.Platform = maker.Platform.DeepCopy()
			metav1.SetMetaDataAnnotation(&maker.Platform.ObjectMeta, v1alpha1.AbandonAnnotation, "true")
		}
		if before {
			abandon()
			c.meet()
			if d := maker.apply(t); len(d.GiveUp)+len(d.Write)+len(d.Delete) > 0 {
				t.Errorf("the platform stays, and %v is given up", d.GiveUp)
			}
		}
		maker.doomed()
		c.meet()
		d := maker.apply(t)
		const hint = `; the annotation kraan.io/abandon: "true" on the Platform leaves behind what is on clusters that do not answer`
		if got := strings.Contains(said(d.Status), hint); got == before {
			t.Errorf("abandoned before: %t; it says %s", before, said(d.Status))
		}
		if !before {
			if len(d.GiveUp)+len(d.Write)+len(d.Delete) > 0 {
				t.Errorf("nobody has said so, and %v is given up", d.GiveUp)
			}
			abandon()
		}
		c.settle(t)
		for _, layer := range slices.Concat(maker.Layers, guest.Layers) {
			t.Errorf("abandoned before: %t; layer %s is left, with %q", before, layer.Name, layer.Spec.DeletionPolicy)
		}
		if maker.Clusters[place].Annotations[v1alpha1.AbandonAnnotation] != "true" {
			t.Error("others wait for the cluster")
		}
	}
}

// What is on clusters that answer is uninstalled although the Platform gives up what it cannot
// reach, and clusters that others have made are not given up for everybody.
func TestWhatAnswersIsNotGivenUp(t *testing.T) {
	c, maker, guest, place := makerAndGuest(t, "")
	c.settle(t)
	maker.answers(place.Name, false)
	guest.Platform.Annotations = map[string]string{v1alpha1.AbandonAnnotation: "true"}
	guest.doomed()
	c.meet()
	if d := guest.apply(t); len(d.GiveUp) > 0 || len(d.Delete) != len(guest.Layers) {
		t.Errorf("%v is given up, %d layers are deleted", d.GiveUp, len(d.Delete))
	}
	for _, layer := range guest.Layers {
		if layer.Annotations[v1alpha1.AbandonAnnotation] != "true" || layer.Spec.DeletionPolicy == v1alpha1.DeletionPolicyAbandon {
			t.Errorf("layer %s goes with %q and %v", layer.Name, layer.Spec.DeletionPolicy, layer.Annotations)
		}
	}

	c, maker, _, _ = makerAndGuest(t, v1alpha1.ClusterDeletionDelete)
	c.settle(t)
	maker.Platform.Annotations = map[string]string{v1alpha1.AbandonAnnotation: "true"}
	maker.doomed()
	c.meet()
	if d := maker.apply(t); len(d.GiveUp) > 0 || len(d.Delete) == 0 {
		t.Errorf("%v is given up, %d layers are deleted", d.GiveUp, len(d.Delete))
	}
	for _, layer := range maker.Layers {
		if layer.Annotations[v1alpha1.AbandonAnnotation] != "" || layer.Spec.DeletionPolicy == v1alpha1.DeletionPolicyAbandon {
			t.Errorf("layer %s goes with %q and %v", layer.Name, layer.Spec.DeletionPolicy, layer.Annotations)
		}
	}
}

// A cluster that is given up while its layers are being deleted is given up for those, too, and
// so is one whose RemoteCluster has gone.
func TestAClusterIsGivenUpLate(t *testing.T) {
	for name, giveUp := range map[string]func(maker *world, place types.NamespacedName){
		"its annotation": func(maker *world, place types.NamespacedName) {
			maker.Clusters[place].Annotations = map[string]string{v1alpha1.AbandonAnnotation: "true"}
		},
		"its policy": func(maker *world, place types.NamespacedName) {
			maker.Clusters[place].Spec.DeletionPolicy = v1alpha1.ClusterDeletionAbandon
		},
		"the annotation of the Platform, once it has gone": func(maker *world, place types.NamespacedName) {
			delete(maker.Clusters, place)
			maker.Platform.Annotations = map[string]string{v1alpha1.AbandonAnnotation: "true"}
		},
	} {
		maker := newWorld(platform("m", "", inputs(`{"nested": true}`)), nested(""))
		maker.apply(t)
		c := company{maker}
		place := c.madeBy(maker, "")
		c.settle(t)
		maker.answers(place.Name, false)
		maker.doomed()
		maker.apply(t)
		giveUp(maker, place)
		maker.apply(t)
		gpu := maker.find("m-gpu")
		if gpu.Spec.DeletionPolicy != v1alpha1.DeletionPolicyAbandon && gpu.Annotations[v1alpha1.AbandonAnnotation] != "true" {
			t.Errorf("%s: the layer goes with %q and %v", name, gpu.Spec.DeletionPolicy, gpu.Annotations)
		}
		if d := maker.apply(t); len(d.Write) > 0 {
			t.Errorf("%s: layer %s is written again", name, d.Write[0].Name)
		}
		if inner := maker.find("m-inner"); inner.Spec.DeletionPolicy != "" || inner.Annotations[v1alpha1.AbandonAnnotation] != "" {
			t.Errorf("%s: the layer at home goes with %q and %v", name, inner.Spec.DeletionPolicy, inner.Annotations)
		}
	}
}

// A Platform that is being deleted counts the clusters that it is installed on, and not those
// that it has made for itself.
func TestClustersAreCountedWhileAPlatformGoes(t *testing.T) {
	maker := newWorld(platform("m", "", inputs(`{"nested": true}`)), nested(""))
	maker.apply(t)
	c := company{maker}
	place := c.madeBy(maker, "")
	c.settle(t)
	if d := maker.apply(t); d.Status.Clusters.Total != 1 {
		t.Fatalf("it is on %d clusters", d.Status.Clusters.Total)
	}
	maker.answers(place.Name, false)
	maker.doomed()
	maker.apply(t)
	maker.Layers[0] = maker.state(maker.Layers[0], v1alpha1.StateUnknown, "the cluster does not answer")
	if d := maker.apply(t); d.Status.Clusters.Total != 1 {
		t.Errorf("it goes from %d clusters: %+v", d.Status.Clusters.Total, d.Status.Worst)
	}
}
