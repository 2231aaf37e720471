// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	_ "embed"
	"errors"

	"github.com/strata-project/strata/internal/encryption"
)

//go:embed encryption.sh
var encryptionScript string

// EncryptionScript is run by sh as root on a host of the control plane, and says what is in
// the EncryptionConfiguration of a path, which is one of Strata's.
func EncryptionScript(file string) ([]byte, error) {
	if !encryption.IsFile(file) {
		return nil, errors.New("that is no configuration of encryption of Strata's")
	}
	return []byte("FILE=" + file + "\n" + encryptionScript), nil
}

// ReadEncryption reads an answer to EncryptionScript. An error repeats nothing of it.
func ReadEncryption(file string, answer []byte) (encryption.Configuration, error) {
	files, err := readFiles(answer)
	if err != nil {
		return encryption.Configuration{}, err
	}
	if len(files["encryption"]) == 0 {
		return encryption.Configuration{}, errors.New("it has no " + file)
	}
	if _, _, err := encryption.Read(files["encryption"]); err != nil {
		return encryption.Configuration{}, err
	}
	return encryption.Configuration{File: file, Content: string(files["encryption"])}, nil
}
