// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/sources"
)

func from(kind string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Spec.Source.Kind = kind }
}

func TestSourceOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		source v1alpha1.SourceSpec
		want   string
	}{
		"no kind": {"the default", v1alpha1.SourceSpec{Name: "addons"}, "GitRepository gotk-system/addons"},
		"Kraan's long form": {
			"manifests of Kraan stay as they are",
			v1alpha1.SourceSpec{Kind: "gitrepositories.source.toolkit.fluxcd.io", Name: "addons"},
			"GitRepository gotk-system/addons",
		},
		"git": {"the same in short", v1alpha1.SourceSpec{Kind: "GitRepository", Name: "addons"}, "GitRepository gotk-system/addons"},
		"OCI": {"another source of the same name", v1alpha1.SourceSpec{Kind: "OCIRepository", Name: "addons"}, "OCIRepository gotk-system/addons"},
		"namespace": {
			"a source's own namespace comes first", v1alpha1.SourceSpec{Kind: "Bucket", Name: "addons", Namespace: "flux"}, "Bucket flux/addons",
		},
		"external": {"made by another controller", v1alpha1.SourceSpec{Kind: "ExternalArtifact", Name: "x"}, "ExternalArtifact gotk-system/x"},
	} {
		t.Run(name, func(t *testing.T) {
			got := sources.Of(&v1alpha1.AddonsLayer{Spec: v1alpha1.AddonsLayerSpec{Source: tc.source}}, "gotk-system")
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if gk := got.GroupKind().String(); gk != got.Kind+".source.toolkit.fluxcd.io" {
				t.Errorf("the kind is %s", gk)
			}
		})
	}
}

func TestDecideKindsOfSources(t *testing.T) {
	running := layer(isDeployed(oldDir), from(sources.OCIRepository))
	pending := func(reason, message string) decided {
		return decided{v1alpha1.StatePending, "", waitingFor(reason), status.InProgressStatus, message}
	}
	runDecideCases(t, map[string]decideCase{
		"missing": {
			reason: "the message names the kind",
			in:     observation(layer(from(sources.OCIRepository)), nil, func(o *Observation) { o.Source = nil }),
			want:   pending("SourceNotFound", "waits for OCIRepository gotk-system/addons, which does not exist"),
		},
		"not served": {
			reason: "an older Flux has no such kind; what is deployed stays",
			in: observation(running, nil, lives(live("a", drifted)), func(o *Observation) {
				o.Source, o.SourceUnserved, o.Deployed = nil, true, oldDir
			}),
			want: pending("SourceNotFound", "waits for OCIRepository gotk-system/addons: the cluster does not serve the kind OCIRepository of Flux"),
		},
		"forbidden": {
			reason: "a right that is missing is named",
			in: observation(layer(from(sources.Bucket)), nil, func(o *Observation) {
				o.Source, o.SourceError = nil, errors.New("buckets is forbidden")
			}),
			want: pending("SourceNotReady", "waits for Bucket gotk-system/addons: the controller lacks rights: buckets is forbidden"),
		},
	})
}

// fetchedEarlier is a source that source-controller counts as seen although its
// artifact is that of an earlier specification.
func fetchedEarlier(change func(*Source)) func(*Observation) {
	return source(func(s *Source) {
		s.Generation, s.ObservedGeneration, s.ArtifactGeneration = 3, 3, 1
		change(s)
	})
}

func TestDecideArtifactOfAnEarlierSpecification(t *testing.T) {
	suspended := fetchedEarlier(func(s *Source) { s.Suspended = true })
	stalled := fetchedEarlier(func(s *Source) { s.Ready, s.Message = false, "invalid semver" })
	const old = "was fetched at generation 1 and is at generation 3"
	waits := func(message string) decided {
		return decided{
			v1alpha1.StatePending, "", waitingFor("SourceNotReady") + " SourceReady=False/SourceNotReady", status.InProgressStatus,
			"waits for GitRepository gotk-system/addons, which " + message,
		}
	}
	stays := decided{
		v1alpha1.StateDeployed, "", readyConditions + " SourceReady=False/SourceNotReady", status.CurrentStatus,
		"version 1.0.0 of revision main@sha1:old is deployed: 1 release",
	}
	running := layer(isDeployed(oldDir))
	bumped := layer(isDeployed(oldDir), func(l *v1alpha1.AddonsLayer) { l.Spec.Version, l.Generation = "2.0.0", 2 })
	rolling := layer(isDeployed(oldDir), func(l *v1alpha1.AddonsLayer) {
		l.Status.State = v1alpha1.StateApplying
		l.Status.Attempt = &v1alpha1.Attempt{Version: "1.0.0", Revision: newRevision, Digest: newDir.Digest, StartTime: metav1.NewTime(testNow.Truncate(time.Second))}
	})
	away := func(o *Observation) { o.DirectoryError, o.Deployed = errors.New("connection refused"), oldDir }
	runDecideCases(t, map[string]decideCase{
		"suspended, deployed": {
			reason: "who suspends a source wants nothing to change", in: observation(running, oldDir, lives(live("a")), suspended), want: stays,
		},
		"suspended, new version": {
			reason: "a version that came together with another reference must not be deployed from the old artifact",
			in:     observation(bumped, oldDir, lives(live("a")), suspended), want: waits("is suspended, " + old),
		},
		"suspended, new content": {
			reason: "the same for content that was fetched and never begun",
			in:     observation(running, newDir, lives(live("a")), suspended), want: waits("is suspended, " + old),
		},
		"suspended, new layer": {
			reason: "nobody knows whether it is meant for this artifact",
			in:     observation(layer(), newDir, suspended), want: waits("is suspended, " + old),
		},
		"suspended in a roll-out": {
			reason: "what began while the source was current is finished",
			in:     observation(rolling, newDir, lives(live("a")), suspended),
			want: decided{
				v1alpha1.StateApplying, "Write b", waitingFor("Applying") + " SourceReady=False/SourceNotReady", status.InProgressStatus,
				"HelmRelease default/b has yet to be applied",
			},
		},
		"suspended, artifact away": {
			reason: "nothing new can come of the very revision that is deployed",
			in:     observation(running, nil, lives(live("a")), suspended, source(func(s *Source) { s.Revision = oldRevision }), away), want: stays,
		},
		"stalled, deployed": {
			reason: "a reference that nobody can make sense of undeploys nothing", in: observation(running, oldDir, lives(live("a")), stalled), want: stays,
		},
		"stalled, new version": {
			reason: "source-controller counts such a specification as seen, too",
			in:     observation(bumped, oldDir, lives(live("a")), stalled), want: waits(old + ": invalid semver"),
		},
		"resumed": {
			reason: "the artifact is of the present specification",
			in: observation(bumped, oldDir, lives(live("a")), source(func(s *Source) {
				s.Generation, s.ObservedGeneration, s.ArtifactGeneration = 3, 3, 3
			})),
			want: decided{v1alpha1.StateDeployed, "", readyConditions, status.CurrentStatus, "version 2.0.0 of revision main@sha1:old is deployed: 1 release"},
		},
		"does not say": {
			reason: "a source without that condition is believed",
			in:     observation(bumped, oldDir, lives(live("a")), source(func(s *Source) { s.Suspended = true })),
			want:   decided{v1alpha1.StateDeployed, "", readyConditions, status.CurrentStatus, "version 2.0.0 of revision main@sha1:old is deployed: 1 release"},
		},
	})
}
