// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/terminal"
)

// kind is a kind of object that a command shows.
type kind struct {
	console.Kind
	// namespaced kinds are named namespace/name.
	namespaced bool
	header     func(wide bool) []string
	row        func(object *unstructured.Unstructured, now time.Time) (row, error)
	// painted are the columns that have a colour by what they say.
	painted []string
	// expendable are the columns that a narrow terminal does without, the last one
	// first.
	expendable []string
}

// columns returns the columns of a table that is fitted to a terminal.
func (k kind) columns() []terminal.Column {
	columns := terminal.Columns(k.header(false)...)
	for i := range columns {
		columns[i].Expendable = slices.Index(k.expendable, columns[i].Name) + 1
		if slices.Contains(k.painted, columns[i].Name) {
			columns[i].Role = roleOfState
		}
	}
	return columns
}

// roleOfState returns the role of a cell that holds a state.
func roleOfState(state string) terminal.Role { return terminal.RoleOf(summary.Standing(state)) }

// row is an object in the columns of a table.
type row struct {
	// name of the object, with its namespace where it has one.
	name string
	// cells of its kind's header, for a table that is wide or not, and for an
	// object that was deleted.
	cells func(wide, deleted bool) []string
	// lasting is comparable, and the same until something but the time has changed.
	lasting any
	// blocked is true for what does not get on by itself.
	blocked bool
}

// layerKind is the kind of layers.
var layerKind = kind{
	Kind: console.Layers, header: summary.Header, painted: []string{"STATE"}, expendable: []string{"READY", "VERSION", "CLUSTER", "SINCE", "REVISION"},
	row: func(object *unstructured.Unstructured, now time.Time) (row, error) {
		layer := &v1alpha1.AddonsLayer{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, layer); err != nil {
			return row{}, fmt.Errorf("cannot understand layer %s: %w", object.GetName(), err)
		}
		r := summary.Of(layer, now)
		return row{name: r.Name, lasting: r.Lasting(), blocked: r.Blocked, cells: func(wide, deleted bool) []string {
			if deleted {
				r.State, r.Why = "Deleted", ""
			}
			return r.Cells(wide)
		}}, nil
	},
}

// clusterKind is the kind of RemoteClusters.
var clusterKind = kind{
	Kind: console.Clusters, namespaced: true, header: summary.ClusterHeader, painted: []string{"READY", "REACHABLE"},
	expendable: []string{"REACHABLE", "LAYERS", "VERSION", "EXPIRES", "LAST SEEN"},
	row: func(object *unstructured.Unstructured, now time.Time) (row, error) {
		cluster := &v1alpha1.RemoteCluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, cluster); err != nil {
			return row{}, fmt.Errorf("cannot understand RemoteCluster %s/%s: %w", object.GetNamespace(), object.GetName(), err)
		}
		r := summary.OfCluster(cluster, now)
		return row{name: r.Name, lasting: r.Lasting(), blocked: r.Blocked, cells: func(wide, deleted bool) []string {
			if deleted {
				r.Ready, r.Why = "Deleted", ""
			}
			return r.Cells(wide)
		}}, nil
	},
}
