// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

func lookAt(layer string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: layer}}
}

func TestOrderOfLooks(t *testing.T) {
	for name, test := range map[string]struct{ reason, begun, pushed, want string }{
		"nobody is under way": {"first come, first served", "", "abc", "abc"},
		"all are under way":   {"first come, first served", "abc", "abc", "abc"},
		"some are under way":  {"others have two turns for one", "cd", "abcd", "abcd"},
		"many are under way":  {"nobody waits for ever for those that never get ready", "abcd", "abcdefgh", "efaghbcd"},
		"one is under way":    {"it is brought to its end, however many others wait", "f", "abcdef", "abfcde"},
	} {
		t.Run(name, func(t *testing.T) {
			underWay := &begun{}
			for _, layer := range test.begun {
				underWay.set(string(layer), true)
			}
			l := newLines(underWay)
			for i, layer := range test.pushed {
				l.Push(lookAt(string(layer)))
				if l.Len() != i+1 {
					t.Fatalf("%d layers wait, want %d", l.Len(), i+1)
				}
			}
			var got strings.Builder
			for l.Len() > 0 {
				got.WriteString(l.Pop().Name)
			}
			if got.String() != test.want {
				t.Errorf("%s: order %s, want %s", test.reason, got.String(), test.want)
			}
		})
	}
}

// A layer that comes to be under way while it is looked at is in the line of those
// afterwards, and no longer when it has ended.
func TestQueueOfLooks(t *testing.T) {
	underWay := &begun{}
	queue := newQueue(underWay)("test", workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	get := func(want string) {
		t.Helper()
		if item, _ := queue.Get(); item.Name != want {
			t.Fatalf("got %s, want %s", item.Name, want)
		}
	}
	for _, layer := range []string{"a", "b", "c", "d"} {
		queue.Add(lookAt(layer))
	}
	get("a")
	underWay.set("a", true)
	queue.Add(lookAt("a"))
	queue.Done(lookAt("a"))
	get("b")
	get("a")
	underWay.set("a", false)
	queue.Add(lookAt("a"))
	queue.Done(lookAt("a"))
	get("c")
	get("d")
	get("a")
}

// An empty queue measures itself seldom: each time wakes the process.
func TestQueuesMeasureThemselvesSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		often, seldom := unhurried{}.NewTicker(500*time.Millisecond), unhurried{}.NewTicker(time.Minute)
		defer often.Stop()
		defer seldom.Stop()
		<-often.C()
		if got := time.Since(began); got != measureEvery {
			t.Errorf("it measures after %s", got)
		}
		<-seldom.C()
		if got := time.Since(began); got != time.Minute {
			t.Errorf("what is seldom comes after %s", got)
		}
	})
}
