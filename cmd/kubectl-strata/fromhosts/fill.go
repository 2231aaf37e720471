// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fromhosts

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/cmd/kubectl-strata/firstlayers"
	"github.com/strata-project/strata/cmd/kubectl-strata/setup"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/provision"
)

// filling is what the flags say of filling the cluster.
type filling struct {
	firstlayers.Options
	opened *firstlayers.Filling
	// lacking are the first layers that the cluster lacks, where no folder is given.
	lacking string
}

func (f *filling) addFlags(command *cobra.Command, build setup.Build) {
	f.Setup.Build = build
	flags := command.Flags()
	flags.StringVar(&f.Folder, "from-dir", "", "a folder with the layers, as of a checkout: those of spec.bootstrap.layers come first")
	flags.StringVar(&f.Source, "source", "", "the source that the folder stands for, as [KIND/][NAMESPACE/]NAME, where there are several")
	flags.StringSliceVar(&f.LayersIn, "layers", nil, "files and folders of it that hold the AddonsLayers of this cluster, where others have some, too")
	flags.BoolVar(&f.Install, "install", false, "bring Flux and Strata, and then the layers of the folder")
	flags.StringVar(&f.Flux, "flux", "", "with --install, Flux's manifests: a file or an https address")
	flags.StringArrayVar(&f.Setup.Set, "set", nil, "with --install, a value of Strata's chart, for example replicas=2; may be repeated")
	flags.StringArrayVar(&f.Setup.Files, "values", nil, "with --install, a file of values of Strata's chart; may be repeated")
	flags.DurationVar(&f.Timeout, "timeout", 15*time.Minute, "how long nodes and layers are waited for")
}

// check says which flags do not go together.
func (f *filling) check() error {
	switch {
	case f.Folder == "" && (f.Source != "" || len(f.LayersIn) > 0 || f.Install):
		return errors.New("--install, --source and --layers are for a folder with layers: name it with --from-dir")
	case !f.Install && (f.Flux != "" || len(f.Setup.Set)+len(f.Setup.Files) > 0):
		return errors.New("--flux, --set and --values are for --install")
	case f.Timeout <= 0:
		return errors.New("--timeout must be longer than nothing")
	}
	return nil
}

// openFilling reads the folder, where one is given.
func (w *work) openFilling(ctx context.Context) error {
	if err := w.fill.check(); err != nil || w.fill.Folder == "" {
		return err
	}
	if w.fill.Install {
		if err := w.fill.Setup.Check(w.Console); err != nil {
			return err
		}
	}
	progress := w.Progress()
	defer progress.Done()
	progress.Say("reading %s", w.fill.Folder)
	options := w.fill.Options
	options.Console, options.Cluster, options.Now = w.Console, w.cluster, w.Now
	options.Setup.Timeout = options.Timeout
	opened, err := firstlayers.Open(ctx, options)
	if err != nil {
		return err
	}
	w.fill.opened = opened
	w.close = append(w.close, opened.Close)
	return nil
}

// addSteps adds to a plan what is done in the cluster.
func (w *work) addSteps(ctx context.Context, plan *hostplans.Plan, sight *observe.Sight) error {
	if plan.Outcome == hosts.Error || plan.Outcome == hosts.Blocked {
		return nil
	}
	steps, err := w.filler().Steps(ctx, sight)
	if err != nil {
		return err
	}
	plan.SetSteps(w.cluster, steps)
	w.warn(plan)
	return nil
}

// filler returns what fills the cluster.
func (w *work) filler() provision.Filling {
	if w.fill.opened == nil {
		return unfilled{w}
	}
	return w.fill.opened
}

// unfilled stands for a folder that is not given.
type unfilled struct{ work *work }

// Steps has nothing to do, and notes which of the first layers the cluster lacks.
func (u unfilled) Steps(ctx context.Context, sight *observe.Sight) ([]hostplans.Step, error) {
	var err error
	u.work.fill.lacking, err = firstlayers.Lacking(ctx, sight.Cluster, u.work.cluster.Spec.Bootstrap.Layers)
	return nil, err
}

// Fill is never called.
func (u unfilled) Fill(context.Context, func(provision.Event)) error { return nil }

// warn says in a plan which of the first layers lack, where no folder is given that has them.
func (w *work) warn(plan *hostplans.Plan) {
	if w.fill.lacking != "" {
		plan.Warnings = append(plan.Warnings, "spec.bootstrap.layers: the cluster lacks "+w.fill.lacking+": name the folder with its files with --from-dir")
	}
}
