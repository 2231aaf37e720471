// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answers has a package below it for each thing that people ask of Strata: why
// a layer waits, what a revision would do, who has an object. An answer is a value that
// marshals to JSON, so that the plug-in prints it and a page can show it. No answer
// knows how it is shown: none of these packages imports the terminal, a command or
// cobra, directly or not.
package answers
