// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"
	"maps"
	"slices"

	"github.com/strata-project/strata/internal/sops"
)

// decrypt opens each text.
func decrypt(request *Request) (map[string][]byte, error) {
	plain := make(map[string][]byte, len(request.Decrypt.Formats))
	for _, name := range slices.Sorted(maps.Keys(request.Decrypt.Formats)) {
		text, err := sops.Decrypt(request.Files[name], request.Decrypt.Formats[name], request.Decrypt.Keys)
		if err != nil {
			return nil, &Refusal{fmt.Sprintf("%s\x00%s", name, err)}
		}
		plain[name] = text
	}
	return plain, nil
}
