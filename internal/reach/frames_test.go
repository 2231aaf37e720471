// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestFrames(t *testing.T) {
	long := strings.Repeat("a", 100)
	prefixed := func(sizes ...int) string {
		var stream []byte
		for _, size := range sizes {
			stream = append(binary.BigEndian.AppendUint32(stream, uint32(size)), make([]byte, size)...)
		}
		return string(stream)
	}
	for _, c := range []struct {
		reason string
		frames func() frames
		stream string
		want   int64
	}{
		{"nothing", func() frames { return &jsonFrames{} }, "", 0},
		{"the longest counts", func() frames { return &jsonFrames{} }, "{\"a\":1}\n{\"a\":{\"b\":[1]}}\n{}", 16},
		{"brackets in a text are no ends", func() frames { return &jsonFrames{} }, `{"a":"}{\"}` + long + `"}{}`, int64(len(`{"a":"}{\"}`) + 100 + 2)},
		{"lines are no ends", func() frames { return &jsonFrames{} }, "{\n\n\n\n}", 6},
		{"blanks without an end count", func() frames { return &jsonFrames{} }, "{}" + strings.Repeat(" ", 50), 50},
		{"what is no object counts", func() frames { return &jsonFrames{} }, "1 2 3 4", 7},
		{"what ends before it begins", func() frames { return &jsonFrames{} }, "}}]]{}", 2},
		{"lengths", func() frames { return &lengthFrames{} }, prefixed(3, 50, 4), 50},
		{"a length alone", func() frames { return &lengthFrames{} }, "\xff\xff\xff\xff", 1<<32 - 1},
	} {
		for _, step := range []int{1, 3, 1 << 10} {
			f, got := c.frames(), int64(0)
			for data := []byte(c.stream); len(data) > 0; {
				n := min(step, len(data))
				got = max(got, f.pass(data[:n]))
				data = data[n:]
			}
			if got != c.want {
				t.Errorf("%s, %d bytes at a time: %d, want %d", c.reason, step, got, c.want)
			}
		}
	}
}

// Whatever a stream is, and however it arrives, no decoder finds a message in it that
// is larger than what was counted.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"a":"}\\\""}} [1] {`), 3)
	f.Add([]byte("\x00\x00\x00\x02ab\x00\x00\x00\x01"), 1)
	f.Add([]byte(`"a" {"b"}}`), 2)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		if step < 1 {
			step = 1
		}
		counted, length := int64(0), int64(0)
		asJSON, asLength := &jsonFrames{}, &lengthFrames{}
		for rest := data; len(rest) > 0; {
			n := min(step, len(rest))
			counted, length = max(counted, asJSON.pass(rest[:n])), max(length, asLength.pass(rest[:n]))
			rest = rest[n:]
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		for {
			var message json.RawMessage
			if err := decoder.Decode(&message); err != nil {
				break
			}
			if int64(len(message)) > counted {
				t.Fatalf("%q is larger than %d", message, counted)
			}
		}
		for rest := data; len(rest) >= 4; {
			size := int64(binary.BigEndian.Uint32(rest))
			if size > length {
				t.Fatalf("a message of %d is larger than %d", size, length)
			}
			rest = rest[min(int64(len(rest)), 4+size):]
		}
	})
}

func TestAddresses(t *testing.T) {
	prefixes := func(texts ...string) (ranges []netip.Prefix) {
		for _, text := range texts {
			ranges = append(ranges, netip.MustParsePrefix(text))
		}
		return ranges
	}
	for _, c := range []struct {
		address string
		ranges  []netip.Prefix
		refused string
	}{
		{"10.0.0.1", nil, ""},
		{"203.0.113.7", nil, ""},
		{"fd00::1", nil, ""},
		{"127.0.0.1", nil, "a loopback address"},
		{"127.255.0.1", nil, "a loopback address"},
		{"::1", nil, "a loopback address"},
		{"::ffff:127.0.0.1", nil, "127.0.0.1 is a loopback address"},
		{"::127.0.0.1", nil, "no address of another machine"},
		{"64:ff9b::7f00:1", nil, "64:ff9b::7f00:1 is a loopback address"},
		{"64:ff9b::a9fe:a9fe", nil, "a link-local address"},
		{"64:ff9b::a00:1", nil, ""},
		{"2002:7f00:1::1", nil, "a loopback address"},
		{"0.0.0.0", nil, "no address of another machine"},
		{"0.1.2.3", nil, "no address of another machine"},
		{"::", nil, "no address of another machine"},
		{"169.254.169.254", nil, "a link-local address"},
		{"::ffff:169.254.169.254", nil, "169.254.169.254 is a link-local address"},
		{"fe80::1", nil, "a link-local address"},
		{"fe80::1%eth0", nil, "a link-local address"},
		{"fd00:ec2::254", nil, "an address of a cloud's metadata"},
		{"224.0.0.1", nil, "a multicast address"},
		{"ff02::1", nil, "a multicast address"},
		{"255.255.255.255", nil, "a broadcast address"},
		{"127.0.0.1", prefixes("127.0.0.0/8"), ""},
		{"::ffff:127.0.0.1", prefixes("127.0.0.0/8"), ""},
		{"127.0.0.1", prefixes("127.0.0.2/32"), "a loopback address"},
		{"127.0.0.1", prefixes("0.0.0.0/0"), "a loopback address"},
		{"127.0.0.1", prefixes("0.0.0.0/0", "127.0.0.1/32"), ""},
		{"::1", prefixes("::/0"), "a loopback address"},
		{"::1", prefixes("::1/128"), ""},
		{"64:ff9b::7f00:1", prefixes("64:ff9b::/96"), "64:ff9b::7f00:1 is a loopback address"},
		{"64:ff9b::7f00:1", prefixes("64:ff9b::7f00:0/104"), ""},
		{"64:ff9b::a00:1", prefixes("10.0.0.0/8"), "is in none of the ranges"},
		{"10.0.0.1", prefixes("10.0.0.0/8"), ""},
		{"11.0.0.1", prefixes("10.0.0.0/8"), "is in none of the ranges"},
		{"fe80::1%eth0", prefixes("fe80::/10"), ""},
	} {
		err := Allowed{Ranges: c.ranges}.Address(netip.MustParseAddr(c.address))
		var refused *RefusedError
		if (err != nil) != (c.refused != "") || err != nil && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), "--allowed-cluster-ranges")) {
			t.Errorf("%s in %v: %v, want %q", c.address, c.ranges, err, c.refused)
		}
	}
}

func TestHosts(t *testing.T) {
	ten := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		host    string
		by      Allowed
		refused string
	}{
		{"api.example.com", Allowed{}, ""},
		{"localhost", Allowed{}, "is the machine itself"},
		{"LOCALHOST.", Allowed{}, "is the machine itself"},
		{"a.localhost", Allowed{}, "is the machine itself"},
		{"127.0.0.1", Allowed{}, "is a loopback address"},
		{"2130706433", Allowed{}, "is neither a name nor an address"},
		{"0x7f.1", Allowed{}, "is neither a name nor an address"},
		{"127.1", Allowed{}, "is neither a name nor an address"},
		{"0x7f000001", Allowed{}, "is neither a name nor an address"},
		{"10.0.0.1", Allowed{}, ""},
		{"localhost", Allowed{Hosts: []string{"localhost"}}, ""},
		{"api.example.com", Allowed{Ranges: ten}, "is none of the names of --allowed-cluster-hosts"},
		{"10.0.0.1", Allowed{Ranges: ten}, ""},
		{"11.0.0.1", Allowed{Ranges: ten}, "is in none of the ranges"},
		{"api.example.com", Allowed{Ranges: ten, Hosts: []string{"API.example.com"}}, ""},
		{"api.example.com", Allowed{Hosts: []string{"*.example.com"}}, ""},
		{"a.b.example.com.", Allowed{Hosts: []string{"*.example.com"}}, ""},
		{"example.com", Allowed{Hosts: []string{"*.example.com"}}, "is none of the names of --allowed-cluster-hosts"},
		{"evilexample.com", Allowed{Hosts: []string{"*.example.com"}}, "is none of the names of --allowed-cluster-hosts"},
		{"api.example.com.evil.example", Allowed{Hosts: []string{"api.example.com", "*.example.com"}}, "is none of the names of --allowed-cluster-hosts"},
	} {
		err := c.by.Host(c.host)
		var refused *RefusedError
		if (err != nil) != (c.refused != "") || err != nil && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s by %v: %v, want %q", c.host, c.by, err, c.refused)
		}
	}
}

// What a request asks for is told by its path, below whatever path the API server
// has.
func TestQuestions(t *testing.T) {
	for _, c := range []struct {
		method, path, base, want string
		watches, list, begins    bool
	}{
		{"GET", "/version", "", "a version", false, false, false},
		{"GET", "/k8s/c-1/version", "/k8s/c-1", "a version", false, false, false},
		{"GET", "/k8s/c-1/version", "/k8s/c-1/", "a version", false, false, false},
		{"GET", "/api", "", "a list of kinds", false, false, false},
		{"GET", "/apis/apps/v1", "", "a list of kinds", false, false, false},
		{"GET", "/api/v1/namespaces", "", "a page of a list", false, true, true},
		{"GET", "/api/v1/namespaces?limit=1", "", "a page of a list", false, false, false},
		{"GET", "/api/v1/namespaces?limit=500&continue=x", "", "a page of a list", false, true, false},
		{"GET", "/api/v1/namespaces/a", "", "an object", false, false, false},
		{"GET", "/api/v1/namespaces/a/secrets", "", "a page of a list", false, true, true},
		{"GET", "/api/v1/namespaces/a/secrets/b", "", "an object", false, false, false},
		{"GET", "/apis/apps/v1/deployments", "", "a page of a list", false, true, true},
		{"GET", "/apis/apps/v1/namespaces/a/deployments/b/status", "", "an object", false, false, false},
		{"GET", "/apis/apps/v1/deployments?watch=true", "", "an event", true, true, false},
		{"GET", "/apis/apps/v1/deployments?watch=1&sendInitialEvents=true", "", "an event", true, true, true},
		{"POST", "/api/v1/namespaces", "", "an object", false, false, false},
		{"POST", "/api/v1/namespaces?watch=true", "", "an object", false, false, false},
		{"GET", "/", "", "an object", false, false, false},
		{"GET", "/healthz", "", "an object", false, false, false},
	} {
		got := questionOf(httptest.NewRequest(c.method, "https://a"+c.path, http.NoBody), c.base)
		if got.what != c.want || got.watches != c.watches || (got.list != "") != c.list || got.begins != c.begins {
			t.Errorf("%s %s: %+v", c.method, c.path, got)
		}
	}
}

func TestParseRange(t *testing.T) {
	for _, c := range []struct{ text, want, err string }{
		{"10.0.0.0/8", "10.0.0.0/8", ""},
		{"192.0.2.1", "192.0.2.1/32", ""},
		{"::1", "::1/128", ""},
		{"::ffff:10.0.0.1", "10.0.0.1/32", ""},
		{"10.0.0.1/8", "", "did you mean 10.0.0.0/8?"},
		{"::ffff:10.0.0.0/104", "", "is no range of addresses such as"},
		{"fe80::1%eth0", "", "has a zone"},
		{"", "", "is no range of addresses such as"},
		{"example.com", "", "is no range of addresses such as"},
		{"10.0.0.0/33", "", "is no range of addresses such as"},
	} {
		got, err := ParseRange(c.text)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q ", c.text)) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q is %s, %v, want an error with %q", c.text, got, err, c.err)
			}
		case err != nil || got.String() != c.want:
			t.Errorf("%q is %s, %v, want %q", c.text, got, err, c.want)
		}
	}
}

// slowBody is a body of bytes that come one by one.
type slowBody struct{ io.Reader }

func (slowBody) Close() error { return nil }

// An answer of exactly the limit is read, and one of a byte more is not.
func TestLimitIsTheLimit(t *testing.T) {
	for size, fits := range map[int]bool{99: true, 100: true, 101: false} {
		body := &bounded{body: slowBody{strings.NewReader(strings.Repeat("a", size))}, end: func() {}, what: "it", limit: 100}
		data, err := io.ReadAll(body)
		var tooLarge *TooLargeError
		if fits && (err != nil || len(data) != size) || !fits && (!errors.As(err, &tooLarge) || *tooLarge != TooLargeError{What: "it", Limit: 100}) {
			t.Errorf("of %d bytes %d are read: %v", size, len(data), err)
		}
	}
}
