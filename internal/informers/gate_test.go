// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/test/authority"
)

// A connection that is made anew may lead elsewhere: what is written goes nowhere
// before the cluster has said over that very connection which one it is.
func TestWritesFollowNoNewConnection(t *testing.T) {
	a := authority.New(t)
	var mu sync.Mutex
	uid, writes := "11111111-aaaa", map[string]int{}
	is := func() string {
		mu.Lock()
		defer mu.Unlock()
		return uid
	}
	endpoint := a.Serve("127.0.0.1:0", nil, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"metadata":{"uid":%q,"resourceVersion":"1"}}`, is())
			return
		}
		mu.Lock()
		defer mu.Unlock()
		writes[uid]++
	}, net.IPv4(127, 0, 0, 1))
	data, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "it", Contexts: map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"it": {Server: endpoint, CertificateAuthorityData: a.PEM}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"it": {Token: "right"}},
	})
	a.Must(err)
	access, err := kubeconfig.Parse(data, kubeconfig.Allow{})
	a.Must(err)
	over, err := guardedConnection(access, authority.Reach, func() {})
	a.Must(err)
	write := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/write", bytes.NewReader([]byte("{}")))
		a.Must(err)
		response, err := over.Web.Do(request)
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			err = response.Body.Close()
		}
		return err
	}
	if err := write(); !errors.Is(err, errNotIdentified) {
		t.Fatalf("nothing is known, and the write ends with %v", err)
	}
	a.Must(over.AskIdentity(t.Context(), time.Now()))
	over.Gate.Judge(clusters.Verdict{Open: true}, clusters.Answer{}, time.Now())
	a.Must(write())
	reconnect := func() {
		over.Gate.mu.Lock()
		var all []net.Conn
		for _, l := range over.Gate.links {
			all = append(all, l.Conn)
		}
		over.Gate.mu.Unlock()
		for _, c := range all {
			_ = c.Close()
		}
		over.plain.CloseIdleConnections()
	}
	reconnect()
	a.Must(write()) // of the same cluster
	mu.Lock()
	uid = "22222222-bbbb"
	mu.Unlock()
	reconnect()
	for range 3 {
		if err := write(); !errors.Is(err, errNotIdentified) {
			t.Errorf("another cluster answers, and a write ends with %v", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if writes["11111111-aaaa"] != 2 || len(writes) != 1 {
		t.Errorf("these were written to: %v", writes)
	}
}

// A UID or a claim that a hostile cluster has written is shown to nobody as it is.
func TestIdentityInIsShort(t *testing.T) {
	for text, want := range map[string]string{
		`{"metadata":{"uid":"a-1","annotations":{"kraan.io/hub":"b-2"}}}`:                             "b-2",
		`{"metadata":{"uid":"a-1","annotations":{"kraan.io/hub":"\u001b[31mx"}}}`:                     "--31mx",
		`{"metadata":{"uid":"a-1","annotations":{"kraan.io/hub":"` + strings.Repeat("y", 99) + `"}}}`: strings.Repeat("y", 64),
	} {
		if got, err := identityIn([]byte(text)); err != nil || got.Hub != want {
			t.Errorf("%s is of hub %q, %v", text, got.Hub, err)
		}
	}
	for text, want := range map[string]string{
		`{}`:                         "its namespace kube-system has no UID",
		`<html>`:                     "its answer is no namespace kube-system in JSON",
		`{"metadata":{"uid":"a b"}}`: "its namespace kube-system has a UID that is not 1 to 64 letters",
		`{"metadata":{"uid":"` + strings.Repeat("x", 65) + `"}}`: "its namespace kube-system has a UID that is not 1 to 64 letters",
		`{"metadata":{"uid":"\u001b[31m"}}`:                      "its namespace kube-system has a UID that is not 1 to 64 letters",
	} {
		if got, err := identityIn([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %+v, %v, want %q", text, got, err, want)
		}
	}
}
