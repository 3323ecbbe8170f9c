package features

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ingot/features/internal/rig"
	"ingot/gitsource/gitserver"
)

// connectProxy is an HTTP proxy that connects (RFC 9110 §9.3.6), or does not.
type connectProxy struct {
	to string // host:port of the Git host, whatever name a client asks for

	mu   sync.Mutex // guards what is below
	does string
	next chan struct{}     // closed once it does something else
	open map[net.Conn]bool // connections of clients
}

const proxyConnects = "lets Ingot through"

func (p *connectProxy) set(does string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.does = does
	close(p.next)
	p.next = make(chan struct{})
	for c := range p.open {
		if does != proxyConnects {
			_ = c.Close()
		}
	}
}

func (p *connectProxy) begin(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.does == proxyConnects {
		p.open[c] = true
	}
	return p.does == proxyConnects
}

func (p *connectProxy) end(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	_ = c.Close()
}

func (p *connectProxy) doing() (does string, next <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.does, p.next
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	does, next := p.doing()
	if does == "does not answer" {
		<-next
		does, _ = p.doing()
	}
	if r.Method != http.MethodConnect || does != proxyConnects {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		http.Error(w, "no", http.StatusBadGateway)
		return
	}
	defer up.Close()
	down, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer p.end(down)
	if !p.begin(down) {
		return
	}
	if _, err := io.WriteString(down, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(up, down) // whoever hangs up first ends both ways
		_ = up.Close()
	}()
	_, _ = io.Copy(down, up)
}

// throughProxy gives the Git host a name that only a proxy resolves.
func (w *site) throughProxy() error {
	u, err := url.Parse(w.remote)
	if err != nil {
		return err
	}
	w.proxy = &connectProxy{to: u.Host, does: proxyConnects, next: make(chan struct{}), open: make(map[net.Conn]bool)}
	server := httptest.NewServer(w.proxy)
	w.clients = append(w.clients, func() {
		w.proxy.set(proxyConnects) // ends what waits
		server.Close()
	})
	w.remote = "https://" + gitserver.Name + u.Path
	w.environment = append(w.environment, "HTTPS_PROXY="+server.URL)
	return nil
}

func proxyDoes(ctx context.Context, what string) error {
	siteOf(ctx).proxy.set(what)
	return nil
}

// asGitHubApp serves the repository to the tokens of a GitHub App alone.
func (w *site) asGitHubApp() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	app := &gitserver.GitHubApp{Key: &key.PublicKey, Now: time.Now}
	s, err := w.repo.ServeHTTP(gitserver.HTTPOptions{
		RealGit: true, TLS: true, Username: "x-access-token", Password: "nobody's", Wrap: app.Wrap,
	})
	if err != nil {
		return err
	}
	app.Repo = s
	w.clients = append(w.clients, s.Close)
	w.remote = s.URL
	file := filepath.Join(w.dir, "app.pem")
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		return err
	}
	err = w.authenticate(map[string][]byte{"caFile": s.CA})
	w.auth = strings.TrimSuffix(w.auth, "}") + fmt.Sprintf(", githubApp: {appID: 7, installationID: 42, privateKeyFile: %q}}", file)
	return err
}

func cloneSays(ctx context.Context, claim, state, server string) error {
	w := siteOf(ctx)
	if err := w.eventually(ctx, w.statusBranchAgrees); err != nil {
		return err
	}
	return w.whileStopped(func() error {
		dir, err := w.clone(ctx)
		if err != nil {
			return err
		}
		short := string(claimName(claim))
		status, err := runIngot(ctx, dir, "status", "claim", short)
		if err != nil {
			return err
		}
		explained, err := runIngot(ctx, dir, "explain", "claim", short)
		if err != nil {
			return err
		}
		for _, says := range []string{status, explained} {
			for _, want := range []string{short, state, w.called(server)} {
				if !strings.Contains(says, want) {
					return fmt.Errorf("in a clone %q is not said:\n%s\n%s", want, status, explained)
				}
			}
		}
		return nil
	})
}

const redisPassword = "redis-" + bmcPassword

func (w *site) redisFile(name string) string { return filepath.Join(w.dir, name) }

// redisAsksForPassword has Ingot started again with the file that holds it.
func redisAsksForPassword(ctx context.Context) error {
	w := siteOf(ctx)
	return w.whileStopped(func() error {
		file := w.redisFile("redis-password")
		w.redisMore = fmt.Sprintf(", passwordFile: %q", file)
		return errors.Join(
			os.WriteFile(file, []byte(redisPassword+"\n"), 0o600),
			w.redis.do("CONFIG SET requirepass "+redisPassword, "+OK"), w.redis.use(redisPassword))
	})
}

func redisPasswordChanges(ctx context.Context) error {
	w := siteOf(ctx)
	const fresh = redisPassword + "-2"
	err := errors.Join(w.redis.do("CONFIG SET requirepass "+fresh, "+OK"), w.redis.use(fresh), w.redis.hangUp())
	if err != nil {
		return err
	}
	if err := rig.Within(patience, func() error {
		if w.ready(ctx) {
			return errors.New("Ingot says that it is ready, with a password that counts no more")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := os.WriteFile(w.redisFile("redis-password"), []byte(fresh+"\n"), 0o600); err != nil {
		return err
	}
	return rig.Within(patience, func() error {
		if !w.ready(ctx) {
			return errors.New("Ingot says that it is not ready, though its file has the password")
		}
		return nil
	})
}

// redisOverTLS has redis-server started again with a certificate, and Ingot with its CA.
func redisOverTLS(ctx context.Context) error {
	w := siteOf(ctx)
	host, port, _ := net.SplitHostPort(w.redis.address)
	cert, key, err := selfSigned(host)
	if err != nil {
		return err
	}
	other, _, err := selfSigned(host)
	if err != nil {
		return err
	}
	return w.whileStopped(func() error {
		err := errors.Join(
			os.WriteFile(w.redisFile("redis.pem"), cert, 0o600), os.WriteFile(w.redisFile("redis-key.pem"), key, 0o600),
			os.WriteFile(w.redisFile("other.pem"), other, 0o600), w.redis.end())
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(cert)
		w.redis, err = tryRedisWith(w.dir, w.redis.address, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			"--port", "0", "--tls-port", port, "--tls-auth-clients", "no",
			"--tls-cert-file", w.redisFile("redis.pem"), "--tls-key-file", w.redisFile("redis-key.pem"))
		w.redisMore = fmt.Sprintf(", caFile: %q", w.redisFile("redis.pem"))
		return err
	})
}

var redisSettings = map[string]string{
	"becomes a replica":    "REPLICAOF 127.0.0.1 1",
	"has too few replicas": "CONFIG SET min-replicas-to-write 1",
	"has no memory left":   "CONFIG SET maxmemory 1",
}

func redisChanges(ctx context.Context, what string) error {
	w := siteOf(ctx)
	if setting := redisSettings[what]; setting != "" {
		return w.redis.do(setting, "+OK")
	}
	return errors.Join(w.redis.do("REPLICAOF NO ONE", "+OK"), w.redis.do("CONFIG SET maxmemory 0", "+OK"), w.redis.do("CONFIG SET min-replicas-to-write 0", "+OK"))
}

func checkShows(ctx context.Context, check, says string) error {
	w := siteOf(ctx)
	_, err := runIngot(ctx, w.dir, "check", "--config", filepath.Join(w.dir, "ingot.yaml"))
	if err == nil {
		return errors.New("ingot check finds nothing")
	}
	for line := range strings.Lines(err.Error()) {
		if strings.HasPrefix(line, "wrong") && strings.Contains(line, check) && strings.Contains(line, says) {
			return nil
		}
	}
	return fmt.Errorf("another fault: %w", err)
}

// otherRedisCA runs an Ingot that trusts somebody else, which must not go on.
func otherRedisCA(ctx context.Context, first, second string) error {
	w := siteOf(ctx)
	text := strings.ReplaceAll(w.configuration(filepath.Join(w.dir, "other-state")), w.redisFile("redis.pem"), w.redisFile("other.pem"))
	file := filepath.Join(w.dir, "other.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	_, err := runIngot(ctx, w.dir, "run", "--config", file)
	if err == nil || !strings.Contains(err.Error(), first) || !strings.Contains(err.Error(), second) {
		return fmt.Errorf("with another CA Ingot says: %w", err)
	}
	return nil
}

// selfSigned returns a certificate for an address and names, and its key.
func selfSigned(host string, names ...string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(host)}, DNSNames: names, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), err
}
