package safehttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

func TestPublicAcceptsOnlyInternetAddresses(t *testing.T) {
	for _, a := range []string{
		"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "11.0.0.0",
		"192.0.1.1", "198.17.0.1", "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::200e",
	} {
		if !Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is not public", a)
		}
	}
	for _, a := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255",
		"127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.169.254", "169.254.0.1", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::808:808",
		"64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378::", "2001:db8::1", "2002:7f00:1::", "2002:808:808::",
		"3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "2606:4700::1111%eth0", "fec0::1", "ff02::1", "ff0e::1",
	} {
		if Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is public", a)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// server returns a server on the loopback address, and its port.
func server(t *testing.T, h http.HandlerFunc) (*httptest.Server, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return s, port
}

// get asks for a URL with these headers set to x, and returns why it failed.
func get(t *testing.T, c *http.Client, url string, header ...string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range header {
		req.Header.Set(h, "x")
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func client(t *testing.T, allow ...string) *http.Client {
	t.Helper()
	c, err := Client(Options{AllowPrivate: allow})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryLoopbackNotationIsBlocked(t *testing.T) {
	_, port := server(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") })
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1.2.3", "[::]"} {
		if err := get(t, client(t), "http://"+host+":"+port+"/"); !errors.Is(err, ErrBlocked) {
			// A machine without IPv6 cannot even try.
			if strings.Contains(host, "[") && err != nil {
				continue
			}
			t.Errorf("%s: error %v, expected blocked", host, err)
		}
	}
}

func TestEnvironmentProxyIsIgnored(t *testing.T) {
	_, port := server(t, func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") })
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:"+port)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:"+port)
	if err := get(t, client(t), "http://10.0.0.1/"); !errors.Is(err, ErrBlocked) {
		t.Errorf("error %v, expected blocked", err)
	}
}

func TestAllowedAddressesAreReachable(t *testing.T) {
	s, port := server(t, func(http.ResponseWriter, *http.Request) {})
	for _, allow := range []string{"127.0.0.0/8", "127.0.0.1", "127.0.0.1:" + port} {
		if err := get(t, client(t, allow), s.URL); err != nil {
			t.Errorf("with %s: %v", allow, err)
		}
	}
	for _, allow := range []string{"127.0.0.2", "127.0.0.1:1", "localhost", "10.0.0.0/8"} {
		if err := get(t, client(t, allow), s.URL); !errors.Is(err, ErrBlocked) {
			t.Errorf("with %s: error %v, expected blocked", allow, err)
		}
	}
	for _, allow := range []string{"localhost", "LocalHost:" + port} {
		if err := get(t, client(t, allow), "http://localhost:"+port); err != nil {
			t.Errorf("by name with %s: %v", allow, err)
		}
	}
	if _, err := Client(Options{AllowPrivate: []string{"http://x"}}); err == nil {
		t.Error("a URL is taken for a host")
	}
}

func TestRedirectToAPrivateAddressIsBlocked(t *testing.T) {
	_, inner := server(t, func(http.ResponseWriter, *http.Request) { t.Error("the inner server was reached") })
	outer, port := server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://localhost:"+inner+"/", http.StatusFound)
	})
	if err := get(t, client(t, "127.0.0.1:"+port), outer.URL); !errors.Is(err, ErrBlocked) {
		t.Errorf("error %v, expected blocked", err)
	}
}

// nameServer resolves every name to 127.0.0.1, as one does whose owner wants a
// request to go inside.
func nameServer(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		q := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(q)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(answer(q[:n]), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// answer answers a DNS query (RFC 1035, 4.1): 127.0.0.1 for a question of type
// A, nothing for another.
func answer(query []byte) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	question := query[12 : end+5]
	isA := query[end+2] == 1
	header := []byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}
	if !isA {
		return append(header, question...)
	}
	header[7] = 1
	record := []byte{0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1}
	return append(append(header, question...), record...)
}

func TestNameResolvingToAPrivateAddressIsBlocked(t *testing.T) {
	var reached atomic.Int32
	_, port := server(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	url := "http://public.example.com:" + port + "/"
	resolver := nameServer(t)
	for _, allow := range []string{"other.example.com", "public.example.com"} {
		c, err := Client(Options{AllowPrivate: []string{allow}, Resolver: resolver})
		if err != nil {
			t.Fatal(err)
		}
		if err := get(t, c, url); (allow == "public.example.com") != (err == nil) || err != nil && !errors.Is(err, ErrBlocked) {
			t.Errorf("with %s allowed: error %v", allow, err)
		}
	}
	if reached.Load() != 1 {
		t.Errorf("the server was reached %d times, expected once", reached.Load())
	}
}

func TestDialerConnectsOnlyToPublicAddresses(t *testing.T) {
	g := &guardedDialer{}
	if err := g.check("tcp4", "8.8.8.8:443"); err != nil {
		t.Errorf("a public address: %v", err)
	}
	if err := g.check("unix", "/run/x.sock"); !errors.Is(err, ErrBlocked) {
		t.Errorf("a socket: error %v, expected blocked", err)
	}
}

func TestHeadersAreDroppedOnCrossOriginRedirect(t *testing.T) {
	var got http.Header
	other, _ := server(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	first, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/same" {
			got = r.Header
			return
		}
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	c := client(t, "127.0.0.1")
	if err := get(t, c, first.URL+"/?to="+other.URL, "X-Api-Key", "Authorization", "Accept"); err != nil {
		t.Fatal(err)
	}
	if got.Get("X-Api-Key") != "" || got.Get("Authorization") != "" || got.Get("Accept") != "x" {
		t.Errorf("the other origin was sent %v", got)
	}
	if err := get(t, c, first.URL+"/?to=/same", "X-Api-Key"); err != nil {
		t.Fatal(err)
	}
	if got.Get("X-Api-Key") != "x" {
		t.Errorf("the same origin was sent %v", got)
	}
}

func TestBodyIsNotResentOnCrossOriginRedirect(t *testing.T) {
	other, _ := server(t, func(http.ResponseWriter, *http.Request) { t.Error("the body was sent on") })
	first, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, first.URL, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client(t, "127.0.0.1").Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, ErrBlocked) {
		t.Errorf("error %v, expected blocked", err)
	}
}

func TestRedirectsAreBoundedAndHTTPOnly(t *testing.T) {
	var count atomic.Int32
	s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	c := client(t, "127.0.0.1")
	if err := get(t, c, s.URL); !errors.Is(err, ErrBlocked) || count.Load() != MaxRedirects+1 {
		t.Errorf("error %v after %d requests, expected blocked after %d", err, count.Load(), MaxRedirects+1)
	}
	for _, to := range []string{"ftp://example.com/", "http://user:pw@127.0.0.1/"} {
		ftp, _ := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
		if err := get(t, c, ftp.URL); !errors.Is(err, ErrBlocked) {
			t.Errorf("to %s: error %v, expected blocked", to, err)
		}
	}
	secure, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://example.com/", nil)
	plain, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://example.com/", nil)
	if err := checkRedirect(plain, []*http.Request{secure}); !errors.Is(err, ErrBlocked) {
		t.Errorf("from https to http: error %v, expected blocked", err)
	}
}
