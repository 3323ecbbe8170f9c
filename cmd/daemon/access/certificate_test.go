package access

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ingot/model/must"
)

// pair writes a certificate for name, that is signed by itself, and its key.
func pair(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))(t)
	raw := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
	return cert, key
}

func shown(t *testing.T, a *Access, config *tls.Config) (string, error) {
	t.Helper()
	plain := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ln := a.Listen(plain)
	defer ln.Close()
	go func() {
		if conn, err := ln.Accept(); err == nil {
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	}()
	conn, err := tls.Dial("tcp", plain.Addr().String(), config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].DNSNames[0], nil
}

func TestTheNewestGoodCertificateIsShown(t *testing.T) {
	dir := t.TempDir()
	cert, key := pair(t, dir, "old.example")
	var log bytes.Buffer
	now := &clock{time.Now()}
	reg := prometheus.NewRegistry()
	a := made(t, Options{
		Listener: onLoopback, CertFile: cert, KeyFile: key, Clock: now.time, Log: slog.New(slog.NewTextHandler(&log, nil)), Registerer: reg,
	})
	check := func(when, want string, warnings int) {
		t.Helper()
		now.now = now.now.Add(rereadEvery)
		for range 2 { // the second finds nothing new to say
			if got, err := shown(t, a, &tls.Config{InsecureSkipVerify: true}); err != nil || got != want {
				t.Errorf("%s: got %q, %v, want %q", when, got, err, want)
			}
			now.now = now.now.Add(rereadEvery)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != warnings {
			t.Errorf("%s: %d warnings, want %d:\n%s", when, n, warnings, log.String())
		}
	}
	check("as it began", "old.example", 0)
	pair(t, dir, "new.example")
	check("replaced", "new.example", 0)
	write(t, key, "no key\n")
	check("broken", "new.example", 1)
	if !strings.Contains(gathered(t, reg), `ingot_admin_files_unusable{setting="admin.tls"} 1`) {
		t.Errorf("no metric says that it is broken:\n%s", gathered(t, reg))
	}
	pair(t, dir, "newer.example")
	check("mended", "newer.example", 1)
	if !strings.Contains(gathered(t, reg), `ingot_admin_files_unusable{setting="admin.tls"} 0`) {
		t.Errorf("a metric still says that it is broken:\n%s", gathered(t, reg))
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	cert, key := pair(t, t.TempDir(), "metal.example")
	a := made(t, Options{Listener: onLoopback, CertFile: cert, KeyFile: key})
	if _, err := shown(t, a, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if _, err := shown(t, a, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err != nil {
		t.Error(err)
	}
}

func TestFilesThatAreNoCertificateAreSaidSo(t *testing.T) {
	dir := t.TempDir()
	cert, key := pair(t, dir, "metal.example")
	other, _ := pair(t, t.TempDir(), "other.example")
	write(t, filepath.Join(dir, "text"), "hello\n")
	for name, files := range map[string][2]string{
		"another's key": {other, key}, "text": {filepath.Join(dir, "text"), key}, "swapped": {key, cert},
	} {
		o := Options{Listener: onLoopback, CertFile: files[0], KeyFile: files[1], Clock: time.Now, Log: slog.New(slog.DiscardHandler)}
		_, err := New(o)
		if err == nil || !strings.HasPrefix(err.Error(), "admin.tls: certFile and keyFile are no certificate with its key: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
