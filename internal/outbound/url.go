package outbound

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"weir/internal/fault"
)

// hostname is dot-separated LDH labels with a last label that is not a number;
// so the decimal, octal and hex spellings of an address do not pass as names.
var hostname = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*([a-z]([a-z0-9-]{0,61}[a-z0-9])?|[a-z])$`)

// CheckURL reads a base URL that a tenant gave. It returns the URL in the form
// to store: lower-case host, no trailing slash. A URL that may not be called is
// Refused with code url_not_allowed and a message that says which part is wrong.
func (g *Guard) CheckURL(raw string) (*url.URL, error) {
	u, reason := parse(raw, false)
	if reason == "" {
		reason = g.objection(u)
	}
	if reason != "" {
		return nil, fault.New(fault.Refused, "url_not_allowed", "This base URL is not allowed: "+reason)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// CheckHook is CheckURL for an address that is called as it is: it may end in a
// slash and have a query.
func (g *Guard) CheckHook(raw string) (*url.URL, error) {
	u, reason := parse(raw, true)
	if reason == "" {
		reason = g.objection(u)
	}
	if reason != "" {
		return nil, fault.New(fault.Refused, "url_not_allowed", "This address is not allowed: "+reason)
	}
	return u, nil
}

// parse splits raw, and says in plain words what no policy could allow.
func parse(raw string, hook bool) (u *url.URL, reason string) {
	if len(raw) > 2048 {
		return nil, "it is longer than 2,048 characters."
	}
	for _, c := range raw {
		if c <= ' ' || c == '\\' || c == '%' && !hook || c > '~' {
			return nil, "it holds a space, a backslash, a percent sign or a character outside ASCII."
		}
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "" || u.Host == "":
		return nil, "it is not a full URL such as https://api.example.com/v1."
	case u.User != nil:
		return nil, "it holds a user name or password."
	case hook && (u.Fragment != "" || strings.HasSuffix(raw, "#")):
		return nil, "it holds a fragment."
	case !hook && (u.RawQuery != "" || u.Fragment != "" || u.ForceQuery || strings.HasSuffix(raw, "#")):
		return nil, "it holds a query or fragment."
	case strings.Contains(u.Path, "//") || strings.Contains(u.Path, "/.") || strings.Contains(u.Path, ";"):
		return nil, "its path has empty or dot segments."
	}
	u.Host = strings.ToLower(u.Host)
	return u, ""
}

func (g *Guard) objection(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	addr, err := netip.ParseAddr(host)
	literal := err == nil
	if !literal && (len(host) > 253 || !hostname.MatchString(host)) {
		return "its host is neither a plain DNS name nor an IP address."
	}
	local := host == "localhost" || strings.HasSuffix(host, ".localhost") || literal && addr.Unmap().IsLoopback() && addr.Zone() == ""
	if local && g.policy.AllowLoopback {
		if u.Scheme != "https" && u.Scheme != "http" {
			return "its scheme must be https."
		}
		return ""
	}
	switch {
	case local:
		return "its host is this machine."
	case u.Scheme != "https":
		return "its scheme must be https."
	case port != "" && port != "443" && !g.portAllowed(port):
		return "its port must be 443."
	case literal && g.checkAddr(addr) != nil:
		return "its address is private, local or reserved."
	}
	return ""
}
