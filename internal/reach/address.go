// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reach makes every connection to another cluster: to addresses that are
// allowed only, without redirects, and with answers that end somewhere. Whoever
// runs a cluster decides what its API server answers, and whoever writes its
// kubeconfig where that is; neither is trusted here. Clients of other servers, such as
// buckets and registries, have answers that end somewhere from here, too.
package reach

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Allowed says where API servers of other clusters, and proxies that their
// kubeconfigs name, may be. Without anything they may be everywhere but at the
// special addresses.
type Allowed struct {
	// Ranges of addresses; where there are some, there are no others. A special
	// address is in one only where the whole range is special.
	Ranges []netip.Prefix
	// Hosts are the names that API servers behind a proxy may have; *.example.com
	// is each below example.com. Where there are ranges or names, there are no
	// other names behind a proxy.
	Hosts []string
	// Elsewhere allows every address: connections are made from another machine, by somebody
	// who is root there, and lead nowhere that this one alone can reach.
	Elsewhere bool
	// RangesFlag is the flag that gives the ranges; --allowed-cluster-ranges where it is
	// empty.
	RangesFlag string
}

// special are the addresses that mean the machine itself, its neighbours or the
// cloud that it runs in, whose services trust who asks.
var special = []struct {
	prefix netip.Prefix
	is     string
}{
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "no address of another machine"},
	{netip.MustParsePrefix("::/96"), "no address of another machine"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "a broadcast address"},
	{netip.MustParsePrefix("100.100.100.200/32"), "an address of a cloud's metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), "an address of a cloud's metadata"},
	{netip.MustParsePrefix("192.0.0.192/32"), "an address of a cloud's metadata"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "an address of a cloud's metadata"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "an address of a cloud's metadata"},
}

// embedding are the IPv6 ranges whose addresses lead to an IPv4 address, and where
// in them that begins.
var embedding = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
}

// RefusedError says that an address or a name is none to connect to.
type RefusedError struct{ Message string }

// Error names the address, and the flag that allows it.
func (e *RefusedError) Error() string { return e.Message }

// Address returns an error where an address may not be connected to: a
// *RefusedError.
func (a Allowed) Address(address netip.Addr) error {
	if a.Elsewhere {
		return nil
	}
	address = address.WithZone("").Unmap()
	if is := specially(address); is != "" && !a.names(address) {
		return refused("%s is %s, which is refused (%s allows it)", address, is, a.rangesFlag())
	}
	if len(a.Ranges) > 0 && !a.holds(address) {
		return refused("%s is in none of the ranges of %s", address, a.rangesFlag())
	}
	return nil
}

func (a Allowed) rangesFlag() string { return cmp.Or(a.RangesFlag, "--allowed-cluster-ranges") }

// Host returns an error where an API server of a name, or of an address, may not
// be asked for by way of a proxy, which alone finds out where it leads: a
// *RefusedError.
func (a Allowed) Host(host string) error {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if address, err := netip.ParseAddr(name); err == nil {
		return a.Address(address)
	}
	for _, allowed := range a.Hosts {
		allowed = strings.TrimSuffix(strings.ToLower(allowed), ".")
		below, isPattern := strings.CutPrefix(allowed, "*")
		if name == allowed || isPattern && strings.HasSuffix(name, below) && len(name) > len(below) {
			return nil
		}
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case len(a.Ranges) > 0 || len(a.Hosts) > 0:
		return refused("%s is reached through a proxy and is none of the names of --allowed-cluster-hosts", host)
	case last == "localhost":
		return refused("%s is the machine itself, which is refused (--allowed-cluster-hosts allows it)", host)
	case last == "" || last[0] >= '0' && last[0] <= '9':
		return refused("%s is neither a name nor an address", host)
	}
	return nil
}

// Special says what an address means that is the machine itself, one of its neighbours, or the
// cloud that it runs in; empty for all others.
func Special(address netip.Addr) string { return specially(address.WithZone("").Unmap()) }

// holds tells whether an address is in one of the ranges.
func (a Allowed) holds(address netip.Addr) bool {
	for _, allowed := range a.Ranges {
		if allowed.Contains(address) {
			return true
		}
	}
	return false
}

// names tells whether a range that holds an address is special as a whole, so that
// whoever wrote it down meant it.
func (a Allowed) names(address netip.Addr) bool {
	for _, allowed := range a.Ranges {
		if allowed.Contains(address) && isSpecial(allowed) {
			return true
		}
	}
	return false
}

// isSpecial tells whether all addresses of a range are special, in one way.
func isSpecial(allowed netip.Prefix) bool {
	for _, known := range special {
		if known.prefix.Contains(allowed.Addr()) && allowed.Bits() >= known.prefix.Bits() {
			return true
		}
	}
	for _, known := range embedding {
		if bits := allowed.Bits() - 8*known.at; known.prefix.Contains(allowed.Addr()) && bits >= 0 {
			return isSpecial(netip.PrefixFrom(embedded(allowed.Addr()), min(bits, 32)))
		}
	}
	return false
}

// specially says in which way an address is special; empty where it is not.
func specially(address netip.Addr) string {
	for _, known := range special {
		if known.prefix.Contains(address) {
			return known.is
		}
	}
	if leads := embedded(address); leads.IsValid() {
		if is := specially(leads); is != "" {
			return is
		}
	}
	return ""
}

// embedded returns the IPv4 address that an IPv6 address leads to; the zero
// address where it leads to none.
func embedded(address netip.Addr) netip.Addr {
	for _, known := range embedding {
		if known.prefix.Contains(address) {
			bytes := address.As16()
			return netip.AddrFrom4([4]byte(bytes[known.at : known.at+4]))
		}
	}
	return netip.Addr{}
}

// ParseRange reads a range such as 10.0.0.0/8, or a single address.
func ParseRange(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		if address.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q has a zone, which a range cannot have", text)
		}
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	parsed, err := netip.ParsePrefix(text)
	switch {
	case err != nil || parsed.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%q is no range of addresses such as 10.0.0.0/8 or fd00::/8", text)
	case parsed != parsed.Masked():
		return netip.Prefix{}, fmt.Errorf("%q is no range of addresses: did you mean %s?", text, parsed.Masked())
	}
	return parsed, nil
}

// CheckHost returns an error where a text is no name that Allowed.Hosts can hold.
func CheckHost(text string) error {
	name := strings.TrimPrefix(text, "*.")
	parsed, err := url.Parse("https://" + name)
	if name == "" || err != nil || parsed.Hostname() != name || strings.ContainsAny(name, "*, ") {
		return fmt.Errorf("%q is no name of a host such as api.example.com or *.example.com", text)
	}
	return nil
}

func refused(format string, args ...any) error {
	return &RefusedError{Message: fmt.Sprintf(format, args...)}
}
