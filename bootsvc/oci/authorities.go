package oci

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"sync"
)

// authorities is a transport that trusts the certificates of a file beside the system's. It
// reads the file again when that changes; one that cannot be read leaves what it was.
type authorities struct {
	file string // "" = the system's alone
	base *http.Transport

	mu      sync.Mutex  // guards what is below
	seen    os.FileInfo // of the file as it was read
	trusted *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (a *authorities) RoundTrip(req *http.Request) (*http.Response, error) {
	_ = a.read() // what was trusted before is trusted on
	a.mu.Lock()
	t := a.trusted
	a.mu.Unlock()
	return t.RoundTrip(req)
}

func (a *authorities) read() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == "" {
		a.trusted = a.base
		return nil
	}
	info, err := os.Stat(a.file)
	if err != nil {
		return err
	}
	if a.seen != nil && os.SameFile(info, a.seen) && info.ModTime().Equal(a.seen.ModTime()) && info.Size() == a.seen.Size() {
		return nil
	}
	pem, err := os.ReadFile(a.file)
	if err != nil {
		return err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // there are none
	}
	if !pool.AppendCertsFromPEM(pem) {
		return errors.New(a.file + " holds no certificate in PEM form")
	}
	former := a.trusted
	a.seen, a.trusted = info, a.base.Clone()
	a.trusted.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if former != nil {
		former.CloseIdleConnections()
	}
	return nil
}

// closeIdle drops connections that nobody uses.
func (a *authorities) closeIdle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trusted.CloseIdleConnections()
}
