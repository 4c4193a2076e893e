package outbound

import (
	"net/netip"
	"net/url"
	"strings"
)

// Local tells whether a base URL names this machine or a private network, as far
// as that can be seen without a name server: localhost, and literal loopback,
// private and link-local addresses.
func Local(baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	a = a.Unmap()
	return err == nil && (a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified())
}
