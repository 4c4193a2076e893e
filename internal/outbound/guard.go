package outbound

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"

	"code.dny.dev/ssrf"
)

// Policy is what the operator allows beyond https on port 443 of public
// addresses.
type Policy struct {
	AllowLoopback bool     // development and tests: any scheme and port of this machine
	Ports         []uint16 // more ports than 443
}

// Guard holds the policy. It is safe for concurrent use.
type Guard struct {
	policy   Policy
	guardian *ssrf.Guardian
	clients  clients
}

// denied adds to the library's list the blocks that it leaves open: embeddings
// of IPv4 in IPv6 (RFC 4291 2.5.5, 6052, 3056, 4380) and documentation space.
var denied = struct{ v4, v6 []netip.Prefix }{
	v4: prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
		"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
	v6: prefixes("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32",
		"2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
}

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// New makes a guard.
func New(p Policy) *Guard {
	return &Guard{policy: p, guardian: ssrf.New(
		ssrf.WithAnyPort(), ssrf.WithNetworks("tcp4", "tcp6"),
		ssrf.WithDeniedV4Prefixes(denied.v4...), ssrf.WithDeniedV6Prefixes(denied.v6...),
	)}
}

// control runs on every connection, on the address that is really dialled.
func (g *Guard) control(network, address string, raw syscall.RawConn) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return blocked(address)
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Zone() != "" {
		return blocked(address)
	}
	if g.policy.AllowLoopback && addr.Unmap().IsLoopback() {
		return nil
	}
	if port != "443" && !g.portAllowed(port) {
		return blocked(address)
	}
	if err := g.guardian.Safe(network, address, raw); err != nil {
		return blocked(address)
	}
	return g.checkAddr(addr)
}

func (g *Guard) checkAddr(addr netip.Addr) error {
	if addr.Zone() != "" || g.guardian.SafeAddr(addr) != nil {
		return blocked(addr.String())
	}
	list := denied.v6
	if addr.Is4() {
		list = denied.v4
	}
	if slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return blocked(addr.String())
	}
	return nil
}

func (g *Guard) portAllowed(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && slices.Contains(g.policy.Ports, uint16(n))
}

// BlockedError is a connection that the guard did not allow.
type BlockedError struct{ Address string }

func (e *BlockedError) Error() string { return fmt.Sprintf("outbound: %s is not allowed", e.Address) }

func blocked(address string) error { return &BlockedError{address} }
