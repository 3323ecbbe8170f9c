package life

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ingot/features/internal/rig"
	"ingot/model/must"
)

func publish(t *testing.T, on *rig.Namespace, disk string) (url, authority string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "debian.raw.zst")
	rig.MustRun(t, "zstd", "-q", "-T2", "-3", disk, "-o", file)
	certificate := newCertificate(t)
	var listener net.Listener
	must.Do(t, on.Do(func() (err error) {
		listener, err = tls.Listen("tcp", rig.ServerAddress+":0", &tls.Config{Certificates: []tls.Certificate{certificate}})
		return err
	}))
	server := &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
	authority = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	must.Do(t, os.WriteFile(authority, text, 0o600))
	return "https://" + listener.Addr().String() + "/debian.raw.zst#sha256:" + digestOf(t, file), authority
}

func newCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(rig.ServerAddress)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}
