// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report holds what a benchmark measured: the machine and the flags
// it ran with, the results of every scenario and system, ratios between the
// systems, and how the results stand against the targets. It measures nothing
// and reads no clock.
package report

import (
	"slices"
	"time"
)

// Schema names the version of the JSON form. It changes whenever a field gets
// another meaning or name.
const Schema = "strata-bench/v1"

// StandIn says what is not real in a run.
const StandIn = "helm-controller is a stand-in that marks each release Ready a set delay after it was last changed, " +
	"so that only the controller of the layers is measured. etcd, kube-apiserver and source-controller are real."

// FleetStandIn says what is not real in a fleet.
const FleetStandIn = "One real kube-apiserver with an etcd of its own stands in for all clusters of the fleet: " +
	"the kubeconfig of each RemoteCluster names it. Each has its own connection, and its layers have their own objects there."

// The systems that are measured.
const (
	Strata         = "strata"
	Plain          = "plain-apply"  // the limit: server-side apply by client-go alone
	PlainCreate    = "plain-create" // the same objects by create
	IdleManager    = "idle-manager" // plain-apply with the caches and the lease of a controller
	Kustomize      = "kustomize-defaults"
	KustomizeTuned = "kustomize-tuned"
)

// The scenarios that are measured.
const (
	Chain   = "chain"
	FanOut  = "fan-out"
	Idle    = "idle"
	Commit  = "commit"
	Restart = "restart"
	Storm   = "storm"
	Curve   = "curve" // fan-out at several numbers of layers
	// Fleet is layers on many other clusters, FleetJoin the connection of those
	// clusters before it, and FleetIdle what follows when all is deployed.
	Fleet     = "fleet"
	FleetJoin = "fleet-join"
	FleetIdle = "fleet-idle"
	// RolloutInstall is a bundle that a Platform installs on many other clusters, and
	// Rollout its next version, which goes there stage by stage.
	RolloutInstall = "rollout-install"
	Rollout        = "rollout"
	// Builds is a fan-out of layers whose directories are built, with components,
	// variables and encrypted files, and BuildsCommit what follows a commit in one of them.
	Builds       = "builds"
	BuildsCommit = "builds-commit"
)

// The figures of scenarios. All but those that say otherwise are in seconds.
const (
	// AllCreated is until all releases exist (fan-out, curve, fleet).
	AllCreated = "all created"
	// AllReady is until all releases are Ready, which the stand-in for helm-controller
	// says (fan-out, curve).
	AllReady = "all ready"
	// AllDeployed is until all layers are Deployed (chain, fan-out, curve, fleet).
	AllDeployed = "all deployed"
	// HopP50, HopP95 and HopMax are from the last release of a layer Ready to
	// the first release of the next one created (chain).
	HopP50 = "hop p50"
	HopP95 = "hop p95"
	HopMax = "hop max"
	// CommitP50, CommitP95 and CommitMax are from the artifact in the source's
	// status to the change in the release's spec (commit).
	CommitP50 = "commit p50"
	CommitP95 = "commit p95"
	CommitMax = "commit max"
	// OtherReleases counts the releases changed by commits that were not
	// meant for them (commit).
	OtherReleases = "other releases changed"
	// OtherLayerWrites is the number of writes to each layer that a commit
	// does not change, per commit (commit).
	OtherLayerWrites = "writes per other layer"
	// Quiet is from the start to the last request that is no watch (restart).
	Quiet = "quiet after"
	// StormArtifacts is until every release is as its source's new artifact
	// says, when all sources get one at once (storm).
	StormArtifacts = "new artifacts applied"
	// StormEdits is until every release is as it was, when all are edited at
	// once by somebody else (storm).
	StormEdits = "edits taken back"
	// AllJoined is until all RemoteClusters are Ready (fleet-join).
	AllJoined = "all joined"
	// AllPut is until the objects that are not Flux's exist on the other
	// clusters (fleet).
	AllPut = "all on the clusters"
	// CanaryDone and EarlyDone are until the first and the second stage of a roll-out are
	// done, of a hundredth and of a tenth of the clusters (rollout).
	CanaryDone = "canaries done"
	EarlyDone  = "early ones done"
	// ClusterWrites is how often each RemoteCluster was written (fleet-join,
	// fleet).
	ClusterWrites = "writes per cluster object"
	// RSSPerCluster is in bytes: the resident memory of now beyond that before
	// there was a RemoteCluster, for each of them (fleet-join, fleet-idle).
	RSSPerCluster = "rss per cluster"
	// Probes is how often each cluster was asked whether it answers, on average
	// (fleet-idle).
	Probes = "probes per cluster"
)

// ProbeInterval is how often a cluster of the fleet may be asked whether it
// answers.
const ProbeInterval = 30 * time.Second

// The figures that Result.Measures adds to those of the scenario.
const (
	Wall      = "wall"
	CPU       = "cpu"
	RSS       = "peak rss"
	Reads     = "api reads"
	Writes    = "api writes"
	Watches   = "api watches"
	Leases    = "lease requests"
	Version   = "version questions"
	Downloads = "artifact downloads"
	// Those of the other clusters' API server, by the same system.
	RemoteReads   = "reads on the clusters"
	RemoteWrites  = "writes on the clusters"
	RemoteWatches = "watches on the clusters"
	RemoteVersion = "probes of the clusters"
)

// Units of figures.
const (
	Seconds = "s"
	Bytes   = "B"
	Count   = "" // a number of things
)

// Report is one run of the benchmark, as it is kept.
type Report struct {
	Schema  string   `json:"schema"`
	Run     Run      `json:"run"`
	Results []Result `json:"results"`
	// Targets are how the results stand, for readers that do not judge
	// themselves. What reads the report here judges the results again.
	Targets []Target `json:"targets"`
}

// New returns a report of the present schema that says what is not real and
// judges the results.
func New(run Run, results []Result) Report {
	run.StandIn = StandIn
	if slices.ContainsFunc(results, func(r Result) bool { return r.Sizes.Clusters > 0 }) {
		run.StandIn += " " + FleetStandIn
	}
	run.Programs = firsts(run.Programs, func(p Program) string { return p.Name + " " + p.Version })
	run.Systems = firsts(run.Systems, func(s System) string { return s.Name })
	return Report{Schema: Schema, Run: run, Results: results, Targets: Judge(results)}
}

// Run says where, when and with what was measured.
type Run struct {
	Date    time.Time `json:"date"`
	Command []string  `json:"command"`
	Machine Machine   `json:"machine"`
	// Programs are what took part, with their versions.
	Programs []Program `json:"programs"`
	// Systems are what was measured, with all their flags.
	Systems []System `json:"systems"`
	// ReadyDelaySeconds is how long the stand-in takes for a release.
	ReadyDelaySeconds float64 `json:"readyDelaySeconds"`
	StandIn           string  `json:"standIn"`
}

// Machine is where a run took place.
type Machine struct {
	Cores       int    `json:"cores"`
	CPU         string `json:"cpu"`
	MemoryBytes int64  `json:"memoryBytes"`
	Kernel      string `json:"kernel"`
	Go          string `json:"go"`
}

// Program is a program that took part, such as kube-apiserver.
type Program struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// System is one of the things that are compared.
type System struct {
	Name string `json:"name"`
	// About says in a sentence what it is.
	About string `json:"about"`
	// Flags are all its flags, also those left at their default.
	Flags []Flag `json:"flags,omitempty"`
}

// Flag is one flag of a system with the value it had.
type Flag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Given is false where the value is the program's own default.
	Given bool `json:"given,omitempty"`
}

// Sizes are the sizes of a scenario; those that do not apply are 0.
type Sizes struct {
	// Clusters is the number of other clusters; Layers are then those of each.
	Clusters int `json:"clusters,omitempty"`
	Layers   int `json:"layers"`
	// Releases is the number of releases in each layer.
	Releases int `json:"releases"`
	Commits  int `json:"commits,omitempty"`
}

// Result is what one system did in one scenario. The same scenario, system
// and sizes may occur again: then it was repeated.
type Result struct {
	Scenario string `json:"scenario"`
	System   string `json:"system"`
	Sizes    Sizes  `json:"sizes"`
	// Figures are the scenario's own, in the order in which they are shown.
	Figures []Figure `json:"figures,omitempty"`
	// WallSeconds is the length of the window in which Cost, Requests and
	// Downloads were taken.
	WallSeconds float64 `json:"wallSeconds"`
	// Cost is what the system's process used; nil where it was not measured.
	Cost *Cost `json:"cost,omitempty"`
	// Requests are the system's requests to the API server; nil where they
	// were not counted.
	Requests *Requests `json:"requests,omitempty"`
	// RemoteRequests are those to the API server that stands in for the other
	// clusters; nil where there are none.
	RemoteRequests *Requests `json:"remoteRequests,omitempty"`
	// Downloads is how often the system fetched an artifact; nil where that
	// was not counted.
	Downloads *int     `json:"downloads,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	// Error says why the scenario did not end; the figures are then not
	// complete.
	Error string `json:"error,omitempty"`
}

// Figure is one number with its unit.
type Figure struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
}

// Cost is what a process used.
type Cost struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	// PeakRSSBytes is the most memory that was resident at a time.
	PeakRSSBytes int64 `json:"peakRSSBytes"`
}
