package gitsource

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ingot/gitsource/gitserver"
)

// connectProxy is an HTTP proxy that connects, and counts.
type connectProxy struct {
	connected atomic.Int32
	refuse    bool
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect || p.refuse {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	up, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, "no", http.StatusBadGateway)
		return
	}
	p.connected.Add(1)
	down, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	// In one packet with what the server says first.
	first := make([]byte, 1024)
	_ = up.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	n, _ := up.Read(first)
	_ = up.SetReadDeadline(time.Time{})
	_, _ = down.Write(append([]byte("HTTP/1.1 200 Connection established\r\n\r\n"), first[:n]...))
	go func() { _, _ = io.Copy(up, down); _ = up.Close() }()
	_, _ = io.Copy(down, up)
	_ = down.Close()
}

func TestTheRepositoryIsReachedThroughAProxy(t *testing.T) {
	repo := repoWithClaim(t)
	https := serveHTTP(t, repo, gitserver.HTTPOptions{TLS: true})
	ssh := ok[*gitserver.SSHServer](t)(repo.ServeSSH())
	t.Cleanup(ssh.Close)
	for name, c := range map[string]struct {
		url  string
		auth Auth
	}{
		"HTTPS": {url: https.URL, auth: Auth{CAFile: writeFile(t, https.CA)}},
		"SSH":   {url: ssh.URL, auth: Auth{SSHKeyFile: writeFile(t, ssh.ClientKey), KnownHostsFile: writeFile(t, ssh.KnownHosts(ssh.Ed25519))}},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := &connectProxy{}
			server := httptest.NewServer(proxy)
			t.Cleanup(server.Close)
			opts := testOptions(t, c.url)
			opts.Auth = c.auth
			opts.Auth.Proxy = server.URL
			if d := mustSync(t, newSource(t, opts)); len(d.Claims) != 1 || proxy.connected.Load() == 0 {
				t.Errorf("%d claims by %d connections", len(d.Claims), proxy.connected.Load())
			}
			proxy.refuse = true
			opts.Dir = t.TempDir()
			if err := newSource(t, opts).Sync(t.Context()); err == nil || !strings.Contains(err.Error(), "Forbidden") {
				t.Errorf("a proxy that refuses: %v", err)
			}
		})
	}
}

func TestASilentProxyIsGivenUp(t *testing.T) {
	l := ok[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = l.Close() })
	conn := ok[net.Conn](t)(net.Dial("tcp", l.Addr().String()))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := connectThrough(ctx, conn, "git.example.com:22"); err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNoProxy(t *testing.T) {
	const https, ssh = "https://git.example.com/x", "git@git.example.com:x"
	for _, c := range []struct{ proxy, url, want string }{
		{"", ssh, ""},
		{"http://proxy:3128", https, ""},
		{"socks5://proxy:1080", https, ""},
		{"http://proxy:3128", ssh, ""},
		{"socks5://proxy:1080", ssh, "http://host:port alone"},
		{"http://proxy", ssh, "http://host:port alone"},
		{"proxy:3128", https, "is no address"},
		{"http://me:secret@proxy:3128", https, "holds a user or a password"},
		{"http://proxy:3128", "/srv/git", "reached through no proxy"},
	} {
		err := CheckProxy(c.proxy, c.url)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s for %s: %v, want %s", c.proxy, c.url, err, c.want)
		}
	}
}
