// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"text/template"
)

// steady holds functions of templates that take the place of others.
func steady() template.FuncMap {
	return template.FuncMap{}
}
