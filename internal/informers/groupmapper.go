// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// groupMapper knows the kinds of those API groups that it was asked for. A cluster
// has hundreds of kinds and its layers hold few of them; what is known of all of
// them would be a good part of what a connection costs.
type groupMapper struct{ meta.RESTMapper }

// NewGroupMapper returns one that knows nothing yet, and asks over a connection.
func NewGroupMapper(config *rest.Config, web *http.Client) (meta.RESTMapper, error) {
	next := web.Transport
	asking := *web
	asking.Transport = roundTrip(func(req *http.Request) (*http.Response, error) {
		// What is called aggregated discovery answers with all kinds at once.
		if path := strings.TrimSuffix(req.URL.Path, "/"); strings.HasSuffix(path, "/api") || strings.HasSuffix(path, "/apis") {
			req = req.Clone(req.Context())
			req.Header.Set("Accept", discovery.AcceptV1)
		}
		return next.RoundTrip(req)
	})
	mapper, err := apiutil.NewDynamicRESTMapper(config, &asking)
	if err != nil {
		return nil, err
	}
	return groupMapper{mapper}, nil
}

// RESTMapping says how a kind is served. It asks for all versions of a group before
// it looks for some: the first one that was looked for would be taken for the best
// one of the group otherwise.
func (m groupMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	best, err := m.RESTMapper.RESTMapping(gk)
	if err != nil || len(versions) == 0 {
		return best, err
	}
	return m.RESTMapper.RESTMapping(gk, versions...)
}

// roundTrip is a function that sends requests.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip sends a request.
func (r roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }
