package bmc

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"

	"ingot/model"
)

// pin is the certificate that a BMC is known by.
type pin struct {
	mu     sync.Mutex
	given  string // by the caller; empty on first contact
	seen   string // in the last handshake
	policy bool   // compare with what is expected; otherwise a CA was asked

	met func(tls.ConnectionState) // told of each handshake, before its certificate is judged; nil = nobody is
}

// expect sets the fingerprint that the caller knows the BMC by and reports
// whether connections made before are not to be used any more. An empty one
// after another is the wish to pin afresh.
func (p *pin) expect(fingerprint string) (stale bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given == fingerprint {
		return false
	}
	afresh := p.given != "" && fingerprint == ""
	p.given = fingerprint
	stale = p.seen != "" && p.seen != fingerprint
	if afresh || stale {
		p.seen = ""
	}
	return stale
}

// fingerprint returns the fingerprint that was seen, or else is expected.
func (p *pin) fingerprint() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen != "" {
		return p.seen
	}
	return p.given
}

// verify is a tls.Config.VerifyConnection: it runs before the handshake ends and
// so before anything is sent.
func (p *pin) verify(cs tls.ConnectionState) error {
	if len(cs.PeerCertificates) == 0 {
		return errors.New("the BMC shows no certificate")
	}
	if p.met != nil {
		p.met(cs)
	}
	shown := fingerprintOf(cs.PeerCertificates[0])

	p.mu.Lock()
	defer p.mu.Unlock()
	want := p.given
	if want == "" {
		want = p.seen
	}
	if p.policy && want != "" && want != shown {
		return fmt.Errorf("%w: pinned SHA-256 %s, shown %s; if it was replaced on purpose, set annotation %s: %s#1 on the BMC in Git",
			ErrCertificateChanged, want, shown, model.AnnotationOperation, model.OperationRetry)
	}
	p.seen = shown
	return nil
}

// fingerprintOf is the SHA-256 of a certificate, in hexadecimal.
func fingerprintOf(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// tlsConfig verifies by the CA, if there is one, else by the pin: BMCs ship with
// certificates that they signed themselves. A certificate that a CA signed is for the
// hostname, if that is given, or else for the host of the address.
func (p *pin) tlsConfig(ca *x509.CertPool, t model.BMCTarget) *tls.Config {
	cfg := &tls.Config{MinVersion: tlsVersions[cmp.Or(t.TLSMinimum, "1.2")], CipherSuites: cipherSuites(), VerifyConnection: p.verify, RootCAs: ca}
	p.policy = ca == nil
	if ca == nil {
		cfg.InsecureSkipVerify = true // verify compares with the pin instead
	}
	if host, _, err := net.SplitHostPort(t.Address); err == nil {
		cfg.ServerName = host
	}
	if ca != nil && t.Hostname != "" {
		cfg.ServerName = t.Hostname
	}
	return cfg
}

// tlsVersions are the versions that BMCTarget.TLSMinimum may be.
var tlsVersions = map[string]uint16{"1.0": tls.VersionTLS10, "1.1": tls.VersionTLS11, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

// cipherSuites are those for TLS before 1.3. BMCs of some age have none but with RSA key
// exchange, which Go leaves out unless it is asked for.
func cipherSuites() (ids []uint16) {
	for _, s := range tls.CipherSuites() {
		ids = append(ids, s.ID)
	}
	return append(ids, tls.TLS_RSA_WITH_AES_256_GCM_SHA384, tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_RSA_WITH_AES_256_CBC_SHA, tls.TLS_RSA_WITH_AES_128_CBC_SHA)
}
