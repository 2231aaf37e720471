// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package plugindeploy

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ImageOf returns the image that the Deployment of a plug-in runs.
func ImageOf(objects []client.Object) string {
	return objects[len(objects)-1].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image
}
