package safehttp

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Public reports whether an address belongs to the public internet. Addresses that the IANA
// special-purpose registries (RFC 6890 and its updates) do not call globally reachable do
// not, nor do addresses that contain an IPv4 address (mapped, compatible, NAT64, 6to4,
// Teredo), because their destination depends on the network, nor the addresses at which
// clouds serve metadata and credentials to their machines.
func Public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	// A mapped address is connected to as the IPv4 address inside. Using one is suspicious,
	// so it is judged as it is written.
	if a.Is4In6() || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	if a.Is6() && !ipv6Public().Contains(a) {
		return false
	}
	for _, p := range specialPurposePrefixes() {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// endsInNumber reports whether a host is no address in its usual form, and ends in a number: browsers and some resolvers
// read such names (127.1, 0x7f000001, 2130706433) as IPv4 addresses (the host parser of the URL standard of WHATWG).
// No domain of the internet ends in a number, so that a resolver need not be asked.
func endsInNumber(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	name := strings.TrimSuffix(host, ".")
	last := strings.ToLower(name[strings.LastIndex(name, ".")+1:])
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// ipv6Public returns the part of IPv6 that is assigned as global unicast.
func ipv6Public() netip.Prefix { return netip.MustParsePrefix("2000::/3") }

// specialPurposePrefixes lists the prefixes inside the unicast space that are not public.
func specialPurposePrefixes() []netip.Prefix { return specialPrefixes }

//nolint:gochecknoglobals // an immutable table, parsed once
var specialPrefixes = parsePrefixes(
	"0.0.0.0/8",         // this network, RFC 791
	"10.0.0.0/8",        // private, RFC 1918
	"100.64.0.0/10",     // carrier-grade NAT, RFC 6598; Alibaba's metadata is in it
	"127.0.0.0/8",       // loopback, RFC 1122
	"168.63.129.16/32",  // Azure's host, metadata and DNS
	"169.254.0.0/16",    // link-local, RFC 3927; most clouds' metadata
	"172.16.0.0/12",     // private, RFC 1918
	"192.0.0.0/24",      // IETF protocol assignments, RFC 6890; Oracle's metadata
	"192.0.2.0/24",      // documentation, RFC 5737
	"192.88.99.0/24",    // 6to4 relays, RFC 7526
	"192.168.0.0/16",    // private, RFC 1918
	"198.18.0.0/15",     // benchmarks, RFC 2544
	"198.51.100.0/24",   // documentation, RFC 5737
	"203.0.113.0/24",    // documentation, RFC 5737
	"224.0.0.0/4",       // multicast, RFC 1112
	"240.0.0.0/4",       // reserved and broadcast, RFC 1112
	"2001::/23",         // IETF protocol assignments with Teredo, RFC 2928
	"2001:db8::/32",     // documentation, RFC 3849
	"2002::/16",         // 6to4, RFC 3056
	"2620:4f:8000::/48", // direct delegation AS112, RFC 7534
	"3fff::/20",         // documentation, RFC 9637
)

func parsePrefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

// allowList lists the private hosts and addresses that are allowed.
type allowList struct {
	prefixes []netip.Prefix
	ports    map[netip.AddrPort]bool
	names    map[string]bool // "host" or "host:port", in lower case
}

func parseAllowed(entries []string) (allowList, error) {
	a := allowList{ports: make(map[netip.AddrPort]bool), names: make(map[string]bool)}
	for _, e := range entries {
		if p, err := netip.ParsePrefix(e); err == nil {
			a.prefixes = append(a.prefixes, p.Masked())
			continue
		}
		if ip, err := netip.ParseAddr(strings.Trim(e, "[]")); err == nil {
			a.prefixes = append(a.prefixes, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()))
			continue
		}
		if ap, err := netip.ParseAddrPort(e); err == nil {
			a.ports[netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())] = true
			continue
		}
		if e == "" || strings.ContainsAny(e, "/*@ ") {
			return allowList{}, fmt.Errorf("allow private %q: expected a CIDR prefix, an address or a host name, with or without a port", e)
		}
		a.names[strings.ToLower(e)] = true
	}
	return a, nil
}

// allowsName reports whether the host, or the host with this port, is allowed by name.
func (a allowList) allowsName(hostPort string) bool {
	hostPort = strings.ToLower(hostPort)
	host, _, err := net.SplitHostPort(hostPort)
	return err == nil && (a.names[host] || a.names[hostPort])
}

// allowsAddress reports whether an address is allowed.
func (a allowList) allowsAddress(ap netip.AddrPort) bool {
	ip := ap.Addr().Unmap()
	for _, p := range a.prefixes {
		if p.Contains(ip) {
			return true
		}
	}
	return a.ports[netip.AddrPortFrom(ip, ap.Port())]
}
