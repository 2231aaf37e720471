// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Tests that run side by side ask for the same identity again and again, while
// programs of the others read its file as they start.
func TestKubeconfigIsWholeWhileItIsWrittenAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "kubeconfigs", "strata")
	tokens := []string{"short", strings.Repeat("long", 1<<10)}
	write := func(token string) error {
		return writeKubeconfig(path, &rest.Config{Host: "https://cluster.example", BearerToken: token})
	}
	if err := write(tokens[0]); err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	for _, token := range tokens {
		group.Go(func() error {
			for range 100 {
				if err := write(token); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range 2 {
		group.Go(func() error {
			for range 100 {
				config, err := clientcmd.BuildConfigFromFlags("", path)
				if err != nil {
					return err
				}
				if config.BearerToken != tokens[0] && config.BearerToken != tokens[1] {
					return errors.New("a token that nobody has written")
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 {
		t.Errorf("%d files in the folder, want one", len(left))
	}
}
