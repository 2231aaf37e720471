// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package encryption decides how API servers go from one key that encrypts Secrets in etcd to
// the next, and writes and reads their EncryptionConfigurations. It asks nobody.
package encryption
