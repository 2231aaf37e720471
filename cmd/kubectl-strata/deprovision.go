// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/deprovision"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/platforms"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/terminal"
)

const deprovisionLong = `Show what the removal of layers would do, in order, and what stands in its way.
Nothing is deleted: that is for kubectl delete, and the controller keeps to this
order by itself.

Layers of one turn go together; those that depend on others go first, unless
spec.teardownAfter says otherwise. In the way are

  - layers that stay and depend on one that goes,
  - clusters that do not answer, or do not exist,
  - suspended HelmReleases, which Flux would not uninstall,
  - objects of others whose definitions would go, and volumes, as the
    controller counts them; where you may not list them, that is said.

With --abandon it is shown what becomes of clusters that do not answer when the
Platform has the annotation kraan.io/abandon: "true", and what is left behind
there. What answers is uninstalled all the same.

A hold does not keep a layer from being deleted; it is noted. Other clusters are
not asked, so that objects of others there are not known. Objects that another
layer would take over are counted as going.

Exit codes:
  0  nothing stands in the way
  1  it cannot be said
  2  something stands in the way`

const deprovisionExamples = `  # Two layers
  kubectl strata deprovision base mesh --plan

  # All of a Platform
  kubectl strata deprovision --platform edge --plan

  # All of a Platform, and what it would leave behind on clusters that are dead
  kubectl strata deprovision --platform edge --abandon --plan

  # All that is on a cluster
  kubectl strata deprovision --cluster fleet/prod-us3 --plan -o json`

// leaving is which layers somebody asks about.
type leaving struct {
	*tool
	platform, cluster, output string
	plan, abandon             bool
}

func newDeprovision(t *tool) *cobra.Command {
	l := &leaving{tool: t}
	command := &cobra.Command{
		Use:     "deprovision [LAYER...] --plan",
		Short:   "Show what a removal of layers would do, and what is in its way",
		Long:    deprovisionLong,
		Example: deprovisionExamples,
		RunE:    func(command *cobra.Command, names []string) error { return l.run(command.Context(), names) },
	}
	command.Flags().StringVar(&l.platform, "platform", "", "the layers of this Platform")
	command.Flags().StringVar(&l.cluster, "cluster", "", "the layers on this RemoteCluster, as NAMESPACE/NAME")
	command.Flags().BoolVar(&l.abandon, "abandon", false, "as if the Platform gave up what is on clusters that do not answer")
	command.Flags().BoolVar(&l.plan, "plan", false, "say that nothing is to be deleted, which it never is")
	console.OutputFlag(command, &l.output, "json", "yaml")
	return command
}

func (l *leaving) run(ctx context.Context, names []string) error {
	given := 0
	for _, is := range []bool{len(names) > 0, l.platform != "", l.cluster != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return errors.New("name the layers, or give one of --platform and --cluster")
	}
	if l.abandon && l.platform == "" {
		return errors.New("--abandon goes with --platform: for a layer alone, or a RemoteCluster, set the annotation " + v1alpha1.AbandonAnnotation + " there")
	}
	w, s, err := l.Cluster.Fleet(ctx, snapshot.Layers, snapshot.Releases)
	if err != nil {
		return err
	}
	l.WarnUnread(s, "what that means for the removal is not known")
	r := deprovision.Removal{World: w, Platform: l.platform, Abandon: l.abandon, Releases: s.Of(snapshot.Releases)}
	if err := s.Unread[snapshot.Releases]; err != nil {
		r.ReleasesUnread = err.Error()
	}
	if r.Going, err = l.chosen(r.World, s, names); err != nil {
		return err
	}
	progress := l.Progress()
	err = l.Cluster.Departure(ctx, &r, s, progress.Say)
	progress.Done()
	if err != nil {
		return err
	}
	found := deprovision.Of(r)
	if err := l.print(found); err != nil {
		return err
	}
	if deprovision.Blocked(found) {
		return console.ErrBlocked
	}
	return nil
}

// chosen returns the layers that are asked for.
func (l *leaving) chosen(w fleet.World, s *snapshot.Snapshot, names []string) ([]*v1alpha1.AddonsLayer, error) {
	var going []*v1alpha1.AddonsLayer
	switch {
	case l.platform != "":
		for _, layer := range w.Layers {
			if layer.Labels[v1alpha1.PlatformLabel] == l.platform && platforms.IsMade(layer) {
				going = append(going, layer)
			}
		}
		known := []string{}
		for _, platform := range w.Platforms {
			known = append(known, platform.Name)
		}
		if len(going) == 0 && !slices.Contains(known, l.platform) {
			return nil, console.NoSuch(snapshot.Platforms, l.platform, known)
		}
	case l.cluster != "":
		name, err := l.clusterNamed(w)
		if err != nil {
			return nil, err
		}
		for _, layer := range w.Layers {
			if placement.Of(layer, w.Namespace) == name || slices.Contains(layers.ClustersLeft(layer), name) {
				going = append(going, layer)
			}
		}
	}
	for _, name := range names {
		layer := s.Layer(name)
		if layer == nil {
			return nil, console.NoLayer(s, name)
		}
		if !slices.Contains(going, layer) {
			going = append(going, layer)
		}
	}
	return going, nil
}

// clusterNamed returns the RemoteCluster that somebody names, or one that layers
// name although it is gone.
func (l *leaving) clusterNamed(w fleet.World) (types.NamespacedName, error) {
	namespace, single, qualified := strings.Cut(l.cluster, "/")
	var found []types.NamespacedName
	var known []string
	see := func(name types.NamespacedName) {
		known = append(known, name.String())
		is := qualified && name.Namespace == namespace && name.Name == single || !qualified && name.Name == l.cluster
		if is && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	for _, cluster := range w.Clusters {
		see(types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name})
	}
	for _, layer := range w.Layers {
		if place := placement.Of(layer, w.Namespace); place.Name != "" {
			see(place)
		}
	}
	switch len(found) {
	case 0:
		slices.Sort(known)
		return types.NamespacedName{}, console.NoSuch(snapshot.Clusters, l.cluster, slices.Compact(known))
	case 1:
		return found[0], nil
	}
	return types.NamespacedName{}, fmt.Errorf("there are %s and %s: give the namespace, too", found[0], found[1])
}

func (l *leaving) print(found []deprovision.Leaving) error {
	if l.output != "" {
		return l.PrintAs(l.output, struct {
			Blocked bool                  `json:"blocked"`
			Layers  []deprovision.Leaving `json:"layers"`
		}{deprovision.Blocked(found), found})
	}
	if !l.plan {
		l.Paragraph(l.ErrOut, "kubectl strata: this only plans, nothing is deleted; kubectl delete does that, and the controller keeps to this order")
	}
	if err := l.Table(
		console.Columns("TURN", "LAYER", "CLUSTER:2", "VERSION:4", "RELEASES:3", "AFTER:1"),
		printing.LeavingRows(found),
		"No layers would go.",
	); err != nil {
		return err
	}
	l.list("In the way:", found, func(one deprovision.Leaving) []string { return one.InTheWay })
	l.list("Left behind:", found, func(one deprovision.Leaving) []string { return one.LeftBehind })
	l.list("To be known:", found, func(one deprovision.Leaving) []string { return one.Notes })
	if l.abandon && slices.ContainsFunc(found, func(one deprovision.Leaving) bool { return len(one.LeftBehind) > 0 }) {
		console.Say(l.Out, "\nTo leave that behind, and delete the rest:\n")
		console.Say(l.Out, "  %s", printable.Command("kubectl", "annotate", "platform", l.platform, v1alpha1.AbandonAnnotation+"=true"))
		console.Say(l.Out, "  %s", printable.Command("kubectl", "delete", "platform", l.platform))
	}
	return nil
}

// list writes what there is to say of each layer below a heading; nothing where
// there is nothing. What is the same for several is said once.
func (l *leaving) list(heading string, found []deprovision.Leaving, texts func(deprovision.Leaving) []string) {
	times := map[string]int{}
	for _, one := range found {
		for _, text := range texts(one) {
			times[text]++
		}
	}
	if len(times) > 0 {
		console.Say(l.Out, "\n%s", l.Screen.Paint(terminal.Strong, heading))
	}
	said := map[string]bool{}
	for _, one := range found {
		for _, text := range texts(one) {
			switch {
			case times[text] == 1:
				l.Paragraph(l.Out, "- %s: %s", one.Name, text)
			case !said[text]:
				l.Paragraph(l.Out, "- %d layers: %s", times[text], text)
				said[text] = true
			}
		}
	}
}
