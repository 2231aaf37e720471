// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package looks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The hash tells where something has panicked, and not with what.
func TestHashOfAPanic(t *testing.T) {
	fails := func(value any) (hash string) {
		defer func() {
			_ = recover()
			hash = hashOf(callers())
		}()
		panic(value)
	}
	var none *metav1.Condition
	derefs := func() (hash string) {
		defer func() {
			_ = recover()
			hash = hashOf(callers())
		}()
		return none.Type
	}
	var hashes []string
	for _, value := range []any{"hunter2", errors.New("hunter2")} {
		hashes = append(hashes, fails(value))
	}
	if hashes[0] != hashes[1] || len(hashes[0]) != 8 {
		t.Errorf("one place has several hashes: %v", hashes)
	}
	if other := derefs(); other == hashes[0] {
		t.Errorf("two places have the hash %s", other)
	}
}

// What is ready or stalled is not known any more; anything else stays as it was said.
func TestConditionsAfterAPanic(t *testing.T) {
	now := metav1.Now()
	has := []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Failed"}, {Type: "Stalled", Status: "True"}, {Type: "Deployed", Status: "True"}}
	wants := map[string]string{"Ready": "Unknown/InternalError", "Reconciling": "True/InternalError", "Deployed": "True/"}
	got := map[string]string{}
	for _, condition := range panicked(has, 3, "text", now) {
		got[condition.Type] = string(condition.Status) + "/" + condition.Reason
	}
	if diff := cmp.Diff(wants, got); diff != "" {
		t.Error(diff)
	}
	if first := panicked(has, 3, "text", now); !cmp.Equal(first, panicked(first, 3, "text", metav1.Unix(1, 0))) {
		t.Error("the same panic is told as another one")
	}
}

// No controller is made but here: one that is says nothing of its panics.
func TestControllersAreMadeHere(t *testing.T) {
	makes := regexp.MustCompile(`\bcontroller\.New(Typed|Unmanaged|TypedUnmanaged)?\(|NewControllerManagedBy|builder\.(Typed)?ControllerManagedBy`)
	found := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !makes.Match(text) {
			return err
		}
		found++
		if filepath.Base(filepath.Dir(path)) != "looks" {
			t.Errorf("%s makes a controller without looks.NewController", path)
		}
		return nil
	})
	if err != nil || found != 1 {
		t.Errorf("%d files make controllers: %v", found, err)
	}
}
