package outbound

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/uuid"

	"weir/internal/fault"
)

func TestOnlyPlainPublicHTTPSURLsAreAllowed(t *testing.T) {
	g := New(Policy{})
	for _, good := range []string{"https://api.openai.com/v1", "https://API.example.com", "https://example.com:443/v1/", "https://8.8.8.8/v1", "https://[2606:4700::1111]/v1"} {
		if _, err := g.CheckURL(good); err != nil {
			t.Errorf("%s refused: %v", good, err)
		}
	}
	for _, bad := range append(internalURLs(), trickURLs...) {
		u, err := g.CheckURL(bad)
		if err == nil {
			t.Errorf("%s allowed as %s", bad, u)
			continue
		}
		if f := fault.Of(err); f.Kind != fault.Refused || f.Code != "url_not_allowed" {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

var trickURLs = []string{
	"", "api.openai.com", "//example.com", "https://", "https:///v1", "https:api.openai.com",
	"http://api.openai.com/v1", "file:///etc/passwd", "unix:///run/x.sock", "gopher://example.com", "ftp://example.com",
	"https://example.com:22", "https://example.com:5432", "https://example.com:6379", "https://example.com:4222", "https://example.com:0", "https://example.com:99999",
	"https://api.openai.com@169.254.169.254/", "https://user:pw@example.com/", "https://example.com\\@evil.com/", "https://exa%2fmple.com/", "https://example.com%00/",
	"https://example.com./", "https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://0x7f.0.0.1/", "https://0177.0.0.1/", "https://127.0.0.1.", "https://１２７.0.0.1/", "https://ⓔxample.com/",
	"https://localhost/", "https://a.localhost/", "https://exa mple.com/", "https://example.com/?x=1", "https://example.com/#f", "https://example.com/../x", "https://example.com//x", "https://-a.com/", "https://a..com/", "https://example.com\r\nx/",
	"https://[fe80::1%25eth0]/", "https://" + strings.Repeat("a", 3000) + ".com",
}

var internalAddrs = []string{
	"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255",
	"192.0.0.1", "192.0.2.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
	"::", "::1", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1",
	"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "::10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:7f00:1::1", "2002:a00:1::1", "2001::1", "2001:0:a00:1::1",
}

func internalURLs() (out []string) {
	for _, a := range internalAddrs {
		if strings.Contains(a, ":") {
			a = "[" + a + "]"
		}
		out = append(out, "https://"+a+"/v1")
	}
	return out
}

func TestInternalAddressesAreRefusedWhenDialled(t *testing.T) {
	g := New(Policy{})
	for _, a := range internalAddrs {
		addr := netip.MustParseAddr(a)
		network := "tcp6"
		if addr.Is4() {
			network = "tcp4"
		}
		var blocked *BlockedError
		if err := g.control(network, netip.AddrPortFrom(addr, 443).String(), nil); !errors.As(err, &blocked) {
			t.Errorf("%s: got %v", a, err)
		}
	}
	for _, a := range []string{"8.8.8.8:443", "[2606:4700::1111]:443"} {
		if err := g.control("tcp", a, nil); err == nil {
			t.Errorf("%s: a network without a family was allowed", a)
		}
	}
	if err := g.control("tcp4", "8.8.8.8:443", nil); err != nil {
		t.Errorf("a public address was refused: %v", err)
	}
	if err := g.control("tcp4", "8.8.8.8:22", nil); err == nil {
		t.Error("port 22 was allowed")
	}
}

func TestANameThatResolvesToThisMachineConnectsNowhere(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hit := make(chan struct{}, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			hit <- struct{}{}
			_ = c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, host := range []string{"localhost", "127.0.0.1"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+net.JoinHostPort(host, port), nil)
		resp, err := New(Policy{}).Client(uuid.New()).Do(req)
		if err == nil {
			resp.Body.Close()
			t.Fatalf("%s was reached", host)
		}
		if f := Fault(err); f.Code != "upstream_blocked" || f.Kind != fault.Upstream {
			t.Fatalf("got %v", f)
		}
	}
	select {
	case <-hit:
		t.Fatal("the sentinel saw a connection")
	default:
	}
}

func TestRedirectsAndEnvironmentProxiesAreNotFollowed(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("the redirect was followed") }))
	defer far.Close()
	near := httptest.NewServer(http.RedirectHandler(far.URL, http.StatusFound))
	defer near.Close()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, near.URL, nil)
	resp, err := New(Policy{AllowLoopback: true}).Client(uuid.New()).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Fatalf("got %d", resp.StatusCode)
	}
}

func TestTenantsNeverShareAConnection(t *testing.T) {
	g := New(Policy{})
	a, b := uuid.New(), uuid.New()
	first := g.Client(a)
	if first == g.Client(b) || first != g.Client(a) {
		t.Fatal("one client serves one tenant")
	}
}

func TestLocalIsWhatAnAddressShowsToBe(t *testing.T) {
	for base, want := range map[string]bool{
		"http://localhost:11434/v1": true, "http://LOCALHOST./v1": true, "http://a.localhost/v1": true, "http://127.0.0.1:80/v1": true, "http://[::1]/v1": true,
		"http://10.1.2.3/v1": true, "http://192.168.1.1/v1": true, "http://[::ffff:127.0.0.1]/v1": true, "http://[fd00::1]/v1": true,
		"https://api.openai.com/v1": false, "https://localhost.example.com/v1": false, "https://8.8.8.8/v1": false, "": false, "://": false,
	} {
		if Local(base) != want {
			t.Errorf("%q: %v", base, !want)
		}
	}
}
