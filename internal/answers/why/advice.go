// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
)

// The commands that advice is made of. What is in braces is of the link that is
// advised on; {strata} is how the plug-in is called.
const (
	seeEvents    = "{strata} events {layer}"
	seeTree      = "{strata} tree {layer} --objects"
	seePlan      = "{strata} plan {layer}"
	seeHistory   = "{strata} history {layer}"
	seeHosts     = "kubectl get hostclusters --all-namespaces"
	seeClaims    = "{strata} capability claims"
	seeProviders = "{strata} capability list"
	seeClusters  = "{strata} clusters {target} -o wide"
	seeObject    = "kubectl{in} describe {resource} {name}"
	seeLayer     = "kubectl describe addonslayer {layer}"
	seeDependant = "{strata} why {name}"
	seeLogs      = "kubectl{in} logs {name} --all-containers"
	seePrevious  = "kubectl{in} logs {name} --all-containers --previous"
	seeStack     = "kubectl --namespace strata-system logs --selector app.kubernetes.io/name=strata --tail -1 | grep {hash}"
	seeSource    = "kubectl{in} describe {resource} {name}"
	runReconcile = "{strata} reconcile {layer}"
	runFetch     = "{strata} reconcile {layer} --with-source --wait"
	runResume    = "{strata} resume {layer}"
	runHold      = "{strata} hold {layer} --reason REASON"
	runRollback  = "{strata} rollback {layer} --to ID"
	annotate     = "kubectl annotate addonslayer {layer} "
)

// advice says what to try, by the reason of what is at the root.
var advice = map[string][]string{
	v1alpha1.ReasonDeployed:              {seeTree},
	v1alpha1.ReasonHold:                  {runResume},
	v1alpha1.ReasonSourceNotFound:        {"kubectl{in} get {resource}", seeLayer},
	v1alpha1.ReasonSourceNotReady:        {seeSource, runFetch},
	v1alpha1.ReasonK8sVersion:            {"kubectl version", seeLayer},
	v1alpha1.ReasonDependencyNotFound:    {"{strata} get", seeLayer},
	v1alpha1.ReasonDependencyVersion:     {"{strata} get {name}", seeLayer},
	v1alpha1.ReasonDependencyNotDeployed: {seeDependant},
	v1alpha1.ReasonDependencyCycle:       {"{strata} tree {layer} --depth 9", seeLayer},
	v1alpha1.ReasonInvalidSpec:           {seeLayer},
	v1alpha1.ReasonApplying:              {seeEvents, seeTree},
	v1alpha1.ReasonPruning:               {seeEvents, seeTree},
	v1alpha1.ReasonTimeout:               {seeEvents, seeTree, seeHistory},
	v1alpha1.ReasonReleaseFailed:         {seeEvents, seeHistory, runRollback},
	v1alpha1.ReasonApplyFailed:           {seeEvents, seePlan, runReconcile},
	v1alpha1.ReasonPruneFailed:           {seeEvents, seePlan, runReconcile},
	v1alpha1.ReasonKindNotServed:         {"kubectl api-resources", seePlan},
	v1alpha1.ReasonForeignRelease:        {"{strata} owner {resource}/{name}{in}", "kubectl{in} describe {resource} {name}"},
	v1alpha1.ReasonContestedFields:       {"{strata} diff {name}", "kubectl{in} get {resource} {name} --show-managed-fields -o yaml"},
	v1alpha1.ReasonConflictsWithLiveState: {
		"{strata} diff {name}", "kubectl{in} get {resource} {name} --show-managed-fields -o yaml", "kubectl{in} edit {resource} {name}",
	},
	v1alpha1.ReasonOwnershipConflict: {"{strata} owner {resource}/{name}{in}", seePlan},
	v1alpha1.ReasonSuspendedRelease: {
		"kubectl{in} patch {resource} {name} --type merge --patch '{\"spec\":{\"suspend\":false}}'",
		annotate + v1alpha1.AbandonAnnotation + "=true",
	},
	v1alpha1.ReasonMassPrune:                 {seePlan, annotate + v1alpha1.AllowPruneAnnotation + "=" + v1alpha1.AllowNext},
	v1alpha1.ReasonWouldReinstall:            {seePlan, annotate + v1alpha1.AllowReinstallAnnotation + "=" + v1alpha1.AllowNext},
	v1alpha1.ReasonEmptyDirectory:            {seePlan, annotate + v1alpha1.AllowEmptyAnnotation + "=" + v1alpha1.AllowNext},
	v1alpha1.ReasonPathNotFound:              {seeLayer, runFetch},
	v1alpha1.ReasonPathOutsideArtifact:       {seeLayer},
	v1alpha1.ReasonInvalidManifest:           {seePlan, runFetch},
	v1alpha1.ReasonEncryptedManifest:         {seeLayer},
	v1alpha1.ReasonVariablesUnavailable:      {seeLayer},
	v1alpha1.ReasonVariablesUnset:            {seeLayer},
	v1alpha1.ReasonDecryptionKeysUnavailable: {seeLayer},
	v1alpha1.ReasonSecretsInNames:            {seeLayer},
	v1alpha1.ReasonGivenWithoutLeave:         {seeLayer, "{strata} check"},
	v1alpha1.ReasonDuplicateObject:           {seePlan, runFetch},
	v1alpha1.ReasonKustomizeFailed:           {seePlan, runFetch},
	v1alpha1.ReasonInventoryTooLarge:         {seePlan, seeTree},
	v1alpha1.ReasonArtifactRefused:           {seeSource, runFetch},
	v1alpha1.ReasonArtifactFailed:            {seeSource, runFetch},
	v1alpha1.ReasonDeleting:                  {seeEvents, seeTree},
	v1alpha1.ReasonDeletionBlocked: {
		seeDependant,
		annotate + v1alpha1.ForceDeleteAnnotation + "=true",
		annotate + v1alpha1.ConfirmDeletionAnnotation + "=true",
	},
	v1alpha1.ReasonHealthy:              {seeLayer},
	v1alpha1.ReasonUnhealthy:            {seeEvents, seeTree},
	v1alpha1.ReasonRecovering:           {seeEvents, seeTree},
	v1alpha1.ReasonHealthUnread:         {seeLayer, seeClusters},
	v1alpha1.ReasonForeignStatus:        {seeEvents, runReconcile},
	v1alpha1.ReasonInternalError:        {seeStack, "{strata} version", runReconcile},
	v1alpha1.ReasonProgressingWithRetry: {seeEvents, runReconcile},
	v1alpha1.ReasonWouldBreakDependants: {"{strata} tree {name}", annotate + v1alpha1.AllowBreakAnnotation + "=true"},
	v1alpha1.ReasonRollingBack:          {seeEvents, seeHistory},
	v1alpha1.ReasonRolledBack:           {seeHistory, seePlan},
	v1alpha1.ReasonRollbackFailed:       {seeEvents, seeHistory, runHold},
	v1alpha1.ReasonRollbackNotPossible:  {seeHistory},

	v1alpha1.ReasonAccessDenied:           {seeLayer, "kubectl auth can-i --list --as system:serviceaccount:NAMESPACE:NAME"},
	v1alpha1.ReasonReservedObject:         {seePlan, runFetch},
	v1alpha1.ReasonServiceAccountNotFound: {"kubectl{in} get serviceaccounts", seeLayer},
	v1alpha1.ReasonImpersonationDenied:    {seeLayer, "kubectl auth can-i impersonate serviceaccounts --as system:serviceaccount:strata-system:strata"},

	v1alpha1.ReasonClusterNotFound:    {"{strata} clusters", seeLayer},
	v1alpha1.ReasonClusterNotReady:    {seeClusters},
	v1alpha1.ReasonClusterUnreachable: {seeClusters},
	v1alpha1.ReasonClusterAbandoned:   {seeClusters, seeLayer},
	v1alpha1.ReasonClusterMistaken:    {seeClusters, "kubectl{in} describe {resource} {name}"},

	v1alpha1.ReasonAdopted:         {seeEvents},
	v1alpha1.ReasonApproved:        {seeEvents},
	v1alpha1.ReasonOrphaned:        {seePlan},
	v1alpha1.ReasonPruned:          {seeEvents},
	v1alpha1.ReasonReleased:        {seeEvents},
	v1alpha1.ReasonSuspended:       {seeEvents, runResume},
	v1alpha1.ReasonResumed:         {seeEvents},
	v1alpha1.ReasonDriftCorrected:  {seeEvents},
	v1alpha1.ReasonSuperseded:      {seeTree},
	v1alpha1.ReasonRevisionNotKept: {seeHistory},
	v1alpha1.ReasonLeftBehind:      {seeEvents},

	v1alpha1.ReasonReachable:             {seeClusters},
	v1alpha1.ReasonUnreachable:           {seeClusters},
	v1alpha1.ReasonPending:               {seeClusters},
	v1alpha1.ReasonIdentified:            {seeClusters},
	v1alpha1.ReasonClusterShared:         {seeClusters},
	v1alpha1.ReasonClusterNotClaimed:     {seeClusters},
	v1alpha1.ReasonIdentityForbidden:     {seeClusters},
	v1alpha1.ReasonIdentityChanged:       {seeClusters, "kubectl{in} annotate {resource} {name} " + v1alpha1.AcceptClusterAnnotation + "=UID"},
	v1alpha1.ReasonClaimedByOther:        {seeClusters, "kubectl{in} annotate {resource} {name} " + v1alpha1.TakeOverAnnotation + "=UID"},
	v1alpha1.ReasonInvalidKubeConfig:     {seeClusters},
	v1alpha1.ReasonCredentialsSourceGone: {seeClusters},
	v1alpha1.ReasonCopyUnverified:        {seeClusters},
	v1alpha1.ReasonCredentialsRefused:    {seeClusters},
	v1alpha1.ReasonCredentialsExpiring:   {seeClusters},
	v1alpha1.ReasonCredentialsValid:      {seeClusters},
	v1alpha1.ReasonLayersLeft:            {seeClusters, "{strata} get"},
	v1alpha1.ReasonDiscovered:            {"kubectl get clusterdiscoveries --all-namespaces"},
	v1alpha1.ReasonBound:                 {seeClaims},
	v1alpha1.ReasonAmbiguous:             {seeClaims, seeProviders},
	v1alpha1.ReasonNoProvider:            {seeProviders},
	v1alpha1.ReasonInvalidParameters:     {seeClaims, seeProviders},
	v1alpha1.ReasonInvalidPasswords:      {seeClaims},
	v1alpha1.ReasonInvalidTemplate:       {seeProviders},
	v1alpha1.ReasonRecordUnsigned:        {seeClaims, "{strata} capability sign"},
	v1alpha1.ReasonPluginFailed:          {seeProviders},
	v1alpha1.ReasonInvalidPlan:           {seeProviders},
	v1alpha1.ReasonObjectFailed:          {seeClaims, seeEvents},
	v1alpha1.ReasonInUse:                 {seeClaims},
	v1alpha1.ReasonProviderChanged:       {seeClaims, seeProviders},
	v1alpha1.ReasonMoveRefused:           {seeClaims, seeProviders},
	v1alpha1.ReasonMoved:                 {seeClaims},
	v1alpha1.ReasonNotShared:             {seeClaims},
	v1alpha1.ReasonPreviousValid:         {seeClaims, "{strata} get"},
	v1alpha1.ReasonRotated:               {seeClaims},
	v1alpha1.ReasonOffered:               {seeProviders},
	v1alpha1.ReasonHostsHealthy:          {seeHosts},
	v1alpha1.ReasonHostsLocked:           {seeHosts},
	v1alpha1.ReasonActionFailed:          {seeHosts},
	v1alpha1.ReasonPublished:             {"kubectl get helmapplications"},
	v1alpha1.ReasonProblems:              {"kubectl describe helmapplications"},
	v1alpha1.ReasonContentChanged:        {"kubectl describe helmapplications"},
	v1alpha1.ReasonNoClusters:            {seeClusters, "kubectl get remoteclusters --all-namespaces --show-labels"},
	v1alpha1.ReasonInstalled:             {"kubectl get platforms"},
	v1alpha1.ReasonProgressing:           {"kubectl get platforms", seeEvents},
	v1alpha1.ReasonWaiting:               {"kubectl describe platforms"},
	v1alpha1.ReasonHalted:                {"kubectl describe platforms"},
	v1alpha1.ReasonClusterFailed:         {"kubectl describe platforms", "{strata} get"},
	v1alpha1.ReasonBundleNotFound:        {"kubectl get applicationbundles"},
	v1alpha1.ReasonInputsNotFound:        {"kubectl describe platforms"},
	v1alpha1.ReasonUnsatisfiable:         {"kubectl describe platforms"},
	NotObserved:                          {"{strata} version", seeLayer},
	objects.StatusMissing:                {seeEvents},
	"InstallFailed":                      {seeEvents, seeObject, seeHistory},
	"UpgradeFailed":                      {seeEvents, seeObject, seeHistory},
	"TestFailed":                         {seeEvents, seeObject, seeHistory},
	"CrashLoopBackOff":                   {seePrevious, seeObject},
	"ImagePullBackOff":                   {seeObject, seeEvents},
	"ErrImagePull":                       {seeObject, seeEvents},
	"CreateContainerConfigError":         {seeObject},
	"Unschedulable":                      {"kubectl get nodes", seeObject},
	"OOMKilled":                          {seePrevious, seeObject},
	"Error":                              {seeLogs, seePrevious},
	"NotReady":                           {seeLogs, seeObject},
}

// onKind is advised where the reason is nobody's that is known.
var onKind = map[string][]string{
	"Pod": {seeLogs, seeObject}, v1alpha1.RemoteClusterKind: {seeClusters}, v1alpha1.AddonsLayerKind: {seeEvents, seeLayer},
}

// ofKind is advised whatever the reason: a command that knows more about the kind.
var ofKind = map[string][]string{v1alpha1.CapabilityClaimKind: {"{strata} capability why {name}{in}", seeProviders}}

// resources are the names by which kubectl takes kinds of other groups for no
// others.
var resources = map[string]string{"HelmRelease": "helmreleases.helm.toolkit.fluxcd.io", "Cluster": "nodes"}

// Verbs returns the commands of the plug-in that advice names, sorted.
func Verbs() []string {
	var verbs []string
	for _, commands := range []map[string][]string{advice, onKind, ofKind} {
		for _, each := range commands {
			for _, command := range each {
				if verb, ours := strings.CutPrefix(command, "{strata} "); ours {
					verbs = append(verbs, strings.Fields(verb)[0])
				}
			}
		}
	}
	slices.Sort(verbs)
	return slices.Compact(verbs)
}
