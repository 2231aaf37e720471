// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reserved

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// Each type of Secrets that comes with the API keeps them, and each name that comes with it is
// kept in the controller's namespace. The document, which is made from the registry, shows no
// entry that is missing there.
func TestEveryTypeAndNameOfTheAPIIsKept(t *testing.T) {
	constants := constantsNamed(t, "api/v1alpha1", `(Type|Name)$`)
	if len(constants) < 7 {
		t.Fatalf("only %d constants were found", len(constants))
	}
	for _, c := range constants {
		switch {
		case strings.HasSuffix(c.name, "Type"):
			if !slices.ContainsFunc(Words(), func(word Word) bool {
				return word.Key == c.value && word.Sort == Type && word.Keeps != "" && word.Refused
			}) {
				t.Errorf("Secrets of the type %s are not kept: add %s to words.go", c.value, c.name)
			}
		case Name(secret("strata-system", c.value), "strata-system") == "":
			t.Errorf("the Secret %s is not kept: add %s to objects.go", c.value, c.name)
		}
	}
}

// What people may set is this, and nothing else: a directory that says such a word is believed.
func TestWordsOfPeople(t *testing.T) {
	want := []string{
		v1alpha1.HoldAnnotation, v1alpha1.HoldUntilAnnotation, v1alpha1.HoldReleasesAnnotation,
		v1alpha1.AllowEmptyAnnotation, v1alpha1.AllowPruneAnnotation, v1alpha1.AllowBreakAnnotation,
		v1alpha1.AllowReinstallAnnotation,
		v1alpha1.ForceDeleteAnnotation, v1alpha1.ConfirmDeletionAnnotation, v1alpha1.RollbackToAnnotation,
		v1alpha1.AbandonAnnotation, v1alpha1.AcceptClusterAnnotation, v1alpha1.TakeOverAnnotation,
		v1alpha1.TakeOverClusterAnnotation, v1alpha1.WithoutSnapshotAnnotation, v1alpha1.ReconcileRequestAnnotation,
		v1alpha1.ShareWithAnnotation, v1alpha1.RebindAnnotation, v1alpha1.ApproveAnnotation,
		v1alpha1.ApproveReasonAnnotation, v1alpha1.ApprovedByAnnotation, v1alpha1.UpdateVersionAnnotation,
		v1alpha1.PruneAnnotation, v1alpha1.FluxPruneAnnotation, v1alpha1.FluxReconcileAnnotation,
		v1alpha1.FluxSSAAnnotation, v1alpha1.FluxForceAnnotation,
	}
	var got []string
	for _, word := range Words() {
		if word.By == People {
			got = append(got, word.Key)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Which words keep a live object, and what for, and which ones no object of a directory may have.
func TestWordsThatKeep(t *testing.T) {
	type named struct {
		sort Sort
		key  string
	}
	keeps := map[named]string{
		{Label, v1alpha1.ClusterLabel}:               KeptForCluster,
		{Label, v1alpha1.RevisionOfLabel}:            KeptRevision,
		{Label, v1alpha1.JoinedLabel}:                KeptCredential,
		{Label, v1alpha1.ClaimLabel}:                 KeptForClaim,
		{Label, v1alpha1.HostClusterLabel}:           KeptForHosts,
		{Label, v1alpha1.ProviderLabel}:              KeptRecord,
		{Label, v1alpha1.PluginLabel}:                KeptForPlugin,
		{Label, v1alpha1.DiscoveryLabel}:             KeptDiscovered,
		{Label, v1alpha1.PlatformLabel}:              KeptForPlatform,
		{Annotation, v1alpha1.CopyOfAnnotation}:      KeptCopy,
		{Annotation, v1alpha1.RecordMACAnnotation}:   KeptRecord,
		{Annotation, v1alpha1.SignRecordsAnnotation}: KeptSigned,
		{Finalizer, v1alpha1.KubeConfigFinalizer}:    KeptKubeConfig,
		{Type, v1alpha1.RevisionType}:                KeptRevision,
		{Type, v1alpha1.RecordsType}:                 KeptSigned,
		{Type, v1alpha1.DecisionsSignedType}:         KeptSigned,
		{Type, v1alpha1.DigestKeyType}:               KeptDigestKey,
	}
	refused := []string{
		v1alpha1.ClusterLabel, v1alpha1.RevisionOfLabel, v1alpha1.JoinedLabel, v1alpha1.CopyOfAnnotation,
		v1alpha1.KubeConfigFinalizer, v1alpha1.RevisionType, v1alpha1.RecordsType, v1alpha1.DecisionsSignedType,
		v1alpha1.DigestKeyType,
	}
	for _, word := range Words() {
		if want := keeps[named{word.Sort, word.Key}]; word.Keeps != want {
			t.Errorf("%s %s keeps an object for %q, want %q", word.Sort, word.Key, word.Keeps, want)
		}
		if word.Refused != slices.Contains(refused, word.Key) {
			t.Errorf("an object of a directory with %s is refused: %t", word.Key, word.Refused)
		}
	}
}

// A name that is made from an owner is that owner's for each of its kinds, and on another cluster
// an ordinary one.
func TestOwnersOfEachKind(t *testing.T) {
	for name, want := range map[string]struct {
		owner string
		kinds []objects.ID
	}{
		HostKubeConfigName("edge"): {v1alpha1.HostClusterKind, []objects.ID{{Kind: "Secret"}}},
		PasswordsName("db"):        {v1alpha1.CapabilityClaimKind, []objects.ID{{Kind: "Secret"}}},
		kinds.BindingNameOf("db"):  {v1alpha1.CapabilityClaimKind, []objects.ID{{Kind: "Secret"}}},
		PluginName("mysql.example", "sha256:abc"): {v1alpha1.CapabilityProviderKind, []objects.ID{
			{Kind: "Secret"}, {Group: "apps", Kind: "Deployment"}, {Kind: "Service"}, {Group: "networking.k8s.io", Kind: "NetworkPolicy"},
		}},
	} {
		for _, id := range want.kinds {
			id.Namespace, id.Name = "shop", name
			if got := Owners(id); len(got) != 1 || got[0].ID.Kind != want.owner {
				t.Errorf("%s is kept for %v, want one %s", id, got, want.owner)
			}
			if got := Owners(id.On("fleet/prod")); len(got) > 0 {
				t.Errorf("%s of another cluster is kept for %v", id, got)
			}
		}
	}
	if owned := slices.DeleteFunc(Entries(), func(entry Entry) bool { return entry.Owner == "" }); len(owned) != 4 {
		t.Errorf("%d names have owners: add them here", len(owned))
	}
}
